r"""Tail probabilities on a plane lattice, row by row, without a transform.

If a region is an interval [a, b] in every row x (`rows`), then under the tilt lambda

    P(X in R) = exp(K - lambda . (r - E/2)) sum_x sum_{y=a}^{b} exp(-lambda . (z - r)) P_lambda(X = z)

with z = (x, y) and a reference point r, and P_lambda(X = z) is a sum over the few frequencies that matter:
the sum over y is geometric, that over the frequencies of x one matrix product.

One tilt suits only the rows where its weights stay moderate (`tilted`), so several are used: the first has
its mean at the dominating point of R, each further one at the end of the row with the largest bound under the
others. Every row is assigned to the tilt with the least Chernoff bound there. Rows and ends of rows that are
negligible are omitted, and their mass is bounded.

The certificate adds up, for each tilt: spectrum errors and pruned frequencies (norm of weights times norm of
errors, by Cauchy, Schwarz and Parseval); wrapped mass times the greatest weight; roundings that all rows of a
frequency share, relative to its sum over rows; the other roundings, as SPREAD standard deviations of
independent errors between rows; and once: the omitted mass, and the null mass outside the window.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from trackperm.errors import CapacityError
from trackperm.exact.distributions.characteristic import (
    UNIT,
    ComplexArray,
    FloatArray,
    SwapDistribution,
    characteristic_function,
)
from trackperm.exact.distributions.frequencies import surviving_frequencies
from trackperm.exact.distributions.pmf import (
    FEW,
    conjugate_weights,
    log_outside,
    plan_window,
)
from trackperm.exact.distributions.tilt import (
    TailMass,
    Tilted,
    certified,
    common_scale,
    least_precision,
    never_zero,
    quantised,
    tilt_at,
    without_undefined,
)
from trackperm.exact.engines.lattice.lattice import Flags, Reach
from trackperm.exact.engines.lattice.rows import BYTES_PER_INTERVAL, RowIntervals, region_rows, window_rows
from trackperm.exact.engines.lattice.space import space_sums
from trackperm.exact.types import IntArray, Region

LOG_IGNORED = -31.0
"""Logarithm, relative to the expected tail, of all mass that may be omitted from rows: 3e-14."""

LOG_EXCESS = 8.0
"""Logarithm of a Chernoff bound, relative to the tail, beyond which a row gets another tilt.

The relative error is then at most about exp(8) = 3,000 roundings: 3e-13.
"""

LOG_WINDOW = -42.0
"""Logarithm of the mass outside a window, under its tilt or relative to the expected tail.

exp(-42) = 6e-19 is below a rounding, and a larger window would cost frequencies.
"""

LOG_PRUNED = -42.0
"""Logarithm of the modulus below which a frequency is omitted: the same share as outside a window."""

MOST_TILTS = 24
"""Largest number of tilts: cheaper than those of a grid, as each takes no transform."""

LARGEST_WEIGHT = 300.0
"""Logarithm of the largest weight, relative to the tail; points with larger ones are omitted.

Its square is still a float.
"""

SPREAD = 6.0
"""Standard deviations of a sum's rounding error that the certificate covers: 2e-9 is the chance of more."""

ROWS = 2**12
"""Rows per step, fewer if they have many frequencies."""

BYTES_PER_TERM = 128
"""Memory for one frequency of one row: complex factors, products and their sizes."""

INTERVALS_PER_ROW = 16
"""Largest average number of intervals in a row: with more, a transform is cheaper."""


def rows_tail(
    law: SwapDistribution,
    first_tilt: FloatArray,
    log_tail: float,
    region: Callable[[Sequence[int]], Region],
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
    first = Tilted.of(law, first_tilt, LOG_WINDOW, fast=False)
    none = np.zeros(law.rank)
    window = plan_window(law, none, LOG_WINDOW + min(log_tail, 0.0), fast=False)
    n_rows = math.prod(window.periods[:-1])
    if n_rows * BYTES_PER_INTERVAL > memory_budget:
        raise CapacityError(f"the region has {n_rows} rows, beyond the memory budget")
    rows, log_beyond = window_rows(window), log_outside(law, none, window)
    if law.rank > 2:
        # Most rows of a box are so far from the mean that even whole they are negligible.
        untilted = Tilted.of(law, none, LOG_WINDOW, fast=False)
        bounds = _log_mass_bounds(untilted, rows, least_precision(law))
        rows = rows.chosen(bounds > log_tail + LOG_IGNORED - math.log(n_rows))
        log_beyond = float(np.logaddexp(log_beyond, log_tail + LOG_IGNORED))
    found = region_rows(region(first.reference), rows, reach, memory_budget)
    if found.inside.n > INTERVALS_PER_ROW * n_rows:
        raise CapacityError(f"the region has {found.inside.n} intervals in {n_rows} rows")
    tilts, chosen = _assigned(law, first, found.inside, log_tail)
    tail = _summed(law, tilts, found.inside, chosen, log_tail, log_beyond, memory_budget)
    if found.undefined.n == 0:
        return tail
    tilts, chosen = _assigned(law, first, found.undefined, log_tail)
    undefined = _summed(law, tilts, found.undefined, chosen, log_tail, -math.inf, memory_budget)
    point = tuple(int(axis[0]) for axis in (*found.undefined.heads, found.undefined.first))
    return without_undefined(tail, undefined, point)


def _assigned(
    law: SwapDistribution, first: Tilted, rows: RowIntervals, log_tail: float
) -> tuple[list[Tilted], IntArray]:
    """Return tilts, and the number of that of each row: -1 for rows whose mass is negligible."""
    precision = least_precision(law)
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
        tilts.append(Tilted.of(law, further, LOG_WINDOW, fast=False))
        bounds = np.minimum(bounds, _log_mass_bounds(tilts[-1], rows, precision))
    chosen[~needed] = -1
    return tilts, chosen


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
    log_beyond: float,
    memory_budget: int,
) -> TailMass:
    """Sum every row under its tilt, and add the bounds of omitted mass to the certificate.

    `log_beyond` bounds the mass outside the window of the rows.
    """
    precision = least_precision(law)
    log_scale = common_scale(tilts, log_tail)
    total, error = 0.0, float(never_zero(log_beyond - log_scale))
    left_out = [rows.chosen(chosen == -1)]
    for index, tilt in enumerate(tilts):
        mine = rows.chosen(chosen == index)
        if mine.n == 0:
            continue
        kept = _trimmed(tilt, mine, log_tail)
        left_out.append(RowIntervals(mine.heads, mine.first, kept.first - 1))
        left_out.append(RowIntervals(mine.heads, kept.last + 1, mine.last))
        shift = tilt.scale.log - log_scale
        if law.rank == 3:
            mass, mass_error = space_sums(law, tilt, kept, shift, log_tail - log_scale, memory_budget)
        else:
            mass, mass_error = _row_sums(law, tilt, kept, shift, memory_budget)
        total += mass
        error += mass_error + (tilt.scale.error + 4.0 * UNIT * abs(shift)) * abs(mass)
    for part in left_out:
        bounds = np.min([_log_mass_bounds(tilt, part, precision) for tilt in tilts], axis=0)
        error += float(never_zero(bounds - log_scale).sum())
    return certified(log_scale, total, error)


def _row_sums(
    law: SwapDistribution, tilt: Tilted, rows: RowIntervals, shift: float, memory_budget: int
) -> tuple[float, float]:
    """Return the mass of rows under one tilt, and a bound of its absolute error; weights times exp(shift).

    Raises
    ------
    CapacityError
        If the frequencies that matter are too many for `memory_budget` bytes.
    """
    periods, reference = tilt.window.periods, tilt.reference
    frequencies = surviving_frequencies(law, tilt.tilt, periods, LOG_PRUNED, FEW)
    values, errors = characteristic_function(law, tilt.tilt, reference, periods, frequencies)
    weights = conjugate_weights(frequencies, periods) / tilt.window.size
    across, row_index = np.unique(frequencies[:, 0], return_inverse=True)
    along, column_index = np.unique(frequencies[:, 1], return_inverse=True)
    n_together = min(ROWS, memory_budget // (BYTES_PER_TERM * (across.size + along.size)))
    if n_together < 1 or BYTES_PER_TERM * (across.size * along.size + sum(periods)) > memory_budget:
        raise CapacityError(f"{across.size} x {along.size} frequencies do not fit the memory budget")
    matrix = np.zeros((across.size, along.size), dtype=np.complex128)
    matrix[row_index, column_index] = weights * values
    column_sizes = np.zeros(along.size)
    np.add.at(column_sizes, column_index, weights * np.abs(values))
    rate = abs(float(tilt.tilt[1]))
    forward = float(tilt.tilt[1]) >= 0.0
    turns = [np.exp(2j * math.pi / period * np.arange(period)) for period in periods]
    total: list[float] = []
    columns = np.zeros(along.size, dtype=np.complex128)
    weight_squares, rounding_squares, largest = 0.0, 0.0, 0.0
    for first in range(0, rows.n, n_together):
        block = rows.chosen(slice(first, first + n_together))
        n_cells = block.sizes
        end = _near(tilt, block)
        exponents = tilt.log_weight([*block.heads, end]) + shift
        row_weights = np.exp(exponents)
        table = turns[0][(block.heads[0] - reference[0])[:, None] * across % periods[0]]
        transformed = table @ matrix
        sums, sizes = _geometric(along, n_cells, rate, forward, periods[1])
        sums *= turns[1][(end - reference[1])[:, None] * along % periods[1]]
        sums *= transformed
        total.append(float((row_weights * sums.real.sum(axis=1)).sum()))
        columns += row_weights @ sums
        # Roundings of a row: those of the matrix product and of geometric sums, relative to their sizes, and
        # of the weight's exponent where it is not exact.
        steps = 8.0 + math.sqrt(across.size) + (np.abs(exponents) if shift else 0.0)
        roundings = steps * UNIT * (sizes @ column_sizes)
        rounding_squares += float((row_weights * roundings) @ (row_weights * roundings))
        squares = np.minimum(n_cells, 1.0 / -np.expm1(-2.0 * rate) if rate > 0 else np.inf)
        weight_squares += float(row_weights**2 @ squares)
        largest = max(largest, float(row_weights.max()))
    error_norm = math.sqrt(float(weights @ errors**2)) + math.exp(LOG_PRUNED)
    return math.fsum(total), (
        math.sqrt(weight_squares) * error_norm
        + SPREAD * math.sqrt(rounding_squares)
        + 8.0 * UNIT * float(np.abs(columns).sum())
        + 2.0 * largest * math.exp(log_outside(law, tilt.tilt, tilt.window))
    )


def _geometric(
    along: IntArray, n_cells: IntArray, rate: float, forward: bool, period: int
) -> tuple[ComplexArray, FloatArray]:
    """Return sum_{j < n} exp(-rate j +- 2 pi i l j / P), shape (rows, frequencies), and size bounds.

    Angles are folded as integers, and 1 - q comes from expm1: it cancels near frequency 0.
    """
    signed = along if forward else -along
    step = np.expm1(-rate + 1j * _angles(signed, period))
    span = np.expm1(-rate * n_cells[:, None] + 1j * _angles(signed * n_cells[:, None], period))
    zero = along == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = span / step
        sizes = np.minimum(n_cells[:, None], 2.0 / np.abs(step))
    plain = n_cells.astype(np.float64) if rate == 0.0 else np.expm1(-rate * n_cells) / np.expm1(-rate)
    sums[:, zero] = plain[:, None]
    sizes[:, zero] = plain[:, None]
    return sums, sizes


def _angles(turns: IntArray, period: int) -> FloatArray:
    """Return 2 pi turns / period, folded to (-pi, pi] before it is rounded."""
    folded = turns % period
    folded = np.where(2 * folded > period, folded - period, folded)
    return np.asarray(folded * (2.0 * math.pi / period))
