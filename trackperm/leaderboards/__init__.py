"""Many runs on the same examples: tested in pairs, corrected for their number, ranked and grouped."""

from trackperm.leaderboards.conductor import leaderboard, leaderboard_of_runs
from trackperm.leaderboards.entrants import experiment_runs, load_runs
from trackperm.leaderboards.field import Incomplete
from trackperm.leaderboards.result import Leaderboard, Pair, Row

__all__ = [
    "Incomplete",
    "Leaderboard",
    "Pair",
    "Row",
    "experiment_runs",
    "leaderboard",
    "leaderboard_of_runs",
    "load_runs",
]
