"""Influences of examples on a difference of means over pairs, as integers of one unit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from trackperm.exact.pairwise.weights import PairSums
from trackperm.exact.types import IntArray

GRID = 64
"""Steps per standard deviation: rounding adds 1 / (12 GRID^2) to the variance, a share of 2e-5."""


MOST_SHARES = 200
"""Most different shares that are kept as they are; more are rounded to three digits."""


@dataclass(frozen=True)
class PartShares:
    """Shares of examples, or of clusters, in a mean over pairs with several strata or classes.

    The share of an example is the change of the mean if all its pairs change by 1: in each part, its share of
    the pairs times the weight of the part. How much of that the systems differ by is its difference in the
    part, d; the size of a differing example is sqrt(sum d^4 / sum d^2), which is d if all that differ are
    equal.

    Attributes
    ----------
    shares : tuple of float
        Distinct positive shares.
    counts : tuple of int
        Number of examples with each share.
    n_moved : int
        Number of examples in whose pairs the systems differ.
    squares : float
        Sum of the squared changes of the mean by the pairs of each example, over the squared size.
    widest : float
        Largest difference of two terms.
    heaviest : tuple of (str, int, int)
        Name of the part with the largest share of an example, the number of its examples whose shares in it
        are at least half as large, and how many of them differ in it by half of the size at least.
    """

    shares: tuple[float, ...]
    counts: tuple[int, ...]
    n_moved: int
    squares: float
    widest: float
    heaviest: tuple[str, int, int]

    @classmethod
    def of(
        cls,
        shares: npt.NDArray[np.float64],
        changes: npt.NDArray[np.float64],
        names: Sequence[str],
        widest: float,
    ) -> PartShares:
        """Build from shares in each part, shape (parts, N), and the changes of the mean by their pairs."""
        k = int(np.argmax(shares.max(axis=1)))
        differences = np.abs(changes) / np.where(shares > 0.0, shares, 1.0)
        is_heavy, moved = shares[k] >= shares[k].max() / 2.0, (changes != 0.0).any(axis=0)
        size, squares = 1.0, 0.0
        if moved.any():
            size = float(np.sqrt((differences**4).sum() / (differences**2).sum()))
            squares = float((changes.sum(axis=0) ** 2).sum()) / size**2
        of_size = is_heavy & (differences[k] >= size / 2.0)
        heaviest = names[k], int(is_heavy.sum()), int(of_size.sum())
        return cls(*_distinct(shares.sum(axis=0)), int(moved.sum()), squares, widest, heaviest)


def _distinct(shares: npt.NDArray[np.float64]) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Return the distinct positive shares, which may be rounded, and their numbers."""
    values, counts = np.unique(shares[shares > 0.0], return_counts=True)
    # Sums of equal shares in another order differ in their last digits.
    digits = 12 if np.unique(np.float32(values)).size <= MOST_SHARES else 3
    rounded = np.array([float(f"{value:.{digits}g}") for value in values])
    distinct, places = np.unique(rounded, return_inverse=True)
    return tuple(distinct.tolist()), tuple(np.bincount(places, counts).astype(np.int64).tolist())


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
        Standard error of D by the infinitesimal jackknife; for the area under the ROC curve, that of DeLong,
        DeLong and Clarke-Pearson (1988). None for clusters, or if it is undefined.
    parts : PartShares or None
        Shares of the examples in the mean; None without strata and classes.

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
    parts: PartShares | None = None

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


@dataclass(frozen=True, eq=False)
class PairMean:
    """A mean over pairs, or a weighted mean over strata of such means, for two systems.

    Attributes
    ----------
    sums : PairSums
        Sums over pairs within strata.
    unit : Fraction
        Unit of the sums.
    kinds : ndarray of int64, shape (N,)
        Groups of examples that are alike: those with the same roles in pairs.
    strata : ndarray of int64, shape (N,)
        Stratum of each example, numbered from 0; each has pairs.
    weights : ndarray of float64, shape (number of strata,)
        Weights of the strata.
    """

    sums: PairSums
    unit: Fraction
    kinds: IntArray
    strata: IntArray
    weights: npt.NDArray[np.float64]

    @property
    def _n_pairs(self) -> npt.NDArray[np.float64]:
        return np.bincount(self.strata, weights=self.sums.partners).astype(np.float64)

    @property
    def _differences(self) -> npt.NDArray[np.float64]:
        """Differences of the means of the strata."""
        added = np.bincount(self.strata, weights=self.sums.candidate - self.sums.baseline)
        return float(self.unit) * added / self._n_pairs

    @property
    def difference(self) -> float:
        """Weighted mean of the differences of the strata."""
        return float(self.weights @ self._differences)

    def shares(self) -> npt.NDArray[np.float64]:
        """Return the change of the mean, for each example, if all its pairs change by 1."""
        return np.asarray((self.weights / self._n_pairs)[self.strata] * self.sums.pairs)

    def changes(self) -> npt.NDArray[np.float64]:
        """Return the difference of the means by the pairs of each example."""
        return np.asarray((self.weights / self._n_pairs)[self.strata] * float(self.unit) * self.sums.own)

    def seen(self) -> float:
        """Return the length of the range of the mean terms of left examples, and 0."""
        left = self.sums.partners > 0
        sums = np.stack([self.sums.candidate, self.sums.baseline])[:, left]
        means = float(self.unit) * sums / self.sums.partners[left]
        return float(max(means.max(), 0.0) - min(means.min(), 0.0))

    def slopes(self, sign: float) -> npt.NDArray[np.float64]:
        """Return z_i / N of each example, with `sign` own_i in place of own_i."""
        expected = self._differences[self.strata] * self.sums.pairs
        scale = (self.weights / self._n_pairs)[self.strata]
        return np.asarray(scale * (sign * float(self.unit) * self.sums.own - expected))


def influences_of(
    means: Sequence[PairMean],
    *,
    clusters: IntArray | None = None,
    names: Sequence[str] = (),
    largest: float | None = None,
) -> Influences:
    """Compute the influences of examples, or of clusters, on a sum of means over pairs of the same examples.

    Parameters
    ----------
    means : sequence of PairMean
        The means, whose weights say how much each contributes: one mean, or one for each class.
    clusters : ndarray of int64, shape (N,), optional
        Cluster of each example, numbered from 0.
    names : sequence of str
        Names of the strata of the one mean, or of the classes.
    largest : float, optional
        Largest difference of two terms; by default, the range of the mean terms of left examples and 0.
    """
    both = [np.sum([mean.slopes(sign) for mean in means], axis=0) for sign in (1.0, -1.0)]
    error = None if clusters is not None else _standard_error(both[0], means)
    if clusters is not None:
        both = [np.bincount(clusters, weights=each).astype(np.float64) for each in both]
    own, mirrored = (each * each.size for each in both)
    found = Influences.of(sum(mean.difference for mean in means), own, mirrored, error)
    if len(names) < 2:
        return found
    widest = max(mean.seen() for mean in means) if largest is None else largest
    by_part = _by_part([mean.shares() for mean in means], means, clusters)
    changes = _by_part([mean.changes() for mean in means], means, clusters)
    return replace(found, parts=PartShares.of(by_part, changes, names, widest))


def _by_part(
    of_means: Sequence[npt.NDArray[np.float64]], means: Sequence[PairMean], clusters: IntArray | None
) -> npt.NDArray[np.float64]:
    """Return numbers of examples by class or stratum, shape (parts, N), added up within clusters."""
    found = np.stack(of_means)
    if len(means) == 1:
        found = found * (means[0].strata == np.arange(means[0].weights.size)[:, None])
    return found if clusters is None else np.stack([np.bincount(clusters, each) for each in found])


def _standard_error(slopes: npt.NDArray[np.float64], means: Sequence[PairMean]) -> float | None:
    """Return the standard error of the difference for independent examples; None if it is undefined.

    The variance is the sum of squared slopes (infinitesimal jackknife). The sum over n examples that are
    alike, those of one stratum with the same roles in all means, is multiplied by n / (n - 1). For the area
    under the ROC curve, this is the variance of DeLong, DeLong and Clarke-Pearson (1988).
    """
    groups = np.zeros(slopes.size, dtype=np.int64)
    for part in (part for mean in means for part in (mean.strata, mean.kinds)):
        groups = np.unique(groups * (int(part.max()) + 1) + part, return_inverse=True)[1]
    sizes, squares = np.bincount(groups), np.bincount(groups, weights=slopes**2)
    if (squares[sizes == 1] > 0.0).any():
        return None
    return math.sqrt(float((squares * sizes / np.maximum(sizes - 1, 1)).sum()))
