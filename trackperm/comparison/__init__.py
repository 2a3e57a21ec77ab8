"""Comparison of two runs: reading, pairing, testing, verdict and correction."""

from trackperm.comparison.assumptions.dependence import Dependence
from trackperm.comparison.context import AdjustedPValue, MissingDataCase, Slice
from trackperm.comparison.corrections import CORRECTIONS, corrected
from trackperm.comparison.question.question import Question
from trackperm.comparison.result import Comparison
from trackperm.comparison.runs import (
    RunData,
    load_run,
    load_runs,
    reference_answers,
    require_artifacts_of_runs,
)
from trackperm.comparison.several import compare_statistics
from trackperm.comparison.single import compare_runs, count_table_test
from trackperm.comparison.slices import runs_of_slice

__all__ = [
    "CORRECTIONS",
    "AdjustedPValue",
    "Comparison",
    "Dependence",
    "MissingDataCase",
    "Question",
    "RunData",
    "Slice",
    "compare_runs",
    "compare_statistics",
    "corrected",
    "count_table_test",
    "load_run",
    "load_runs",
    "reference_answers",
    "require_artifacts_of_runs",
    "runs_of_slice",
]
