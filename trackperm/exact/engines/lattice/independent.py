r"""Tail probabilities of two independent binomial counts, in positive arithmetic.

In statistics of binary labels a swap moves one of two counts by one: that of examples of its label. Then the
coordinates of X = (x, y) are independent and binomial, and with the intervals I_x of a region in its rows,

    P(X in R) = sum_x P(X_1 = x) P(X_2 in I_x).

With c coins, P(X = j) is proportional to t_j, where t = 1 in the middle and t_{j+1} = t_j (c - j) / (j + 1):
products and sums of positive numbers, without transforms, tilts or logarithms. The law is symmetric, so sums
over either half start at its end, where the terms are small.

The certificate follows the roundings: 2 d u for t at distance d from the middle; for a cumulative sum those
of its terms, and u times each partial sum; and those of the products. Terms below 2^-1000 are left out; a
tail that is not much larger is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trackperm.errors import CapacityError
from trackperm.exact.counts import n_configurations
from trackperm.exact.distributions.characteristic import UNIT, FloatArray, SwapDistribution
from trackperm.exact.distributions.pmf import Window
from trackperm.exact.distributions.tilt import EMPTY, TailMass, without_undefined
from trackperm.exact.engines.lattice.lattice import Reach
from trackperm.exact.engines.lattice.rows import (
    BYTES_PER_INTERVAL,
    SECONDS_PER_ROW,
    RowIntervals,
    region_rows,
    window_rows,
)
from trackperm.exact.engines.lattice.statistic import LatticeStatistic
from trackperm.exact.types import IntArray, Region

SMALLEST = 2.0**-1000
"""Smallest term that is kept: smaller ones are near the end of the range of floats."""

NEGLIGIBLE = 2.0**-45
"""Largest mass of points without a value, relative to the tail, that adds to its error; more is refused."""

LEAST_TAIL = 2.0**-900
"""Smallest tail that is computed: all that is left out is then below 2^-60 of it, up to 2^38 coins."""


def are_independent(law: SwapDistribution) -> bool:
    """Return whether X has two coordinates, each moved by coins of its own by 1 or by -1."""
    return law.coordinates.shape == (2, 2) and sorted(np.abs(law.coordinates).tolist()) == [[0, 1], [1, 0]]


def cost_of_independent(law: SwapDistribution, statistic: LatticeStatistic) -> tuple[float, int] | None:
    """Return the estimated seconds and bytes of the tail of a statistic of two independent counts.

    None if the law is another one, or regions in its rows have no closed form.
    """
    if not (are_independent(law) and statistic.local is not None and statistic.is_closed_in_rows):
        return None
    n_rows = sum(_n_kept(c) for c in law.multiplicities.tolist())
    return SECONDS_PER_ROW * n_rows, BYTES_PER_INTERVAL * n_rows


def _n_kept(c: int) -> int:
    """Return the largest number of terms of c coins that are kept.

    At distance d from the middle, terms are at most (c + 1) exp(-2 d^2 / c) (Hoeffding 1963).
    """
    return min(c + 1, 40 * math.isqrt(c) + 41)


def independent_tail(law: SwapDistribution, region: Region, reach: Reach, memory_budget: int) -> TailMass:
    """Return the probability of a region of two independent binomial counts.

    Parameters
    ----------
    law : SwapDistribution
        Distribution of X, by :func:`are_independent`.
    region, reach, memory_budget
        As of :func:`~trackperm.exact.engines.lattice.plane.rows_tail`.

    Raises
    ------
    CapacityError
        If the rows do not fit the budget, or the tail is below the range of floats.
    """
    rows, columns = (_Count.of(law, axis) for axis in range(2))
    if BYTES_PER_INTERVAL * (rows.terms.size + columns.terms.size) > memory_budget:
        raise CapacityError(f"the region has {rows.terms.size:,} rows, beyond the memory budget")
    window = Window((rows.start, columns.start), (rows.terms.size, columns.terms.size))
    found = region_rows(region, window_rows(window), reach, memory_budget)
    if found.inside.n == 0 and window.size < n_configurations(law.multiplicities):
        raise CapacityError("the tail is below the range of floats")
    tail = _summed(rows, columns, found.inside)
    if found.undefined.n == 0:
        return tail
    undefined = _summed(rows, columns, found.undefined)
    if undefined.scaled <= NEGLIGIBLE * tail.scaled:
        undefined = undefined._replace(error=1.0)
    return without_undefined(
        tail, undefined, (int(found.undefined.heads[0][0]), int(found.undefined.first[0]))
    )


@dataclass(frozen=True)
class _Count:
    """Binomial count with probability 1/2, in units of its largest probability.

    Attributes
    ----------
    start : int
        Its first value that is kept; the law is symmetric about the middle of those.
    terms, errors : ndarray of float64, shape (n,)
        Probabilities in that unit, and bounds of their errors.
    sums, sum_errors : ndarray of float64, shape (n // 2 + n % 2 + 1,)
        Sums of the first k terms, up to the middle one, and bounds of their errors.
    """

    start: int
    terms: FloatArray
    errors: FloatArray
    sums: FloatArray
    sum_errors: FloatArray

    @classmethod
    def of(cls, law: SwapDistribution, axis: int) -> _Count:
        mine = law.coordinates[:, axis] != 0
        c = int(law.multiplicities[mine][0])
        middle = (c + 1) // 2
        d = np.arange(1.0, min(c - middle, _n_kept(c) // 2) + 1.0)
        half = np.cumprod((c - middle - d + 1.0) / (middle + d))
        half = np.concatenate([[1.0], half[half >= SMALLEST]])
        terms = np.concatenate([half[: 0 if c % 2 == 0 else None : -1], half])
        distances = np.abs(np.arange(terms.size) - (terms.size - 1) / 2.0)
        errors = 2.0 * UNIT * distances * terms
        up_to = terms.size // 2 + terms.size % 2
        sums, sum_errors = np.zeros(up_to + 1), np.zeros(up_to + 1)
        np.cumsum(terms[:up_to], out=sums[1:])
        np.cumsum(errors[:up_to] + UNIT * sums[1:], out=sum_errors[1:])
        least = middle + half.size - terms.size
        is_negative = bool((law.coordinates[mine, axis] < 0)[0])
        return cls(-least - terms.size + 1 if is_negative else least, terms, errors, sums, sum_errors)

    @property
    def total(self) -> tuple[float, float]:
        """Sum of all terms, and a bound of its relative error."""
        half = self.terms.size // 2
        total = 2.0 * float(self.sums[half]) + (1.0 if self.terms.size % 2 else 0.0)
        return total, 2.0 * float(self.sum_errors[half]) / total + 2.0 * UNIT

    def between(self, first: IntArray, last: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the sums of terms between two values, ends included, and bounds of their errors."""
        n, (total, total_error) = self.terms.size, self.total
        before, after = first - self.start, n - 1 - (last - self.start)
        # Of a sum within one half, the part towards the end is subtracted; of another one, both ends.
        lower, upper = n - after < self.sums.size, n - before < self.sums.size
        minuend = np.where(lower, n - after, np.where(upper, n - before, 0))
        whole = ~(lower | upper)
        below, above = np.where(lower | whole, before, 0), np.where(upper & ~lower | whole, after, 0)
        sums = self.sums[minuend] + total * whole - self.sums[below] - self.sums[above]
        errors = self.sum_errors[minuend] + total * total_error * whole
        errors += self.sum_errors[below] + self.sum_errors[above]
        return sums, errors + 2.0 * UNIT * (self.sums[minuend] + total * whole)


def _summed(rows: _Count, columns: _Count, intervals: RowIntervals) -> TailMass:
    """Return the probability of intervals."""
    if intervals.n == 0:
        return EMPTY
    at = intervals.heads[0] - rows.start
    sums, errors = columns.between(intervals.first, intervals.last)
    mass = float((rows.terms[at] * sums).sum())
    error = float(rows.terms[at] @ errors + rows.errors[at] @ sums)
    (width, width_error), (height, height_error) = rows.total, columns.total
    tail = mass / width / height
    if tail < LEAST_TAIL:
        raise CapacityError("the tail is below the range of floats")
    # NumPy adds blocks of 128 in eight sums, and the blocks in pairs.
    roundings = UNIT * (math.log2(at.size) + 28.0)
    return TailMass(0.0, tail, 1.01 * (error / mass + width_error + height_error + roundings))
