"""Counts of points below bounds in two coordinates, in O(N log N) array operations.

Points have a key and a height, both integers. A query counts the points of its group whose key and height
are both below its bounds. Points and queries are put in one order of keys. They are then split by the highest
bit of their heights, without a change of the order within both parts, the parts by the next bit, and so on.
When a part is split, each query with a 1 bit counts the points with a 0 bit that precede it: these are lower,
and no others are found lower by this bit. Points and queries of equal heights are left together at the end.
Each bit is one step over arrays, whose entries are read in the order of memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trackperm.exact.types import IntArray

Places = npt.NDArray[np.int32]

TABLE = 2**22
"""Largest number of values that are looked up in a table of cumulative counts: it has 16 MiB."""


def n_below(values: IntArray, bounds: IntArray) -> IntArray:
    """Count the `values` below each of the `bounds`; all are at least 0."""
    largest = max(int(values.max(initial=0)), int(bounds.max(initial=0)))
    if largest < max(TABLE, 4 * values.size):
        below = np.zeros(largest + 2, dtype=np.int32)
        np.cumsum(np.bincount(values, minlength=largest + 1), out=below[1:])
        return below[bounds].astype(np.int64)
    return np.searchsorted(np.sort(values), bounds).astype(np.int64)


@dataclass(frozen=True)
class KeyOrder:
    """Points and queries by group, then by key.

    Attributes
    ----------
    n_points : int
        Number of points, which are numbered from 0; the queries follow.
    order : ndarray of int64, shape (n_points + n_queries,)
        Numbers of points and queries in order. A query precedes the points with its bound as their key.
    sizes : ndarray of int64
        Number of points and queries of every group that has some.
    """

    n_points: int
    order: IntArray
    sizes: IntArray

    @classmethod
    def of(cls, keys: IntArray, groups: IntArray, bounds: IntArray, query_groups: IntArray) -> KeyOrder:
        """Sort points by their keys, and queries by their bounds; keys, bounds and groups are at least 0."""
        places = np.concatenate([2 * keys + 1, 2 * bounds])
        both = np.concatenate([groups, query_groups])
        width = int(places.max(initial=0)) + 1
        if (int(both.max(initial=0)) + 1) * width < 2**62:
            # Most keys arrive in ascending runs, which a stable sort merges.
            order = np.argsort(both * width + places, kind="stable")
        else:
            order = np.lexsort((places, both))
        sizes = np.bincount(both)
        return cls(keys.size, order, sizes[sizes > 0])

    def below(self, heights: IntArray, bounds: IntArray) -> tuple[IntArray, IntArray]:
        """Count, for each query, the points below its key that are below its height bound, and those at it.

        Parameters
        ----------
        heights : ndarray of int64, shape (n_points,)
            Heights of the points, from 0 to 2^30.
        bounds : ndarray of int64, shape (n_queries,)
            Bounds of the queries, in the same range.
        """
        marked = np.concatenate([2 * heights + 1, 2 * bounds]).astype(np.int32)[self.order]
        n_bits = int(marked.max(initial=0)).bit_length()
        lower, numbers, equal = _counts_before(marked, self.order.astype(np.int32), self.sizes, n_bits)
        found = np.empty((2, numbers.size), dtype=np.int32)
        found[:, numbers] = lower, equal
        of_queries = found[:, self.n_points :].astype(np.int64)
        return of_queries[0], of_queries[1]


def _counts_before(
    marked: Places, numbers: Places, sizes: IntArray, n_bits: int
) -> tuple[Places, Places, Places]:
    """Count the points that precede each entry in its group and are lower, and those that are as high.

    Parameters
    ----------
    marked : ndarray of int32, shape (n,)
        Twice the height of each entry, and 1 more if it is a point.
    numbers : ndarray of int32, shape (n,)
        Numbers of the entries.
    sizes : ndarray of int64
        Number of entries of each group; no group is empty.
    n_bits : int
        Bits of the largest entry.

    Returns
    -------
    lower, numbers, equal : ndarray of int32, shape (n,)
        Number of lower points, number of the entry, and number of points as high, of the entries in the order
        of their heights. The numbers of points are those of queries only.
    """
    parts = [marked, np.zeros_like(marked), numbers]
    spare = [np.empty_like(each) for each in parts]
    for shift in reversed(range(1, n_bits)):
        bit = 1 << shift
        is_low = (parts[0] & bit) == 0
        points_before = np.cumsum((parts[0] & (bit | 1)) == 1, dtype=np.int32)
        ends = np.cumsum(sizes) - 1
        n_low = np.diff(np.cumsum(is_low, dtype=np.int32)[ends], prepend=0)
        low, high = np.flatnonzero(is_low), np.flatnonzero(~is_low)
        for old, new in zip(parts, spare, strict=True):
            # With `mode`, `take` writes to `out` without a buffer.
            np.take(old, low, out=new[: low.size], mode="clip")
            np.take(old, high, out=new[low.size :], mode="clip")
        parts, spare = spare, parts
        gained = points_before[high]
        gained -= np.repeat(_before(points_before, ends), sizes - n_low)
        parts[1][low.size :] += gained
        sizes = np.concatenate([n_low, sizes - n_low])
        sizes = sizes[sizes > 0]
    points_before = np.cumsum(parts[0] & 1, dtype=np.int32)
    equal = points_before - np.repeat(_before(points_before, np.cumsum(sizes) - 1), sizes)
    return parts[1], parts[2], equal


def _before(running: Places, ends: IntArray) -> Places:
    """Return the running sum before each part, given the last places of all parts."""
    found = np.zeros(ends.size, dtype=np.int32)
    found[1:] = running[ends[:-1]]
    return found
