r"""Regions of a plane lattice as intervals in its rows.

Points that swaps cannot lead to are omitted (`lattice`). On the others each affine divisor has a known range:
a row is split where a divisor may change its sign, and points where one is 0 are decided one by one. On each
piece of a row, the region of a rational statistic of degree at most 2 in the second coordinate is the set
where a quadratic q(y) has one sign: an interval, the complement of one, all or nothing. Its ends are computed
in floating point from the roots and then proved on integers:

- each end lies between two neighbouring points of different membership;
- membership at both ends of the piece agrees with that at the computed ends;
- membership along a piece changes at most twice, so one change between unequal ends, or two between equal
  ends, are all;
- if no change was found between equal ends, the points next to the vertex have the same membership as the
  ends, and no other point is closer to a change.

A piece that fails a proof, and any other region, is decided point by point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trackperm.errors import CapacityError
from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.distributions.pmf import Window
from trackperm.exact.engines.lattice.lattice import Flags, Reach, Strip
from trackperm.exact.engines.lattice.rational_region import RationalRegion, RowQuadratics
from trackperm.exact.types import INSIDE, UNDEFINED, IntArray, Membership, Region

AROUND = 8
"""Points on either side of a vertex that are decided one by one if both changes may be close to it."""

BLOCK = 2**18
"""Points per step: 2 MiB for each array."""

ROWS = 2**14
"""Pieces of rows that are proved together: work arrays of six points each (768 KiB) stay in the cache."""

MOST_CELLS = 2**27
"""Largest number of points that are decided one by one: about ten seconds."""

BYTES_PER_INTERVAL = 256
"""Memory for an interval and its proof."""


@dataclass(frozen=True)
class RowIntervals:
    """Intervals {x} x [first, last] of lattice points, any number of them in a row.

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

    def chosen(self, which: npt.NDArray[np.bool_] | IntArray | slice) -> RowIntervals:
        """Return selected intervals."""
        return RowIntervals(self.x[which], self.first[which], self.last[which])

    def cut(self, strip: Strip) -> RowIntervals:
        """Return the parts of the intervals in a strip."""
        first, last = strip.cut(self.x, self.first, self.last)
        return RowIntervals(self.x, first, last).chosen(first <= last)

    @property
    def sizes(self) -> IntArray:
        """Number of points in each interval."""
        return self.last - self.first + 1


def joined(parts: list[RowIntervals]) -> RowIntervals:
    """Return the concatenation of lists of intervals."""
    nothing = np.zeros(0, dtype=np.int64)
    parts = [RowIntervals(nothing, nothing, nothing), *parts]
    return RowIntervals(
        np.concatenate([part.x for part in parts]),
        np.concatenate([part.first for part in parts]),
        np.concatenate([part.last for part in parts]),
    )


@dataclass(frozen=True)
class PlaneRegion:
    """Intervals of the points in a region, and of points with an undefined statistic, within a window."""

    inside: RowIntervals
    undefined: RowIntervals


def plane_region(region: Region, window: Window, reach: Reach, memory_budget: int) -> PlaneRegion:
    """Return a region of a plane lattice as intervals, within a window of rank 2 and the reach of swaps.

    It raises CapacityError if too many points must be decided one by one, or if intervals do not fit
    `memory_budget`.
    """
    (x0, y0), (n_rows, n_columns) = window.start, window.periods
    x = np.arange(x0, x0 + n_rows, dtype=np.int64)
    rows = RowIntervals(x, np.full_like(x, y0), np.full_like(x, y0 + n_columns - 1))
    for strip in reach.strips:
        rows = rows.cut(strip)
    divisors = region.affine_divisors if isinstance(region, RationalRegion) else None
    if divisors is not None and isinstance(region, RationalRegion):
        pieces, special = _split(rows, [reach.strip(*divisor) for divisor in divisors])
        found = _quadratic_intervals(region, pieces)
        if found is not None:
            points = _scanned(region, special, memory_budget)
            return PlaneRegion(joined([found, points.inside]), points.undefined)
    return _scanned(region, rows, memory_budget)


def _split(rows: RowIntervals, divisors: list[Strip]) -> tuple[RowIntervals, RowIntervals]:
    """Return the pieces of rows without zeros or sign changes of divisors, and the rest."""
    special = []
    for divisor in divisors:
        if divisor.least <= 0 <= divisor.greatest:
            special.append(rows.cut(divisor.between(0, 0)))
            below, above = divisor.between(divisor.least, -1), divisor.between(1, divisor.greatest)
            rows = joined([rows.cut(side) for side in (below, above) if side.least <= side.greatest])
        else:
            rows = rows.cut(divisor)
    return rows, joined(special)


def _quadratic_intervals(region: RationalRegion, pieces: RowIntervals) -> RowIntervals | None:
    """Return the region in pieces of rows without poles; None if its degree in a row is above 2."""
    found = []
    for first in range(0, max(pieces.x.size, 1), ROWS):
        rest = pieces.chosen(slice(first, first + ROWS))
        for careful in (False, True):
            quadratics = region.quadratics(rest.x, rest.first, rest.last)
            if quadratics is None:
                return None
            intervals, rest = _proved(quadratics, rest, careful)
            found += intervals
            if rest.x.size == 0:
                break
        else:
            found.append(_scanned(region, rest, None).inside)
    return joined(found)


def _proved(
    quadratics: RowQuadratics, pieces: RowIntervals, careful: bool
) -> tuple[list[RowIntervals], RowIntervals]:
    """Return the region in pieces of rows as far as it is proved, and the rest of the pieces.

    Only a `careful` proof looks at the neighbours of computed cuts, and at the vertex of a row.
    """
    x, low, high = pieces.x, pieces.first, pieces.last
    # Cuts are first points of a new stretch: a change lies between cut - 1 and cut.
    cuts = [np.maximum(_cut(root, low, high), np.minimum(low + 1, high)) for root in quadratics.roots]
    vertices, vertex_errors = quadratics.vertices
    steps = np.arange(-2, 2)[:, None] if careful else np.arange(-1, 1)[:, None]
    asked = [low[None], high[None], *(np.clip(cut + steps, low, high) for cut in cuts)]
    if careful:
        vertex = _cut(vertices, low, high)
        left, right = np.maximum(vertex - AROUND, low), np.minimum(vertex + AROUND, high)
        asked += [np.clip(vertex + steps, low, high), left[None], right[None]]
    decided = quadratics.inside(np.concatenate(asked))
    at_low, at_high = decided[:2]
    around = decided[2 : 2 + 2 * len(steps)].reshape(2, len(steps), -1)
    (lower, lower_found), (upper, upper_found) = (
        _adjusted(cut, low, high, near) for cut, near in zip(cuts, around, strict=True)
    )
    upper_found &= ~(lower_found & (lower == upper))
    n_changes = lower_found.astype(int) + upper_found
    sharp = vertex_errors < 0.5
    if careful:
        unchanged = sharp & (decided[-6:-2] == at_low).all(axis=0)
    else:
        # Along a piece that the vertex is not in, membership changes at most once.
        with np.errstate(invalid="ignore"):
            unchanged = (vertices + vertex_errors < low) | (vertices - vertex_errors > high)
    proved = np.where(at_low == at_high, (n_changes == 2) | ((n_changes == 0) & unchanged), n_changes == 1)
    both = lower_found & upper_found
    first_cut = np.where(both, np.minimum(lower, upper), np.where(lower_found, lower, upper))
    second_cut = np.maximum(lower, upper)
    none, one, two = (proved & (n_changes == n) for n in range(3))
    found = [
        pieces.chosen(none & at_low),
        RowIntervals(x, low, first_cut - 1).chosen((one | two) & at_low),
        RowIntervals(x, first_cut, high).chosen(one & at_high),
        RowIntervals(x, second_cut, high).chosen(two & at_low),
        RowIntervals(x, first_cut, second_cut - 1).chosen(two & ~at_low),
    ]
    if not careful or proved.all():
        return found, pieces.chosen(~proved)
    # Both changes are close to the vertex (in a region one point wide, say), or floats cannot decide.
    near = ~proved & sharp & (at_low == at_high) & (decided[-2] == at_low) & (decided[-1] == at_low)
    found.append(RowIntervals(x, low, left - 1).chosen(near & at_low & (low < left)))
    found.append(RowIntervals(x, right + 1, high).chosen(near & at_low & (right < high)))
    return found, RowIntervals(x, np.where(near, left, low), np.where(near, right, high)).chosen(~proved)


def _cut(at: FloatArray, low: IntArray, high: IntArray) -> IntArray:
    """Return the first integers at or above `at`, clipped to the pieces; their low ends for NaN."""
    bounded = np.minimum(np.maximum(np.where(np.isnan(at), low, np.ceil(at)), low), high)
    return np.asarray(bounded, dtype=np.int64)


def _adjusted(cut: IntArray, low: IntArray, high: IntArray, around: Flags) -> tuple[IntArray, Flags]:
    """Move each cut to a change of membership next to it, if there is one, and flag those with a change.

    `around` is the membership at consecutive points, clipped to the pieces: cut - 1 and cut, or two more.
    """
    found = np.zeros(cut.size, dtype=np.bool_)
    best = cut.copy()
    at = len(around) // 2
    for step in (0, 1, -1)[: len(around) - 1]:
        moved = cut + step
        changes = ~found & (low < moved) & (moved <= high) & (around[at + step] != around[at + step - 1])
        best[changes] = moved[changes]
        found |= changes
    return best, found


def _scanned(region: Region, rows: RowIntervals, memory_budget: int | None) -> PlaneRegion:
    """Decide all points of rows one by one."""
    if rows.x.size == 0:
        return PlaneRegion(rows, rows)
    n_cells = int(rows.sizes.sum())
    if n_cells > MOST_CELLS:
        raise CapacityError(
            f"{n_cells} lattice points must be decided one by one; the limit is {MOST_CELLS}",
            hint="counts that are fewer, smaller or dependent on each other need less.",
        )
    inside, undefined, n_found = [], [], 0
    for x, first, n_each in _blocks(rows):
        starts = np.cumsum(n_each) - n_each
        y = np.arange(int(n_each.sum()), dtype=np.int64) + np.repeat(first - starts, n_each)
        membership = region.membership([np.repeat(x, n_each), y])
        inside.append(_runs(x, y, starts, membership, INSIDE))
        undefined.append(_runs(x, y, starts, membership, UNDEFINED))
        n_found += inside[-1].x.size + undefined[-1].x.size
        if memory_budget is not None and n_found * BYTES_PER_INTERVAL > memory_budget:
            raise CapacityError(f"the region has more than {n_found} intervals, beyond the memory budget")
    return PlaneRegion(joined(inside), joined(undefined))


def _blocks(rows: RowIntervals) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    """Yield x, first point and number of points of rows, in blocks of at most BLOCK points."""
    chunks = -(-rows.sizes // BLOCK)
    which = np.repeat(np.arange(rows.x.size), chunks)
    offsets = BLOCK * (np.arange(which.size) - np.repeat(np.cumsum(chunks) - chunks, chunks))
    first = rows.first[which] + offsets
    sizes = np.minimum(rows.last[which] - first + 1, BLOCK)
    ends = np.cumsum(sizes)
    start = 0
    while start < which.size:
        stop = int(np.searchsorted(ends, ends[start] - sizes[start] + BLOCK, side="right"))
        yield rows.x[which[start:stop]], first[start:stop], sizes[start:stop]
        start = stop


def _runs(x: IntArray, y: IntArray, starts: IntArray, membership: Membership, wanted: int) -> RowIntervals:
    """Return the runs of points with one membership, in rows that begin at `starts`."""
    kind = membership == wanted
    begins = np.zeros(kind.size + 1, dtype=np.bool_)
    begins[starts] = True
    begins[-1] = True
    first = kind.copy()
    first[1:] &= ~kind[:-1] | begins[1:-1]
    last = kind.copy()
    last[:-1] &= ~kind[1:] | begins[1:-1]
    row = np.repeat(np.arange(x.size), np.diff(np.append(starts, kind.size)))[first]
    return RowIntervals(x[row], y[first], y[last])
