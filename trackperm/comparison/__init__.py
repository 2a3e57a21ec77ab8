"""Two runs compared: the runs, the conductor of the test, and its result."""

from trackperm.comparison.conductor import compare, compare_runs
from trackperm.comparison.result import MARKERS, Case, Comparison, Verdict
from trackperm.comparison.runs import RunData, load_run, reference_answers, require_artifacts_of_runs

__all__ = [
    "MARKERS",
    "Case",
    "Comparison",
    "RunData",
    "Verdict",
    "compare",
    "compare_runs",
    "load_run",
    "reference_answers",
    "require_artifacts_of_runs",
]
