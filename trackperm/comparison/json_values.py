"""Parts of a result as JSON values: intervals, effect sizes, and numbers that may not be finite."""

from __future__ import annotations

import math
from typing import Any

from trackperm.exact.intervals import EffectSizes, Interval


def effect_sizes_as_json(sizes: EffectSizes) -> dict[str, Any]:
    """Return effect sizes as JSON values, with None for those that are unknown or infinite."""
    numbers = {name: finite(getattr(sizes, name)) for name in ("relative_change", "cohens_dz", "odds")}
    return {**numbers, "odds_interval": interval_as_json(sizes.odds_interval)}


def interval_as_json(interval: Interval | None) -> dict[str, Any] | None:
    """Return an interval as JSON values, with None for an infinite end."""
    if interval is None:
        return None
    return {
        "low": finite(interval.low),
        "high": finite(interval.high),
        "confidence": interval.confidence,
        "alternative": interval.alternative,
        "method": interval.method,
        "relation": interval.relation,
        "note": interval.note,
    }


def finite(value: float | None) -> float | None:
    """Return a number that JSON can represent, or None."""
    return value if value is not None and math.isfinite(value) else None
