r"""Probability of any region of a lattice, cell by cell on a grid.

The region is decided once, in a window that contains all but a negligible part of the tail. Its mass is
summed under several tilts (`tilted`): each cell is assigned to the tilt with the least Chernoff bound there.
The first tilt has its mean at the dominating point, each further one at the likeliest cell whose bound under
the others is still large.

The certificate of the sum adds up, for each tilt:

1. errors of the mass on its window: norm of the weights times ``LatticePMF.error_norm``;
2. wrapped mass: its bound times the greatest weight;
3. roundings of the weights, of the sum and of the scale factor's exponent;

and once: the bound of omitted cells, which have negligible mass or lie outside the windows of all tilts, and
the null mass outside the window. If too many frequencies matter under a tilt, bounds replace the mass of its
cells, and the sum is an upper bound.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from trackperm.errors import CapacityError
from trackperm.exact.distributions.characteristic import UNIT, FloatArray, SwapDistribution
from trackperm.exact.distributions.pmf import (
    BYTES_PER_CELL,
    LOG_WINDOW,
    LatticePMF,
    Window,
    lattice_pmf,
    log_outside,
    open_mesh,
    plan_window,
)
from trackperm.exact.distributions.tilt import (
    TailMass,
    Tilted,
    certified,
    common_scale,
    quantised,
    tilt_at,
    upper_exp,
    without_undefined,
)
from trackperm.exact.engines.lattice.lattice import Flags, Reach
from trackperm.exact.types import INSIDE, OUTSIDE, UNDEFINED, IntArray, Membership, Region
from trackperm.messages import size

LOG_IGNORED = -34.0
"""Logarithm, relative to the expected tail, of all omitted mass: 2e-15, fifteen roundings."""

LOG_EXCESS = 8.0
"""Logarithm of a Chernoff bound, relative to the tail, beyond which a cell gets another tilt.

The relative error is then at most about exp(8) = 3,000 roundings: 3e-13.
"""

MOST_TILTS = 12
"""Largest number of tilts; each costs a transform."""

LARGEST_WEIGHT = 300.0
"""Logarithm of the largest weight of a cell, relative to the tail: its square is still a float."""

BLOCK = 2**18
"""Cells per step: 2 MiB for each array."""

MOST_CELLS = 2**27
"""Largest number of cells that are decided one by one: about ten seconds."""


def grid_tail(
    law: SwapDistribution,
    first_tilt: FloatArray,
    log_tail: float,
    region: Region,
    reach: Reach,
    memory_budget: int,
) -> TailMass:
    """Return the probability of a region.

    Parameters
    ----------
    law, region, memory_budget
        As of :func:`~trackperm.exact.engines.lattice.tail.region_tail`; of any rank.
    first_tilt : ndarray of float, shape (r,)
        Zero if the region contains the mean of X, else a tilt with its mean near the dominating point.
    log_tail : float
        Expected logarithm of the probability.
    reach : Reach
        Points that swaps may lead to.
    """
    first = Tilted.of(law, first_tilt, LOG_WINDOW, fast=True)
    none = np.zeros(law.rank)
    window = plan_window(law, none, LOG_WINDOW + min(log_tail, 0.0), fast=False)
    if window.size > MOST_CELLS or window.size + BYTES_PER_CELL * first.window.size > memory_budget:
        shapes = [" x ".join(map(str, w.periods)) for w in (window, first.window)]
        needed = window.size + BYTES_PER_CELL * first.window.size
        raise CapacityError(
            f"the exact test would decide {shapes[0]} lattice points (the limit is {MOST_CELLS}) and "
            f"transform {shapes[1]}, about {size(needed)}; the memory budget is "
            f"{size(memory_budget)}",
            hint="counts that are fewer, smaller or dependent on each other need less; `--memory 4GiB` "
            "allows more.",
        )
    cells = _Cells.of(window, region, reach)
    sums = _Sums(law, first, cells, log_tail)
    tail = sums.tail(INSIDE, log_outside(law, none, window), memory_budget)
    if cells.undefined is None:
        return tail
    return without_undefined(tail, sums.tail(UNDEFINED, -math.inf, memory_budget), cells.undefined)


@dataclass(frozen=True)
class _Cells:
    """Membership of a window's cells, and the first cell with an undefined statistic."""

    window: Window
    membership: Membership
    undefined: tuple[int, ...] | None

    @classmethod
    def of(cls, window: Window, region: Region, reach: Reach) -> _Cells:
        membership = np.full(window.periods, OUTSIDE, dtype=np.int8)
        first = None
        for block in _blocks(window):
            points = open_mesh(block)
            reached = reach.contains(points)
            asked = [axis[reached] for axis in np.broadcast_arrays(*points)]
            found = region.membership(asked)
            membership[_slices(window, block)][reached] = found
            if first is None and (found == UNDEFINED).any():
                first = tuple(int(axis[found == UNDEFINED][0]) for axis in asked)
        return cls(window, membership, first)

    def kind(self, wanted: int, part: Window) -> Iterator[list[IntArray]]:
        """Yield the cells with one membership in a part of the window, as coordinate arrays."""
        for block in _blocks(part):
            found = self.membership[_slices(self.window, block)] == wanted
            if found.any():
                yield [axis[found] for axis in np.broadcast_arrays(*open_mesh(block))]


class _Sums:
    """Sums of the mass of cells with one membership."""

    def __init__(self, law: SwapDistribution, first: Tilted, cells: _Cells, log_tail: float) -> None:
        self._law, self._first, self._cells, self._log_tail = law, first, cells, log_tail
        self._precision = law.least_precision
        self._ignored = log_tail + LOG_IGNORED - math.log(cells.window.size)

    def tail(self, wanted: int, log_beyond: float, memory_budget: int) -> TailMass:
        """Return the mass of cells with one membership; `log_beyond` bounds that outside the window."""
        tilts = [self._first]
        while True:
            log_left_out, worst = self._judged(wanted, tilts)
            if worst is None or len(tilts) >= MOST_TILTS:
                break
            further = quantised(tilt_at(self._law, np.array(worst, dtype=np.float64)))
            if any(np.array_equal(further, tilt.tilt) for tilt in tilts):
                break
            tilts.append(Tilted.of(self._law, further, LOG_WINDOW, fast=True))
        log_scale = common_scale(tilts, self._log_tail)
        total, error = 0.0, float(upper_exp(np.logaddexp(log_beyond, log_left_out) - log_scale))
        for index in range(len(tilts)):
            try:
                mass, mass_error = self._summed(wanted, tilts, index, log_scale, memory_budget)
            except CapacityError:
                mass, mass_error = 0.0, self._bounded(wanted, tilts, index, log_scale)
            total, error = total + mass, error + mass_error
        return certified(log_scale, total, error)

    def _chosen(
        self, tilts: Sequence[Tilted], points: Sequence[IntArray]
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the tilt of each cell (or -1), and the logs of its Chernoff bound and mass bound."""
        chosen = np.full(points[0].shape, -1, dtype=np.int64)
        best, bound = np.full(points[0].shape, np.inf), np.full(points[0].shape, np.inf)
        for index, tilt in enumerate(tilts):
            chernoff = tilt.chernoff(points)
            bound = np.minimum(bound, chernoff - tilt.falling_off(points, self._precision))
            usable = _in_window(tilt.window, points) & (chernoff < best)
            usable &= chernoff < self._log_tail + LARGEST_WEIGHT
            best[usable], chosen[usable] = chernoff[usable], index
        chosen[bound <= self._ignored] = -1
        return chosen, best, bound

    def _judged(self, wanted: int, tilts: Sequence[Tilted]) -> tuple[float, tuple[int, ...] | None]:
        """Return a log bound of omitted mass, and the likeliest cell that needs another tilt."""
        left_out, worst, height = -math.inf, None, -math.inf
        for points in self._cells.kind(wanted, self._cells.window):
            chosen, best, bound = self._chosen(tilts, points)
            dropped = bound[chosen < 0]
            if dropped.size:
                top = float(dropped.max())
                left_out = float(np.logaddexp(left_out, top + math.log(np.exp(dropped - top).sum())))
            badly = np.where((bound > self._ignored) & (best > self._log_tail + LOG_EXCESS), bound, -np.inf)
            at = int(np.argmax(badly))
            if badly[at] > height:
                height, worst = float(badly[at]), tuple(int(axis[at]) for axis in points)
        return left_out, worst

    def _bounded(self, wanted: int, tilts: Sequence[Tilted], index: int, log_scale: float) -> float:
        """Return an upper bound of the mass of the cells of one tilt, divided by exp(log_scale)."""
        total = 0.0
        for points in self._cells.kind(wanted, _intersection(tilts[index].window, self._cells.window)):
            chosen, _, bound = self._chosen(tilts, points)
            total += float(upper_exp(bound[chosen == index] - log_scale).sum())
        return total

    def _summed(
        self, wanted: int, tilts: Sequence[Tilted], index: int, log_scale: float, memory_budget: int
    ) -> tuple[float, float]:
        """Return the mass of the cells of one tilt, divided by exp(log_scale), and a bound of its error."""
        tilt = tilts[index]
        shift = tilt.scale.log - log_scale
        pmf: LatticePMF | None = None
        mass, sizes, weight_squares, roundings = [], [], [], []
        n_cells, largest = 0, -math.inf
        for points in self._cells.kind(wanted, _intersection(tilt.window, self._cells.window)):
            mine = self._chosen(tilts, points)[0] == index
            if not mine.any():
                continue
            pmf = pmf or lattice_pmf(self._law, tilt.tilt, tilt.window, memory_budget)
            kept = [axis[mine] for axis in points]
            exponents = tilt.log_weight(kept) + shift
            weights = np.exp(exponents)
            products = weights * pmf.mass[tuple(x - s for x, s in zip(kept, tilt.window.start, strict=True))]
            mass.append(float(products.sum()))
            sizes.append(float(np.abs(products).sum()))
            weight_squares.append(float(weights @ weights))
            roundings.append(float(np.abs(exponents) @ np.abs(products)))
            n_cells += exponents.size
            largest = max(largest, float(exponents.max()))
        if pmf is None:
            return 0.0, 0.0
        total = math.fsum(mass)
        error = (
            math.sqrt(math.fsum(weight_squares)) * pmf.error_norm
            + float(upper_exp(pmf.log_wrapped + largest))
            + 4.0 * UNIT * math.fsum(roundings)
            + (math.log2(n_cells + 1) + 16.0) * UNIT * math.fsum(sizes)
            + (tilt.scale.error + 4.0 * UNIT * abs(shift)) * abs(total)
        )
        return total, error


def _in_window(window: Window, points: Sequence[IntArray]) -> Flags:
    """Return flags of the points in a window."""
    held = np.ones(points[0].shape, dtype=np.bool_)
    for axis, start, period in zip(points, window.start, window.periods, strict=True):
        held &= (axis >= start) & (axis < start + period)
    return held


def _intersection(one: Window, other: Window) -> Window:
    """Return the points that are in both windows."""
    starts, periods = [], []
    for a, p, b, q in zip(one.start, one.periods, other.start, other.periods, strict=True):
        starts.append(max(a, b))
        periods.append(max(min(a + p, b + q) - starts[-1], 0))
    return Window(tuple(starts), tuple(periods))


def _blocks(window: Window) -> Iterator[Window]:
    """Split a window into boxes of at most BLOCK cells, long in the last axes."""
    axis, inner = len(window.periods) - 1, 1
    while axis > 0 and inner * window.periods[axis] <= BLOCK:
        inner *= window.periods[axis]
        axis -= 1
    step = max(BLOCK // max(inner, 1), 1)
    sizes = [*(1 for _ in range(axis)), step, *window.periods[axis + 1 :]]
    for corner in itertools.product(*(range(0, p, s) for p, s in zip(window.periods, sizes, strict=True))):
        yield Window(
            tuple(s + c for s, c in zip(window.start, corner, strict=True)),
            tuple(min(s, p - c) for s, p, c in zip(sizes, window.periods, corner, strict=True)),
        )


def _slices(window: Window, block: Window) -> tuple[slice, ...]:
    return tuple(
        slice(b - w, b - w + p) for w, b, p in zip(window.start, block.start, block.periods, strict=True)
    )
