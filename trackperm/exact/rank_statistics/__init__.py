"""Rank statistics: scores that are computed from whole columns, and again after every exchange of outputs."""

from trackperm.exact.rank_statistics.examples import RankedExamples
from trackperm.exact.rank_statistics.permutation import changes_by_coin, draws_by_default, rank_test_of
from trackperm.exact.rank_statistics.registry import RANK_STATISTICS, MeanOverStrata, scores_by_stratum

__all__ = [
    "RANK_STATISTICS",
    "MeanOverStrata",
    "RankedExamples",
    "changes_by_coin",
    "draws_by_default",
    "rank_test_of",
    "scores_by_stratum",
]
