r"""Tail probabilities on the integers, without a transform.

With q = exp(-lambda + i theta), a tail is a sum over the few frequencies that matter of phi times a geometric
sum (q^n - 1) / (q - 1), both ends through expm1. Weights are at most 1, so the certificate adds up: errors of
phi and roundings, times the size of the geometric sum; pruned frequencies (Cauchy, Schwarz and Parseval);
wrapped mass, and as much again for the tail beyond the window; roundings of the scale factor's exponent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trackperm.exact.counts import IntArray
from trackperm.exact.spectrum.characteristic import (
    UNIT,
    ComplexArray,
    FloatArray,
    SwapSum,
    characteristic_function,
)
from trackperm.exact.spectrum.pmf import (
    LOG_PRUNED,
    LOG_WINDOW,
    conjugate_weights,
    frequency_blocks,
    log_outside,
    plan_window,
)
from trackperm.exact.spectrum.tilt import TailMass, certified, line_tilt, quantised, scale_factor

BYTES_PER_FREQUENCY = 256
"""Work arrays for one frequency."""


def upper_tilt(law: SwapSum, point: int) -> FloatArray:
    """Return the tilt, shape (1,), that puts the mean at a point of the upper half; 0 for the lower half."""
    ((_, greatest),) = law.support
    if 2 * point <= law.total[0]:
        return np.zeros(1)
    # At the very edge the tilt would be infinite; a quarter of a step inside does as well.
    target = min((2 * point - law.total[0]) / 2, (2 * greatest - law.total[0]) / 2 - 0.25)
    return quantised(np.array([line_tilt(law, target)]))


def upper_tails(law: SwapSum, points: Sequence[int]) -> list[TailMass]:
    """Return P(X >= point) for X on the integers (rank 1), each relative to its own size.

    Parameters
    ----------
    law : SwapSum
        The law of X.
    points : sequence of int
        Close to each other: the first one decides the tilt.

    Raises
    ------
    CapacityError
        If too many frequencies matter.
    """
    tilt = upper_tilt(law, points[0])
    window = plan_window(law, [(tilt, LOG_WINDOW)], fast=False)
    (period,), (start,) = window.periods, window.start
    rate = float(tilt[0])
    n_cells = [min(max(start + period - point, 0), period) for point in points]
    totals, errors = [0.0] * len(points), [0.0] * len(points)
    for frequencies in frequency_blocks(law, tilt, window.periods):
        values, value_errors = characteristic_function(law, tilt, (points[0],), window.periods, frequencies)
        weights = conjugate_weights(frequencies, window.periods) / period
        moduli = np.abs(values)
        # Two complex expm1, a quotient and two products: 40 roundings of each term; pairwise summation.
        roundings = UNIT * (40.0 + math.log2(frequencies.shape[0] + 1))
        for i, point in enumerate(points):
            turned = values * np.exp(1j * _angles(frequencies[:, 0] * ((point - points[0]) % period), period))
            sums = _geometric_sums(frequencies[:, 0], period, n_cells[i], rate)
            totals[i] += float((weights * (turned * sums).real).sum())
            errors[i] += float(weights @ (np.abs(sums) * (value_errors + roundings * moduli)))
    # Wrapped mass enters cells with weights of at most 1, and the mass beyond the window is missing.
    wrapped = 2.0 * math.exp(log_outside(law, tilt, window))
    tails = []
    for point, n, total, error in zip(points, n_cells, totals, errors, strict=True):
        if point <= start:
            tails.append(TailMass(0.0, 1.0, UNIT + wrapped))
            continue
        scale = scale_factor(law, tilt, (point,))
        pruned = math.exp(LOG_PRUNED) * math.sqrt(max(n, 1))
        tails.append(certified(scale.log, total, error + pruned + wrapped + scale.error * abs(total)))
    return tails


def _geometric_sums(frequencies: IntArray, period: int, n_cells: int, rate: float) -> ComplexArray:
    """Return sum_{j < n_cells} q^j with q = exp(-rate + 2 pi i l / P), through expm1, for every l."""
    step = np.expm1(-rate + 1j * _angles(frequencies, period))
    span = np.expm1(-rate * n_cells + 1j * _angles(frequencies * n_cells, period))
    still = step == 0.0
    return np.where(still, float(n_cells), span / np.where(still, 1.0, step))


def _angles(turns: IntArray, period: int) -> FloatArray:
    """Return 2 pi turns / period, folded to (-pi, pi] before it is rounded."""
    folded = turns % period
    return np.where(2 * folded > period, folded - period, folded) * (2.0 * math.pi / period)
