"""Types that all engines share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
Membership = npt.NDArray[np.int8]

INSIDE, OUTSIDE, UNDEFINED = 1, 0, -1


class Region(Protocol):
    """Set of lattice points that are at least as extreme as the observed one."""

    def membership(self, points: Sequence[IntArray]) -> Membership:
        """Classify points, given as r broadcastable coordinate arrays: inside, outside or undefined."""
