r"""Tail probabilities on a plane lattice, row by row, without a transform.

A region that is an interval [a, b] in every row x (`rows`) has, under the tilt lambda,

    P(X in R) = exp(K - lambda . (r - E/2)) sum_x sum_{y=a}^{b} exp(-lambda . (z - r)) P_lambda(X = z)

with z = (x, y) and a reference point r, and P_lambda(X = z) is a sum over the few frequencies that matter:
over y it is geometric, over the frequencies of x one matrix product.

One tilt serves only the rows where its weights stay moderate. So several are used: the first has its mean at
the dominating point of R, each further one at the end of the row that the tilts so far serve worst. Every row
goes to the tilt with the least Chernoff bound there, K - lambda . (point - E/2), which is the size of its
rounding errors. Rows and ends of rows that cannot matter are left out, and their mass is bounded: since the
Hessian of K is at most C = sum_k c_k x_k x_k^T / 4,

    P(X = z) <= exp(K(lambda) - lambda . (z - E/2) - (z - mean)^T C^-1 (z - mean) / 2).

The certificate adds up, for each tilt: spectrum errors and pruned frequencies (norm of weights times norm of
errors, by Cauchy, Schwarz and Parseval); wrapped mass times the greatest weight; roundings that all rows of a
frequency share, relative to its sum over rows; the other roundings, taken as independent between rows with
SPREAD standard deviations; and once: what was left out, and the null mass outside the rows looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from trackperm.errors import CapacityError
from trackperm.exact.characteristic import (
    UNIT,
    ComplexArray,
    FloatArray,
    SwapSum,
    characteristic_function,
)
from trackperm.exact.counts import IntArray
from trackperm.exact.frequencies import surviving_frequencies
from trackperm.exact.pmf import (
    FEW,
    LOG_PRUNED,
    LOG_WINDOW,
    Window,
    conjugate_weights,
    log_outside,
    plan_window,
)
from trackperm.exact.rational_region import RationalRegion
from trackperm.exact.region import Region
from trackperm.exact.rows import RowIntervals, row_intervals
from trackperm.exact.tilt import ScaleFactor, TailMass, certified, mean_tilt, quantised, scale_factor

LOG_IGNORED = -44.0
"""Logarithm, relative to the expected tail, of all mass that may be left out of rows."""

LOG_EXCESS = 4.0
"""Logarithm of the Chernoff bound of a row, relative to the tail, from which another tilt is worth it."""

MOST_TILTS = 24
"""Tilts at the most."""

LARGEST_WEIGHT = 300.0
"""Logarithm of the weight from which a tilt is of no use to a row."""

SPREAD = 6.0
"""Standard deviations of the rounding error of a sum of rows that the certificate covers."""

ROWS = 2**12
"""Rows summed at a time."""

BYTES_PER_TERM = 128
"""Memory for one frequency of one row: complex factors, products and their sizes."""

BYTES_PER_ROW = 1024
"""Memory for the interval ends of a row and for judging them."""


@dataclass(frozen=True)
class _Tilt:
    """A tilt with what is needed to judge and to sum rows under it."""

    law: SwapSum
    tilt: FloatArray
    reference: tuple[int, int]
    scale: ScaleFactor
    mean: FloatArray
    window: Window

    @classmethod
    def of(cls, law: SwapSum, tilt: FloatArray) -> _Tilt:
        centred = law.centred_mean(tilt)
        middle = np.array([float(e) / 2 for e in law.total])
        mean = centred + middle
        reference = (round(float(mean[0])), round(float(mean[1])))
        scale = scale_factor(law, tilt, reference)
        return cls(law, tilt, reference, scale, mean, plan_window(law, [(tilt, LOG_WINDOW)], fast=False))

    def chernoff(self, x: IntArray, y: IntArray | FloatArray) -> FloatArray:
        """Return log bounds of P(X = (x, y)), which are the logarithms of the scaled weights there."""
        return self.scale.log + self.log_weight(x, y)

    def log_weight(self, x: IntArray, y: IntArray | FloatArray) -> FloatArray:
        """Return -lambda . ((x, y) - reference)."""
        dx, dy = x - self.reference[0], y - self.reference[1]
        return np.asarray(-float(self.tilt[0]) * dx - float(self.tilt[1]) * dy, dtype=np.float64)

    def near(self, first: IntArray, last: IntArray) -> IntArray:
        """Return the end of each row with the greater weight."""
        return first if self.tilt[1] >= 0 else last

    def log_mass_bound(self, rows: RowIntervals, precision: FloatArray) -> FloatArray:
        """Return log bounds of the mass in each interval; -inf for empty ones."""
        dx = rows.x - self.mean[0]
        vertex = self.mean[1] - (self.tilt[1] + precision[0, 1] * dx) / precision[1, 1]
        y = np.clip(vertex, rows.first, rows.last)
        dy = y - self.mean[1]
        quadratic = precision[0, 0] * dx**2 + 2 * precision[0, 1] * dx * dy + precision[1, 1] * dy**2
        n_cells = np.maximum(rows.last - rows.first + 1, 0)
        spread = np.minimum(n_cells, 2.0 + math.sqrt(2.0 * math.pi / precision[1, 1]))
        height = self.chernoff(rows.x, y) - quadratic / 2.0
        with np.errstate(divide="ignore"):
            return np.asarray(np.where(n_cells > 0, height + np.log(spread), -np.inf))


def plane_tail(
    law: SwapSum,
    first_tilt: FloatArray,
    region: Callable[[Sequence[int]], Region],
    memory_budget: int,
) -> TailMass | None:
    """Return the probability of a region of a plane lattice; None where its rows are not simple intervals.

    Parameters
    ----------
    law : SwapSum
        The law of X, of rank 2.
    first_tilt : ndarray of float, shape (2,)
        Zero if the region contains the mean of X, else a tilt with its mean near the dominating point.
    region : callable
        Gives the region, made for questions near a lattice point.
    memory_budget : int
        Bytes that may be allocated; None is returned where they are too few for the rows.

    Raises
    ------
    CapacityError
        If the frequencies that matter are too many.
    """
    tilts = [_Tilt.of(law, first_tilt)]
    log_tail = tilts[0].scale.log - 3.0 if first_tilt.any() else -1.0
    none = np.zeros(2)
    window = plan_window(law, [(none, LOG_WINDOW + min(log_tail, 0.0))], fast=False)
    if window.periods[0] * BYTES_PER_ROW > memory_budget:
        return None
    asked = region(tilts[0].reference)
    rows = row_intervals(asked, window) if isinstance(asked, RationalRegion) else None
    if rows is None:
        return None
    covariance = law.covariance(none)
    precision: FloatArray = np.asarray(np.linalg.inv(covariance) * (1.0 - 1e-9), dtype=np.float64)
    threshold = log_tail + LOG_IGNORED - math.log(rows.x.size + 1.0)
    while True:
        chosen, worst = _assign(tilts, rows, precision, threshold)
        if worst is None or len(tilts) >= MOST_TILTS:
            break
        row, excess = worst
        if excess <= log_tail + LOG_EXCESS:
            break
        # The row's likeliest point under the null: its conditional mean, moved into the interval.
        dx = float(rows.x[row]) - law.total[0] / 2
        middle = law.total[1] / 2 - precision[0, 1] / precision[1, 1] * dx
        y = min(max(middle, float(rows.first[row])), float(rows.last[row]))
        further = quantised(mean_tilt(law, np.array([float(rows.x[row]), y])))
        if any(np.array_equal(further, tilt.tilt) for tilt in tilts):
            break
        tilts.append(_Tilt.of(law, further))
    return _summed(law, tilts, rows, chosen, precision, log_outside(law, none, window), memory_budget)


def _clipped(rows: RowIntervals, window: Window) -> RowIntervals:
    low, high = window.start[1], window.start[1] + window.periods[1] - 1
    return RowIntervals(rows.x, np.maximum(rows.first, low), np.minimum(rows.last, high))


def _assign(
    tilts: Sequence[_Tilt], rows: RowIntervals, precision: FloatArray, threshold: float
) -> tuple[IntArray, tuple[int, float] | None]:
    """Return the tilt of each row, -1 for those left out, and the worst row with its Chernoff bound."""
    ignored = np.full(rows.x.size, np.inf)
    best = np.full(rows.x.size, np.inf)
    chosen = np.full(rows.x.size, -1, dtype=np.int64)
    for index, tilt in enumerate(tilts):
        ignored = np.minimum(ignored, tilt.log_mass_bound(rows, precision))
        low, high = tilt.window.start[0], tilt.window.start[0] + tilt.window.periods[0] - 1
        kept = _clipped(rows, tilt.window)
        weight = tilt.log_weight(rows.x, tilt.near(kept.first, kept.last))
        bound = tilt.scale.log + weight
        usable = (rows.x >= low) & (rows.x <= high) & (kept.first <= kept.last)
        usable &= (bound < best) & (weight < LARGEST_WEIGHT)
        best[usable], chosen[usable] = bound[usable], index
    chosen[ignored <= threshold] = -1
    needed = ignored > threshold
    if not needed.any():
        return chosen, None
    row = int(np.argmax(np.where(needed, best, -np.inf)))
    return chosen, (row, float(best[row]))


def _summed(
    law: SwapSum,
    tilts: Sequence[_Tilt],
    rows: RowIntervals,
    chosen: IntArray,
    precision: FloatArray,
    log_beyond: float,
    memory_budget: int,
) -> TailMass:
    """Sum every row under its tilt, and what was left out into the certificate."""
    log_scale = max(tilts[j].scale.log for j in range(len(tilts)) if j == 0 or (chosen == j).any())
    total, error = 0.0, math.exp(min(log_beyond - log_scale, 700.0))
    left_out = [_log_bound(tilts, _subset(rows, chosen == -1), precision)]
    for index, tilt in enumerate(tilts):
        mine = _subset(rows, chosen == index)
        if mine.x.size == 0:
            continue
        kept = _clipped(mine, tilt.window)
        left_out.append(_log_bound(tilts, RowIntervals(mine.x, mine.first, kept.first - 1), precision))
        left_out.append(_log_bound(tilts, RowIntervals(mine.x, kept.last + 1, mine.last), precision))
        mass, mass_error = _row_sums(law, tilt, kept, memory_budget)
        mass_error += tilt.scale.error * abs(mass)
        scale = math.exp(min(tilt.scale.log - log_scale, 700.0))
        total += scale * mass
        error += scale * mass_error
    for bounds in left_out:
        error += float(np.exp(np.minimum(bounds - log_scale, 700.0)).sum())
    return certified(log_scale, total, error)


def _subset(rows: RowIntervals, kept: IntArray) -> RowIntervals:
    return RowIntervals(rows.x[kept], rows.first[kept], rows.last[kept])


def _log_bound(tilts: Sequence[_Tilt], rows: RowIntervals, precision: FloatArray) -> FloatArray:
    """Return the least of the tilts' log bounds of the mass in each interval."""
    return np.asarray(np.min([tilt.log_mass_bound(rows, precision) for tilt in tilts], axis=0))


def _row_sums(law: SwapSum, tilt: _Tilt, rows: RowIntervals, memory_budget: int) -> tuple[float, float]:
    """Return the scaled mass of rows under one tilt, and a bound of its absolute error.

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
    for first in range(0, rows.x.size, n_together):
        block = _subset(rows, np.arange(first, min(first + n_together, rows.x.size)))
        n_cells = block.last - block.first + 1
        end = block.first if forward else block.last
        row_weights = np.exp(tilt.log_weight(block.x, end))
        table = turns[0][(block.x - reference[0])[:, None] * across % periods[0]]
        transformed = table @ matrix
        sums, sizes = _geometric(along, n_cells, rate, forward, periods[1])
        sums *= turns[1][(end - reference[1])[:, None] * along % periods[1]]
        sums *= transformed
        total.append(float(row_weights @ sums.real.sum(axis=1)))
        columns += row_weights @ sums
        # Roundings of a row: those of the matrix product and of geometric sums, relative to their sizes.
        roundings = (8.0 + math.sqrt(across.size)) * UNIT * (sizes @ column_sizes)
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
