r"""Differences that no example showed, where some examples weigh more than others.

A mean over strata or classes with weights W_k, which add up to 1, gives each of the N_k examples of part k
the share W_k / N_k, and an example of several parts the sum of its shares. Let n_j examples have the share
s_j. If no example differs, the shares d_j of the population that differ satisfy prod_j (1 - d_j)^n_j >= tau
at level tau (Clopper and Pearson 1934), and they change the statistic by at most R sum_j n_j s_j d_j, with R
the range of the scores of an example. With a_j = -n_j log(1 - d_j) this sum is concave and its constraint
linear, sum_j a_j <= log(1 / tau), so that its maximum R U has 1 - d_j = min(lambda / s_j, 1):

    U(tau) = sum_j n_j max(s_j - lambda, 0),      sum_j n_j max(log(s_j / lambda), 0) = log(1 / tau).

Equal shares have U = 1 - tau^(1/N). Where m_j examples with the share s_j differ, by about R, half the width
of an interval is z R sqrt(sum_j m_j s_j^2). If this is less than R U, the interval is too short whenever the
examples that weigh most agree by chance. Four differences among these examples suffice for tau from 0.01 on,
since U is at most log(1 / tau) max_j s_j, and log(1 / tau) / z is below 2.

In a mean over pairs, s_j is the change of the score if all pairs of an example change by 1. As a pair changes
if either example does, the bound counts it twice, and holds. Examples differ by a part of R only, so that the
rule compares the changes e_i by the pairs of examples with what the unseen ones may change by their usual
difference d in place of R: z sqrt(sum_i e_i^2) >= d U. A margin has to be above R U.

References
----------
C. J. Clopper and E. S. Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of
the binomial", Biometrika 26.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from trackperm.choices import Alternative
from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.intervals.interval import tail_level
from trackperm.exact.types import IntArray
from trackperm.messages import amount


@dataclass(frozen=True)
class HeaviestPart:
    """Stratum or class whose examples have the largest share in the score."""

    name: str
    n_examples: int
    n_moved: int
    verb: str = "differ"


@dataclass(frozen=True)
class UnseenDifferences:
    """Largest change of a score by differences that no example showed.

    Attributes
    ----------
    shares : ndarray of float64
        Distinct positive shares s_j of an example in the score.
    numbers : ndarray of int64
        Positive number of examples with each share.
    moved : ndarray of int64
        Number of examples with each of these shares, or each of `moved_shares`, that differ between the runs.
    widest : float
        Length R of the range of the scores of an example.
    heaviest : HeaviestPart or None
        Part whose examples weigh most; None if there are no parts.
    moved_shares : ndarray of float64 or None
        Changes of the score by the examples that differ, in units of the largest difference of an example;
        None if all differ as much, so that they are the shares.
    """

    shares: FloatArray
    numbers: IntArray
    moved: IntArray
    widest: float
    heaviest: HeaviestPart | None = None
    moved_shares: FloatArray | None = None

    def changed(self, level: float, scale: float = 1.0) -> FloatArray:
        """Return the shares d_j of the population that may differ unseen, where their effect is largest.

        `scale` multiplies the number of examples.
        """
        logs, numbers = np.log(self.shares), self.numbers * scale
        order = np.argsort(-logs)
        # The j largest shares alone would have these logarithms of lambda, which is the greatest of them.
        found = (np.cumsum((numbers * logs)[order]) + math.log(level)) / np.cumsum(numbers[order])
        return np.asarray(-np.expm1(np.minimum(found.max() - logs, 0.0)))

    def largest(self, level: float, scale: float = 1.0) -> float:
        """Return the largest change of the score at this level, R U."""
        return self.widest * self._share(level, scale)

    def fewest(self, level: float, scale: float = 1.0) -> float:
        """Return how many examples like those that differ have to, for half of an interval as wide as R U."""
        shares = self.shares if self.moved_shares is None else self.moved_shares
        z, squares = float(-ndtri(level)), float(self.moved @ shares**2) / scale**2
        if z <= 0.0 or squares == 0.0:
            return math.inf
        return int(self.moved.sum()) * (self._share(level, scale) / z) ** 2 / squares

    def why_hidden(self, alpha: float, alternative: Alternative, unit: str) -> str | None:
        """Return the reason against an interval narrower than what may be unseen; None if it is wider."""
        level, part = tail_level(alpha, alternative), self.heaviest
        if part is None or level >= 0.5 or self.fewest(level) <= int(self.moved.sum()):
            return None
        return (
            f"{part.n_moved:,} of {amount(part.n_examples, unit)} of `{part.name}`, which weigh most,"
            f" {part.verb} between the runs; unseen differences there may be larger than an interval would be"
            " wide"
        )

    def _share(self, level: float, scale: float) -> float:
        """Return U."""
        return float((self.numbers * self.shares) @ self.changed(level, scale))
