"""Axes of a law of swaps on which nothing is the same: columns that repeat another one are left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from trackperm.exact.distributions.characteristic import FloatArray, SwapDistribution
from trackperm.exact.types import IntArray

Points = TypeVar("Points", IntArray, FloatArray)


@dataclass(frozen=True)
class Axes:
    """Axes of a law that are not 0, and not the same as an earlier one or its negative.

    The counts of one run are often the negatives of those of the other.

    Attributes
    ----------
    law : SwapDistribution
        Distribution of the kept axes of X.
    kept : ndarray of int64, shape (s,)
        The kept axes.
    source, sign : ndarray of int64, shape (r,)
        X_i = sign_i X_kept[source_i].
    """

    law: SwapDistribution
    kept: IntArray
    source: IntArray
    sign: IntArray

    @classmethod
    def of(cls, law: SwapDistribution) -> Axes:
        """Find the axes of a law."""
        places: dict[bytes, int] = {}
        kept: list[int] = []
        source, sign = np.zeros((2, law.rank), dtype=np.int64)
        for axis, column in enumerate(law.coordinates.T):
            if not column.any():
                continue
            own, opposite = column.tobytes(), (-column).tobytes()
            if opposite in places:
                source[axis], sign[axis] = places[opposite], -1
                continue
            if own not in places:
                places[own] = len(kept)
                kept.append(axis)
            source[axis], sign[axis] = places[own], 1
        axes = np.array(kept, dtype=np.int64)
        return cls(SwapDistribution(law.coordinates[:, axes], law.multiplicities), axes, source, sign)

    def expanded(self, points: Points) -> Points:
        """Return all axes of points, shape (r, n), from the kept ones, shape (s, n)."""
        return points[self.source] * self.sign[:, None]
