r"""Score interval of a statistic of sums of counts: all differences that a score test does not reject.

For each difference delta, the law p over the distinct outcomes is fitted that is most likely under
h(N E_p[x]) = delta, and delta is in the interval if

    |D - delta| <= z sd,      sd^2 = E_p[G^2] / N,

with D the observed difference, G_c the influence of outcome c on the statistic under p (the slope of h at
the totals of p, times N (x_c - E_p[x])), and z the normal quantile. The spread is that of the law under test,
not of the data, as in Wilson's interval of a proportion and Tango's of paired proportions: an interval that
resamples is too short if few examples distinguish the runs, and this one is not. The most likely law under
the constraint, linearised at the law p of the step before, has

    p_c = m_c / (M (1 + lambda H_c)),      H_c = G_c - (delta - h(N E_p[x])),      sum_c p_c H_c = 0,

with m_c the number of examples of outcome c plus a share of an example, M their sum (Owen 1988). Outcomes
are pairs of counts of the two runs, including some that were not observed: without these, an interval is too
short if none of a few positives distinguishes the runs. If single runs have at most 8 different counts, all
pairs of these are outcomes, else the observed ones and those with the runs exchanged. The share is 1/8, and
less if there are more than 8 outcomes, so that all together weigh at most one example. Rows of clusters are
outcomes of whole clusters.

A difference is excluded only by a fit that converges; a difference that no law over the outcomes has is
excluded.

References
----------
T. Tango (1998), "Equivalence test and confidence interval for the difference in proportions for the
paired-sample design", Statistics in Medicine 17.
A. B. Owen (1988), "Empirical likelihood ratio confidence intervals for a single functional", Biometrika 75.
"""

from __future__ import annotations

import functools
import math
from copy import copy

import numpy as np
from scipy.special import ndtri

from trackperm.choices import Alternative
from trackperm.exact.counts import group_rows
from trackperm.exact.distributions.characteristic import UNIT, FloatArray
from trackperm.exact.engines.lattice.statistic import Statistic, values_at
from trackperm.exact.functions.operations import OperationTree
from trackperm.exact.functions.slopes import corners, values_and_slopes
from trackperm.exact.intervals.interval import Interval, tail_level
from trackperm.exact.root import bracketed_root
from trackperm.exact.types import IntArray

SCORE_NOTE = "approximate: a score interval by maximum likelihood, which may disagree with the p-value"

PSEUDO_COUNT = 0.125
"""Share of an example that is added to each outcome: its one-sided errors are the smallest in simulations."""

MOST_COMBINED = 8
"""Most different counts of single runs that are combined to pairs; a pair of more weighs next to nothing."""

MOST_STEPS = 60
"""Most linearisations of one fit; it usually takes 4 to 10."""

DAMPED_AFTER = 12
"""Linearisations after which a fit moves by half a step only."""

CONVERGED = 1e-8
"""Accepted error of a fitted difference, in standard deviations of the observed one."""

PRECISION = 1e-6
"""Accepted error of an end, in the same unit."""

ROUNDINGS = 16.0
"""Roundings in a value of the statistic, in units of the sum of its first-order terms."""

LARGEST_ROUNDING = 1e-4
"""Largest accepted roundings of the statistic, in standard deviations of the observed difference."""

FARTHEST = 64.0
"""Standard deviations within which an end has to be."""


def score_interval(
    observed: IntArray,
    swapped: IntArray,
    h: Statistic,
    multiplicities: IntArray,
    *,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> Interval | str:
    """Return the score interval of a statistic, or the reason why there is none.

    Parameters
    ----------
    observed, swapped : ndarray of int, shape (K, m)
        Counts of distinct examples, or of distinct clusters, as logged and with the runs exchanged.
    h : RationalStatistic, RealStatistic or callable
        Statistic of their sums.
    multiplicities : ndarray of int64, shape (K,)
        Number of examples of each row.
    alpha, alternative
        Approximate probability of missing; one-sided intervals are unbounded on the other side.

    Raises
    ------
    InputError
        If an option is out of range.
    """
    tau = tail_level(alpha, alternative)
    laws = ConstrainedLaws(*possible_outcomes(observed, swapped, multiplicities), h)
    z = float(-ndtri(tau))
    if not math.isfinite(laws.difference):
        return "the statistic is undefined for the examples, so its difference has no interval"
    if laws.rounding > LARGEST_ROUNDING * max(laws.spread, abs(laws.difference)):
        return (
            "the statistic is a small difference of large sums, and floats have too few digits for it:"
            " subtract a constant, such as the mean, from the columns"
        )
    if not 0.0 < laws.spread < math.inf:
        return "no outcome of the examples changes the statistic, so the size of a difference is unknown"
    low = -math.inf if alternative == "less" else laws.end(-z)
    high = math.inf if alternative == "greater" else laws.end(z)
    if low is None or high is None:
        return "the score test excludes no difference on one side, because the statistic is undefined near it"
    return Interval(low, high, alpha, alternative, "score", "may disagree", SCORE_NOTE)


class ConstrainedLaws:
    """Most likely laws over the outcomes under a given difference.

    Parameters
    ----------
    outcomes : ndarray of int, shape (K, m)
        Distinct outcomes of examples.
    counts : ndarray of int64, shape (K,)
        Number of examples of each; 0 for an outcome that is possible and was not observed.
    h : RationalStatistic, RealStatistic or callable
        Statistic of the sums of outcomes.

    Attributes
    ----------
    masses : ndarray of float64, shape (K,)
        Shares of the outcomes in the data, with those that were not observed.
    influences : ndarray of float64, shape (K,)
        Influences of the outcomes on the statistic under the masses.
    difference, spread : float
        Observed difference, and its standard deviation under the masses.
    rounding : float
        Error of the difference in floats, estimated: the roundings of the terms slope times total.
    """

    def __init__(self, outcomes: IntArray, counts: IntArray, h: Statistic) -> None:
        self._h = h
        self._formula = h if isinstance(h, OperationTree) and not corners(h) else None
        self._outcomes = outcomes.astype(np.float64)
        self._n = float(counts.sum())
        masses = counts + min(PSEUDO_COUNT, 1.0 / len(outcomes))
        self.masses = masses / masses.sum()
        self.difference = float(values_at(h, (counts @ self._outcomes)[None])[0])
        self.influences = self._at(self.masses)[1]
        self.spread = self._deviation(self.masses, self.influences)
        totals = self._n * (self.masses @ self._outcomes)
        terms = np.abs(self._value_and_slopes(totals)[1] * totals)
        size = float(terms.sum())
        self.rounding = math.inf if math.isnan(size) else ROUNDINGS * UNIT * size if size < math.inf else 0.0

    def expecting(self, law: FloatArray) -> ConstrainedLaws:
        """Return the laws for data that have the shares of this law."""
        found = copy(self)
        found.masses = law
        return found

    def end(self, z: float) -> float | None:
        """Return the last difference above the observed one, below it for z < 0, that is not excluded.

        None if nothing is known to be excluded there.
        """
        if z == 0.0:
            return self.difference
        side = math.copysign(1.0, z)
        law = self.masses

        @functools.cache
        def excess(distance: float) -> float | None:
            """Return how far a difference is outside, in standard deviations; None if no law is found."""
            nonlocal law
            found = self.fitted(self.difference + side * distance * self.spread, law)
            if found is None:
                return None
            law, deviation = found
            return distance - abs(z) * deviation / self.spread

        inside, outside, limit = 0.0, abs(z), None
        while (found := excess(outside)) is None or found <= 0.0:
            if found is None and limit is None:
                limit = max(inside, side * (self.extreme(side) - self.difference) / self.spread)
                outside = min(outside, limit)
            elif limit is not None and outside >= limit:
                return self.difference + side * limit * self.spread
            elif outside > FARTHEST:
                return None
            else:
                inside, outside = outside, min(1.5 * outside, math.inf if limit is None else limit)

        def excess_or_inside(distance: float) -> float:
            return -1.0 if (found := excess(distance)) is None else found

        distance = bracketed_root(excess_or_inside, inside, outside, xtol=PRECISION)
        return self.difference + side * distance * self.spread

    def fitted(self, difference: float, law: FloatArray) -> tuple[FloatArray, float] | None:
        """Return the most likely law with this difference, from a law near it, and its standard deviation.

        None if the steps do not converge.
        """
        for step in range(MOST_STEPS):
            value, influences = self._at(law)
            if not np.isfinite(influences).all():
                return None
            if step and abs(value - difference) <= max(CONVERGED * self.spread, self.rounding):
                return law, self._deviation(law, influences)
            following = self._reweighted(influences - (difference - value))
            law = following if step < DAMPED_AFTER else (law + following) / 2.0
        return None

    def _reweighted(self, constraint: FloatArray) -> FloatArray:
        """Return m / (1 + lambda H) with sum p H = 0; the law nearest to that if no law has it."""
        low, high = float(constraint.min()), float(constraint.max())
        if low >= 0.0 or high <= 0.0:
            towards = np.zeros_like(self.masses)
            towards[np.argmin(np.abs(constraint))] = 1.0
            return np.asarray((self.masses + towards) / 2.0)
        factor, ends = 0.0, [-1.0 / high, -1.0 / low]
        for _ in range(MOST_STEPS):
            parts = constraint / (1.0 + factor * constraint)
            rise = float(self.masses @ parts)
            ends[rise < 0.0] = factor  # the root is above where the sum is positive
            step = rise / float(self.masses @ parts**2)
            proposed = factor + step
            if not ends[0] < proposed < ends[1]:
                proposed = (factor + ends[rise > 0.0]) / 2.0
            if abs(proposed - factor) <= 1e-14 * (ends[1] - ends[0]):
                break
            factor = proposed
        law = self.masses / (1.0 + factor * constraint)
        return np.asarray(law / law.sum())

    def extreme(self, side: float) -> float:
        """Return the largest difference of a law over the outcomes, or the least, by steps uphill."""
        law = self.masses
        best, influences = self._at(law)
        for _ in range(MOST_STEPS):
            if not np.isfinite(influences).all():
                return side * math.inf
            towards = np.zeros_like(law)
            towards[np.argmax(side * influences)] = 1.0
            for share in (1.0 - 1e-9, 0.5, 0.25, 0.1, 0.01, 0.001):
                proposed = (1.0 - share) * law + share * towards
                value, there = self._at(proposed)
                if side * value > side * best:
                    law, best, influences = proposed, value, there
                    break
            else:
                break
        return best

    def _at(self, law: FloatArray) -> tuple[float, FloatArray]:
        """Return the statistic at the totals of a law, and the influence of each outcome on it."""
        mean = law @ self._outcomes
        value, slopes = self._value_and_slopes(self._n * mean)
        if not np.isfinite(slopes).all():
            return value, np.full(len(law), math.nan)
        with np.errstate(over="ignore", invalid="ignore"):
            return value, self._n * ((self._outcomes - mean) @ slopes)

    def _value_and_slopes(self, totals: FloatArray) -> tuple[float, FloatArray]:
        """Return the statistic and its slopes by the totals, by central differences if it has no formula."""
        if self._formula is not None:
            value, slopes = values_and_slopes(self._formula, totals)
            return float(value), slopes
        steps = 1e-5 * np.maximum(np.abs(totals), 1.0)
        back = np.where(totals > steps, steps, 0.0)  # counts are not negative
        points = np.vstack([totals, totals + np.diag(steps), totals - np.diag(back)])
        values = values_at(self._h, points)
        m = totals.size
        return float(values[0]), (values[1 : m + 1] - values[m + 1 :]) / (steps + back)

    def _deviation(self, law: FloatArray, influences: FloatArray) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return math.sqrt(float(law @ influences**2) / self._n)


def possible_outcomes(
    observed: IntArray, swapped: IntArray, multiplicities: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the outcomes that are possible, as rows of `observed`, and the number of examples of each."""
    possible, single = [observed, swapped], combined_counts(observed, swapped)
    if single is not None:
        possible = [np.hstack([np.repeat(single, len(single), axis=0), np.tile(single, (len(single), 1))])]
    # Possible rows count once each, and an example of an observed row more than all of them together.
    more = sum(map(len, possible)) + 1
    once = np.ones(more - 1, dtype=np.int64)
    outcomes, numbers = group_rows(
        np.vstack([observed, *possible]), np.concatenate([multiplicities * more, once])
    )
    return outcomes, numbers // more


def combined_counts(observed: IntArray, swapped: IntArray) -> IntArray | None:
    """Return the counts of single runs, which are combined to pairs; None if there are too many."""
    m, is_odd = divmod(observed.shape[1], 2)
    if is_odd or not np.array_equal(swapped, np.roll(observed, m, axis=1)):  # not one run beside the other
        return None
    single = np.unique(np.vstack([observed[:, :m], observed[:, m:]]), axis=0)
    return single if len(single) <= MOST_COMBINED else None
