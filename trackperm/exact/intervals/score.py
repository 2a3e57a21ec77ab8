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

Steps to these laws may oscillate where the statistic is bent. Laws of two steps are mixed, so that the change
of the mixture is least (Anderson 1965), which usually converges at once. If it does not, the fit starts
again, and a step goes only part of the way, until

    f(p) + nu |h(N E_p[x]) - delta|,      f(p) = -sum_c (m_c / M) log p_c,      nu > |lambda|,

falls (Han 1977). It does for small parts: with q the law of the linearised problem, its conditions and the
convexity of f give f(p) - f(q) >= -|lambda| |h - delta|, so that the promised fall

    f(p) - f(q) + nu |h - delta|

is positive unless p = q has the difference, and a share s of the step makes at least s times that fall, less
a term in s^2. Falls add up to a finite number, and so the promises tend to 0: the laws converge to one that
is stationary under the constraint, while lambda is bounded. Where no law has the linearised difference,
delta is moved towards h, which changes neither argument.

A difference is excluded only by a fit that converges; a difference that no law over the outcomes has is
excluded. An end is searched outwards from the observed difference. Where a fit fails, nearer differences are
tried, and then farther ones. The end is the largest difference of any law only if fits up to there exclude
none.

References
----------
D. G. Anderson (1965), "Iterative procedures for nonlinear integral equations", Journal of the ACM 12.
S.-P. Han (1977), "A globally convergent method for nonlinear programming", Journal of Optimization Theory and
Applications 22.
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

MIXED_STEPS = 12
"""Most mixed steps of one fit; it usually takes 4 to 8, and in 1 % of the simulated fits more than 12."""

MOST_DESCENTS = 500
"""Most parts of steps of a fit whose mixed steps do not converge; 200 sufficed in simulations."""

MOST_STEPS = 60
"""Most steps to one multiplier, or uphill to the largest difference."""

CONVERGED = 1e-8
"""Accepted error of a fitted difference, in standard deviations of the observed one."""

STATIONARY = 1e-10
"""Largest promised fall of a law that counts as the most likely one: its square root is a relative error."""

LEAST_FALL = 0.1
"""Share of the promised fall that part of a step has to make."""

LEAST_SHARE = 2.0**-30
"""Smallest part of a step that is tried."""

WITHIN = 0.9
"""Part of the largest influence that a linearised difference is at most away, so that a law has it."""

RESOLVED = 0.02
"""Gap between a difference that is not excluded and one without a fitted law that is searched no further."""

PRECISION = 1e-6
"""Accepted error of an end, in the same unit."""

ROUNDINGS = 16.0
"""Roundings in a value of the statistic, in units of the sum of its first-order terms."""

LARGEST_ROUNDING = 1e-4
"""Largest accepted roundings of the statistic, in standard deviations of the observed difference."""

FARTHEST = 64.0
"""Standard deviations within which an end has to be."""

NOT_EXCLUDED = "the score test excludes no difference on one side, because the statistic is undefined near it"
NOT_FITTED = "the search for the most likely law did not converge for differences near an end of the interval"
"""Reasons that a result gives instead of an interval."""


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
    if isinstance(low, str):
        return low
    if isinstance(high, str):
        return high
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
        self._extremes: dict[float, float] = {}
        self.rounding = math.inf if math.isnan(size) else ROUNDINGS * UNIT * size if size < math.inf else 0.0

    def expecting(self, law: FloatArray) -> ConstrainedLaws:
        """Return the laws for data that have the shares of this law."""
        found = copy(self)
        found.masses = law
        return found

    def end(self, z: float) -> float | str:
        """Return the last difference above the observed one, below it for z < 0, that is not excluded.

        If nothing is known to be excluded there, it is the reason.
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

        inside, outside, failed, farthest = 0.0, abs(z), math.inf, 0.0
        limit, is_known = math.inf, True
        while (found := excess(outside)) is None or found <= 0.0:
            if found is not None:
                inside, outside = outside, 1.5 * outside
            else:
                limit = max(side * (self.extreme(side) - self.difference) / self.spread, 0.0)
                failed = min(outside, limit)
                farthest = max(farthest, outside) if outside < limit else farthest
            if limit - inside <= RESOLVED:
                return self.difference + side * limit * self.spread if is_known else NOT_FITTED
            if failed - inside <= RESOLVED:
                inside, outside, failed, is_known = farthest, 1.5 * farthest, limit, False
            if inside > FARTHEST:
                return NOT_EXCLUDED
            if outside >= failed:
                outside = (inside + failed) / 2.0

        def excess_or_inside(distance: float) -> float:
            found = excess(distance) if distance else -abs(z)
            return -1.0 if found is None else found

        distance = bracketed_root(excess_or_inside, inside, outside, xtol=PRECISION)
        return self.difference + side * distance * self.spread

    def fitted(self, difference: float, law: FloatArray) -> tuple[FloatArray, float] | None:
        """Return the most likely law with this difference, from a law near it, and its standard deviation.

        None if no law has it, or the steps do not converge.
        """
        change: FloatArray | None = None
        first = following = law
        for step in range(MIXED_STEPS):
            value, influences = self._at(law)
            if step and abs(value - difference) <= self._accepted:
                return law, self._deviation(law, influences)
            if not _differ(influences):
                break
            before, changed_before = following, change
            following = self._reweighted(influences, difference - value)[0]
            change = following - law
            law = following
            if changed_before is not None:
                law = self._mixed(following, change, before, changed_before)
        side = math.copysign(1.0, difference - self.difference)
        if side * difference >= side * self.extreme(side):
            return None
        return self._descended(difference, first)

    def _mixed(
        self, following: FloatArray, change: FloatArray, before: FloatArray, changed_before: FloatArray
    ) -> FloatArray:
        """Return the mixture of the laws of two steps whose mixed change is least (Anderson 1965).

        The last law is returned if the mixture, which may extrapolate, has a negative probability.
        """
        turn = change - changed_before
        size = float(turn**2 @ (1.0 / self.masses))
        if not size > 0.0:
            return following
        share = float((turn * change) @ (1.0 / self.masses)) / size
        mixed = following - share * (following - before)
        return mixed if mixed.min() > 0.0 else following

    def _descended(self, difference: float, law: FloatArray) -> tuple[FloatArray, float] | None:
        """Return what :meth:`fitted` does, by parts of steps that make f + nu |h - delta| fall."""
        penalty, share = 0.0, 1.0
        value, influences = self._at(law)
        for _ in range(MOST_DESCENTS):
            if not _differ(influences):
                return None
            gap = difference - value
            following, factor, aim = self._reweighted(influences, gap)
            if penalty < 1.1 * abs(factor):
                penalty = 2.0 * abs(factor)
            promised = float(self.masses @ np.log(following / law)) + penalty * abs(aim)
            if abs(gap) <= self._accepted and promised <= STATIONARY:
                return law, self._deviation(law, influences)
            share = min(4.0 * share, 1.0)
            while True:
                proposed = law + share * (following - law)
                value, there = self._at(proposed)
                nearer = abs(gap) - abs(difference - value)
                fall = float(self.masses @ np.log(proposed / law)) + penalty * nearer
                if fall >= LEAST_FALL * share * promised:
                    break
                share /= 2.0
                if share < LEAST_SHARE:
                    return None
            law, influences = proposed, there
        return None

    @property
    def _accepted(self) -> float:
        """Accepted error of a fitted difference."""
        return max(CONVERGED * self.spread, self.rounding)

    def _reweighted(self, influences: FloatArray, gap: float) -> tuple[FloatArray, float, float]:
        """Return m / (1 + lambda H) with sum p H = 0, lambda, and the linearised change to that law.

        The change is the gap, or as much of it as some law has.
        """
        aim = min(max(gap, WITHIN * float(influences.min())), WITHIN * float(influences.max()))
        constraint = influences - aim
        factor, ends = 0.0, [-1.0 / float(constraint.max()), -1.0 / float(constraint.min())]
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
        return np.asarray(law / law.sum()), factor, aim

    def extreme(self, side: float) -> float:
        """Return the largest difference of a law over the outcomes, or the least, by steps uphill."""
        if side not in self._extremes:
            self._extremes[side] = self._uphill(side)
        return self._extremes[side]

    def _uphill(self, side: float) -> float:
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


def _differ(influences: FloatArray) -> bool:
    """Return whether the influences, whose mean is 0, are finite and not all 0."""
    return bool(np.isfinite(influences).all() and influences.min() < 0.0 < influences.max())


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
