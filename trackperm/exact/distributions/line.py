"""Weighted sums of fair coins with integer steps of any size: the distribution of linear statistics."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.exact.counts import LARGEST
from trackperm.exact.distributions.characteristic import SwapDistribution
from trackperm.exact.distributions.pmf import LOG_WINDOW
from trackperm.exact.types import IntArray

FEW_STEPS = 32
"""Largest number of steps that are added one by one, in less time than NumPy takes to start."""


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
        return self.number(self.multiplicities)

    @cached_property
    def total(self) -> int:
        """Greatest value of X."""
        return self.value(self.multiplicities)

    def number(self, ups: IntArray) -> int:
        """Return the sum of these numbers of coins."""
        return sum(ups.tolist()) if ups.size <= FEW_STEPS else int(ups.sum())

    def value(self, ups: IntArray) -> int:
        """Return the value of X if these numbers of coins, at most c_k, show 1."""
        steps, is_short = self.steps, self.steps.dtype != object
        if is_short and steps.size > FEW_STEPS and self.n_coins * int(steps[-1]) < LARGEST:
            return int(steps @ ups)
        return sum(map(operator.mul, steps.tolist(), ups.tolist()))

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
        steps = self.steps
        divisor = math.gcd(*steps.tolist()) if steps.size <= FEW_STEPS else int(np.gcd.reduce(steps))
        return (self, 1) if divisor <= 1 else (LineLaw(self.steps // divisor, self.multiplicities), divisor)

    def below(self, limit: int) -> LineLaw:
        """Return the law of the coins whose steps are at most `limit`."""
        if not self.steps.size or limit >= int(self.steps[-1]):
            return self
        kept = self.steps <= limit
        return LineLaw(self.steps[kept], self.multiplicities[kept])
