"""Leaderboards of many runs on the same examples: tests of pairs, correction, ranks and groups."""

from trackperm.leaderboards.entrants import experiment_runs, load_runs
from trackperm.leaderboards.leaderboard import leaderboard_of_runs
from trackperm.leaderboards.paired_runs import Incomplete
from trackperm.leaderboards.result import Leaderboard, Pair, Row

__all__ = [
    "Incomplete",
    "Leaderboard",
    "Pair",
    "Row",
    "experiment_runs",
    "leaderboard_of_runs",
    "load_runs",
]
