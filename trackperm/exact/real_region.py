"""Regions of a statistic that is known as a NumPy callable only.

Such a statistic has no algebra to decide ties by: values within a stated band of the threshold count as tied,
which is conservative, and results say so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from trackperm.exact.characteristic import FloatArray
from trackperm.exact.counts import IntArray
from trackperm.exact.region import INSIDE, OUTSIDE, UNDEFINED, Membership

TIE_BAND = 2.0**-40
"""Half-width of the band in which values of a callable count as tied, relative to the largest value seen."""


class CallableRegion:
    """The points where a callable is at least, or at most, a threshold, ties within a band included."""

    def __init__(
        self,
        values: Callable[[Sequence[IntArray]], FloatArray],
        threshold: float,
        upper: bool,
        strict: bool = False,
    ) -> None:
        self._values, self._threshold, self._upper, self._strict = values, threshold, upper, strict

    def membership(self, points: Sequence[IntArray]) -> Membership:
        """Classify points, given as r broadcastable coordinate arrays: inside, outside or undefined."""
        values = self._values(points)
        finite = np.isfinite(values)
        band = TIE_BAND * max(abs(self._threshold), float(np.abs(values[finite]).max(initial=0.0)))
        beyond = (values - self._threshold) if self._upper else (self._threshold - values)
        with np.errstate(invalid="ignore"):
            extreme = beyond > band if self._strict else beyond >= -band
        inside = np.where(extreme, INSIDE, OUTSIDE).astype(np.int8)
        inside[np.isnan(values)] = UNDEFINED
        return inside
