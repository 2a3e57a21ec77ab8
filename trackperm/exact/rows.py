r"""Regions of a plane lattice as intervals in its rows.

Where the statistic is rational, of degree at most 2 in the second coordinate, and no division is by zero in
the window, the region in a row is where a quadratic q(y) has one sign: an interval, the complement of one,
all or nothing. Its ends are found in floating point from the roots and then proved on integers:

- each end lies between two neighbouring points of different membership;
- membership at both ends of the row agrees with that at the ends found;
- membership along a row of a quadratic changes at most twice, so one change between unequal ends, or two
  between equal ones, is all there is;
- with none found between equal ends, the points next to the vertex have the same membership as the ends,
  and no other point is closer to a change.

A row that fails a proof is decided point by point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trackperm.exact.characteristic import UNIT, FloatArray
from trackperm.exact.counts import IntArray
from trackperm.exact.pmf import Window
from trackperm.exact.rational_region import RationalRegion
from trackperm.exact.region import INSIDE

Flags = npt.NDArray[np.bool_]

REACH = 8
"""Points on either side of a vertex that are looked at where both changes are close to it."""


@dataclass(frozen=True)
class RowIntervals:
    """Intervals {x} x [first, last] of lattice points, at most two for each row.

    Attributes
    ----------
    x : ndarray of int64, shape (n,)
        First coordinate.
    first, last : ndarray of int64, shape (n,)
        Ends in the second coordinate, both inside.
    """

    x: IntArray
    first: IntArray
    last: IntArray


def row_intervals(region: RationalRegion, window: Window) -> RowIntervals | None:
    """Return the region inside a window of a plane lattice as intervals; None where it is not so simple.

    Parameters
    ----------
    region : RationalRegion
        The region.
    window : Window
        A box of rank 2.
    """
    (x0, y0), (n_rows, n_columns) = window.start, window.periods
    x = np.arange(x0, x0 + n_rows, dtype=np.int64)
    quadratic = region.quadratic_rows(window, x)
    if quadratic is None:
        return None
    low, high = np.int64(y0), np.int64(y0 + n_columns - 1)

    def inside(y: IntArray) -> Flags:
        return np.asarray(region.membership([x, y]) == INSIDE)

    lower, upper = (_cut(root + region.centre[1], low, high) for root in _roots(quadratic))
    # Cuts are first points of a new stretch: a change lies between cut - 1 and cut.
    at_low, at_high = inside(np.full_like(x, low)), inside(np.full_like(x, high))
    lower, lower_found = _adjusted(inside, lower, low, high)
    upper, upper_found = _adjusted(inside, upper, low, high)
    twice = lower_found & upper_found & (lower == upper)
    upper_found = upper_found & ~twice
    n_changes = lower_found.astype(int) + upper_found
    vertex = _cut(_vertex(quadratic) + region.centre[1], low, high)
    sharp = _vertex_error(quadratic, region.linear_size(x)) < 0.5
    same_at_vertex = np.ones(x.size, dtype=bool)
    for step in (-2, -1, 0, 1):
        same_at_vertex &= inside(np.clip(vertex + step, low, high)) == at_low
    proved = np.where(
        at_low == at_high, (n_changes == 2) | ((n_changes == 0) & same_at_vertex & sharp), n_changes == 1
    )
    first_cut = np.where(lower_found, np.where(upper_found, np.minimum(lower, upper), lower), upper)
    second_cut = np.maximum(lower, upper)
    pieces: list[tuple[IntArray, IntArray, IntArray]] = []

    def add(rows: Flags, first: IntArray | np.int64, last: IntArray | np.int64) -> None:
        pieces.append((x[rows], np.broadcast_to(first, x.shape)[rows], np.broadcast_to(last, x.shape)[rows]))

    add(proved & (n_changes == 0) & at_low, low, high)
    add(proved & (n_changes == 1) & at_low, low, first_cut - 1)
    add(proved & (n_changes == 1) & at_high, first_cut, high)
    add(proved & (n_changes == 2) & at_low, low, first_cut - 1)
    add(proved & (n_changes == 2) & at_low, second_cut, high)
    add(proved & (n_changes == 2) & ~at_low, first_cut, second_cut - 1)
    # Both changes close to the vertex (a region one point wide, say), or a row that floats cannot settle.
    left, right = np.clip(vertex - REACH, low, high), np.clip(vertex + REACH, low, high)
    around = sharp & (at_low == at_high) & (inside(left) == at_low) & (inside(right) == at_low)
    for row in np.flatnonzero(~proved):
        ends = (left[row], right[row]) if around[row] else (low, high)
        pieces.append(_scanned(region, int(x[row]), (int(ends[0]), int(ends[1])), (int(low), int(high))))
    return RowIntervals(*(np.concatenate(part) for part in zip(*pieces, strict=True)))


def _roots(quadratic: tuple[FloatArray, FloatArray, FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return both real roots of a y^2 + b y + c by the form that does not cancel; NaN for none."""
    a, b, c = quadratic
    with np.errstate(all="ignore"):
        root = np.sqrt(np.maximum(b * b - 4.0 * a * c, 0.0))
        q = -0.5 * (b + np.where(b < 0, -root, root))
        far, near = q / a, c / q
    return np.where(np.isfinite(far), far, np.nan), np.where(np.isfinite(near), near, np.nan)


def _vertex(quadratic: tuple[FloatArray, FloatArray, FloatArray]) -> FloatArray:
    a, b, _ = quadratic
    with np.errstate(all="ignore"):
        return np.asarray(-b / (2.0 * a))


def _vertex_error(
    quadratic: tuple[FloatArray, FloatArray, FloatArray], linear_size: FloatArray
) -> FloatArray:
    """Return a bound of the rounding error of the vertex; `linear_size` is that of the terms of b."""
    a, b, _ = quadratic
    with np.errstate(all="ignore"):
        error = 16.0 * UNIT * (linear_size + np.abs(b)) / (2.0 * np.abs(a))
    # Without a quadratic term there is no vertex and at most one change, which unequal ends show.
    return np.where(a == 0.0, 0.0, error)


def _cut(root: FloatArray, low: np.int64, high: np.int64) -> IntArray:
    """Return the first integer at or above a root, kept inside the row; its low end for no root."""
    bounded = np.clip(np.nan_to_num(np.ceil(root), nan=float(low)), float(low), float(high))
    return np.asarray(bounded, dtype=np.int64)


def _adjusted(
    inside: Callable[[IntArray], Flags], cut: IntArray, low: np.int64, high: np.int64
) -> tuple[IntArray, Flags]:
    """Move each cut by at most one point to where membership changes; say where it does."""
    found = np.zeros(cut.size, dtype=bool)
    best = cut.copy()
    if low == high:
        return best, found
    for step in (0, 1, -1):
        moved = np.clip(cut + step, low + 1, high)
        changes = ~found & (inside(moved) != inside(moved - 1))
        best[changes] = moved[changes]
        found |= changes
    return best, found


def _scanned(
    region: RationalRegion, x: int, ends: tuple[int, int], row: tuple[int, int]
) -> tuple[IntArray, IntArray, IntArray]:
    """Decide a row point by point between `ends`, beyond which membership is that of the ends."""
    low, high = ends
    y = np.arange(low, high + 1, dtype=np.int64)
    flags = np.concatenate([[False], region.membership([np.full_like(y, x), y]) == INSIDE, [False]])
    edges = np.flatnonzero(np.diff(flags))
    first, last = low + edges[::2], low + edges[1::2] - 1
    first[first == low], last[last == high] = row
    return np.full(first.size, x, dtype=np.int64), first, last
