r"""Regions of a lattice as intervals in its rows: lines along the last coordinate.

Points that swaps cannot lead to are omitted (`lattice`). On the others each affine divisor has a known range:
a row is split where a divisor may change its sign, and points where one is 0 are decided one by one. On each
piece of a row, the region of a rational statistic of degree at most 2 in the last coordinate y is the set
where a quadratic q(y) has one sign: an interval, the complement of one, all or nothing. Its ends are computed
in floating point from the roots and then proved on integers:

- next to each root, a cut between neighbouring points is found; the cuts divide the piece into stretches with
  equal membership at both ends;
- membership along a piece changes at most twice, and an even number of times in each stretch, so that one
  change at a cut leaves none;
- if no cut has a change, membership is the same along the whole piece in three cases: q is concave and both
  ends are inside, or convex and both are outside; the vertex of q is outside the piece; or the point nearest
  to the vertex, which two changes would enclose, has the same membership as the ends.

A piece that fails a proof, and any other region, is decided point by point.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trackperm.errors import CapacityError
from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.distributions.pmf import Window
from trackperm.exact.engines.lattice.lattice import Flags, Reach, Strip
from trackperm.exact.engines.lattice.rational_region import RationalRegion, RowQuadratics
from trackperm.exact.engines.lattice.real_region import RealRegion
from trackperm.exact.types import INSIDE, OUTSIDE, UNDEFINED, IntArray, Membership, Region
from trackperm.messages import scientific

AROUND = 8
"""Points on either side of a vertex that are decided one by one if both changes may be close to it."""

BLOCK = 2**18
"""Points per step: 2 MiB for each array."""

MOST_CELLS = 2**27
"""Largest number of points that are decided one by one: about ten seconds."""

PIECES = 2**13
"""Pieces of rows per step: their eight points that are decided take half a MiB, within the cache."""

SECONDS_PER_ROW = 2.5e-6
"""Time of a row of a plane whose points inside are an interval."""

BYTES_PER_INTERVAL = 256
"""Memory for an interval and its proof."""


@dataclass(frozen=True)
class RowIntervals:
    """Intervals {heads} x [first, last] of lattice points, any number of them in a row.

    Attributes
    ----------
    heads : tuple of r - 1 ndarray of int64, shape (n,)
        All coordinates but the last.
    first, last : ndarray of int64, shape (n,)
        Ends in the last coordinate, both inside.
    """

    heads: tuple[IntArray, ...]
    first: IntArray
    last: IntArray

    def chosen(self, which: npt.NDArray[np.bool_] | IntArray | slice) -> RowIntervals:
        """Return selected intervals."""
        heads = tuple(axis[which] for axis in self.heads)
        return RowIntervals(heads, self.first[which], self.last[which])

    def cut(self, strips: Iterable[Strip]) -> RowIntervals:
        """Return the parts of the intervals in all strips."""
        if self.n == 0:
            return self
        ends = [(int(axis.min()), int(axis.max())) for axis in self.heads]
        ends.append((int(self.first.min()), int(self.last.max())))
        first, last = self.first, self.last
        cutting = [strip for strip in strips if not strip.contains_box(ends)]
        if not cutting:
            return self
        for strip in cutting:
            first, last = strip.cut(self.heads, first, last)
        return RowIntervals(self.heads, first, last).chosen(first <= last)

    @property
    def n(self) -> int:
        """Number of intervals."""
        return int(self.first.size)

    @property
    def sizes(self) -> IntArray:
        """Number of points in each interval."""
        return self.last - self.first + 1


def joined(parts: Sequence[RowIntervals]) -> RowIntervals:
    """Return the concatenation of one or more lists of intervals."""
    return RowIntervals(
        tuple(np.concatenate(axes) for axes in zip(*(part.heads for part in parts), strict=True)),
        np.concatenate([part.first for part in parts]),
        np.concatenate([part.last for part in parts]),
    )


def window_rows(window: Window) -> RowIntervals:
    """Return all rows of a window, in lexicographic order."""
    n_rows = math.prod(window.periods[:-1])
    heads = np.unravel_index(np.arange(n_rows), window.periods[:-1])
    first = np.full(n_rows, window.start[-1], dtype=np.int64)
    moved = tuple(axis + start for axis, start in zip(heads, window.start, strict=False))
    return RowIntervals(moved, first, first + window.periods[-1] - 1)


@dataclass(frozen=True)
class RegionRows:
    """Intervals of the points in a region, and of points with an undefined statistic."""

    inside: RowIntervals
    undefined: RowIntervals


def region_rows(region: Region, rows: RowIntervals, reach: Reach, memory_budget: int) -> RegionRows:
    """Return a region as intervals, within rows and the reach of swaps.

    It raises CapacityError if too many points must be decided one by one, or if intervals do not fit
    `memory_budget`.
    """
    strips: list[Strip] | None = None
    if isinstance(region, RationalRegion) and region.is_quadratic_in_rows:
        divisors = region.affine_divisors
        strips = None if divisors is None else reach.strips_of(divisors)
    rows = rows.cut([*reach.strips, *(strips or [])])
    pieces, rest = rows.chosen(slice(0)), rows
    found: list[RowIntervals] = [pieces]
    if isinstance(region, RationalRegion) and strips is not None:
        pieces, rest = _split(rows, strips)
        one_sign = not any(strip.least <= 0 <= strip.greatest for strip in strips)
        found += [_quadratic_intervals(region, block, one_sign) for block in _in_steps(pieces)]
    elif isinstance(region, RealRegion) and region.affine_in_rows:
        halves = [_affine_intervals(region, block) for block in _in_steps(rows)]
        found += [inside for inside, _ in halves]
        rest = joined([pieces, *(undecided for _, undecided in halves)])
    points = _scanned(region, rest, memory_budget)
    return RegionRows(joined([*found, points.inside]), points.undefined)


def _in_steps(rows: RowIntervals) -> Iterator[RowIntervals]:
    """Yield rows in blocks of `PIECES`."""
    for first in range(0, rows.n, PIECES):
        yield rows.chosen(slice(first, first + PIECES))


def _split(rows: RowIntervals, divisors: list[Strip]) -> tuple[RowIntervals, RowIntervals]:
    """Return the pieces of rows without zeros or sign changes of divisors, and the rest."""
    nothing = rows.chosen(slice(0))
    special = [nothing]
    for divisor in divisors:
        if divisor.least <= 0 <= divisor.greatest:
            special.append(rows.cut([divisor.between(0, 0)]))
            below, above = divisor.between(divisor.least, -1), divisor.between(1, divisor.greatest)
            sides = [rows.cut([side]) for side in (below, above) if side.least <= side.greatest]
            rows = joined([nothing, *sides])
    return rows, joined(special)


def _affine_intervals(region: RealRegion, rows: RowIntervals) -> tuple[RowIntervals, RowIntervals]:
    """Return the region in rows where the statistic is affine, and what must be decided point by point.

    Membership then changes at most once between the ends: nowhere if it is the same there, else next to the
    zero of the line through the values, as two neighbours prove. A row with an undefined end is undecided.
    """
    ends, beyond = region.classified(
        [*(axis[None] for axis in rows.heads), np.stack([rows.first, rows.last])]
    )
    defined = (ends != UNDEFINED).all(axis=0)
    whole = defined & (ends[0] == INSIDE) & (ends[1] == INSIDE)
    (split,) = np.nonzero(defined & (ends[0] != ends[1]))
    pieces, undecided = rows.chosen(split), rows.chosen(~defined)
    rises = ends[0][split] == OUTSIDE
    low, high = beyond[:, split]
    with np.errstate(all="ignore"):
        share = np.where(np.isfinite(low / (low - high)), low / (low - high), 0.5)
    at = pieces.first + np.clip(share, 0.0, 1.0) * (pieces.last - pieces.first)
    # A cut is the first point of the second part; on a tie it depends on rounding, so three are tried.
    guesses = np.rint(at).astype(np.int64) + np.arange(-1, 3)[:, None]
    guesses = np.clip(guesses, pieces.first, pieces.last)
    found = region.membership([*(axis[None] for axis in pieces.heads), guesses])
    changes = found[1:] != found[:-1]
    proved = changes.any(axis=0)
    cut = np.take_along_axis(guesses[1:], changes.argmax(axis=0)[None], axis=0)[0]
    first, last = np.where(rises, cut, pieces.first), np.where(rises, pieces.last, cut - 1)
    inside = joined([rows.chosen(whole), RowIntervals(pieces.heads, first, last).chosen(proved)])
    return inside, joined([undecided, pieces.chosen(~proved)])


def _quadratic_intervals(
    region: RationalRegion, pieces: RowIntervals, one_sign: bool = False
) -> RowIntervals:
    """Return the region in pieces of rows without poles, of degree at most 2 in a row.

    With `one_sign`, no divisor is 0 or changes its sign in any of the rows.
    """
    quadratics = region.quadratics(pieces.heads, pieces.first, pieces.last, one_sign=one_sign)
    found, proved = _proved(quadratics, pieces)
    if proved.all():
        return found
    beyond, rest = _around_vertices(region, pieces.chosen(~proved))
    return joined([found, *beyond, _scanned(region, rest, None).inside])


def _proved(quadratics: RowQuadratics, pieces: RowIntervals) -> tuple[RowIntervals, Flags]:
    """Return the region in those pieces of rows where it is proved, and flags of these pieces."""
    low, high, centre = pieces.first, pieces.last, quadratics.centre[-1]
    at = _nearest(quadratics.roots, low - centre, high - centre) + centre
    asked = np.concatenate([low[None], high[None], at - 1, at, at + 1])
    decided = quadratics.inside(np.clip(asked, low, high))
    (at_low, at_high), (before, here, after) = decided[:2], decided[2:].reshape(3, 2, -1)
    # A cut is the first point of a new stretch: `at` or the point after it.
    is_next = before == here
    cuts, after = at + is_next, np.where(is_next, after, here)
    is_even = (at_low == before[0]) & (after[1] == at_high)
    is_even &= (after[0] == before[1]) | (cuts[0] == cuts[1])
    changed = before != after
    proved = is_even & (changed[0] | changed[1])
    if (proved != is_even).any():
        vertices, errors = quadratics.vertices
        # Between its ends, a convex function is at most the greater one, a concave one at least the lesser.
        is_bounded = (errors < math.inf) & (at_low == quadratics.is_concave)
        with np.errstate(invalid="ignore"):
            is_outside = (vertices + errors < low - centre) | (vertices - errors > high - centre)
            is_asked = (errors < 0.5) & (np.abs(vertices - (at - centre)).min(axis=0) <= 1.0)
        proved |= is_even & (is_bounded | is_outside | is_asked)
    middle = np.where(changed, cuts, [low, high + 1])
    first, last = np.concatenate([low[None], middle]), np.concatenate([middle, high[None] + 1]) - 1
    kept = proved & np.array([at_low, after[0], at_high]) & (first <= last)
    _, which = kept.nonzero()
    return RowIntervals(tuple(axis[which] for axis in pieces.heads), first[kept], last[kept]), proved


def _around_vertices(region: RationalRegion, pieces: RowIntervals) -> tuple[list[RowIntervals], RowIntervals]:
    """Return the region beyond the vertices of unproved pieces, if it is known there, and the rest of them.

    Both changes are close to the vertex (in a region one point wide, say), or floats cannot decide.
    """
    quadratics = region.quadratics(pieces.heads, pieces.first, pieces.last)
    heads, low, high, centre = pieces.heads, pieces.first, pieces.last, quadratics.centre[-1]
    vertices, errors = quadratics.vertices
    vertex = _nearest(vertices, low - centre, high - centre) + centre
    left, right = np.maximum(vertex - AROUND, low), np.minimum(vertex + AROUND, high)
    at_low, *others = quadratics.inside(np.stack([low, high, left, right]))
    near = (errors < 0.5) & (np.array(others) == at_low).all(axis=0)
    left, right = np.where(near, left, low), np.where(near, right, high)
    beyond = [
        RowIntervals(heads, low, left - 1).chosen(at_low & (low < left)),
        RowIntervals(heads, right + 1, high).chosen(at_low & (right < high)),
    ]
    return beyond, RowIntervals(heads, left, right)


def _nearest(at: FloatArray, low: IntArray, high: IntArray) -> IntArray:
    """Return the integers nearest to `at`, clipped to the pieces; their high ends for NaN."""
    return np.asarray(np.fmax(np.fmin(np.rint(at), high), low), dtype=np.int64)


def _scanned(region: Region, rows: RowIntervals, memory_budget: int | None) -> RegionRows:
    """Decide all points of rows one by one."""
    if rows.n == 0:
        return RegionRows(rows, rows)
    n_cells = int(rows.sizes.sum())
    if n_cells > MOST_CELLS:
        raise CapacityError(
            f"the exact sum has about {scientific(n_cells)} points; the limit is {MOST_CELLS:,}",
            hint="counts that are fewer, smaller or dependent on each other need less.",
        )
    inside, undefined, n_found = [rows.chosen(slice(0))], [rows.chosen(slice(0))], 0
    for block in _blocks(rows):
        n_each = block.sizes
        starts = np.cumsum(n_each) - n_each
        y = np.arange(int(n_each.sum()), dtype=np.int64) + np.repeat(block.first - starts, n_each)
        membership = region.membership([*(np.repeat(axis, n_each) for axis in block.heads), y])
        inside.append(_runs(block, y, starts, membership, INSIDE))
        undefined.append(_runs(block, y, starts, membership, UNDEFINED))
        n_found += inside[-1].n + undefined[-1].n
        if memory_budget is not None and n_found * BYTES_PER_INTERVAL > memory_budget:
            raise CapacityError(f"the region has more than {n_found} intervals, beyond the memory budget")
    return RegionRows(joined(inside), joined(undefined))


def _blocks(rows: RowIntervals) -> Iterator[RowIntervals]:
    """Yield rows, or parts of them, in blocks of at most BLOCK points."""
    chunks = -(-rows.sizes // BLOCK)
    which = np.repeat(np.arange(rows.n), chunks)
    offsets = BLOCK * (np.arange(which.size) - np.repeat(np.cumsum(chunks) - chunks, chunks))
    parts = rows.chosen(which)
    first = parts.first + offsets
    parts = RowIntervals(parts.heads, first, np.minimum(parts.last, first + BLOCK - 1))
    sizes = parts.sizes
    ends = np.cumsum(sizes)
    start = 0
    while start < which.size:
        stop = int(np.searchsorted(ends, ends[start] - sizes[start] + BLOCK, side="right"))
        yield parts.chosen(slice(start, stop))
        start = stop


def _runs(
    rows: RowIntervals, y: IntArray, starts: IntArray, membership: Membership, wanted: int
) -> RowIntervals:
    """Return the runs of points with one membership, in rows that begin at `starts`."""
    kind = membership == wanted
    begins = np.zeros(kind.size + 1, dtype=np.bool_)
    begins[starts] = True
    begins[-1] = True
    first = kind.copy()
    first[1:] &= ~kind[:-1] | begins[1:-1]
    last = kind.copy()
    last[:-1] &= ~kind[1:] | begins[1:-1]
    row = np.repeat(np.arange(rows.n), rows.sizes)[first]
    return RowIntervals(tuple(axis[row] for axis in rows.heads), y[first], y[last])
