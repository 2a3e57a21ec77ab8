"""Denominators of floats that are close to fractions, and their least common multiple."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

WIDE_BITS = 1_024
"""Most bits of a common denominator."""

_TINY = 1e-300


def denominators(
    values: npt.NDArray[np.float64], tolerance: float, limit: int
) -> npt.NDArray[np.int64] | None:
    """Return the denominator of the first convergent of each value within `tolerance` of it, shape (K,).

    The tolerance is relative. None if a value has no such convergent with a denominator up to `limit`.
    """
    magnitudes = np.abs(values)
    fraction = magnitudes - np.floor(magnitudes)
    result = np.ones(values.size, dtype=np.int64)
    (active,) = np.nonzero(fraction > tolerance * magnitudes)
    fraction, tolerances = fraction[active], tolerance * magnitudes[active]
    rest = fraction
    # Rows p and q of the convergents p / q; they start with 1/0 and 0/1.
    previous, current = np.array([[[1.0], [0.0]], [[0.0], [1.0]]]) + np.zeros(active.size)
    while active.size:
        rest = 1.0 / np.maximum(rest, _TINY)
        quotient = np.floor(rest)
        rest -= quotient
        previous, current = current, quotient * current + previous
        if (current[1] > limit).any():
            return None
        settled = np.abs(fraction - current[0] / current[1]) <= tolerances
        result[active[settled]] = current[1, settled].astype(np.int64)
        active, fraction, tolerances, rest = (x[~settled] for x in (active, fraction, tolerances, rest))
        previous, current = previous[:, ~settled], current[:, ~settled]
    return result


def common_denominator(found: Iterable[int]) -> int | None:
    """Return the least common multiple; None beyond :data:`WIDE_BITS`."""
    common = 1
    for denominator in found:
        common = math.lcm(common, denominator)
        if common.bit_length() > WIDE_BITS:
            return None
    return common
