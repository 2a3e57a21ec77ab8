r"""Probability mass functions on windows of the lattice, by one inverse transform.

Sampling the characteristic function on a grid of period P_i folds the mass outside a window of P_i points
back into it: the *wrapped* mass, at most the sum over axes of Hoeffding's bounds, and exactly 0 on an axis
where the window covers the support. All other errors are bounded in the Euclidean norm over the window:

- errors of the spectrum (pruned frequencies, roundings of factors), divided by sqrt(P) (Parseval);
- the transform itself, at most FFT_ROUNDINGS log2(P) u times the norm of its result
  (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., Theorem 24.2).

A weighted sum over cells then errs by at most the norm of the weights times that norm, by Cauchy and Schwarz.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from trackperm.errors import CapacityError
from trackperm.exact.distributions.characteristic import (
    UNIT,
    FloatArray,
    SwapDistribution,
    characteristic_function,
    log_sum,
)
from trackperm.exact.distributions.frequencies import surviving_frequencies
from trackperm.exact.types import IntArray
from trackperm.messages import size

FFT_ROUNDINGS = 8.0
"""Roundings of a transform for each doubling of its length: 6.7 by the theorem cited above, with accurate
factors."""

LOG_WINDOW = -46.0
"""Logarithm of the mass that a window may leave out under its own tilt: 1e-20, below the rounding of the
rest."""

LARGEST_PERIOD = 2**44
"""Largest size of a window on an axis: products of steps in it and tilts of 9 bits are exact in floats."""

MOST_FACTORS = 2**28
"""Largest number of factors for which all frequencies are evaluated, if few of them can be ruled out: a
quarter of a minute."""

MOST_SURVIVING_FACTORS = 2**30
"""Largest number of factors of the characteristic function that are evaluated: a minute."""

LOG_PRUNED = -50.0
"""Logarithm of the modulus below which a frequency is left out: 2e-22, so that 2^30 of them stay below one
rounding in the Euclidean norm."""

FEW = 2**18
"""Largest number of frequencies that are evaluated together: 64 MiB of work arrays."""

BYTES_PER_CELL = 40
"""Memory of one cell of a window: spectrum, transform and work arrays."""


@dataclass(frozen=True)
class Window:
    """Box of lattice points: X_i from start_i to start_i + periods_i - 1."""

    start: tuple[int, ...]
    periods: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of points."""
        return math.prod(self.periods)


@dataclass(frozen=True)
class LatticePMF:
    """Mass of X under a tilt on a window.

    Attributes
    ----------
    window : Window
        The points.
    mass : ndarray of float64, shape window.periods
        P_lambda(X = start + j), wrapped mass included.
    error_norm : float
        Bound on the Euclidean norm of the errors of `mass`, wrapped mass not counted.
    log_wrapped : float
        Logarithm of a bound on the mass outside the window, which is wrapped into it.
    """

    window: Window
    mass: FloatArray
    error_norm: float
    log_wrapped: float


def plan_window(law: SwapDistribution, tilt: FloatArray, log_mass: float, *, fast: bool) -> Window:
    """Choose the smallest window that leaves at most exp(log_mass) of the tilted mass outside.

    With `fast`, it is enlarged to sizes that transform fast.
    """
    starts, periods = [], []
    centre = law.centred_mean(tilt).tolist()
    for axis, (least, greatest) in enumerate(law.support):
        mean = centre[axis] + law.total[axis] / 2
        radius = law.radius(axis, log_mass - math.log(law.rank))
        low = min(max(least, math.floor(mean - radius)), greatest)
        size = max(min(greatest, math.ceil(mean + radius)), least) - low + 1
        starts.append(low)
        periods.append(fast_length(size) if fast else size)
    return Window(tuple(starts), tuple(periods))


def fast_length(size: int) -> int:
    """Return a fast transform length of at least `size`; 2^k and 3 * 2^k have small common multiples."""
    if size > LARGEST_PERIOD:
        return size
    power = 1 << (size - 1).bit_length()
    return 3 * power // 4 if power >= 4 and 3 * power // 4 >= size else power


def smooth_length(size: int) -> int:
    """Return the least product of powers of 2, 3 and 5 that is at least `size`."""
    least, five = 1 << (size - 1).bit_length(), 1
    while five < least:
        odd = five
        while odd < least:
            least = min(least, odd << (-(-size // odd) - 1).bit_length())
            odd *= 3
        five *= 5
    return least


def log_outside(law: SwapDistribution, tilt: FloatArray, window: Window) -> float:
    """Return the logarithm of a bound of P_lambda(X outside `window`); -inf where it covers the support."""
    total = -math.inf
    centre = law.centred_mean(tilt).tolist()
    for axis, (start, period) in enumerate(zip(window.start, window.periods, strict=True)):
        least, greatest = law.support[axis]
        mean = centre[axis] + law.total[axis] / 2
        below = math.inf if start <= least else max(mean - start, 0.0)
        above = math.inf if start + period > greatest else max(start + period - 1 - mean, 0.0)
        total = log_sum(total, law.log_outside(axis, below, above))
    return min(total, 0.0)


def lattice_pmf(law: SwapDistribution, tilt: FloatArray, window: Window, memory_budget: int) -> LatticePMF:
    """Compute the mass of X under `tilt` on `window`; `memory_budget` limits the bytes that are allocated.

    It raises CapacityError if the window does not fit.
    """
    needed = BYTES_PER_CELL * window.size
    if needed > memory_budget:
        raise CapacityError(
            f"the exact test needs a window of {' x '.join(map(str, window.periods))} lattice points, about "
            f"{size(needed)}; the memory budget is {size(memory_budget)}",
            hint="counts that are fewer, smaller or dependent on each other need less; `--memory 4GiB` "
            "allows more.",
        )
    half_shape = (*window.periods[:-1], window.periods[-1] // 2 + 1)
    values = np.zeros(half_shape, dtype=np.complex128)
    norm_squares, error_squares, kept = [], [], 0
    for frequencies in frequency_blocks(law, tilt, window.periods, LOG_PRUNED):
        found, errors = characteristic_function(law, tilt, window.start, window.periods, frequencies)
        values[tuple(frequencies.T)] = found
        twice = conjugate_weights(frequencies, window.periods)
        norm_squares.append(float(twice @ (found.real**2 + found.imag**2)))
        error_squares.append(float(twice @ errors**2))
        kept += frequencies.shape[0]
    mass = np.fft.irfftn(values, s=window.periods, axes=range(law.rank))
    root = math.sqrt(window.size)
    pruned = 2.0 * (math.prod(half_shape) - kept) * math.exp(2.0 * LOG_PRUNED)
    factors = math.sqrt(math.fsum(error_squares) + pruned) / root
    transform = (
        FFT_ROUNDINGS * UNIT * (math.log2(window.size) + 1.0) * math.sqrt(math.fsum(norm_squares)) / root
    )
    return LatticePMF(window, mass, factors + transform, log_outside(law, tilt, window))


def conjugate_weights(frequencies: IntArray, periods: Sequence[int]) -> FloatArray:
    """Return 2 for a frequency that represents a conjugate pair, and 1 for one that is its own conjugate."""
    last = frequencies[:, -1]
    return np.where((last == 0) | (2 * last == periods[-1]), 1.0, 2.0)


def frequency_blocks(
    law: SwapDistribution, tilt: FloatArray, periods: Sequence[int], log_threshold: float
) -> Iterator[IntArray]:
    """Yield the frequencies with moduli that may exceed exp(log_threshold); if many do, all in blocks."""
    half_shape = (*periods[:-1], periods[-1] // 2 + 1)
    if max(periods) > LARGEST_PERIOD:
        raise CapacityError(
            f"the exact test needs a window of {' x '.join(map(str, periods))} lattice points; "
            f"the limit is {LARGEST_PERIOD} on an axis",
            hint="give a statistic with smaller integers.",
        )
    limit = min(FEW, MOST_SURVIVING_FACTORS // max(law.multiplicities.size, 1))
    try:
        yield surviving_frequencies(law, tilt, periods, log_threshold, limit)
    except CapacityError:
        if math.prod(half_shape) * law.multiplicities.size > MOST_FACTORS:
            raise
        for first in range(0, math.prod(half_shape), FEW):
            flat = np.arange(first, min(first + FEW, math.prod(half_shape)))
            yield np.stack(np.unravel_index(flat, half_shape), axis=1)


def open_mesh(window: Window) -> list[IntArray]:
    """Return the coordinates of a window's cells, one broadcastable array per axis."""
    rank = len(window.periods)
    return [
        np.arange(start, start + period, dtype=np.int64).reshape([-1 if i == j else 1 for j in range(rank)])
        for i, (start, period) in enumerate(zip(window.start, window.periods, strict=True))
    ]
