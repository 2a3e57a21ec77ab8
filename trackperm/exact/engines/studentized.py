r"""Studentised permutation test: each swap's statistic is divided by its own standard error.

The plain test compares h(S), with S the observed sums, with h after random swaps. Swaps mix the two runs, so
to first order they give h the variance

    sigma_swap^2 = sum_n (w . (a_n - b_n) / 2)^2,    w the slopes of h half way between the runs,

whereas for runs with equal scores, with a_n the observed contribution of example n, it is

    sigma^2 = sum_n (y_n - mean of y)^2,    y_n = v . a_n,    v the slopes of h at S.

If outputs are exchangeable, S is half way and the two agree. Runs with equal scores may differ in other ways.
Take precision, independent outputs, and shares q = 10 % and r = 50 % of examples predicted positive: then
sigma^2 / sigma_swap^2 = (q + r)^2 / 4qr = 1.8, and a level of 5 % becomes 2 Phi(-1.96 / sqrt(1.8)) = 14 %.

This test judges each swap s by T(s) = h(S(s)) / se(s), with se(s) from the slopes at S(s) and the
contributions under s (delta method). The p-value is the share of swaps with |T(s)| >= |T|, one-sided
likewise. It is exact if outputs are exchangeable, as for every function of the outputs. If only the scores
are equal, T is asymptotically standard normal by the delta method, and so is T(s) over the swaps given the
data: there S(s) is near half way, and se(s)^2 near sigma_swap^2 for all but few swaps (Janssen 1997; Chung
and Romano 2013; for pairs, Konietschke and Pauly 2014). For a sum or a mean se(s)^2 is a constant minus
h(S)^2 / N, so that T grows with h and the test is the plain one.

Computation. se(s) needs S(s) and the sums of products M(s) = sum_n x_n x_n', since sum_n y_n^2 = v' M v. Both
are sums of coins, so swaps are drawn or listed as in the plain test. If there are fewer kinds of discordant
examples than such sums, the coins of every kind are counted instead: a coin that shows a, not b, adds
(v . a)^2 - (v . b)^2.

T is 0 wherever h is 0, however small se: the least extreme value. If only se is 0, T is infinite, the most
extreme value; an infinite slope makes T 0. Values of T that agree to 9 digits count as ties, so rounding
never makes a p-value too small.

References
----------
A. Janssen (1997), "Studentized permutation tests for non-i.i.d. hypotheses and the generalized
Behrens-Fisher problem", Statistics and Probability Letters 36.
E. Chung and J. P. Romano (2013), "Exact and asymptotically robust permutation tests", Annals of
Statistics 41.
F. Konietschke and M. Pauly (2014), "Bootstrapping and permuting paired t-test type statistics", Statistics
and Computing 24.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trackperm.choices import Alternative
from trackperm.errors import CapacityError, InputError
from trackperm.exact.counts import LARGEST, exact_column_sums, group_rows, n_configurations
from trackperm.exact.distributions.characteristic import FloatArray, SwapDistribution
from trackperm.exact.engines.enumeration import count_inside
from trackperm.exact.engines.monte_carlo import monte_carlo_tail
from trackperm.exact.functions.rational import RationalStatistic
from trackperm.exact.functions.real import RealStatistic
from trackperm.exact.functions.slopes import corners, values_and_slopes
from trackperm.exact.options import MEMORY_BUDGET, N_SAMPLES
from trackperm.exact.types import INSIDE, OUTSIDE, UNDEFINED, IntArray, Membership

LISTED = 2**14
"""Largest number of configurations that are listed: up to here that is faster than drawing."""

MOST_CELLS = 2**24
"""Largest number of coordinates of all kinds of examples: 128 MB, and as much again for copies."""

MOST_WORK = 2**32
"""Operations spent on drawing swaps: about five seconds on two cores."""

LEAST_SAMPLES = 10_000
"""Smallest number of random swaps: the 99 % interval of p = 0.05 is then 0.011 wide."""

TIED = 1e-9
"""Largest relative distance of tied values of T; their rounding errors are about 1e-13."""

ZERO = 1e-12
"""Largest difference, or sum of squares, that counts as 0, relative to its terms: rounding is 1e-13."""

Smooth = RationalStatistic | RealStatistic


@dataclass(frozen=True)
class StudentizedTest:
    """Result of a studentised permutation test.

    Attributes
    ----------
    pvalue : float
        Share of the swaps that are as extreme as the observed one; estimated if swaps were drawn.
    statistic : float
        Observed difference over its standard error; infinite if that is 0.
    standard_error : float
        Standard error of the observed difference, by the delta method.
    n_samples : int or None
        Number of random swaps; None if all swaps were listed, which makes the p-value exact.
    interval : tuple of float
        99 % confidence interval of the exact p-value.
    """

    pvalue: float
    statistic: float
    standard_error: float
    n_samples: int | None
    interval: tuple[float, float]


@dataclass(frozen=True)
class VarianceRatio:
    """Variance of a statistic under equal scores over its variance under swaps, to first order.

    Attributes
    ----------
    ratio : float
        sigma^2 / sigma_swap^2.
    """

    ratio: float

    def size(self, alpha: float, alternative: Alternative) -> float:
        """Return the asymptotic rejection rate of the plain test of level `alpha` under equal scores."""
        from scipy.special import ndtr, ndtri

        sides = 2.0 if alternative == "two-sided" else 1.0
        return float(sides * ndtr(ndtri(alpha / sides) / math.sqrt(self.ratio)))


def studentized_test(
    observed: IntArray,
    swapped: IntArray,
    h: Smooth,
    multiplicities: IntArray,
    *,
    alternative: Alternative = "two-sided",
    n_samples: int | None = None,
    seed: int = 0,
) -> StudentizedTest:
    """Test equal scores by h over its standard error (Chung and Romano 2013; Konietschke and Pauly 2014).

    Parameters
    ----------
    observed, swapped : ndarray of int64, shape (K, m)
        g(u, v) and g(v, u) of distinct examples, or of distinct clusters, which are then independent units.
    h : RationalStatistic or RealStatistic
        Differentiable statistic of their sums.
    multiplicities : ndarray of int64, shape (K,)
        Number of examples of each row.
    alternative : {'two-sided', 'less', 'greater'}
        Side on which values of T are extreme.
    n_samples, seed : int, optional
        Random swaps if all are too many to list; by default 100,000, or fewer if they take long.

    Raises
    ------
    InputError
        If `h` is not differentiable, or undefined after some swaps.
    CapacityError
        If there are too many kinds of examples for so many counts, or squares of large counts.
    """
    _require_slopes(h)
    swaps = _Swaps.of(observed, swapped, h, multiplicities)
    region = _AsExtreme(swaps, alternative)
    statistic, error = (float(found[0]) for found in swaps.studentized(list(swaps.observed[:, None])))
    if n_configurations(swaps.law.multiplicities) <= LISTED:
        found = Fraction(count_inside(swaps.law, region), 2**swaps.law.n_coins)
        return StudentizedTest(float(found), statistic, error, None, (float(found), float(found)))
    # Each coin takes about three operations, and each sum of coins those of its totals and squares.
    affordable = MOST_WORK // (3 * len(swaps.law.multiplicities) + swaps.law.rank * (observed.shape[1] + 8))
    drawn = monte_carlo_tail(
        swaps.law,
        region,
        two_sided=False,  # the region covers both sides
        n_samples=n_samples or min(max(affordable, LEAST_SAMPLES), N_SAMPLES),
        seed=seed,
        memory_budget=MEMORY_BUDGET,
    )
    return StudentizedTest(drawn.pvalue, statistic, error, drawn.n_samples, drawn.interval)


def variance_ratio(
    observed: IntArray, swapped: IntArray, h: Smooth, multiplicities: IntArray
) -> VarianceRatio | None:
    """Return sigma^2 / sigma_swap^2 as derived above; None if one of them is 0 or not finite.

    Arguments are those of :func:`studentized_test`; it raises InputError if `h` is not differentiable.
    """
    _require_slopes(h)
    totals = np.array(exact_column_sums(observed, multiplicities), dtype=np.float64)
    totals_swapped = np.array(exact_column_sums(swapped, multiplicities), dtype=np.float64)
    here, half_way = values_and_slopes(h, np.array([totals, (totals + totals_swapped) / 2.0]))[1]
    parts = observed @ here
    own = float(multiplicities @ parts**2 - (multiplicities @ parts) ** 2 / multiplicities.sum())
    by_swaps = float(multiplicities @ ((observed - swapped) @ half_way / 2.0) ** 2)
    if not (math.isfinite(own) and math.isfinite(by_swaps) and min(own, by_swaps) > 0.0):
        return None
    return VarianceRatio(own / by_swaps)


def _require_slopes(h: Smooth) -> None:
    if found := sorted(corners(h)):
        raise InputError(
            f"`{found[-1]}` in the statistic is not differentiable everywhere; "
            "the studentised test needs slopes"
        )


@dataclass(frozen=True)
class _Swaps:
    """Random swaps as sums of coins X, and T as a function of them.

    Attributes
    ----------
    h : RationalStatistic or RealStatistic
        The statistic of m totals.
    law : SwapDistribution
        Distribution of X, of rank r.
    observed : ndarray of int64, shape (r,)
        Observed value of X.
    n_examples : int
        N.
    columns : ndarray of int, shape (m,)
        Distinct column of each of the m totals: both runs share the column of labels, for example.
    origin : ndarray of float, shape (d,)
        Totals of the distinct columns at X = 0.
    steps : ndarray of float, shape (r, d)
        Change of these totals for each unit of X.
    products : ndarray of float, shape (d, d)
        Sums of products of the contributions at X = 0.
    squares : callable
        Function of slopes, shape (n, d), that returns the change of sum_n y_n^2 per unit of X, shape (n, r).
    """

    h: Smooth
    law: SwapDistribution
    observed: IntArray
    n_examples: int
    columns: npt.NDArray[np.intp]
    origin: FloatArray
    steps: FloatArray
    products: FloatArray
    squares: Callable[[FloatArray], FloatArray]

    @classmethod
    def of(cls, observed: IntArray, swapped: IntArray, h: Smooth, multiplicities: IntArray) -> _Swaps:
        """Choose the sums of coins with the fewest coordinates.

        Raises
        ------
        CapacityError
            If there are too many kinds of discordant examples.
        """
        distinct, columns = np.unique(np.vstack([observed, swapped]), axis=1, return_inverse=True)
        a, b, counts, n_up = _folded(distinct[: len(observed)], distinct[len(observed) :], multiplicities)
        fixed = b.astype(np.float64)
        origin = counts @ fixed
        products = (fixed * counts[:, None]).T @ fixed
        moves = (a != b).any(axis=1)
        n_examples = int(multiplicities.sum())
        sums = _products(a[moves], b[moves], n_examples) or _kinds(a[moves], b[moves])
        return cls(
            h,
            SwapDistribution(sums.coordinates, counts[moves]),
            n_up[moves] @ sums.coordinates,
            n_examples,
            columns.ravel(),
            origin,
            sums.steps,
            products,
            sums.squares,
        )

    def studentized(self, points: Sequence[IntArray]) -> tuple[FloatArray, FloatArray]:
        """Return T and the standard error at values of X, given as r arrays; T is NaN wherever h is."""
        x = np.array(points, dtype=np.float64).T if points else np.zeros((1, 0))
        totals = self.origin + x @ self.steps
        values, slopes = values_and_slopes(self.h, totals[:, self.columns])
        with np.errstate(all="ignore"):
            # Slopes of equal columns add up.
            v = slopes @ np.equal.outer(self.columns, np.arange(self.origin.size)).astype(np.float64)
            products, squares = (v @ self.products) * v, x * self.squares(v)
            centre = (v * totals).sum(axis=1) ** 2 / self.n_examples
            square = products.sum(axis=1) + squares.sum(axis=1) - centre
            sizes = ((np.abs(v) @ np.abs(self.products)) * np.abs(v)).sum(axis=1)
            sizes += np.abs(squares).sum(axis=1) + centre
            error = np.sqrt(np.where(square <= ZERO * sizes, 0.0, square))
            is_zero = np.abs(values) <= ZERO * np.abs(v * totals).sum(axis=1)
            t = np.where(is_zero | ~np.isfinite(error), 0.0, values / error)
        return np.where(np.isnan(values), np.nan, t), error


def _folded(
    a: IntArray, b: IntArray, multiplicities: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return distinct pairs (a, b) up to exchange, their multiplicities, and how many are not exchanged."""
    d = a.shape[1]
    changes = a - b
    leading = changes[np.arange(len(a)), (changes != 0).argmax(axis=1)]
    mirrored = (leading < 0)[:, None]
    pairs = np.hstack([np.where(mirrored, b, a), np.where(mirrored, a, b)])
    rows, (counts, n_up) = group_rows(pairs, np.stack([multiplicities, multiplicities * ~mirrored[:, 0]]))
    return rows[:, :d], rows[:, d:], counts, n_up


class _Sums(NamedTuple):
    """Sums of coins: steps of each kind in them, and their effects on totals and squares."""

    coordinates: IntArray
    steps: FloatArray
    squares: Callable[[FloatArray], FloatArray]


def _kinds(a: IntArray, b: IntArray) -> _Sums:
    """Return one sum for the coins of each kind.

    Raises
    ------
    CapacityError
        If there are too many kinds.
    """
    n_kinds, d = a.shape
    if n_kinds**2 > MOST_CELLS:
        raise CapacityError(
            f"{n_kinds} kinds of discordant examples, each with {d} counts, are too many",
            hint="use a coarser `resolution`, or fewer counts or classes, for fewer kinds.",
        )
    left, right = a.astype(np.float64), b.astype(np.float64)
    return _Sums(
        np.eye(n_kinds, dtype=np.int64),
        left - right,
        lambda slopes: np.asarray((slopes @ left.T) ** 2 - (slopes @ right.T) ** 2),
    )


def _products(a: IntArray, b: IntArray, n_examples: int) -> _Sums | None:
    """Return the totals and sums of products that swaps change.

    It is None if there are fewer kinds of examples than such sums, or a sum of products may exceed 2^62.
    """
    n_kinds, d = a.shape
    largest = max(int(np.abs(side).max(initial=0)) for side in (a, b))
    if n_kinds <= d or n_kinds * d**2 > MOST_CELLS or largest**2 * n_examples > LARGEST:
        return None
    moved = np.flatnonzero((a != b).any(axis=0))
    first, second = np.triu_indices(d)
    changes = a[:, first] * a[:, second] - b[:, first] * b[:, second]
    varying = changes.any(axis=0)
    if n_kinds <= moved.size + varying.sum():
        return None
    first, second = first[varying], second[varying]
    coordinates = np.hstack([(a - b)[:, moved], changes[:, varying]])
    steps = np.zeros((coordinates.shape[1], d))
    steps[np.arange(moved.size), moved] = 1.0
    twice = np.where(first == second, 1.0, 2.0)

    def squares(slopes: FloatArray) -> FloatArray:
        by_products = twice * slopes[:, first] * slopes[:, second]
        return np.hstack([np.zeros((len(slopes), moved.size)), by_products])

    return _Sums(coordinates, steps, squares)


class _AsExtreme:
    """Region of swaps whose T is as extreme as the observed one."""

    def __init__(self, swaps: _Swaps, alternative: Alternative) -> None:
        self._swaps = swaps
        self._alternative = alternative
        self._least = self._extremity(list(swaps.observed[:, None]))[0]
        if math.isfinite(self._least):
            self._least -= TIED * abs(self._least)

    def _extremity(self, points: Sequence[IntArray]) -> FloatArray:
        t, _ = self._swaps.studentized(points)
        if self._alternative == "two-sided":
            return np.abs(t)
        return t if self._alternative == "greater" else -t

    def membership(self, points: Sequence[IntArray]) -> Membership:
        """Classify values of X."""
        found = self._extremity(points)
        inside = np.where(found >= self._least, INSIDE, OUTSIDE)
        return np.where(np.isnan(found), UNDEFINED, inside).astype(np.int8)
