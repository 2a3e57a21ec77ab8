"""Plan of the lattice engine, by the unordered pairs and the statistic alone.

It is the same for all configurations of the pairs, whatever was observed. Once planned, the engine has a
result that is certainly not below the exact p-value: windows grow with smaller tails as far as memory
suffices, down to the floor of the plan, and bounds of all that is omitted are part of the result. The
exception are regions of a NumPy function with many intervals in a row, which raise an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trackperm.exact.distributions.characteristic import SwapDistribution
from trackperm.exact.distributions.frequencies import n_expected
from trackperm.exact.distributions.pmf import (
    BYTES_PER_CELL,
    FEW,
    LOG_PRUNED,
    LOG_WINDOW,
    MOST_FACTORS,
    MOST_SURVIVING_FACTORS,
    Window,
    fast_length,
    plan_window,
)
from trackperm.exact.engines.lattice import plane, space
from trackperm.exact.engines.lattice.grid import MOST_CELLS
from trackperm.exact.engines.lattice.independent import cost_of_independent
from trackperm.exact.engines.lattice.lattice import MOST_REDUCED
from trackperm.exact.engines.lattice.row_direction import ROW_RANKS
from trackperm.exact.engines.lattice.rows import BYTES_PER_INTERVAL, SECONDS_PER_ROW
from trackperm.exact.engines.lattice.statistic import LatticeStatistic
from trackperm.exact.engines.lattice.tail import least_log
from trackperm.exact.engines.linear.tails import EXACT_IN_FLOATS
from trackperm.messages import scientific

SECONDS_PER_CELL = 2.5e-6
"""Time of a cell of a grid: to decide it, to transform it under a few tilts, and to sum it. It is 2 to 3.5
microseconds for F1 of strata, macro-F1 and correlation, measured on one core at 2.5 GHz."""

SECONDS_PER_ROW_IN_SPACE = 1.5e-6
"""Time of a row of a lattice of rank three, where half of all rows are negligible."""

SECONDS_PER_POINT = 6e-7
"""Time of a point in a row that is decided on its own, measured with MCC."""

POINTS_PER_ROW = 6
"""Points of a row that are decided on their own where the statistic is affine, but not rational."""

SECONDS_PER_FACTOR = 1e-7
"""Time of the factor of one distinct difference in the characteristic function at one frequency."""

FINEST_GRID = space.LARGEST_GRID >> 6
"""Largest number of points of a window in space: windows under a tilt may be somewhat larger."""

TILTED = 4
"""Ratio of the frequencies that matter under a tilt to those that matter without one, for moderate tails."""

SECONDS_PER_FREQUENCY = 8e-6
"""Time of a frequency of a plane: two microseconds, under a few tilts."""

SAMPLED = 2**22
"""Most points of a window whose frequencies are not sampled: an estimate would take longer than it saves."""

FEWEST_FOUND = 8
"""Fewest random frequencies that matter from which their number is estimated."""

SAMPLED_FACTORS = 2**16
"""Factors of the characteristic function that are sampled: a millisecond."""

HALVINGS = 30
"""Halvings of the interval that contains the smallest tail for which windows fit."""


@dataclass(frozen=True)
class LatticePlan:
    """Costs of the lattice engine, and the smallest tails that it computes exactly.

    Attributes
    ----------
    seconds : float
        Estimated time of a moderate tail.
    n_bytes : int
        Memory of a moderate tail.
    refusal : str or None
        Reason why the engine cannot run.
    log_floor : float
        Logarithm of the smallest tail for which windows fit the memory budget.
    """

    seconds: float = 0.0
    n_bytes: int = 0
    refusal: str | None = None
    log_floor: float = -math.inf


def lattice_plan(law: SwapDistribution, statistic: LatticeStatistic, memory_budget: int) -> LatticePlan:
    """Plan the lattice engine for the tails of a statistic."""
    if law.rank > MOST_REDUCED:
        return LatticePlan(refusal=f"more than {MOST_REDUCED} counts vary independently")
    if any(max(abs(low), abs(high)) > EXACT_IN_FLOATS for low, high in law.support):
        return LatticePlan(refusal="sums of the differences exceed 2^52, beyond which floats are not exact")
    is_closed = statistic.is_closed_in_rows

    def rows_fit(log_tail: float) -> bool:
        window = _window(law, plane.LOG_WINDOW + log_tail)
        return _bytes_of_rows(window, is_closed) <= memory_budget and (is_closed or window.size <= MOST_CELLS)

    def cells_fit(log_tail: float) -> bool:
        window = _window(law, LOG_WINDOW + log_tail)
        return window.size <= MOST_CELLS and _bytes_of_cells(law, window) <= memory_budget

    independent = cost_of_independent(law, statistic)
    if independent is not None:
        return LatticePlan(*independent, log_floor=_log_floor(law, rows_fit))
    window = _window(law, LOG_WINDOW)
    if law.rank in ROW_RANKS and _rows_have_few_frequencies(law, window):
        seconds, n_bytes = _seconds_of_rows(law, statistic, window), _bytes_of_rows(window, is_closed)
        n_bytes = max(n_bytes, _bytes_in_space(law) if law.rank == 3 else _bytes_in_plane(law, memory_budget))
        refusal = None if is_closed else _too_many_points(window)
        return LatticePlan(seconds, n_bytes, refusal, _log_floor(law, rows_fit))
    seconds = SECONDS_PER_CELL * window.size if law.rank > 1 else 0.0
    n_bytes, refusal = _bytes_of_cells(law, window), _too_many_points(window) or _refusal_of_cells(law)
    return LatticePlan(seconds, n_bytes, refusal, _log_floor(law, cells_fit))


def _window(law: SwapDistribution, log_mass: float) -> Window:
    return plan_window(law, np.zeros(law.rank), log_mass, fast=False)


def _log_floor(law: SwapDistribution, fits: Callable[[float], bool]) -> float:
    """Return the logarithm of about the smallest tail whose windows fit; 0 if they only just fit at all."""
    least, fitting = least_log(law), 0.0
    if fits(least):
        return -math.inf
    for _ in range(HALVINGS):
        middle = (least + fitting) / 2.0
        least, fitting = (least, middle) if fits(middle) else (middle, fitting)
    return fitting


def _frequencies_in_space(law: SwapDistribution) -> tuple[float, float]:
    """Return the expected number of frequencies near 0, and elsewhere, of rows in space."""
    return n_expected(law, _window(law, space.LOG_SMALL).periods, space.LOG_USUAL)


def _rows_have_few_frequencies(law: SwapDistribution, window: Window) -> bool:
    """Whether sums over the rows of a window are quick, and possible at all."""
    if law.rank == 3:
        n_frequencies = sum(_frequencies_in_space(law))
        return TILTED * n_frequencies <= space.MOST_FREQUENCIES and window.size <= FINEST_GRID
    # A plane's frequencies are no more than half the points of its window.
    if window.size <= FEW:
        return True
    return sum(n_expected(law, _window(law, plane.LOG_WINDOW).periods, plane.LOG_PRUNED)) <= FEW


def _n_sampled(law: SwapDistribution, periods: tuple[int, ...], log_threshold: float) -> float:
    """Estimate the number of frequencies that matter from random ones; 0 if hardly one of these does.

    Differences that depend on each other, as those of counts that look up the labels, have many peaks, which
    :func:`~trackperm.exact.distributions.frequencies.n_expected` does not know.
    """
    n = max(SAMPLED_FACTORS // law.multiplicities.size, 1)
    frequencies = np.random.default_rng(0).integers(0, periods, size=(n, law.rank))
    half_turns = frequencies / np.array(periods) @ law.coordinates.T
    with np.errstate(divide="ignore"):
        logs = np.log(np.abs(np.cos(np.pi * half_turns))) @ law.multiplicities
    n_found = int((logs > log_threshold).sum())
    return math.prod(periods) / 2.0 * n_found / n if n_found >= FEWEST_FOUND else 0.0


def _seconds_of_rows(law: SwapDistribution, statistic: LatticeStatistic, window: Window) -> float:
    """Return the estimated time of the rows of a window."""
    n_rows = math.prod(window.periods[:-1])
    seconds = (SECONDS_PER_ROW if law.rank == 2 else SECONDS_PER_ROW_IN_SPACE) * n_rows
    if not statistic.is_closed_in_rows:
        seconds += SECONDS_PER_POINT * window.size
    elif statistic.local is None:
        seconds += SECONDS_PER_POINT * POINTS_PER_ROW * n_rows
    if law.rank == 3:
        seconds += SECONDS_PER_FACTOR * sum(_frequencies_in_space(law)) * law.multiplicities.size
    elif window.size > SAMPLED:
        seconds += SECONDS_PER_FREQUENCY * _n_sampled(law, window.periods, plane.LOG_PRUNED)
    return seconds


def _too_many_points(window: Window) -> str | None:
    """Return the reason why the points of a window cannot be decided one by one, if they cannot."""
    if window.size <= MOST_CELLS:
        return None
    return f"the exact sum has about {scientific(window.size)} points; the limit is {MOST_CELLS:,}"


def _bytes_of_rows(window: Window, is_closed: bool) -> int:
    """Return the memory of the rows of a window; of a plane, also that of the phases along a row.

    Without a closed form, the region may have several intervals in a row.
    """
    *across, along = window.periods
    phases = plane.BYTES_PER_TURN * along if len(across) == 1 else 0
    n_each = 1 if is_closed else plane.INTERVALS_PER_ROW
    return max(BYTES_PER_INTERVAL * n_each * math.prod(across), phases)


def _bytes_in_plane(law: SwapDistribution, memory_budget: int) -> int:
    """Return the memory of the frequencies of a plane that matter; under a tilt, they are more.

    They are not counted if all those of the window fit.
    """
    window = _window(law, plane.LOG_WINDOW)
    if plane.BYTES_PER_FREQUENCY * window.size <= memory_budget:
        return plane.BYTES_PER_FREQUENCY * window.size
    n_frequencies = min(window.size, TILTED * sum(n_expected(law, window.periods, plane.LOG_PRUNED)))
    return math.ceil(plane.BYTES_PER_FREQUENCY * n_frequencies)


def _bytes_in_space(law: SwapDistribution) -> int:
    """Return the memory of the box of the frequencies in space that matter.

    Those near 0 are an ellipsoid. Others may each have three coordinates of their own.
    """
    _, elsewhere = _frequencies_in_space(law)
    periods = np.array(_window(law, space.LOG_SMALL).periods, dtype=np.float64)
    variances = np.diag(np.linalg.inv(law.fair_covariance))
    extents = np.sqrt(-2.0 * space.LOG_USUAL * variances) * periods / math.pi + 1.0
    box = np.minimum(extents * [1.0, 1.0, 0.5] + elsewhere, periods * [1.0, 1.0, 0.5] + 1.0)
    return math.ceil(space.BYTES_PER_FREQUENCY * float(box.prod()))


def _transformed(law: SwapDistribution) -> tuple[int, ...]:
    """Return the sizes of the largest transform of a window under any tilt."""
    return tuple(fast_length(period + 1) for period in _window(law, LOG_WINDOW).periods)


def _bytes_of_cells(law: SwapDistribution, window: Window) -> int:
    """Return the memory to decide the cells of a window, and to transform one under a tilt."""
    return window.size + BYTES_PER_CELL * math.prod(_transformed(law))


def _refusal_of_cells(law: SwapDistribution) -> str | None:
    """Return the reason why the characteristic function on a grid takes too long, if it does."""
    periods, n_rows = _transformed(law), law.multiplicities.size
    if math.prod(periods) // 2 * n_rows <= MOST_FACTORS:
        return None
    limit = min(FEW, MOST_SURVIVING_FACTORS // n_rows)
    n_frequencies = sum(n_expected(law, periods, LOG_PRUNED))
    if TILTED * n_frequencies <= limit:
        return None
    return f"about {n_frequencies:.0e} frequencies of {n_rows:,} distinct differences matter"
