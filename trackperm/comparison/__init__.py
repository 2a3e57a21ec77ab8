"""Two runs compared: the runs, the conductor of the test, and its result."""

from trackperm.comparison.conductor import compare, compare_runs, count_table_test
from trackperm.comparison.context import Case, Corrected, Slice
from trackperm.comparison.corrections import CORRECTIONS, corrected
from trackperm.comparison.result import Comparison
from trackperm.comparison.runs import RunData, load_run, reference_answers, require_artifacts_of_runs
from trackperm.comparison.together import compare_together, runs_of_slice

__all__ = [
    "CORRECTIONS",
    "Case",
    "Comparison",
    "Corrected",
    "RunData",
    "Slice",
    "compare",
    "compare_runs",
    "compare_together",
    "corrected",
    "count_table_test",
    "load_run",
    "reference_answers",
    "require_artifacts_of_runs",
    "runs_of_slice",
]
