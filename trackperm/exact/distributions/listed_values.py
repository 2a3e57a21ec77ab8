"""Enumeration of a sum of hypergeometric counts: every value with its integer number of ways."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.exact.counts import LARGEST
from trackperm.exact.distributions.hypergeometric import HypergeometricSum
from trackperm.exact.types import IntArray

LOG2_LISTED = 61.0
"""Binary logarithm of the largest number of ways that int64 counts."""

MOST_LISTED = 2**18
"""Largest number of values that are listed: milliseconds, less than a transform takes."""


@dataclass(frozen=True)
class Listing:
    """Values of a sum, ascending, with the number of ways to place the passes for each."""

    values: npt.NDArray[Any]
    ways: IntArray

    def at_least(self, point: int) -> int:
        """Return the number of ways in which the sum is at least `point`."""
        return int(self.ways[np.searchsorted(self.values, point) :].sum())

    @property
    def total(self) -> int:
        """Number of ways to place the passes."""
        return int(self.ways.sum())

    def mirrored(self) -> Listing:
        """Return the listing of the greatest value minus the sum."""
        return Listing(self.values[-1] - self.values[::-1], self.ways[::-1])


def listing(law: HypergeometricSum) -> Listing | None:
    """Return every value of the sum with its number of ways; None if there are too many."""
    steps, inverse = np.unique(law.steps, return_inverse=True)
    ranges = np.zeros(steps.size)
    np.add.at(ranges, inverse, law.widths * law.multiplicities.astype(np.float64))
    if float(np.log2(ranges + 1.0).sum()) > math.log2(MOST_LISTED) or law.log2_ways > LOG2_LISTED:
        return None
    values = np.zeros(1, dtype=object if law.total >= LARGEST else np.int64)
    ways = np.ones(1, dtype=np.int64)
    rows = [np.array(row, dtype=np.int64) for row in law.ways()]
    for group, step in enumerate(steps.tolist()):
        counted = np.ones(1, dtype=np.int64)
        for row in np.flatnonzero(inverse == group).tolist():
            for _ in range(int(law.multiplicities[row])):
                counted = np.convolve(counted, rows[row])
        sums = (np.arange(counted.size).astype(values.dtype)[:, None] * step + values).ravel()
        products = (counted[:, None] * ways).ravel()
        values, places = np.unique(sums, return_inverse=True)
        ways = np.zeros(values.size, dtype=np.int64)
        np.add.at(ways, places, products)
    return Listing(values, ways)
