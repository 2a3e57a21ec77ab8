r"""Tail probabilities on the integers, without a transform.

With q = exp(-lambda + i theta), a tail is a sum over the few frequencies that matter of phi times a geometric
sum (q^n - 1) / (q - 1), both ends through expm1. Weights are at most 1, so the certificate adds up: errors of
phi and roundings, times the size of the geometric sum; pruned frequencies (Cauchy, Schwarz and Parseval);
wrapped mass, and as much again for the tail beyond the window; roundings of the scale factor's exponent.
"""

from __future__ import annotations

import math

import numpy as np

from trackperm.errors import CapacityError
from trackperm.exact.characteristic import (
    UNIT,
    ComplexArray,
    SwapSum,
    characteristic_function,
)
from trackperm.exact.counts import IntArray
from trackperm.exact.pmf import (
    FEW,
    LOG_PRUNED,
    LOG_WINDOW,
    conjugate_weights,
    frequency_blocks,
    log_outside,
    plan_window,
)
from trackperm.exact.tilt import CERTAIN, TailMass, certified, quantised, scale_factor, tilt_along

BYTES_PER_FREQUENCY = 256
"""Work arrays for one frequency."""


def half_line(law: SwapSum, point: int, memory_budget: int) -> TailMass:
    """Return P(X >= point) for X on the integers (rank 1), relative to its own size.

    Raises
    ------
    CapacityError
        If the window does not fit `memory_budget` bytes.
    """
    ((least, greatest),) = law.support
    if point <= least:
        return CERTAIN
    middle = law.total[0] / 2
    tilt = np.zeros(1)
    if point > middle:
        # At the very edge the tilt would be infinite; a quarter of a step inside does as well.
        target = min((2 * point - law.total[0]) / 2, (2 * greatest - law.total[0]) / 2 - 0.25)
        tilt = quantised(np.array([tilt_along(law, np.ones(1), lambda mean: float(mean[0]) - target)]))
    window = plan_window(law, [(tilt, LOG_WINDOW)])
    needed = BYTES_PER_FREQUENCY * min(window.size, FEW)
    if needed > memory_budget:
        raise CapacityError(
            f"the exact test needs {needed / 2**20:.0f} MiB; the memory budget is {memory_budget / 2**20:.0f}"
        )
    (period,), (start,) = window.periods, window.start
    if point <= start:
        return TailMass(0.0, 1.0, UNIT + math.exp(log_outside(law, tilt, window)))
    n_cells = max(start + period - point, 0)
    rate = float(tilt[0])
    total, error = 0.0, 0.0
    for frequencies in frequency_blocks(law, tilt, window.periods):
        values, errors = characteristic_function(law, tilt, (point,), window.periods, frequencies)
        weights = conjugate_weights(frequencies, window.periods) / period
        sums = _geometric_sums(frequencies[:, 0], period, n_cells, rate)
        terms = (values * sums).real
        total += float(weights @ terms)
        sizes = np.abs(sums)
        moduli = np.abs(values)
        # Two complex expm1, a quotient and a product: 32 roundings of each term; pairwise summation.
        roundings = UNIT * (32.0 + math.log2(frequencies.shape[0] + 1))
        error += float(weights @ (sizes * (errors + roundings * moduli)))
    pruned = math.exp(LOG_PRUNED) * math.sqrt(max(n_cells, 1))
    scale = scale_factor(law, tilt, (point,))
    log_wrapped = log_outside(law, tilt, window)
    # Wrapped mass enters cells with weights of at most 1, and the mass beyond the window is missing.
    error += pruned + 2.0 * math.exp(log_wrapped)
    return certified(scale.log, total, error + scale.error * abs(total))


def _geometric_sums(frequencies: IntArray, period: int, n_cells: int, rate: float) -> ComplexArray:
    """Return sum_{j < n_cells} q^j with q = exp(-rate + 2 pi i l / P), through expm1, for every l."""
    angle = frequencies * (2.0 * math.pi / period)
    last = (frequencies * n_cells % period) * (2.0 * math.pi / period)
    step = np.expm1(-rate + 1j * np.where(angle > math.pi, angle - 2.0 * math.pi, angle))
    span = np.expm1(-rate * n_cells + 1j * np.where(last > math.pi, last - 2.0 * math.pi, last))
    still = step == 0.0
    return np.where(still, float(n_cells), span / np.where(still, 1.0, step))
