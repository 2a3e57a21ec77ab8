r"""The law of (sum_A m, sum_A w) for a random set A of rows, and its mass in half-planes.

Two ways to it, both for all shifts at once. `JointTable` counts the sets at every point by dynamic
programming: for few rows with differences of many sizes, whose characteristic function falls off slowly. With
y = m - base w, rows of negative y start in A and leave it, so that sum_A y rises with every row that moves.
`HalfPlanes` sums the characteristic function over the few frequencies that matter: for all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from trackperm.exact.counts import DifferenceHistogram
from trackperm.exact.functions.rational import RationalStatistic
from trackperm.exact.intervals.additive import AdditiveScores
from trackperm.exact.lattice.basis import reduce_rank
from trackperm.exact.lattice.region import Region
from trackperm.exact.lattice.statistic import LatticeStatistic
from trackperm.exact.lattice.tail import region_tail
from trackperm.exact.spectrum.characteristic import UNIT, FloatArray, SwapSum
from trackperm.exact.spectrum.frequencies import surviving_frequencies
from trackperm.exact.spectrum.pmf import LOG_PRUNED, LOG_WINDOW, plan_window

MOST_ADDITIONS = 3e8
"""Additions that the table may take: about a second."""

MOST_TERMS = 4 * 10**7
"""Frequencies that matter times rows of the lattice, or distinct differences, at the most."""

MARGIN = 0.7
"""Share of these additions that is aimed at, since rounding may add to them."""

MOST_ROWS = 1_000
"""Rows up to which numbers of sets fit floats."""


@dataclass(frozen=True)
class JointTable:
    """How many sets A have sum_A w = j and sum_A y <= v - start.

    Attributes
    ----------
    cumulated : ndarray of float, shape (J + 1, V + 1)
        Numbers of sets by j and v, relative to all.
    base : int
        y = m - base w.
    start : int
        Minus the sum of all negative y.
    error : float
        Bound on the error of a sum of entries, relative to it.
    """

    cumulated: FloatArray
    base: int
    start: int
    error: float

    @classmethod
    def of(cls, rows: AdditiveScores, memory_budget: int) -> JointTable | None:
        """Count; None where it would take too long or too much memory."""
        coins = [
            (int(m), int(w), int(c))
            for m, w, c in zip(rows.moves, rows.weights, rows.multiplicities, strict=True)
        ]
        n_rows, weight = rows.n_rows, sum(w * c for _, w, c in coins)
        base = round(Fraction(sum(m * c for m, _, c in coins), weight))
        moved = [(m - base * w, w, c) for m, w, c in coins]
        span = sum(abs(y) * c for y, _, c in moved)
        n_cells = (weight + 1) * (span + 1)
        if n_rows > MOST_ROWS or n_rows * n_cells > MOST_ADDITIONS or 24 * n_cells > memory_budget:
            return None
        ways = np.zeros((weight + 1, span + 1))
        least = greatest = sum(w * c for y, w, c in moved if y < 0)
        ways[least, 0] = 1.0
        reach = 0
        for y, w, c in moved:
            for _ in range(c):
                old = ways[least : greatest + 1, : reach + 1].copy()
                least, greatest = (least - w, greatest) if y < 0 else (least, greatest + w)
                first = least if y < 0 else least + w
                ways[first : first + len(old), abs(y) : abs(y) + reach + 1] += old
                reach += abs(y)
        cumulated = np.ldexp(np.cumsum(ways, axis=1), -n_rows)
        start = sum(-y * c for y, _, c in moved if y < 0)
        # Up to 52 rows all numbers of sets are exact.
        error = 0.0 if n_rows <= 52 else UNIT * (2.0 * n_rows + span + weight + 8.0)
        return cls(cumulated, base, start, error)

    @staticmethod
    def finest_spacing(rows: AdditiveScores) -> int:
        """Return to multiples of what, about, differences must be rounded for a table."""
        counts = rows.multiplicities.astype(object)
        weight = int(rows.weights @ rows.multiplicities)
        centred = rows.moves - int(rows.moves.astype(object) @ counts) // weight * rows.weights.astype(object)
        affordable = max(int(MARGIN * MOST_ADDITIONS) // (rows.n_rows * (weight + 1)), 1)
        return int(np.abs(centred) @ counts) // affordable + 1

    def pvalue(self, shift: Fraction, offset: int = 0) -> float:
        """Return an upper bound of P(sum_A m - shift sum_A w <= offset), as close as rounding allows."""
        rate, span = shift - self.base, self.cumulated.shape[1] - 1
        ends = [
            min((rate.numerator * j) // rate.denominator + self.start + offset, span)
            for j in range(len(self.cumulated))
        ]
        return sum(float(self.cumulated[j, end]) for j, end in enumerate(ends) if end >= 0) * (
            1.0 + self.error
        )


@dataclass(frozen=True)
class HalfPlanes:
    """The law of (sum_A m, sum_A w) by its characteristic function."""

    histogram: DifferenceHistogram
    statistic: Callable[[RationalStatistic], LatticeStatistic]
    law: SwapSum
    memory_budget: int

    @classmethod
    def of(cls, rows: AdditiveScores, memory_budget: int) -> HalfPlanes:
        """Build the lattice of the pairs (m_n, w_n).

        Raises
        ------
        CapacityError
            If so many frequencies matter that a p-value would take seconds.
        """
        pairs = np.stack([rows.moves.astype(np.int64), rows.weights], axis=1)
        histogram = DifferenceHistogram.from_pairs(pairs, np.zeros_like(pairs), rows.multiplicities)
        lattice = reduce_rank(histogram)
        law = SwapSum(lattice.coordinates, histogram.multiplicities)
        none = np.zeros(law.rank)
        window = plan_window(law, [(none, LOG_WINDOW)], fast=False)
        limit = MOST_TERMS // max(window.periods[0], law.multiplicities.size)
        surviving_frequencies(law, none, window.periods, LOG_PRUNED, limit)
        return cls(histogram, lambda h: LatticeStatistic(h, histogram, lattice), law, memory_budget)

    def pvalue(self, shift: Fraction, offset: int = 0) -> float:
        """Return an upper bound of P(sum_A m - shift sum_A w <= offset), as close as the certificate is."""
        moved, weight = (RationalStatistic.variable(i, 2) for i in range(2))
        scale = shift.denominator
        h = shift.numerator * weight - scale * moved + scale * offset
        statistic = self.statistic(h)

        def region(centre: Sequence[int]) -> Region:
            return statistic.region(Fraction(0), centre, upper=True)

        tail = region_tail(self.law, statistic, 0.0, region, upper=True, memory_budget=self.memory_budget)
        return math.exp(tail.log) * (1.0 + tail.error) if tail.scaled > 0.0 else 0.0
