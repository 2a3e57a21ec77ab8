r"""Regions of a lattice as intervals in its rows: lines along the last coordinate.

Points that swaps cannot lead to are omitted (`lattice`). On the others each affine divisor has a known range:
a row is split where a divisor may change its sign, and points where one is 0 are decided one by one. On each
piece of a row, the region of a rational statistic of degree at most 2 in the last coordinate y is the set
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

from collections.abc import Iterator, Sequence
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
"""Pieces of rows per step: their sixteen points that are decided take 1 MiB, within the cache."""

SECONDS_PER_ROW = 2.5e-6
"""Time of a row of a plane whose points inside are an interval."""

FEW_PIECES = 2**7
"""Largest number of pieces that get a careful proof at once: its further points take less than a second
look."""

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

    def cut(self, strip: Strip) -> RowIntervals:
        """Return the parts of the intervals in a strip."""
        first, last = strip.cut(self.heads, self.first, self.last)
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
    heads = np.indices(window.periods[:-1], dtype=np.int64).reshape(len(window.periods) - 1, -1)
    first = np.full(heads.shape[1], window.start[-1], dtype=np.int64)
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
    for strip in reach.strips:
        rows = rows.cut(strip)
    pieces, rest = rows.chosen(slice(0)), rows
    found: list[RowIntervals] = [pieces]
    if isinstance(region, RationalRegion) and region.is_quadratic_in_rows:
        divisors = region.affine_divisors
        if divisors is not None:
            pieces, rest = _split(rows, [reach.strip(*divisor) for divisor in divisors])
            found += [_quadratic_intervals(region, block) for block in _in_steps(pieces)]
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
            special.append(rows.cut(divisor.between(0, 0)))
            below, above = divisor.between(divisor.least, -1), divisor.between(1, divisor.greatest)
            sides = [rows.cut(side) for side in (below, above) if side.least <= side.greatest]
            rows = joined([nothing, *sides])
        else:
            rows = rows.cut(divisor)
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


def _quadratic_intervals(region: RationalRegion, pieces: RowIntervals) -> RowIntervals:
    """Return the region in pieces of rows without poles, of degree at most 2 in a row."""
    found, rest = [], pieces
    for careful in (False, True) if pieces.n > FEW_PIECES else (True,):
        quadratics = region.quadratics(rest.heads, rest.first, rest.last)
        intervals, rest = _proved(quadratics, rest, careful)
        found += intervals
        if rest.n == 0:
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
    heads, low, high = pieces.heads, pieces.first, pieces.last
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
        RowIntervals(heads, low, first_cut - 1).chosen((one | two) & at_low),
        RowIntervals(heads, first_cut, high).chosen(one & at_high),
        RowIntervals(heads, second_cut, high).chosen(two & at_low),
        RowIntervals(heads, first_cut, second_cut - 1).chosen(two & ~at_low),
    ]
    if not careful or proved.all():
        return found, pieces.chosen(~proved)
    # Both changes are close to the vertex (in a region one point wide, say), or floats cannot decide.
    near = ~proved & sharp & (at_low == at_high) & (decided[-2] == at_low) & (decided[-1] == at_low)
    found.append(RowIntervals(heads, low, left - 1).chosen(near & at_low & (low < left)))
    found.append(RowIntervals(heads, right + 1, high).chosen(near & at_low & (right < high)))
    return found, RowIntervals(heads, np.where(near, left, low), np.where(near, right, high)).chosen(~proved)


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
