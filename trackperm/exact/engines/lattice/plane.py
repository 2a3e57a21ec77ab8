r"""Tail probabilities on a lattice of rank two or three, row by row.

If a region is an interval [a, b] in every row x (`rows`), then under the tilt lambda

    P(X in R) = exp(K - lambda . (r - E/2)) sum_x sum_{y=a}^{b} exp(-lambda . (z - r)) P_lambda(X = z)

with z = (x, y) and a reference point r, and P_lambda(X = z) is a sum over the few frequencies that matter:
the sum over y is geometric (`spectrum`), and that over the frequencies of x a transform.
Rows of rank three are summed by `space`.

One tilt suits only the rows where its weights stay moderate (`tilted`), so several are used: the first has
its mean at the dominating point of R, each further one at the end of the row with the largest bound under the
others. Every row is assigned to the tilt with the least Chernoff bound there. Rows and ends of rows that are
negligible are omitted, and their mass is bounded. So is that of all rows of a tilt under which too many
frequencies matter: the sum is then an upper bound.

The certificate adds up, for each tilt: spectrum errors and pruned frequencies (norm of weights times norm of
errors, by Cauchy, Schwarz and Parseval); roundings of the transforms, likewise (`pmf`); wrapped mass times
the greatest weight; roundings that all rows of a frequency share, relative to its sum over rows; the other
roundings, as SPREAD standard deviations of independent errors between rows; and once: the omitted mass, and
the null mass outside the window.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trackperm.errors import CapacityError
from trackperm.exact.distributions.characteristic import (
    UNIT,
    FloatArray,
    SwapDistribution,
    log_sum,
)
from trackperm.exact.distributions.frequencies import surviving_frequencies
from trackperm.exact.distributions.pmf import (
    FEW,
    FFT_ROUNDINGS,
    Window,
    log_outside,
    plan_window,
    smooth_length,
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
from trackperm.exact.engines.lattice.rows import (
    BYTES_PER_INTERVAL,
    RowIntervals,
    joined,
    region_rows,
    window_rows,
)
from trackperm.exact.engines.lattice.space import space_sums
from trackperm.exact.engines.lattice.spectrum import Spectrum, powers, rate_along, turns_of
from trackperm.exact.types import IntArray, Region

LOG_IGNORED = -31.0
"""Logarithm, relative to the expected tail, of all mass that may be omitted from rows: 3e-14."""

LOG_EXCESS = 8.0
"""Logarithm of a Chernoff bound, relative to the tail, beyond which a row gets another tilt.

The relative error is then at most about exp(8) = 3,000 roundings: 3e-13.
"""

LOG_WINDOW = -38.0
"""Logarithm of the mass outside a window, under its tilt or relative to the expected tail.

exp(-38) = 3e-17 is below a rounding, and a larger window would cost frequencies.
"""

LOG_PRUNED = -38.0
"""Logarithm of the modulus below which a frequency is omitted: the same share as outside a window."""

MOST_TILTS = 24
"""Largest number of tilts: cheaper than those of a grid, as each takes no transform."""

LARGEST_WEIGHT = 300.0
"""Logarithm of the largest weight, relative to the tail; points with larger ones are omitted.

Its square is still a float.
"""

LOG_SHARE = -28.0
"""Logarithm of the mass outside a window, relative to the expected tail, if no tilt magnifies it: 7e-13."""

SPREAD = 6.0
"""Standard deviations of a sum's rounding error that the certificate covers: 2e-9 is the chance of more."""

MOST_PHASES = 2**10
"""Largest number of phases that are worth a longer window: there are about as many frequencies."""

LENGTHENED = 8
"""Share of a row, as its inverse, by which a window is lengthened at the most for fewer phases."""

BLOCK = 2**15
"""Terms per step, of a frequency of a row each: complex arrays of 512 KiB stay in the second-level cache."""

MOST_FREQUENCIES = 2**21
"""Largest number of frequencies under a tilt: eight times as many as are planned without one."""

MOST_FACTORS = 2**25
"""Largest number of factors of the characteristic function beyond :data:`FEW` frequencies: three seconds."""

BYTES_PER_TURN = 32
"""Memory of the phase of one point along a row."""

BYTES_PER_FREQUENCY = 256
"""Memory of the work arrays for one frequency."""

BYTES_PER_TERM = 128
"""Memory for one frequency of one row: complex factors, products and their sizes."""

INTERVALS_PER_ROW = 16
"""Largest average number of intervals in a row: with more, a transform is cheaper."""


def rows_tail(
    law: SwapDistribution,
    first_tilt: FloatArray,
    log_tail: float,
    region: Region,
    reach: Reach,
    memory_budget: int,
) -> TailMass:
    """Return the probability of a region of a plane lattice.

    Parameters
    ----------
    law, region, memory_budget
        As of :func:`~trackperm.exact.engines.lattice.tail.region_tail`; of rank 2.
    first_tilt : ndarray of float, shape (2,)
        Zero if the region contains the mean of X, else a tilt with its mean near the dominating point.
    log_tail : float
        Expected logarithm of the probability.
    reach : Reach
        Points that swaps may lead to.
    """
    first, precision = _tilted(law, first_tilt, log_tail), law.least_precision
    # Without a tilt all weights are 1, which suits the rows of a mild tail.
    is_mild = not first_tilt.any() and log_tail + LOG_EXCESS >= 0.0
    none = np.zeros(law.rank)
    window = first.window
    if first_tilt.any():
        window = plan_window(law, none, LOG_WINDOW + min(log_tail, 0.0), fast=False)
    n_rows = math.prod(window.periods[:-1])
    if n_rows * BYTES_PER_INTERVAL > memory_budget:
        raise CapacityError(f"the region has {n_rows:,} rows, beyond the memory budget")
    rows, log_beyond = window_rows(window), log_outside(law, none, window)
    if law.rank > 2:
        # Most rows of a box are so far from the mean that even whole they are negligible.
        untilted = _tilted(law, none, log_tail)
        bounds = _log_mass_bounds(untilted, rows, precision)
        rows = rows.chosen(bounds > log_tail + LOG_IGNORED - math.log(n_rows))
        log_beyond = log_sum(log_beyond, log_tail + LOG_IGNORED)
    found = region_rows(region, rows, reach, memory_budget)
    if found.inside.n > INTERVALS_PER_ROW * n_rows:
        raise CapacityError(f"the region has {found.inside.n} intervals in {n_rows:,} rows")

    def summed(intervals: RowIntervals, log_left_out: float) -> TailMass:
        if is_mild and intervals.n:
            with contextlib.suppress(CapacityError):
                mass, error = _masses(law, first, intervals, 0.0, log_tail, memory_budget)
                return certified(0.0, mass, error + float(upper_exp(log_left_out)))
        tilts, chosen, bounds = _assigned(law, first, intervals, log_tail, precision)
        log_beyond = np.append(bounds[chosen == -1], log_left_out)
        return _summed(law, tilts, intervals, chosen, log_tail, log_beyond, precision, memory_budget)

    tail = summed(found.inside, log_beyond)
    if found.undefined.n == 0:
        return tail
    undefined = summed(found.undefined, -math.inf)
    point = tuple(int(axis[0]) for axis in (*found.undefined.heads, found.undefined.first))
    return without_undefined(tail, undefined, point)


def _assigned(
    law: SwapDistribution, first: Tilted, rows: RowIntervals, log_tail: float, precision: FloatArray
) -> tuple[list[Tilted], IntArray, FloatArray]:
    """Return tilts, the number of that of each row, and log bounds of the mass in each row.

    The number is -1 for rows whose mass is negligible, or to which no tilt applies.
    """
    tilts = [first]
    bounds = _log_mass_bounds(first, rows, precision)
    chosen = np.full(rows.n, -1, dtype=np.int64)
    best = np.full(rows.n, np.inf)
    while True:
        _reassign(tilts, rows, log_tail, best, chosen)
        needed = _needed(bounds, log_tail + LOG_IGNORED)
        worst = int(np.argmax(np.where(needed, best, -np.inf))) if rows.n else 0
        if not needed.any() or best[worst] <= log_tail + LOG_EXCESS or len(tilts) >= MOST_TILTS:
            break
        # The row's likeliest point under the null: its conditional mean, moved into the interval.
        head = [float(axis[worst]) for axis in rows.heads]
        moved = sum(p * (x - e / 2) for p, x, e in zip(precision[-1], head, law.total, strict=False))
        middle = law.total[-1] / 2 - moved / precision[-1, -1]
        y = min(max(middle, float(rows.first[worst])), float(rows.last[worst]))
        further = quantised(tilt_at(law, np.array([*head, y])))
        if any(np.array_equal(further, tilt.tilt) for tilt in tilts):
            break
        tilts.append(_tilted(law, further, log_tail))
        bounds = np.minimum(bounds, _log_mass_bounds(tilts[-1], rows, precision))
    chosen[~needed] = -1
    return tilts, chosen, bounds


def _tilted(law: SwapDistribution, tilt: FloatArray, log_tail: float) -> Tilted:
    """Tilt a distribution; of rank two, the first axis of its window has a length that transforms fast.

    Both are lengthened a little where the frequencies then have few phases in all. Without a tilt no
    weight magnifies what the window leaves out.
    """
    log_left_out = LOG_WINDOW
    if law.rank == 2 and not tilt.any():
        log_left_out = max(log_left_out, LOG_SHARE + log_tail)
    found = Tilted.of(law, tilt, log_left_out, fast=False)
    if law.rank > 2:
        return found
    shortest, along = found.window.periods
    across = smooth_length(shortest)
    if across <= MOST_PHASES:
        lengths = [across]
        while (further := smooth_length(lengths[-1] + 1)) <= shortest + shortest // LENGTHENED:
            lengths.append(further)
        longer = np.arange(along, along + along // LENGTHENED + 1)
        n_phases = np.lcm.outer(lengths, longer)
        i, j = divmod(int(n_phases.argmin()), longer.size)
        if n_phases[i, j] <= MOST_PHASES:
            across, along = lengths[i], int(longer[j])
    return replace(found, window=Window(found.window.start, (across, along)))


def _near(tilt: Tilted, rows: RowIntervals) -> IntArray:
    """Return, for each interval, the end with the greater weight."""
    return rows.first if tilt.tilt[-1] >= 0 else rows.last


def _trimmed(tilt: Tilted, rows: RowIntervals, log_tail: float) -> RowIntervals:
    """Trim intervals to a tilt's window and the largest weight; first > last if nothing is left."""
    y0, n_y = tilt.window.start[-1], tilt.window.periods[-1]
    first, last = np.maximum(rows.first, y0), np.minimum(rows.last, y0 + n_y - 1)
    at_reference = tilt.chernoff([*rows.heads, np.full_like(rows.first, tilt.reference[-1])])
    spare = log_tail + LARGEST_WEIGHT - at_reference
    slope = float(tilt.tilt[-1])
    if slope == 0.0:
        last = np.where(spare < 0, first - 1, last)
    else:
        end = np.clip(-spare / slope, -n_y, n_y) + tilt.reference[-1]
        if slope > 0:
            first = np.maximum(first, np.ceil(end).astype(np.int64))
        else:
            last = np.minimum(last, np.floor(end).astype(np.int64))
    for x, start, period in zip(rows.heads, tilt.window.start, tilt.window.periods, strict=False):
        last = np.where((x < start) | (x >= start + period), first - 1, last)
    return RowIntervals(rows.heads, first, last)


def _log_mass_bounds(tilt: Tilted, rows: RowIntervals, precision: FloatArray) -> FloatArray:
    """Return log bounds of the mass in each interval; -inf for empty ones."""
    pull = tilt.tilt[-1] + sum(
        p * (x - at) for p, x, at in zip(precision[-1], rows.heads, tilt.mean, strict=False)
    )
    y = np.clip(tilt.mean[-1] - pull / precision[-1, -1], rows.first, rows.last)
    height = tilt.chernoff([*rows.heads, y]) - tilt.falling_off([*rows.heads, y], precision)
    n_cells = np.maximum(rows.sizes, 0)
    spread = np.minimum(n_cells, 2.0 + math.sqrt(2.0 * math.pi / precision[-1, -1]))
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(n_cells > 0, height + np.log(spread), -np.inf))


def _needed(bounds: FloatArray, log_ignored: float) -> Flags:
    """Return flags of the rows to keep; the others have at most exp(log_ignored) of mass in all."""
    order = np.argsort(bounds)
    dropped = np.cumsum(np.exp(np.minimum(bounds[order] - log_ignored, 1.0)))
    needed = np.ones(bounds.size, dtype=np.bool_)
    needed[order[dropped <= 1.0]] = False
    return needed


def _reassign(
    tilts: Sequence[Tilted], rows: RowIntervals, log_tail: float, best: FloatArray, chosen: IntArray
) -> None:
    """Assign to the last tilt the rows where it has the least Chernoff bound; update `best` and `chosen`."""
    tilt = tilts[-1]
    kept = _trimmed(tilt, rows, log_tail)
    bound = tilt.chernoff([*rows.heads, _near(tilt, kept)])
    usable = (kept.first <= kept.last) & (bound < best)
    best[usable], chosen[usable] = bound[usable], len(tilts) - 1


def _summed(
    law: SwapDistribution,
    tilts: Sequence[Tilted],
    rows: RowIntervals,
    chosen: IntArray,
    log_tail: float,
    log_beyond: FloatArray,
    precision: FloatArray,
    memory_budget: int,
) -> TailMass:
    """Sum every row under its tilt, and add the bounds of omitted mass to the certificate.

    `log_beyond` bounds the mass of rows without a tilt, and of all that is not in the rows.
    """
    log_scale = common_scale(tilts, log_tail)
    total, error = 0.0, float(upper_exp(log_beyond - log_scale).sum())
    left_out = [rows.chosen(slice(0))]
    for index, tilt in enumerate(tilts):
        mine = rows.chosen(chosen == index)
        if mine.n == 0:
            continue
        kept = _trimmed(tilt, mine, log_tail)
        left_out.append(RowIntervals(mine.heads, mine.first, kept.first - 1))
        left_out.append(RowIntervals(mine.heads, kept.last + 1, mine.last))
        shift = tilt.scale.log - log_scale
        try:
            mass, mass_error = _masses(law, tilt, kept, shift, log_tail, memory_budget)
        except CapacityError:
            left_out.append(kept)
            continue
        total += mass
        error += mass_error + (tilt.scale.error + 4.0 * UNIT * abs(shift)) * abs(mass)
    rest = joined(left_out)
    rest = rest.chosen(rest.first <= rest.last)
    if rest.n:
        bounds = np.min([_log_mass_bounds(tilt, rest, precision) for tilt in tilts], axis=0)
        error += float(upper_exp(bounds - log_scale).sum())
    return certified(log_scale, total, error)


def _masses(
    law: SwapDistribution,
    tilt: Tilted,
    rows: RowIntervals,
    shift: float,
    log_tail: float,
    memory_budget: int,
) -> tuple[float, float]:
    """Return the mass of rows under one tilt, and a bound of its absolute error; weights times exp(shift)."""
    if law.rank == 3:
        return space_sums(law, tilt, rows, shift, log_tail + shift - tilt.scale.log, memory_budget)
    return _row_sums(law, tilt, rows, shift, memory_budget)


def _row_sums(
    law: SwapDistribution, tilt: Tilted, rows: RowIntervals, shift: float, memory_budget: int
) -> tuple[float, float]:
    """Return the mass of rows under one tilt, and a bound of its absolute error; weights times exp(shift).

    Raises
    ------
    CapacityError
        If too many frequencies matter, or a row does not fit `memory_budget` bytes.
    """
    window, (n_across, n_along) = tilt.window, tilt.window.periods
    n_cells = n_across + rows.n
    n_together = max(min(BLOCK // n_cells, memory_budget // (BYTES_PER_TERM * n_cells)), 1)
    if BYTES_PER_TURN * n_along > memory_budget:
        raise CapacityError(f"rows of {n_along} points do not fit the memory budget")
    quick = max(min(MOST_FREQUENCIES, MOST_FACTORS // law.multiplicities.size), FEW)
    most = min(quick, memory_budget // BYTES_PER_FREQUENCY)
    frequencies = surviving_frequencies(law, tilt.tilt, window.periods, LOG_PRUNED, most)
    found = Spectrum.of(law, tilt.tilt, window, frequencies, LOG_PRUNED)
    rate, sign = rate_along(tilt.tilt)
    exponents = tilt.log_weight([*rows.heads, _near(tilt, rows)]) + shift
    row_weights = np.exp(exponents)
    x, y = rows.heads[0] - window.start[0], _near(tilt, rows) - window.start[1]
    lengths = rows.sizes
    beyond, decay = y + sign * lengths, np.exp(-rate * lengths)
    # Mostly each column has one interval; and many begin, or end, at the edge of the window.
    is_whole = x.size > 0 and int(x[-1]) - int(x[0]) + 1 == x.size and bool((x[1:] > x[:-1]).all())
    columns = slice(int(x[0]), int(x[-1]) + 1) if is_whole else x
    if (y == y[:1]).all():
        y = y[:1]
    elif (beyond == beyond[:1]).all():
        beyond = beyond[:1]
    at_zero = lengths if rate == 0.0 else np.expm1(-rate * lengths) / np.expm1(-rate)
    turns = turns_of(n_along)
    sums, sizes = np.zeros(x.size), np.zeros(x.size)
    shared = transformed = 0.0
    for first in range(0, found.along.size, n_together):
        block = found.along[first : first + n_together, None]
        at_rows = np.fft.ifft(found.block(first, n_together, n_across), norm="forward")[:, columns]
        far = powers(turns, block, beyond)
        terms = powers(turns, block, y) - (decay * far if rate else far)
        reach = np.abs(at_rows)
        if block[0, 0] == 0:
            terms[0] = at_zero
            reach[0] *= at_zero / 2.0
        transformed += float(
            found.norms[first : first + n_together]
            @ np.sqrt((terms.real**2 + terms.imag**2) @ row_weights**2)
        )
        terms *= at_rows
        sums += terms.real.sum(axis=0)
        sizes += 2.0 * reach.sum(axis=0)
        # Not by `@`, which wakes other threads for complex numbers: that takes longer than such a sum.
        shared += float(np.abs(np.einsum("kn,n->k", terms, row_weights)).sum())
    roundings = row_weights * (8.0 + (np.abs(exponents) if shift else 0.0)) * sizes
    squares = np.minimum(lengths, 1.0 / -np.expm1(-2.0 * rate) if rate > 0 else np.inf)
    # Intervals of one row share the errors of its transform.
    repeats = math.sqrt(int(np.bincount(x).max(initial=0)) * n_across)
    return math.fsum((row_weights * sums).tolist()), (
        math.sqrt(float(row_weights**2 @ squares)) * found.error_norm
        + SPREAD * UNIT * math.sqrt(float(roundings @ roundings))
        + 8.0 * UNIT * shared
        + FFT_ROUNDINGS * UNIT * (math.log2(n_across) + 1.0) * repeats * transformed
        + 2.0 * float(row_weights.max(initial=0.0)) * math.exp(log_outside(law, tilt.tilt, window))
    )
