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
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.fft

from trackperm.errors import CapacityError
from trackperm.exact.characteristic import UNIT, FloatArray, SwapSum, spectrum

FFT_ROUNDINGS = 8.0

BYTES_PER_CELL = 40
"""Spectrum, its transform and work arrays of one block, for one cell of a window."""


@dataclass(frozen=True)
class Window:
    """A box of lattice points: X_i from start_i to start_i + periods_i - 1."""

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
        Bound on the Euclidean norm of the errors of `mass`, apart from wrapping.
    log_wrapped : float
        Logarithm of a bound on the mass that lies outside the window, and so is wrapped into it.
    """

    window: Window
    mass: FloatArray
    error_norm: float
    log_wrapped: float


def plan_window(law: SwapSum, boxes: Sequence[tuple[FloatArray, float]]) -> Window:
    """Choose the least window that leaves no more than exp(log_mass) outside under each of several tilts.

    Parameters
    ----------
    law : SwapSum
        The law of X.
    boxes : sequence of (tilt, log_mass)
        Tilts, shape (r,), each with the logarithm of the mass that may lie outside.
    """
    starts, periods = [], []
    for axis in range(law.rank):
        least, greatest = law.support[axis]
        low, high = greatest, least
        for tilt, log_mass in boxes:
            centre = law.centred_mean(tilt)[axis] + law.total[axis] / 2
            radius = law.radius(axis, log_mass - math.log(law.rank))
            low = min(low, max(least, math.floor(centre - radius)))
            high = max(high, min(greatest, math.ceil(centre + radius)))
        starts.append(low)
        periods.append(_fast_length(high - low + 1, alone=law.rank == 1))
    return Window(tuple(starts), tuple(periods))


def _fast_length(size: int, *, alone: bool) -> int:
    """Return a fast transform length of at least `size`; 2^k and 3 * 2^k have small common multiples."""
    if alone:
        return int(scipy.fft.next_fast_len(size, real=True))
    power = 1 << (size - 1).bit_length()
    return 3 * power // 4 if power >= 4 and 3 * power // 4 >= size else power


def log_outside(law: SwapSum, tilt: FloatArray, window: Window) -> float:
    """Return the logarithm of a bound of P_lambda(X outside `window`); -inf where it covers the support."""
    total = -math.inf
    centre = law.centred_mean(tilt)
    for axis, (start, period) in enumerate(zip(window.start, window.periods, strict=True)):
        least, greatest = law.support[axis]
        mean = centre[axis] + law.total[axis] / 2
        below = math.inf if start <= least else max(mean - start, 0.0)
        above = math.inf if start + period > greatest else max(start + period - 1 - mean, 0.0)
        total = float(np.logaddexp(total, law.log_outside(axis, below, above)))
    return min(total, 0.0)


def lattice_pmf(law: SwapSum, tilt: FloatArray, window: Window, memory_budget: int) -> LatticePMF:
    """Compute the mass of X under `tilt` on `window`.

    Parameters
    ----------
    law : SwapSum
        The law of X.
    tilt : ndarray of float, shape (r,)
        lambda; zeros for the null distribution itself.
    window : Window
        Where.
    memory_budget : int
        Bytes that may be allocated.

    Raises
    ------
    CapacityError
        If the window does not fit `memory_budget`.
    """
    needed = BYTES_PER_CELL * window.size
    if needed > memory_budget:
        raise CapacityError(
            f"the exact test needs a window of {' x '.join(map(str, window.periods))} lattice points, about "
            f"{needed / 2**30:.1f} GiB; the memory budget is {memory_budget / 2**30:.1f} GiB",
            hint="give a larger `memory_budget`, or a statistic with smaller integers or fewer counts.",
        )
    transformed = spectrum(law, tilt, window.start, window.periods)
    mass = scipy.fft.irfftn(transformed.values, s=window.periods, overwrite_x=True)
    root = math.sqrt(window.size)
    rounding = FFT_ROUNDINGS * UNIT * (math.log2(window.size) + 1.0) * transformed.norm / root
    return LatticePMF(window, mass, transformed.error / root + rounding, log_outside(law, tilt, window))
