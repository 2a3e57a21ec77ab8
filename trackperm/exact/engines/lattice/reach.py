"""Lattice points within the ranges of all totals: swaps lead to no others.

A form D(x) = D_0 + d . x of the lattice point X = sum_k sum_j B_kj x_k has values between
D_0 + sum_k c_k min(d . x_k, 0) and D_0 + sum_k c_k max(d . x_k, 0), both attained. Points with a form outside
its range have probability 0 exactly, such as those where a count, or the divisor of F1, would be negative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.errors import UndefinedStatisticError
from trackperm.exact.counts import LARGEST, exact_column_sums
from trackperm.exact.distributions.characteristic import SwapDistribution
from trackperm.exact.distributions.tilt import TailMass, certified
from trackperm.exact.types import IntArray

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Strip:
    """Points x with least <= constant + slopes . x <= greatest, all integers."""

    constant: int
    slopes: tuple[int, ...]
    least: int
    greatest: int

    def between(self, least: int, greatest: int) -> Strip:
        """Return the part of the strip where the form is between two values, ends included."""
        return replace(self, least=max(least, self.least), greatest=min(greatest, self.greatest))

    def contains(self, points: Sequence[IntArray]) -> Flags:
        """Return flags of the points in the strip, given as r broadcastable coordinate arrays."""
        values = self._values(points, self.slopes)
        return np.asarray((values >= self.least) & (values <= self.greatest), dtype=np.bool_)

    def cut(self, x: IntArray, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
        """Shorten rows {x} x [low, high] of a plane lattice to the strip; low > high if nothing is left."""
        rest = self._values([x], self.slopes[:1])
        slope = self.slopes[1]
        if slope == 0:
            outside = (rest < self.least) | (rest > self.greatest)
            return low, np.where(outside, low - 1, high)
        # Python's and NumPy's integer divisions round down.
        if slope > 0:
            first, last = -((rest - self.least) // slope), (self.greatest - rest) // slope
        else:
            first, last = -((self.greatest - rest) // -slope), (rest - self.least) // -slope
        return (
            np.minimum(np.maximum(low, first), high + 1).astype(np.int64),
            np.maximum(np.minimum(high, last), low - 1).astype(np.int64),
        )

    def _values(self, points: Sequence[IntArray], slopes: Sequence[int]) -> npt.NDArray[Any]:
        """Return constant + slopes . points, in Python integers where int64 might overflow."""
        size = abs(self.constant) + max(abs(self.least), abs(self.greatest))
        size += sum(abs(s) * int(np.abs(axis).max(initial=0)) for s, axis in zip(slopes, points, strict=True))
        dtype: Any = np.int64 if size < LARGEST else object
        total: Any = np.array(self.constant, dtype=dtype)
        for slope, axis in zip(slopes, points, strict=True):
            if slope:
                total = total + slope * axis.astype(dtype)
        return np.asarray(total)


class Reach:
    """Points of a lattice that satisfy the ranges of all totals.

    Parameters
    ----------
    law : SwapDistribution
        Distribution of the lattice point.
    origin : sequence of int, length m
        Totals at lattice point 0.
    basis : sequence of sequence of int, shape (m, r)
        Totals at x are origin + basis @ x.
    """

    def __init__(self, law: SwapDistribution, origin: Sequence[int], basis: Sequence[Sequence[int]]) -> None:
        self._law = law
        self.strips: list[Strip] = []
        seen: set[tuple[int, ...]] = set()
        for constant, row in zip(origin, basis, strict=True):
            slopes = tuple(row)
            # Forms whose slopes agree up to sign have the same strip.
            if any(slopes) and slopes not in seen:
                seen |= {slopes, tuple(-s for s in slopes)}
                self.strips.append(self.strip(constant, slopes))

    def strip(self, constant: int, slopes: tuple[int, ...]) -> Strip:
        """Return the strip between the extreme values of an affine form."""
        largest = max(map(abs, slopes), default=0) * int(np.abs(self._law.coordinates).max(initial=0))
        dtype: Any = np.int64 if largest * max(len(slopes), 1) < LARGEST else object
        steps = (self._law.coordinates.astype(dtype) @ np.array(slopes, dtype=dtype))[:, None]
        (fall,) = exact_column_sums(np.minimum(steps, 0), self._law.multiplicities)
        (rise,) = exact_column_sums(np.maximum(steps, 0), self._law.multiplicities)
        return Strip(constant, slopes, constant + fall, constant + rise)

    def contains(self, points: Sequence[IntArray]) -> Flags:
        """Return flags of the points within all ranges, given as r broadcastable coordinate arrays."""
        found = np.ones(np.broadcast_shapes(*(axis.shape for axis in points)), dtype=np.bool_)
        for strip in self.strips:
            found &= strip.contains(points)
        return found


def without_undefined(tail: TailMass, undefined: TailMass, point: Sequence[int]) -> TailMass:
    """Return a tail whose certificate includes the mass of points where the statistic is undefined.

    It raises UndefinedStatisticError, which names one such `point`, if that mass is proved to be positive.
    """
    if undefined.error < 0.5:
        raise UndefinedStatisticError(
            "the statistic is undefined after some swaps of outputs: it divides by 0 there "
            f"(first at lattice point ({', '.join(map(str, point))}))",
            hint="declare the value of 0/0 with `undefined`; a non-zero number over 0 has no value.",
        )
    more = undefined.scaled * math.exp(min(undefined.log_scale - tail.log_scale, 700.0))
    if tail.error >= 1.0:
        return TailMass(tail.log_scale, tail.scaled + more, 1.0)
    return certified(tail.log_scale, tail.scaled, tail.scaled * tail.error / (1.0 + tail.error) + more)
