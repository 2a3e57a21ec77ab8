r"""Intra-class correlation of examples in clusters, with its p-value and design effect.

Let r_i be the deviations of N values from their mean, in k clusters of sizes n_c, with the sums
R_c = sum_{i in c} r_i. One-way analysis of variance gives

    MSB = sum_c R_c^2 / n_c / (k - 1),   MSW = (sum_i r_i^2 - sum_c R_c^2 / n_c) / (N - k),
    ICC = (MSB - MSW) / (MSB + (n_0 - 1) MSW),   n_0 = (N - sum_c n_c^2 / N) / (k - 1).

If any two examples of a cluster have the correlation ICC, and examples of different clusters have none, the
variance of a sum over examples is that of independent examples times the design effect 1 + (m - 1) ICC with
m = sum_c n_c^2 / N. This is exact for clusters of any sizes.

The null hypothesis is that the values are independent, with any distributions. Some clusters may have harder
examples, on which the runs differ more often; an F test mistakes that for correlation. This test conditions
on the squares of the values. Let Q = sum_c (R_c^2 - sum_{i in c} r_i^2) / n_c, which has the sign of
MSB - MSW up to the estimation of the mean. Under independent fair signs of the r_i, it has the cumulants

    kappa_2 = 2 sum_c (s_1^2 - s_2) / n_c^2,   kappa_3 = 8 sum_c (s_1^3 - 3 s_1 s_2 + 2 s_3) / n_c^3

with s_j = sum_{i in c} r_i^{2 j}, and the mean 0; centring adds -(N - k) / N^2 sum_i r_i^2 to the mean. The
p-value is the upper tail of the shifted gamma distribution (Pearson's type III) with these cumulants.

References
----------
R. A. Fisher (1925), "Statistical Methods for Research Workers", chapter 7 (intra-class correlation).
L. Kish (1965), "Survey Sampling", section 5.4 (design effect).
A. Donner (1986), "A review of inference procedures for the intraclass correlation coefficient in the one-way
random effects model", International Statistical Review 54 (unequal sizes).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trackperm.pairing.cluster_sums import SummedClusters

SYMMETRIC = 1e-4
"""Skewness below which the normal distribution replaces the shifted gamma distribution.

The shape 4 / skewness^2 of the gamma is above 4e8 there, and the tails differ by less than 1e-5.
"""


@dataclass(frozen=True)
class Intraclass:
    """Intra-class correlation of values in clusters.

    Attributes
    ----------
    n_clusters : int
        Number of clusters.
    icc : float
        Intra-class correlation, by analysis of variance.
    size : float
        Mean cluster size over examples: the sum of the squared sizes divided by the sum of the sizes.
    pvalue : float
        Probability of at least this correlation if the values are independent.
    """

    n_clusters: int
    icc: float
    size: float
    pvalue: float

    @property
    def design_effect(self) -> float:
        """Ratio of the variance of a sum to that of independent values."""
        return 1.0 + (self.size - 1.0) * self.icc

    @classmethod
    def of(cls, values: npt.NDArray[np.float64], clusters: npt.NDArray[np.int64]) -> Intraclass | None:
        """Compute the correlation of `values`, shape (N,), in `clusters`, numbered from 0 without gaps.

        None if all values are equal, or if no cluster contains two examples.
        """
        n = values.size
        sizes = np.bincount(clusters).astype(np.float64)
        k = sizes.size
        deviations = values - values.mean()
        largest = float(np.abs(deviations).max(initial=0.0))
        if not 2 <= k < n or largest <= 1e-12 * float(np.abs(values).max()):
            return None
        deviations /= largest
        sums = np.bincount(clusters, deviations)
        second, third = sign_cumulants(deviations, clusters)
        return cls._of(
            n,
            k,
            float(sizes @ sizes),
            float(deviations @ deviations),
            float((deviations**2 / sizes[clusters]).sum()),
            float((sums**2 / sizes).sum()),
            second,
            third,
        )

    @classmethod
    def of_sums(cls, found: SummedClusters) -> Intraclass | None:
        """Compute the correlation from sums over clusters; None if no cluster contains two examples."""
        if not 2 <= found.n_clusters < found.n_examples:
            return None
        return cls._of(
            found.n_examples,
            found.n_clusters,
            found.squared_sizes,
            found.squares,
            found.own,
            found.between,
            2.0 * found.second,
            8.0 * found.third,
        )

    @classmethod
    def _of(
        cls,
        n: int,
        k: int,
        squared_sizes: float,
        squares: float,
        own: float,
        between: float,
        second: float,
        third: float,
    ) -> Intraclass:
        """Compute the correlation from sums: of n_c^2, r_i^2, s_1 / n_c and R_c^2 / n_c, and cumulants."""
        size = squared_sizes / n
        mean_between = between / (k - 1)
        mean_within = max(squares - between, 0.0) / (n - k)
        n_0 = (n - size) / (k - 1)
        icc = (mean_between - mean_within) / (mean_between + (n_0 - 1.0) * mean_within)
        if second <= 0.0:
            return cls(k, icc, size, 1.0)
        excess = between - own + (n - k) / n**2 * squares
        return cls(k, icc, size, _upper_tail(excess / math.sqrt(second), third / second**1.5))


def sign_cumulants(
    deviations: npt.NDArray[np.float64], clusters: npt.NDArray[np.int64]
) -> tuple[float, float]:
    """Return kappa_2 and kappa_3 of Q under independent fair signs; see this module."""
    sizes = np.bincount(clusters).astype(np.float64)
    squares = deviations * deviations  # products take a tenth of the time of powers
    s1, s2, s3 = (np.bincount(clusters, x) for x in (squares, squares * squares, squares * squares * squares))
    second = 2.0 * float(((s1**2 - s2) / sizes**2).sum())
    return second, 8.0 * float(((s1**3 - 3.0 * s1 * s2 + 2.0 * s3) / sizes**3).sum())


def _upper_tail(z: float, skewness: float) -> float:
    """Return the probability that a standardised shifted gamma variable is at least z."""
    from scipy import special

    if skewness < SYMMETRIC:
        return float(special.ndtr(-z))
    shape = 4.0 / skewness**2
    return float(special.gammaincc(shape, max(shape + z * math.sqrt(shape), 0.0)))
