r"""Effect sizes of a comparison in common units.

These are omitted on purpose: Cohen's d of 0/1 scores, because the deviation of their differences depends on
the discordance alone; the odds ratio of the two accuracies, which is for independent samples; phi, r and r^2,
because shares of variance describe paired scores poorly. A size other than the difference is None if it has
no meaning, never 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from trackperm.choices import Alternative
from trackperm.exact.distributions.beta_quantiles import beta_quantile, upper_beta_quantile
from trackperm.exact.engines.lattice.statistic import Statistic
from trackperm.exact.intervals.additive import AdditiveScores, additive_scores
from trackperm.exact.intervals.interval import Interval, tail_level
from trackperm.exact.intervals.paired_proportions import mcnemar_pvalue
from trackperm.exact.types import IntArray

ODDS_NOTE = "exact for independent examples, given how many differ (Clopper and Pearson 1934)"


@dataclass(frozen=True)
class EffectSizes:
    """Effect sizes of a comparison.

    Attributes
    ----------
    difference : float
        Observed statistic.
    relative_change : float or None
        Difference over the baseline's score; None if that is unknown or not above 0.
    cohens_dz : float or None
        Mean difference over the standard deviation of the differences, with N - 1
        (Cohen 1988, section 2.3.5). None for 0/1 scores, rows of different weights, ratios, and equal
        differences.
    odds : float or None
        Number of examples that raise the statistic over the number that lower it; inf if none lowers it. None
        for ratios, in which single examples have no sign, and if no example differs.
    odds_interval : Interval or None
        Exact interval of these odds. For 0/1 scores it excludes 1 exactly when p < alpha.
    n_better, n_worse : int or None
        Numbers of examples that raise and that lower the statistic.
    """

    difference: float
    relative_change: float | None
    cohens_dz: float | None
    odds: float | None
    odds_interval: Interval | None
    n_better: int | None
    n_worse: int | None


def effect_sizes(
    observed: IntArray,
    swapped: IntArray,
    h: Statistic,
    *,
    multiplicities: IntArray,
    difference: float,
    baseline_score: float | None = None,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> EffectSizes:
    """Return the effect sizes of a comparison by a statistic.

    Rows are those of :func:`~trackperm.exact.structured_test`, and `difference` is its observed statistic;
    `baseline_score` is known if the statistic is a difference of scores.
    """
    relative = relative_change(difference, baseline_score)
    scores = additive_scores(observed, swapped, h, multiplicities)
    if scores is None:
        return EffectSizes(difference, relative, None, None, None, None, None)
    up, down = scores.n_up, scores.n_down
    interval, odds = None, None
    if up + down:
        odds = up / down if down else math.inf
        interval = odds_interval(up, down, alpha=alpha, alternative=alternative)
        if scores.gap is None or not scores.equally_weighted:
            interval = Interval(
                interval.low, interval.high, alpha, alternative, interval.method, "may disagree", ODDS_NOTE
            )
    return EffectSizes(difference, relative, cohens_dz(scores), odds, interval, up, down)


def relative_change(difference: float, baseline_score: float | None) -> float | None:
    """Return the difference over the baseline's score; None if that is unknown or not above 0."""
    if baseline_score is None or not (math.isfinite(baseline_score) and baseline_score > 0.0):
        return None
    return difference / baseline_score


def cohens_dz(scores: AdditiveScores) -> float | None:
    """Return the mean difference over the standard deviation of the differences; None if it would mislead."""
    n = int(scores.multiplicities.sum())
    if scores.gap is not None or not scores.equally_weighted or n < 2:
        return None
    moves, counts = [int(m) for m in scores.moves], [int(c) for c in scores.multiplicities]
    total = sum(m * c for m, c in zip(moves, counts, strict=True))
    # This is n^2 times the variance with n, in integers, so equal differences give 0 exactly.
    spread = n * sum(m * m * c for m, c in zip(moves, counts, strict=True)) - total * total
    if spread == 0:
        return None
    return math.copysign(math.sqrt(total * total * (n - 1) / (spread * n)), total)


def odds_interval(
    n_better: int, n_worse: int, *, alpha: float = 0.05, alternative: Alternative = "two-sided"
) -> Interval:
    """Return the exact interval of the odds of better to worse, from Clopper and Pearson's of b in b + c.

    The numbers are not both 0. It excludes 1 exactly when the exact McNemar test has p < alpha; one-sided
    intervals reach to 0 or infinity.
    """
    tau = tail_level(alpha, alternative)
    low, high = 0.0, math.inf
    if alternative != "less":
        low = _lower_odds(n_better, n_worse, tau)
    if alternative != "greater":
        other = _lower_odds(n_worse, n_better, tau)
        high = 1.0 / other if other > 0.0 else math.inf
    if mcnemar_pvalue(n_better, n_worse, alternative) < alpha:
        if alternative == "greater" or (alternative == "two-sided" and n_better > n_worse):
            low = max(low, math.nextafter(1.0, 2.0))
        else:
            high = min(high, math.nextafter(1.0, 0.0))
    else:
        low, high = min(low, 1.0), max(high, 1.0)
    return Interval(low, high, alpha, alternative, "Clopper-Pearson", "agrees", ODDS_NOTE)


def _lower_odds(b: int, c: int, tau: float) -> float:
    """Return theta / (1 - theta) at the tau-quantile theta of Beta(b, c + 1), both without cancellation."""
    if b == 0:
        return 0.0
    return beta_quantile(b, c + 1, tau) / upper_beta_quantile(c + 1, b, tau)
