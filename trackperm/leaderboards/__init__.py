"""Leaderboards of many runs on the same examples: tests of pairs, correction, ranks and groups."""

from trackperm.leaderboards.leaderboard import leaderboard_of_runs
from trackperm.leaderboards.loaded_runs import experiment_runs, load_runs
from trackperm.leaderboards.paired_runs import ExcludedRun
from trackperm.leaderboards.result import Leaderboard, Pair, Row

__all__ = [
    "ExcludedRun",
    "Leaderboard",
    "Pair",
    "Row",
    "experiment_runs",
    "leaderboard_of_runs",
    "load_runs",
]
