"""Differences of single examples, for statistics that are sums of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.exact.counts import LARGEST, exact_column_sums
from trackperm.exact.engines.lattice.statistic import Statistic
from trackperm.exact.functions.rational import RationalStatistic
from trackperm.exact.root import bracketed_root
from trackperm.exact.types import IntArray


def linearised(
    h: Statistic, observed: IntArray, swapped: IntArray, multiplicities: IntArray
) -> RationalStatistic | None:
    """Return h in affine form, with totals that no swap changes as constants; None if it is not affine."""
    if not isinstance(h, RationalStatistic):
        return None
    if h.affine is not None:
        return h
    n = h.n_variables
    totals, moved = exact_column_sums(observed, multiplicities), (observed != swapped).any(axis=0)
    arguments = [
        RationalStatistic.variable(i, n) if moved[i] else RationalStatistic.constant(totals[i], n)
        for i in range(n)
    ]
    return h.substitute(arguments).linear


def changes_by_swap(
    h: Statistic, observed: IntArray, swapped: IntArray, multiplicities: IntArray
) -> tuple[npt.NDArray[Any], int] | None:
    """Return the changes of h by the swap of each row, as Python integers over a common denominator.

    It is None if h is not affine in the totals that swaps change, or if swapping all rows does not negate h.
    Otherwise h(observed) = (h(observed) - h(swapped)) / 2 is half the sum of these changes.
    """
    linear = linearised(h, observed, swapped, multiplicities)
    if linear is None or linear.affine is None:
        return None
    constant, by_variable = linear.affine
    slopes = [by_variable.get(i, Fraction(0)) for i in range(linear.n_variables)]
    (here, there), denominator = linear_sums(slopes, observed, swapped)
    if 2 * denominator * constant + int((here + there) @ multiplicities.astype(object)) != 0:
        return None
    return here - there, denominator


def linear_sums(slopes: Sequence[Fraction], *tables: IntArray) -> tuple[list[npt.NDArray[Any]], int]:
    """Return slopes . row for the rows of tables, as Python integers over a common denominator."""
    used = [i for i, slope in enumerate(slopes) if slope]
    denominator = math.lcm(*(slopes[i].denominator for i in used))
    weights = np.array([int(slopes[i] * denominator) for i in used], dtype=object)
    return [np.asarray(rows[:, used].astype(object) @ weights) for rows in tables], denominator


@dataclass(frozen=True)
class Differences:
    """Histogram of the differences of examples: the statistic is unit * sum_k counts_k values_k.

    Attributes
    ----------
    values : ndarray of int64, or of Python integers where these are too large; shape (J,)
        Distinct differences in ascending order, 0 included.
    counts : ndarray of int64, shape (J,)
        Number of examples with each.
    unit : Fraction
        Contribution of a difference of 1 to the statistic.
    """

    values: npt.NDArray[Any]
    counts: IntArray
    unit: Fraction

    @classmethod
    def of(
        cls, h: Statistic, observed: IntArray, swapped: IntArray, multiplicities: IntArray
    ) -> Differences | None:
        """Return the differences of examples; None if the statistic is not a sum of them."""
        found = changes_by_swap(h, observed, swapped, multiplicities)
        if found is None:
            return None
        changes, denominator = found
        divisor = math.gcd(*changes.tolist()) or 1
        changes = changes // divisor
        fits = int(np.abs(changes).max(initial=0)) <= LARGEST
        values, rows = np.unique(changes.astype(np.int64 if fits else object), return_inverse=True)
        counts = np.zeros(values.size, dtype=np.int64)
        np.add.at(counts, rows, multiplicities)
        return cls(values, counts, Fraction(divisor, 2 * denominator))

    @property
    def n(self) -> int:
        """Number of differences, those of 0 included."""
        return int(self.counts.sum())

    @property
    def n_up(self) -> int:
        """Number of differences above 0."""
        return int(self.counts[self.values > 0].sum())

    @property
    def n_down(self) -> int:
        """Number of differences below 0."""
        return int(self.counts[self.values < 0].sum())

    @property
    def n_moved(self) -> int:
        """Number of differences other than 0."""
        return self.n_up + self.n_down

    @property
    def skewness(self) -> float | None:
        """Skewness of the non-zero differences under a mean of 0; None if all have one sign.

        The law is the nearest one with mean 0 on the same differences, with probabilities proportional to
        counts times exp(lambda values). So differences of one size have skewness 0, whatever share of them is
        above 0. Differences of 0 change neither skewness^2 / n nor the law of the mean.

        References
        ----------
        Efron (1981), "Nonparametric standard errors and confidence intervals", on tilting.
        """
        if not self.n_up or not self.n_down:
            return None
        moved = self.values != 0
        values, counts = self.values[moved].astype(np.float64), self.counts[moved].astype(np.float64)
        values /= np.abs(values).max()

        def weights(tilt: float) -> npt.NDArray[np.float64]:
            exponents = tilt * values
            found = counts * np.exp(exponents - exponents.max())
            return np.asarray(found / found.sum())

        reach = 1.0
        while weights(-reach) @ values > 0.0 or weights(reach) @ values < 0.0:
            reach *= 2.0
        tilted = weights(bracketed_root(lambda tilt: weights(tilt) @ values, -reach, reach))
        return float(tilted @ values**3 / (tilted @ values**2) ** 1.5)

    @property
    def size(self) -> int | None:
        """Common size of the non-zero differences (0/1 scores have one); None if sizes differ."""
        moved = self.values[self.values != 0]
        if moved.size not in (1, 2) or abs(moved[0]) != abs(moved[-1]):
            return None
        return abs(int(moved[0]))
