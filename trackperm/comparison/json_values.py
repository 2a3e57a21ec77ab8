"""Parts of a result as JSON values: p-values, intervals, effect sizes, and numbers that may not be finite."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from trackperm.comparison.inference.evidence import EquivalencePValue
from trackperm.exact import PermutationTest
from trackperm.exact.intervals import EffectSizes, Interval
from trackperm.exact.power import EquivalencePower


def pvalue_as_json(test: PermutationTest) -> dict[str, Any]:
    """Return the p-value of a test as JSON values; None if it is below the range of floats."""
    return {
        "pvalue": test.pvalue if test.pvalue > 0.0 else None,
        "log10_pvalue": test.log10_pvalue,
        "error_bound": finite(test.error_bound),
        "pvalue_interval": list(test.interval),
        "mid_p": test.mid_p,
        "n_samples": test.n_samples,
        "relation": test.relation,
        "estimate": None if test.estimate is None else asdict(test.estimate),
        "log10_smallest_pvalue": test.log10_smallest_pvalue,
    }


def equivalence_as_json(shown: EquivalencePValue | None, power: EquivalencePower | None) -> dict[str, Any]:
    """Return the p-value and the power of an equivalence as JSON values, with None for what is unknown."""
    return {
        "equivalence_pvalue": None if shown is None else shown.pvalue,
        "equivalence_pvalue_is_bound": None if shown is None else shown.is_bound,
        "equivalence_power": None if power is None else asdict(power),
    }


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
