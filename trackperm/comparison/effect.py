"""How large a difference is, and how large it would have to be to be seen: said beside the p-value."""

from __future__ import annotations

import math
from dataclasses import replace

from trackperm.choices import Alternative
from trackperm.exact import CountTable
from trackperm.exact.intervals import EffectSizes, Interval, difference_interval, effect_sizes
from trackperm.exact.power import MinimumDetectableEffect, detectable_effect
from trackperm.statistic import Statistic


def interval_of(
    statistic: Statistic, table: CountTable, *, alpha: float, alternative: Alternative
) -> Interval:
    """Return the interval for the statistic: that which agrees with the exact test, where there is one.

    Raises
    ------
    InputError
        If the statistic is undefined for resampled examples.
    CapacityError
        If it does not fit into memory.
    """
    stay, swap = statistic.pairs(table.candidate, table.baseline)
    return difference_interval(
        stay,
        swap,
        statistic.h,
        multiplicities=table.multiplicities,
        alpha=alpha,
        alternative=alternative,
    )


def effect_sizes_of(
    statistic: Statistic,
    table: CountTable,
    *,
    difference: float,
    baseline_score: float | None,
    alpha: float,
    alternative: Alternative,
) -> EffectSizes:
    """Return the effect sizes that mean something; of an error rate, an example that lowers it is better."""
    stay, swap = statistic.pairs(table.candidate, table.baseline)
    found = effect_sizes(
        stay,
        swap,
        statistic.h,
        multiplicities=table.multiplicities,
        difference=difference,
        baseline_score=baseline_score if statistic.contrast == "difference" else None,
        alpha=alpha,
        alternative=alternative,
    )
    if statistic.greater_is_better:
        return found
    odds = None if found.odds is None else _inverse(found.odds)
    ends = found.odds_interval
    if ends is not None:
        ends = replace(ends, low=_inverse(ends.high), high=_inverse(ends.low))
    return replace(found, odds=odds, odds_interval=ends, n_better=found.n_worse, n_worse=found.n_better)


def _inverse(odds: float) -> float:
    return 1.0 / odds if odds > 0.0 else math.inf


def detectable_effect_of(
    statistic: Statistic, table: CountTable, *, alpha: float, alternative: Alternative
) -> MinimumDetectableEffect | None:
    """Return the smallest true difference that as many examples, as discordant, show at 80 % power.

    None where no example tells the runs apart, which says nothing of how many would, or it is not known.
    """
    if not table.n_discordant:
        return None
    stay, swap = statistic.pairs(table.candidate, table.baseline)
    return detectable_effect(
        stay, swap, statistic.h, table.multiplicities, alpha=alpha, alternative=alternative
    )
