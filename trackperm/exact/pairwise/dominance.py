"""Counts of points below bounds in two coordinates, in O(N log N) array operations.

Points have a key and a height, both integers. A query counts the points with key < a and height < b. The
points are sorted by key; their ranks by height are partitioned bit by bit, highest bit first, as in a wavelet
tree, and every query follows the bits of its bound. Each level is one step over arrays. Ranks are distinct
and leave no gap, so that the ranks with the first bits P fill the places from P times the number of ranks
with these bits: neither the start of such a part nor its number of zeros need to be looked up.

References
----------
R. Grossi, A. Gupta and J. S. Vitter (2003), "High-order entropy-compressed text indexes", section 4.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.exact.types import IntArray

Places = npt.NDArray[np.int32]

TABLE = 2**22
"""Largest number of values that are looked up in a table of cumulative counts: it has 32 MiB."""

QUERIES = 2**15
"""Queries that follow all levels at once: arrays of 128 KiB, which stay in the cache."""


LONG = 16
"""Longest part that is searched: searching longer ones takes as long as following all levels."""


def n_below(values: IntArray, bounds: IntArray) -> IntArray:
    """Count the `values` below each of the `bounds`; all are at least 0."""
    largest = max(int(values.max(initial=0)), int(bounds.max(initial=0)))
    if largest < max(TABLE, 4 * values.size):
        below = np.zeros(largest + 2, dtype=np.int64)
        np.cumsum(np.bincount(values, minlength=largest + 1), out=below[1:])
        return below[bounds]
    return np.searchsorted(np.sort(values), bounds).astype(np.int64)


class Points:
    """Points with a key and a height, for counting those below bounds in both.

    Parameters
    ----------
    keys, heights : ndarray of int64, shape (n,)
        Coordinates, at least 0.
    """

    def __init__(self, keys: IntArray, heights: IntArray) -> None:
        self._keys, self._heights = keys, heights

    def below(self, keys: IntArray, heights: tuple[IntArray, IntArray]) -> tuple[IntArray, IntArray]:
        """Count points below a key bound and each of two height bounds.

        The second height bound is equal to the first one or greater by 1.
        """
        ends = n_below(self._keys, keys)
        low, high = (n_below(self._heights, bound) for bound in heights)
        first = self._ranks_below(ends, low)
        if int((high - low).max(initial=0)) > LONG:
            return first, self._ranks_below(ends, high)
        _, places = self._orders
        return first, first + _within(places, low, high, ends)

    @cached_property
    def _orders(self) -> tuple[Places, Places]:
        """Ranks by height in the order of keys, and ranks by key in the order of heights."""
        by_key = _sorted_by(self._keys, self._heights)
        by_height = _sorted_by(self._heights, self._keys)
        numbers = np.arange(by_key.size, dtype=np.int32)
        ranks = np.empty(by_key.size, dtype=np.int32)
        ranks[by_height] = numbers
        heights = ranks[by_key]
        ranks[by_key] = numbers
        return heights, ranks[by_height]

    @cached_property
    def _levels(self) -> list[tuple[int, Places]]:
        """Numbers of zero bits before every place, for each bit of the ranks, highest first."""
        ranks, _ = self._orders
        found = []
        for shift in reversed(range(int(ranks.size).bit_length())):  # a bound can be the number of points
            zeros = np.zeros(ranks.size + 1, dtype=np.int32)
            is_one = (ranks >> shift) & 1 == 1
            np.cumsum(~is_one, out=zeros[1:])
            found.append((shift, zeros))
            prefix = (ranks >> (shift + 1)) << shift
            moved = np.where(
                is_one,
                np.arange(ranks.size, dtype=np.int32) - zeros[:-1] + prefix + (1 << shift),
                zeros[:-1] + prefix,
            )
            ranks = _scattered(ranks, moved)
        return found

    def _ranks_below(self, ends: IntArray, bounds: IntArray) -> IntArray:
        """Count, among the first `ends` points by key, the ranks by height that are below `bounds`."""
        found = np.empty(ends.size, dtype=np.int64)
        for first in range(0, ends.size, QUERIES):
            part = slice(first, first + QUERIES)
            found[part] = self._followed(ends[part].astype(np.int32), bounds[part].astype(np.int32))
        return found

    def _followed(self, ends: Places, bounds: Places) -> Places:
        found = np.zeros(ends.size, dtype=np.int32)
        for shift, zeros in self._levels:
            prefix = (bounds >> (shift + 1)) << shift
            n_zeros = zeros[(prefix << 1) + ends] - prefix
            bit = (bounds >> shift) & 1
            found += n_zeros * bit
            # Points with a 0 bit, or those with a 1 bit: the other part of `ends`.
            ends = np.where(bit, ends - n_zeros, n_zeros)
        return found


def _scattered(values: Places, places: Places) -> Places:
    moved = np.empty_like(values)
    moved[places] = values
    return moved


def _sorted_by(first: IntArray, second: IntArray) -> npt.NDArray[Any]:
    """Return the order by `first`, then by `second`."""
    width = int(second.max(initial=0)) + 1
    if (int(first.max(initial=0)) + 1) * width < 2**62:
        return np.argsort(first * width + second)
    return np.lexsort((second, first))


def _within(values: Places, starts: IntArray, ends: IntArray, bounds: IntArray) -> IntArray:
    """Count the entries of ``values[starts:ends]`` below `bounds`; those parts of `values` ascend."""
    low, high = starts.copy(), ends.copy()
    open_ = np.flatnonzero(low < high)
    while open_.size:
        middle = (low[open_] + high[open_]) >> 1
        is_below = values[middle] < bounds[open_]
        low[open_] = np.where(is_below, middle + 1, low[open_])
        high[open_] = np.where(is_below, high[open_], middle)
        open_ = open_[low[open_] < high[open_]]
    return low - starts
