"""Weighted sums of fair coins with integer steps of any size: the distribution of linear statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.exact.counts import LARGEST
from trackperm.exact.distributions.characteristic import SwapDistribution
from trackperm.exact.distributions.pmf import LOG_WINDOW
from trackperm.exact.types import IntArray


@dataclass(frozen=True)
class LineLaw:
    """Distribution of X = sum_k d_k Binomial(c_k, 1/2), symmetric about half its greatest value.

    Attributes
    ----------
    steps : ndarray of int64, or of Python integers (dtype object), shape (K,)
        Distinct positive d_k, ascending.
    multiplicities : ndarray of int64, shape (K,)
        Positive c_k.
    """

    steps: npt.NDArray[Any]
    multiplicities: IntArray

    @cached_property
    def n_coins(self) -> int:
        """Number of coins."""
        return int(self.multiplicities.sum())

    @cached_property
    def total(self) -> int:
        """Greatest value of X."""
        if (
            self.steps.dtype != object
            and self.n_coins * int(self.steps[-1] if self.steps.size else 0) < LARGEST
        ):
            return int(self.steps @ self.multiplicities)
        return sum(d * c for d, c in zip(self.steps.tolist(), self.multiplicities.tolist(), strict=True))

    @cached_property
    def root(self) -> int:
        """Twice the standard deviation of X, sqrt(sum_k c_k d_k^2), rounded to an integer."""
        if self.steps.dtype == object:
            return math.isqrt(int(self.multiplicities.astype(object) @ (self.steps * self.steps)))
        return math.ceil(math.sqrt(float(self.multiplicities @ self.steps.astype(np.float64) ** 2)))

    @property
    def width(self) -> int:
        """Approximate number of integers with all but exp(LOG_WINDOW) of the mass (Hoeffding 1963)."""
        return min(self.root * math.ceil(2.0 * math.sqrt((math.log(2.0) - LOG_WINDOW) / 2.0)), self.total) + 1

    def lattice(self) -> SwapDistribution:
        """Return the distribution for the characteristic function; `total` has to fit 2^62."""
        return SwapDistribution(self.steps.astype(np.int64)[:, None], self.multiplicities)

    def divided(self) -> tuple[LineLaw, int]:
        """Return the law of X / g, and g, the greatest common divisor of the steps."""
        divisor = int(np.gcd.reduce(self.steps)) if self.steps.size else 1
        return (self, 1) if divisor == 1 else (LineLaw(self.steps // divisor, self.multiplicities), divisor)

    def below(self, limit: int) -> LineLaw:
        """Return the law of the coins whose steps are at most `limit`."""
        if not self.steps.size or limit >= int(self.steps[-1]):
            return self
        kept = self.steps <= limit
        return LineLaw(self.steps[kept], self.multiplicities[kept])
