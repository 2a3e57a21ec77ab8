"""Exact paired-permutation tests for runs logged to an experiment tracker.

>>> import trackperm
>>> comparison = trackperm.compare("baseline.parquet", "candidate.parquet", "accuracy")
>>> comparison.verdict, round(comparison.pvalue, 5)
('better', 0.00335)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trackperm import exact as exact
    from trackperm import report as report
    from trackperm.comparison import Comparison as Comparison
    from trackperm.comparison import compare as compare
    from trackperm.errors import TrackpermError as TrackpermError
    from trackperm.hooks.on_exit import compare_on_exit as compare_on_exit
    from trackperm.leaderboards import Leaderboard as Leaderboard
    from trackperm.leaderboards import leaderboard as leaderboard
    from trackperm.predictions import log_predictions as log_predictions
    from trackperm.statistic import load_statistic as load_statistic
    from trackperm.trackers.base import open_tracker as open_tracker

__version__ = "0.1.0"

_HOMES = {
    "Comparison": "trackperm.comparison",
    "Leaderboard": "trackperm.leaderboards",
    "TrackpermError": "trackperm.errors",
    "compare": "trackperm.comparison",
    "compare_on_exit": "trackperm.hooks.on_exit",
    "leaderboard": "trackperm.leaderboards",
    "load_statistic": "trackperm.statistic",
    "log_predictions": "trackperm.predictions",
    "open_tracker": "trackperm.trackers.base",
}
_SUBPACKAGES = ("exact", "report")

__all__ = [
    "Comparison",
    "Leaderboard",
    "TrackpermError",
    "compare",
    "compare_on_exit",
    "exact",
    "leaderboard",
    "load_statistic",
    "log_predictions",
    "open_tracker",
    "report",
]


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that `import trackperm` stays quick."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _SUBPACKAGES:
        return import_module(f"trackperm.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
