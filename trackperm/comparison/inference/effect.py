"""Size of a difference: its interval, effect sizes, and the smallest effect that the test can detect."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from trackperm.choices import Alternative, IntervalChoice
from trackperm.comparison.inference.unseen import has_parts, unit_scores, unseen_differences, unseen_in_pairs
from trackperm.errors import CapacityError, TrackpermError, UndefinedStatisticError
from trackperm.exact import CountTable, PermutationTest
from trackperm.exact.intervals import (
    EffectSizes,
    Interval,
    binary_interval,
    bootstrap_interval,
    effect_sizes,
    interval_of_pairs,
    relative_change,
    score_interval,
    shift_interval,
    strata_of_rows,
    why_bent,
    why_not_resampled,
    why_not_scored,
    why_not_shifted,
)
from trackperm.exact.intervals.bootstrap import N_RESAMPLES
from trackperm.exact.intervals.interval import tail_level
from trackperm.exact.pairwise import Influences
from trackperm.exact.power import MinimumDetectableEffect, detectable_effect
from trackperm.exact.power.fewest import can_reach
from trackperm.exact.types import IntArray
from trackperm.statistic import Statistic
from trackperm.statistic.score_ranges import largest_difference

WIDENED_NOTE = "approximate, and widened to contain 0, which the test does not exclude"

DRAWN_BEYOND = 20
"""Expected resamples beyond an end of an interval: its level has a relative error of 1 / sqrt(20) = 22 %."""

MOST_DRAWN = 2**25
"""Most drawn counts (resamples by counts) for more resamples than usual; they take some seconds."""


def interval_of(
    statistic: Statistic,
    table: CountTable,
    choice: IntervalChoice = "auto",
    *,
    alpha: float,
    alternative: Alternative,
    influences: Influences | None = None,
) -> Interval | str:
    """Return the interval for the statistic, or the reason why it is unavailable.

    By default, the interval that agrees with the exact test is preferred, then the score interval. An
    interval is unavailable if its coverage is not known to be near its confidence
    (:mod:`trackperm.exact.intervals.coverage`), if an end that the test needs is infinite or not found, or
    if the statistic is undefined near the data. A mean over pairs of examples has the interval that follows
    from their `influences`.
    """
    if choice == "none":
        return "intervals were switched off"
    if statistic.repeats == "attempts":
        return "attempts are exchanged within examples, and trackperm has no interval for that"
    if statistic.rank_score is not None:
        return (
            f"the rank of an example depends on the others, and no interval for `{statistic.name}` is known"
            " to have its coverage"
        )
    unit = "example" if statistic.cluster is None else "cluster"
    if influences is not None:
        if choice == "bootstrap":
            return "means over pairs of examples have a score interval only"
        unseen = unseen_in_pairs(influences)
        if unseen is not None and (why := unseen.why_hidden(alpha, alternative, unit)) is not None:
            return why
        largest = None if statistic.pair_term is None else statistic.pair_term.largest_difference
        return interval_of_pairs(
            influences,
            alpha=alpha,
            alternative=alternative,
            unit=unit,
            largest=math.inf if largest is None else float(largest),
        )
    observed, swapped = statistic.pairs(table.candidate, table.baseline)
    found = None
    if choice == "auto":
        found = _agreeing(statistic, table, alpha, alternative, unit)
    if found is None:
        found = _approximate(statistic, observed, swapped, table, choice, alpha, alternative, unit)
    widest = largest_difference(statistic)
    if widest is None or isinstance(found, str):
        return found
    # No difference is larger, so the cut interval contains the true one exactly if the whole one does.
    return replace(
        found,
        low=max(found.low, float(-widest)) if math.isfinite(found.low) else found.low,
        high=min(found.high, float(widest)) if math.isfinite(found.high) else found.high,
    )


def interval_beside(
    test: PermutationTest,
    statistic: Statistic,
    table: CountTable,
    choice: IntervalChoice,
    alpha: float,
    influences: Influences | None,
) -> Interval | str:
    """Return the interval of :func:`interval_of` that is shown beside a test, or why it is unavailable."""
    found = interval_of(
        statistic, table, choice, alpha=alpha, alternative=test.alternative, influences=influences
    )
    if isinstance(found, str):
        return found
    if found.approximate and not test.interval[1] < alpha and 0.0 not in found:
        # The test does not exclude 0; a wider interval does not cover less.
        return replace(found, low=min(found.low, 0.0), high=max(found.high, 0.0), note=WIDENED_NOTE)
    # An interval agrees with the exact p-value only, not with a mid-p-value or an estimate.
    is_plain = not test.mid_p and not test.is_drawn
    return found if is_plain else replace(found, relation="may disagree")


def hull_of(intervals: Iterable[Interval | str]) -> Interval | str:
    """Return the smallest interval that contains all `intervals`, or why one of them is unavailable."""
    known = list[Interval]()
    for each in intervals:
        if isinstance(each, str):
            return each
        known.append(each)
    low, high = min(each.low for each in known), max(each.high for each in known)
    return replace(max(known, key=lambda each: each.approximate), low=low, high=high)


def _agreeing(
    statistic: Statistic, table: CountTable, alpha: float, alternative: Alternative, unit: str
) -> Interval | str | None:
    """Return the interval that agrees with the exact test, or a reason; None if no such interval is known."""
    scores = unit_scores(statistic, table)
    if scores is None:
        return None
    if not scores.moves.any() and not statistic.divides_by_labels:
        # Without differences, every function of sums counts as linear.
        return f"exchanging outputs never changes `{statistic.name}`, so the size of a difference is unknown"
    if scores.gap is not None:
        equal = scores.equally_weighted
        return binary_interval(scores, alpha=alpha, alternative=alternative) if equal else None
    why = why_not_shifted(scores, alpha=alpha, alternative=alternative, unit=unit)
    if why is None:
        why = _why_hidden(statistic, table, alpha, alternative, unit)
    if why is not None:
        return why
    try:
        return _bounded(shift_interval(scores, alpha=alpha, alternative=alternative))
    except CapacityError:
        return None


def _approximate(
    statistic: Statistic,
    observed: IntArray,
    swapped: IntArray,
    table: CountTable,
    choice: IntervalChoice,
    alpha: float,
    alternative: Alternative,
    unit: str,
) -> Interval | str:
    """Return the score interval or the bootstrap interval, or the reason why it is unavailable."""
    counts = table.multiplicities
    if (why := why_bent(observed, statistic.h, counts)) is not None:
        return why
    if (why := _why_hidden(statistic, table, alpha, alternative, unit)) is not None:
        return why
    if choice == "bootstrap":
        return _resampled(statistic, observed, swapped, counts, alpha, alternative, unit)
    why = why_not_scored(
        observed, swapped, statistic.h, counts, alpha=alpha, alternative=alternative, unit=unit
    )
    if why is not None:
        return why
    return score_interval(observed, swapped, statistic.h, counts, alpha=alpha, alternative=alternative)


def _why_hidden(
    statistic: Statistic, table: CountTable, alpha: float, alternative: Alternative, unit: str
) -> str | None:
    """Return the reason against an interval of a mean over strata or classes; None if all show enough."""
    if not has_parts(statistic):
        return None
    return unseen_differences(statistic, table).why_hidden(alpha, alternative, unit)


def _resampled(
    statistic: Statistic,
    observed: IntArray,
    swapped: IntArray,
    counts: IntArray,
    alpha: float,
    alternative: Alternative,
    unit: str,
) -> Interval | str:
    """Return the bootstrap interval, or the reason why it is unavailable."""
    why = why_not_resampled(
        observed, swapped, statistic.h, counts, alpha=alpha, alternative=alternative, unit=unit
    )
    if why is not None:
        return why
    n_resamples = max(N_RESAMPLES, math.ceil(DRAWN_BEYOND / tail_level(alpha, alternative)))
    if n_resamples > N_RESAMPLES and n_resamples * observed.size > MOST_DRAWN:
        return f"the level {alpha:.2g} needs {n_resamples:,} resamples, which take too long"
    try:
        return bootstrap_interval(
            observed,
            statistic.h,
            multiplicities=counts,
            strata=strata_of_rows(statistic.h, observed),
            alpha=alpha,
            alternative=alternative,
            n_resamples=n_resamples,
        )
    except (CapacityError, UndefinedStatisticError) as error:
        return error.message


def _bounded(interval: Interval) -> Interval | str:
    """Return the interval, or a reason if an end that the alternative needs is infinite."""
    ends = {"less": [interval.high], "greater": [interval.low]}.get(
        interval.alternative, [interval.low, interval.high]
    )
    if all(map(math.isfinite, ends)):
        return interval
    return f"too few examples to exclude any size of the difference at the level {interval.alpha:.2g}"


def effect_sizes_of(
    statistic: Statistic,
    table: CountTable,
    *,
    difference: float,
    baseline_score: float | None,
    alpha: float,
    alternative: Alternative,
) -> EffectSizes:
    """Return the effect sizes; better and worse examples follow the direction of the statistic."""
    if statistic.rank_score is not None:
        relative = relative_change(difference, baseline_score)
        return EffectSizes(difference, relative, None, None, None, None, None)
    observed, swapped = statistic.pairs(table.candidate, table.baseline)
    found = effect_sizes(
        observed,
        swapped,
        statistic.h,
        multiplicities=table.multiplicities,
        difference=difference,
        baseline_score=baseline_score if statistic.contrast == "difference" else None,
        alpha=alpha,
        alternative=alternative,
    )
    if statistic.pair_term is not None:  # shares depend on other examples, and so does their spread
        found = replace(found, cohens_dz=None, odds=None, odds_interval=None)
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
    """Return the smallest true difference that a test of this size and discordance detects at 80 % power.

    None if the discordance is unknown, cannot be estimated because no example is discordant, or there is no
    such difference. Its `effect` is None if too few examples are discordant for any p < alpha.
    """
    if not table.n_discordant or statistic.rank_score is not None:
        return None
    try:
        observed, swapped = statistic.pairs(table.candidate, table.baseline)
        found = detectable_effect(
            observed, swapped, statistic.h, table.multiplicities, alpha=alpha, alternative=alternative
        )
        if found is None or found.exact or statistic.repeats == "attempts":  # attempts have more outcomes
            return found
        share = table.n_discordant / table.n_examples
        is_possible = can_reach(table.n_examples, share, found.power, alpha, alternative)
        return found if is_possible else replace(found, effect=None, exact=True)
    except TrackpermError:
        return None
