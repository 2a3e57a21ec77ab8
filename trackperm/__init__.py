"""Exact paired-permutation tests for runs logged to an experiment tracker.

>>> import trackperm
>>> comparison = trackperm.compare("baseline.parquet", "candidate.parquet", "accuracy")
>>> comparison.verdict, round(comparison.pvalue, 5)
('better', 0.00335)
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from trackperm import presentation as _presentation
from trackperm.version import __version__ as __version__

if TYPE_CHECKING:
    from trackperm import exact as exact
    from trackperm import report as report
    from trackperm.automation.gate.gate import gate as gate
    from trackperm.automation.training.on_exit import compare_on_exit as compare_on_exit
    from trackperm.comparison import Comparison as Comparison
    from trackperm.comparison.compare import compare as compare
    from trackperm.errors import TrackpermError as TrackpermError
    from trackperm.leaderboards import Leaderboard as Leaderboard
    from trackperm.leaderboards.leaderboard import leaderboard as leaderboard
    from trackperm.ledger.family import family as family
    from trackperm.ledger.log import log as log
    from trackperm.ledger.power import power as power
    from trackperm.ledger.verification.verify import verify as verify
    from trackperm.statistic import load_statistic as load_statistic
    from trackperm.trackers.base import open_tracker as open_tracker
    from trackperm.trackers.log_predictions import log_predictions as log_predictions

_HOMES = {
    "Comparison": "trackperm.comparison",
    "Leaderboard": "trackperm.leaderboards",
    "TrackpermError": "trackperm.errors",
    "compare": "trackperm.comparison.compare",
    "compare_on_exit": "trackperm.automation.training.on_exit",
    "family": "trackperm.ledger.family",
    "gate": "trackperm.automation.gate.gate",
    "leaderboard": "trackperm.leaderboards.leaderboard",
    "load_statistic": "trackperm.statistic",
    "log": "trackperm.ledger.log",
    "log_predictions": "trackperm.trackers.log_predictions",
    "open_tracker": "trackperm.trackers.base",
    "power": "trackperm.ledger.power",
    "verify": "trackperm.ledger.verification.verify",
}
_PRESENTERS = {
    "Comparison": "trackperm.report.presented",
    "Leaderboard": "trackperm.report.leaderboard.presented",
}
for _kind, _module in _PRESENTERS.items():
    _presentation.register(_kind, partial(import_module, _module))

_SUBPACKAGES = ("exact", "report")

__all__ = [
    "Comparison",
    "Leaderboard",
    "TrackpermError",
    "compare",
    "compare_on_exit",
    "exact",
    "family",
    "gate",
    "leaderboard",
    "load_statistic",
    "log",
    "log_predictions",
    "open_tracker",
    "power",
    "report",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that `import trackperm` stays quick, and keep them."""
    if name in _HOMES:
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found
    if name in _SUBPACKAGES:
        return import_module(f"trackperm.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
