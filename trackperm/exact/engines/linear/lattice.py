r"""Tail probabilities on the integers, without a transform.

With q = exp(-lambda + i theta), a tail is a sum, over the few frequencies that matter, of phi times a
geometric sum (q^n - 1) / (q - 1); expm1 computes both differences. Weights are at most 1, so the certificate
adds up: errors of phi and roundings, times the size of the geometric sum; pruned frequencies (Cauchy, Schwarz
and Parseval); wrapped mass, and as much again for the tail beyond the window; roundings of the scale factor's
exponent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from trackperm.exact.distributions.characteristic import (
    UNIT,
    ComplexArray,
    FloatArray,
    SwapDistribution,
    characteristic_function,
    remainders,
)
from trackperm.exact.distributions.pmf import conjugate_weights, frequency_blocks
from trackperm.exact.distributions.tilt import TailMass, certified, line_tilt, quantised, scale_factor
from trackperm.exact.types import IntArray

LOG_LOST = -38.0
"""Logarithm of the tilted mass that a window may leave out, and of the error by pruned frequencies: 3e-17
each, below one rounding of the tail."""

BYTES_PER_FREQUENCY = 256
"""Memory of the work arrays for one frequency."""

STEEP = 0.5
"""Share of the variance under a tilt below which Chernoff's bounds are worth their time."""

NORMAL_RATES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8)
OWN_RATES = (0.5, 0.8, 0.95)
"""Further tilts that bound a window, relative to the best one for a normal law and to the tilt itself.

Neighbours differ by a factor of 1.4, so one is close to the best; any of them gives a valid bound.
"""


def upper_tilt(law: SwapDistribution, point: int) -> FloatArray:
    """Return the tilt, shape (1,), whose mean is a point of the upper half; 0 for one of the lower half."""
    ((_, greatest),) = law.support
    if 2 * point <= law.total[0]:
        return np.zeros(1)
    # At the very edge the tilt would be infinite; a mean a quarter of a step inside is as good.
    target = min((2 * point - law.total[0]) / 2, (2 * greatest - law.total[0]) / 2 - 0.25)
    largest = int(np.abs(law.coordinates).max())
    return quantised(np.array([line_tilt(law, target)]), min(20, 53 - largest.bit_length()))


def log_pruned(log_lost: float, period: int) -> float:
    """Return the logarithm of moduli that together change no tail by more than exp(log_lost).

    At most P of them are left out, so that a sum over cells with weights of at most 1 changes by their
    largest modulus times sqrt(P), by Cauchy, Schwarz and Parseval.
    """
    return log_lost - 0.5 * math.log(period)


def line_window(
    law: SwapDistribution, tilt: FloatArray, log_lost: float = LOG_LOST
) -> tuple[int, int, float]:
    """Return start and length of a window, and the logarithm of the mass outside it under a tilt.

    It is at most `log_lost`. Hoeffding's bound holds for every tilt. A tilt that leaves little variance has a
    narrower window: with K the centred cumulant function and m its derivative, for every s > 0 (Chernoff
    1952)

        P_tilt(X - E/2 >= m + t) <= exp(K(tilt + s) - K(tilt) - s (m + t)),

    and likewise below, with -s.
    """
    ((least, greatest),) = law.support
    mean = float(law.centred_mean(tilt)[0])
    radii = [law.radius(0, log_lost) + 1.0] * 2
    variance = float(law.covariance(tilt)[0, 0])
    if 0.0 < variance < STEEP * (law.ranges[0] / 2.0) ** 2:
        log_side, cumulant = log_lost - math.log(2.0), law.cumulant(tilt)
        normal, own = math.sqrt(-2.0 * log_side / variance), abs(float(tilt[0]))
        roundings = UNIT * (32.0 + law.multiplicities.size)
        for s in [normal * rate for rate in NORMAL_RATES] + [own * rate for rate in OWN_RATES]:
            for i, sign in enumerate((-1.0, 1.0)):
                further = law.cumulant(tilt + sign * s)
                rise = further - cumulant + roundings * (further + cumulant)
                radius = (rise - log_side) / s - sign * mean + roundings * abs(mean)
                radii[i] = min(radii[i], radius + 1.0)
    centre = mean + law.total[0] / 2
    low, high = max(least, math.floor(centre - radii[0])), min(greatest, math.ceil(centre + radii[1]))
    return low, high - low + 1, -math.inf if (low, high) == (least, greatest) else log_lost


def upper_tails(law: SwapDistribution, points: Sequence[int], log_lost: float = LOG_LOST) -> list[TailMass]:
    """Return P(X >= point) for X on the integers (rank 1), each with its own error bound.

    Points have to be close to each other: the first one decides the tilt. Under it, masses of about
    exp(log_lost) may be lost, which the error bounds count; the less exact, the quicker. It raises
    CapacityError if too many frequencies matter.
    """
    tilt = upper_tilt(law, points[0])
    start, period, log_outside = line_window(law, tilt, log_lost)
    threshold = log_pruned(log_lost, period)
    spectrum = (
        (frequencies[:, 0], *characteristic_function(law, tilt, (points[0],), (period,), frequencies))
        for frequencies in frequency_blocks(law, tilt, (period,), threshold)
    )
    sums = tail_sums(spectrum, float(tilt[0]), start, period, points, threshold)
    # Wrapped mass enters cells with weights of at most 1, and mass beyond the window is missing.
    wrapped = 2.0 * math.exp(log_outside)
    tails = []
    for point, (total, error) in zip(points, sums, strict=True):
        if point <= start:
            tails.append(TailMass(0.0, 1.0, UNIT + wrapped))
            continue
        scale = scale_factor(law, tilt, (point,))
        tails.append(certified(scale.log, total, error + wrapped + scale.error * abs(total)))
    return tails


def tail_sums(
    spectrum: Iterable[tuple[IntArray, ComplexArray, FloatArray]],
    rate: float,
    start: int,
    period: int,
    points: Sequence[int],
    log_threshold: float,
) -> list[tuple[float, float]]:
    """Return sum_x exp(-rate (x - point)) P(X = x) from each point up to the end of a window.

    Parameters
    ----------
    spectrum : iterable of tuples
        Frequencies, shape (n,), without their conjugates; the conjugates of the characteristic
        function of X - points[0] there; and bounds of their errors.
    rate : float
        The tilt, at least 0.
    start, period : int
        The window; mass outside is wrapped into it.
    points : sequence of int
        Points above `start`.
    log_threshold : float
        Logarithm of the largest modulus of the characteristic function at other frequencies.

    Returns
    -------
    list of (float, float)
        Sums and bounds of their errors.
    """
    n_cells = [min(max(start + period - point, 0), period) for point in points]
    totals = [0.0] * len(points)
    errors = [math.exp(log_threshold) * math.sqrt(max(n, 1)) for n in n_cells]
    for frequencies, values, value_errors in spectrum:
        weights = conjugate_weights(frequencies[:, None], (period,)) / period
        moduli = np.abs(values)
        # Two complex expm1, a quotient and two products have 40 roundings; the rest is pairwise summation.
        roundings = UNIT * (40.0 + math.log2(frequencies.size + 1))
        for i, point in enumerate(points):
            shifts = np.array((point - points[0]) % period)
            turned = values * np.exp(1j * folded_angles(remainders(frequencies, shifts, period), period))
            sums = _geometric_sums(frequencies, period, n_cells[i], rate)
            totals[i] += float((weights * (turned * sums).real).sum())
            errors[i] += float(weights @ (np.abs(sums) * (value_errors + roundings * moduli)))
    return list(zip(totals, errors, strict=True))


def _geometric_sums(frequencies: IntArray, period: int, n_cells: int, rate: float) -> ComplexArray:
    """Return sum_{j < n_cells} q^j with q = exp(-rate + 2 pi i l / P), through expm1, for every l."""
    step = np.expm1(-rate + 1j * folded_angles(frequencies, period))
    turns = remainders(frequencies, np.array(n_cells % period), period)
    span = np.expm1(-rate * n_cells + 1j * folded_angles(turns, period))
    still = step == 0.0
    return np.where(still, float(n_cells), span / np.where(still, 1.0, step))


def folded_angles(turns: IntArray, period: int) -> FloatArray:
    """Return 2 pi turns / period for turns from 0 to the period, folded exactly to (-pi, pi]."""
    return np.where(2 * turns > period, turns - period, turns) * (2.0 * math.pi / period)
