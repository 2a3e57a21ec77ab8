"""Influences of examples on a difference of means over pairs, as integers of one unit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from trackperm.exact.pairwise.weights import PairSums
from trackperm.exact.types import IntArray

GRID = 64
"""Steps per standard deviation: rounding adds 1 / (12 GRID^2) to the variance, a share of 2e-5."""


@dataclass(frozen=True)
class Influences:
    r"""Influences of examples, or of clusters, on the difference D of two means over pairs.

    If example i is given the weight p_i in place of 1 / N, D changes by sum_i p_i z_i to first order. For the
    mean over pairs of one kind, z_i = N (own_i - D pairs_i) / n_pairs, with own_i the difference of the
    systems summed over the pairs with the example, and pairs_i their number. Influences add up to 0. Beside
    those of the examples there are those that they would have if their pairs favoured the other system as
    much, (-own_i - D pairs_i); these may count 0 examples.

    Attributes
    ----------
    difference : float
        The difference D.
    unit : float
        Unit of the influences; 0 if all are 0.
    values : tuple of int
        Distinct influences in units, ascending.
    counts : tuple of int
        Number of examples with each influence.
    standard_error : float or None
        Standard error of D by DeLong, DeLong and Clarke-Pearson (1988), see
        :meth:`~trackperm.exact.pairwise.PairSums.standard_error`; None for clusters, or if it is undefined.

    References
    ----------
    W. Hoeffding (1948), "A class of statistics with asymptotically normal distribution", Annals of
    Mathematical Statistics 19.
    """

    difference: float
    unit: float
    values: tuple[int, ...]
    counts: tuple[int, ...]
    standard_error: float | None

    @classmethod
    def of(
        cls,
        difference: float,
        own: npt.NDArray[np.float64],
        mirrored: npt.NDArray[np.float64],
        standard_error: float | None,
    ) -> Influences:
        """Round influences, shape (N,), and those in favour of the other system, to steps of the grid."""
        unit = math.sqrt(float(own @ own) / own.size) / GRID
        if unit == 0.0:
            return cls(difference, 0.0, (0,), (own.size,), standard_error)
        observed, possible = (np.rint(each / unit).astype(np.int64) for each in (own, mirrored))
        values, places = np.unique(np.concatenate([observed, possible]), return_inverse=True)
        counts = np.bincount(places[: own.size], minlength=values.size)
        return cls(difference, unit, tuple(values.tolist()), tuple(counts.tolist()), standard_error)

    @property
    def n_effective(self) -> float:
        """Equivalent number of examples with equal influences, (sum z^2)^2 / sum z^4."""
        squares = np.array(self.values, dtype=np.float64) ** 2
        counts = np.array(self.counts, dtype=np.float64)
        fourth = float(counts @ squares**2)
        return float(counts @ squares) ** 2 / fourth if fourth else 0.0


def influences_of(
    sums: PairSums,
    unit: Fraction,
    kinds: IntArray,
    strata: IntArray,
    weights: npt.NDArray[np.float64],
    *,
    clusters: IntArray | None = None,
) -> Influences:
    """Compute the influences of examples, or of clusters, on a weighted mean over strata.

    Parameters
    ----------
    sums : PairSums
        Sums over pairs within strata.
    unit : Fraction
        Unit of the sums.
    kinds : ndarray of int64, shape (N,)
        Groups of examples that are alike, for :meth:`PairSums.standard_error`.
    strata : ndarray of int64, shape (N,)
        Stratum of each example, numbered from 0; each has pairs.
    weights : ndarray of float64, shape (number of strata,)
        Weights of the strata, whose sum is 1.
    clusters : ndarray of int64, shape (N,), optional
        Cluster of each example, numbered from 0.
    """
    n_pairs = np.bincount(strata, weights=sums.partners)
    differences = float(unit) * np.bincount(strata, weights=sums.candidate - sums.baseline) / n_pairs
    expected = differences[strata] * sums.pairs
    scale = (weights / n_pairs)[strata]
    both = [scale * (sign * float(unit) * sums.own - expected) for sign in (1.0, -1.0)]
    if clusters is not None:
        both = [np.bincount(clusters, weights=each).astype(np.float64) for each in both]
    own, mirrored = (each * each.size for each in both)
    error = None if clusters is not None else _standard_error(sums, unit, kinds, strata, weights)
    return Influences.of(float(weights @ differences), own, mirrored, error)


def _standard_error(
    sums: PairSums, unit: Fraction, kinds: IntArray, strata: IntArray, weights: npt.NDArray[np.float64]
) -> float | None:
    """Return the standard error of the weighted mean of differences, for independent examples."""
    variance = 0.0
    for i, weight in enumerate(weights.tolist()):
        own = strata == i
        error = sums.of_part(own).standard_error(unit, kinds[own])
        if error is None:
            return None
        variance += (weight * error) ** 2
    return math.sqrt(variance)
