"""Differences of single examples, for statistics that are sums of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.errors import CapacityError
from trackperm.exact.counts import LARGEST, exact_column_sums
from trackperm.exact.engines.lattice.statistic import Statistic
from trackperm.exact.functions.rational import RationalStatistic
from trackperm.exact.root import bracketed_root
from trackperm.exact.types import IntArray


def affine_form(
    observed: IntArray, swapped: IntArray, h: Statistic, multiplicities: IntArray
) -> tuple[Fraction, list[Fraction]] | None:
    """Return the constant and slopes of h if it is affine in the sums that swaps change, else None."""
    if not isinstance(h, RationalStatistic):
        return None
    affine = h.affine
    if affine is None:
        n = h.n_variables
        totals, moved = exact_column_sums(observed, multiplicities), (observed != swapped).any(axis=0)
        arguments = [
            RationalStatistic.variable(i, n) if moved[i] else RationalStatistic.constant(totals[i], n)
            for i in range(n)
        ]
        try:
            affine = h.substitute(arguments).simplified().affine
        except CapacityError:
            return None
    if affine is None:
        return None
    return affine[0], [affine[1].get(i, Fraction(0)) for i in range(h.n_variables)]


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
        """Return the differences of examples; None if the statistic is not a sum of them.

        It is one if h is affine in the sums that a swap changes, with the other sums held fixed, and changes
        its sign when all outputs are swapped: then h(observed) = (h(observed) - h(swapped)) / 2.

        Parameters
        ----------
        h : RationalStatistic, RealStatistic or callable
            The statistic; only a RationalStatistic can be recognised as affine.
        observed, swapped : ndarray of int64, shape (K, m)
            g of pairs as observed, and with their outputs exchanged.
        multiplicities : ndarray of int64, shape (K,)
            Number of examples of each row.
        """
        affine = affine_form(observed, swapped, h, multiplicities)
        if affine is None:
            return None
        constant, slopes = affine
        sums = (exact_column_sums(g, multiplicities) for g in (observed, swapped))
        if 2 * constant + sum(s * (a + b) for s, a, b in zip(slopes, *sums, strict=True)) != 0:
            return None
        changes = observed - swapped
        slopes = [
            s if moved else Fraction(0)
            for s, moved in zip(slopes, np.atleast_1d(changes.any(axis=0)), strict=True)
        ]
        denominator = math.lcm(*(slope.denominator for slope in slopes))
        weights = [int(slope * denominator) for slope in slopes]
        common = math.gcd(*weights) or 1
        weights = [weight // common for weight in weights]
        reach = sum(abs(w) * int(x) for w, x in zip(weights, np.abs(changes).max(axis=0), strict=True))
        dtype = np.int64 if max([reach, *map(abs, weights)]) <= LARGEST else object
        values, rows = np.unique(changes.astype(dtype) @ np.array(weights, dtype=dtype), return_inverse=True)
        counts = np.zeros(values.size, dtype=np.int64)
        np.add.at(counts, rows, multiplicities)
        return cls(values, counts, Fraction(common, 2 * denominator))

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
        counts times exp(lambda values). Differences of one size therefore have skewness 0, however many are
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
        """Common size of the non-zero differences, as of 0/1 scores; None if they differ in size."""
        moved = self.values[self.values != 0]
        if moved.size not in (1, 2) or abs(moved[0]) != abs(moved[-1]):
            return None
        return abs(int(moved[0]))
