r"""The law of X = sum_k sum_{j <= c_k} B_kj x_k, and its characteristic function under exponential tilts.

With B fair coins and E = sum_k c_k x_k, X - E/2 is symmetric. The tilt lambda gives each coin of row k
the odds exp(lambda . x_k) : 1. With the centred cumulant function
K(lambda) = sum_k c_k log cosh(lambda . x_k / 2),

    P(X = x) = exp(K(lambda) - lambda . (x - E/2)) P_lambda(X = x),
    E_lambda exp(i theta . X) = exp(i theta . E/2) prod_k (cos b_k + i tanh a_k sin b_k)^c_k,

where a_k = lambda . x_k / 2 and b_k = theta . x_k / 2. The squared modulus of a factor is
1 - sech^2(a) sin^2(b), and its phase is atan(tanh a tan b), plus pi where cos b < 0.

How the numbers stay accurate. Phases are integers modulo 2Q, reduced before any sine, so that b is known to
one rounding wherever it lies. The logarithm of a factor's modulus comes from log1p(-sech^2 sin^2) / 2 where
sin^2 <= 1/2 and from log(cos^2 + tanh^2 sin^2) / 2 elsewhere, with the cosine as a sine of the complement:
a few units of relative accuracy everywhere, exact zeros included. log cosh a is log1p(2 sinh^2(a/2)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from trackperm.exact.counts import IntArray, exact_column_sums

FloatArray = npt.NDArray[np.float64]
ComplexArray = npt.NDArray[np.complex128]

UNIT = 2.0**-53
"""Unit roundoff of float64."""

FACTOR_ROUNDINGS = 16.0
"""Relative roundings in log modulus and phase of one factor: sine, square, products, log1p, atan."""

BLOCK = 2**16
"""Frequencies evaluated at a time, so that work arrays stay in cache."""


def log_cosh(a: FloatArray) -> FloatArray:
    """Return log cosh a, accurate relative to its value (about a^2/2 near 0)."""
    magnitude = np.abs(a)
    small = np.log1p(2.0 * np.sinh(np.minimum(magnitude, 1.0) / 2.0) ** 2)
    large = magnitude + np.log1p(np.exp(-2.0 * magnitude)) - math.log(2.0)
    return np.asarray(np.where(magnitude <= 1.0, small, large))


@dataclass(frozen=True)
class SwapSum:
    """The random vector X on the lattice Z^r.

    Attributes
    ----------
    coordinates : ndarray of int64, shape (K, r)
        Steps x_k.
    multiplicities : ndarray of int64, shape (K,)
        How many independent fair coins take each step, c_k.
    """

    coordinates: IntArray
    multiplicities: IntArray

    @property
    def rank(self) -> int:
        """Dimension r of X."""
        return int(self.coordinates.shape[1])

    @cached_property
    def n_coins(self) -> int:
        """Number of coins."""
        return int(self.multiplicities.sum())

    @cached_property
    def total(self) -> tuple[int, ...]:
        """E, the value of X when every coin falls on 1; X and E - X have the same law."""
        return exact_column_sums(self.coordinates, self.multiplicities)

    @cached_property
    def support(self) -> tuple[tuple[int, int], ...]:
        """Least and greatest value of X on each axis."""
        low = exact_column_sums(np.minimum(self.coordinates, 0), self.multiplicities)
        high = exact_column_sums(np.maximum(self.coordinates, 0), self.multiplicities)
        return tuple(zip(low, high, strict=True))

    @cached_property
    def ranges(self) -> tuple[float, ...]:
        """Upper bounds of sqrt(sum_k c_k x_ki^2) on each axis, the scale of Hoeffding's inequality."""
        squares = self.coordinates.astype(object) ** 2
        sums = exact_column_sums(squares, self.multiplicities) if self.coordinates.size else ()
        return tuple(math.sqrt(s) * (1 + 4 * UNIT) for s in sums)

    def radius(self, axis: int, probability_log: float) -> float:
        """Return t with P_lambda(|X_axis - mean| >= t) <= exp(probability_log) under every tilt.

        Hoeffding (1963), Theorem 2: 2 exp(-2 t^2 / sum_k c_k x_k^2), for any law of the coins.
        """
        return self.ranges[axis] * math.sqrt((math.log(2.0) - probability_log) / 2.0)

    def log_outside(self, axis: int, below: float, above: float) -> float:
        """Return a log bound of P_lambda(X_axis < mean - below or X_axis > mean + above)."""
        scale = self.ranges[axis]
        if scale == 0.0:
            return -math.inf
        return float(np.logaddexp(-2.0 * (below / scale) ** 2, -2.0 * (above / scale) ** 2))

    def cumulant(self, tilt: FloatArray) -> float:
        """Return K(tilt), relative accuracy about K roundings."""
        return math.fsum(self.multiplicities * log_cosh(self.coordinates @ tilt / 2.0))

    def centred_mean(self, tilt: FloatArray) -> FloatArray:
        """Return the mean of X - E/2 under `tilt`, shape (r,): the gradient of K."""
        weights = self.multiplicities * np.tanh(self.coordinates @ tilt / 2.0) / 2.0
        return np.asarray(weights @ self.coordinates)

    def covariance(self, tilt: FloatArray) -> FloatArray:
        """Return the covariance matrix of X under `tilt`, shape (r, r)."""
        sech = 1.0 / np.cosh(np.minimum(np.abs(self.coordinates @ tilt / 2.0), 350.0))
        weights = self.multiplicities * sech**2 / 4.0
        return np.asarray((self.coordinates.T * weights) @ self.coordinates)


@dataclass(frozen=True)
class Spectrum:
    """Characteristic function on a frequency grid, the last axis cut at its Nyquist frequency.

    Attributes
    ----------
    values : ndarray of complex128, shape (P_1, ..., P_{r-1}, P_r // 2 + 1)
        Conjugates of E_lambda exp(i theta . (X - start)) at theta_i = 2 pi l_i / P_i.
    norm : float
        Square root of the sum of squared moduli over the whole grid.
    error : float
        Bound on the same for the errors: pruned values and roundings of factors.
    """

    values: ComplexArray
    norm: float
    error: float


def spectrum(
    law: SwapSum, tilt: FloatArray, start: Sequence[int], periods: Sequence[int], log_threshold: float = -60.0
) -> Spectrum:
    """Evaluate the characteristic function of X - start under `tilt` on the grid of the given periods.

    A frequency whose running product of factors falls below exp(log_threshold) is dropped for good: factors
    are at most 1 in modulus. Every grid frequency is tested, since secondary peaks are real.

    Parameters
    ----------
    law : SwapSum
        The law of X.
    tilt : ndarray of float, shape (r,)
        lambda.
    start : sequence of int, length r
        Least corner of the window; cell j of the inverse transform is X = start + j.
    periods : sequence of int, length r
        P_i, the window's size on each axis.
    log_threshold : float
        Logarithm of the modulus below which frequencies are dropped.
    """
    modulus = math.lcm(*periods)
    half_shape = (*periods[:-1], periods[-1] // 2 + 1)
    size = math.prod(half_shape)
    values = np.zeros(size, dtype=np.complex128)
    a = law.coordinates @ tilt / 2.0
    order = np.argsort(-law.multiplicities / np.cosh(np.minimum(np.abs(a), 350.0)) ** 2, kind="stable")
    shift = [total - 2 * low for total, low in zip(law.total, start, strict=True)]
    error_squares = []
    norm_squares = []
    for first in range(0, size, BLOCK):
        flat = np.arange(first, min(first + BLOCK, size), dtype=np.int64)
        kept, block, error = _block(law, a, order, shift, periods, modulus, half_shape, flat, log_threshold)
        values[kept] = block
        twice = np.where(
            (kept % half_shape[-1] == 0) | (2 * (kept % half_shape[-1]) == periods[-1]), 1.0, 2.0
        )
        norm_squares.append(float(twice @ (block.real**2 + block.imag**2)))
        dropped = flat.size - kept.size
        error_squares.append(float(twice @ error**2) + 2.0 * dropped * math.exp(2.0 * log_threshold))
    return Spectrum(
        values.reshape(half_shape), math.sqrt(math.fsum(norm_squares)), math.sqrt(math.fsum(error_squares))
    )


def _block(
    law: SwapSum,
    a: FloatArray,
    order: IntArray,
    shift: Sequence[int],
    periods: Sequence[int],
    modulus: int,
    half_shape: tuple[int, ...],
    flat: IntArray,
    log_threshold: float,
) -> tuple[IntArray, ComplexArray, FloatArray]:
    """Return the surviving flat indices, their values, and bounds of the errors of these."""
    tilted = bool(np.any(a))
    frequencies = list(np.unravel_index(flat, half_shape))
    log_modulus = np.zeros(flat.size)
    half_turns = _phase(frequencies, shift, periods, modulus)
    angle = np.zeros(flat.size)
    angle_size = np.zeros(flat.size)
    for k in order:
        c = int(law.multiplicities[k])
        phase = _phase(frequencies, [int(x) for x in law.coordinates[k]], periods, modulus)
        # b = pi phase / modulus; fold to (-pi/2, pi/2] and count the half turns, each a factor -1.
        folded = phase % modulus
        folded = np.where(2 * folded > modulus, folded - modulus, folded)
        if c % 2:
            half_turns = half_turns + (phase - folded)
        b = folded * (math.pi / modulus)
        sine = np.sin(b)
        cosine = np.sin((modulus - 2 * np.abs(folded)) * (math.pi / (2 * modulus)))
        sech2 = 1.0 / math.cosh(min(abs(a[k]), 350.0)) ** 2
        tanh = math.tanh(a[k])
        with np.errstate(divide="ignore"):
            log_modulus += (c / 2.0) * np.where(
                4 * np.abs(folded) <= modulus,
                np.log1p(-np.minimum(sech2 * sine**2, 0.75)),
                np.log(cosine**2 + tanh**2 * sine**2),
            )
        if tilted:
            turn = c * np.arctan2(tanh * sine, cosine)
            angle += turn
            angle_size += np.abs(turn)
        alive = log_modulus >= log_threshold
        if not alive.all():
            flat, log_modulus, half_turns = flat[alive], log_modulus[alive], half_turns[alive]
            angle, angle_size = angle[alive], angle_size[alive]
            frequencies = [axis[alive] for axis in frequencies]
        if flat.size == 0:
            break
    angle = angle + (half_turns % (2 * modulus)) * (math.pi / modulus)
    size = np.exp(log_modulus)
    values = size * np.exp(-1j * angle)
    roundings = FACTOR_ROUNDINGS + math.log2(law.multiplicities.size + 1) + law.multiplicities.size
    error = size * UNIT * (roundings * (angle_size - log_modulus) + 4.0 * (angle_size + 2.0 * math.pi) + 8.0)
    return flat, values, error


def _phase(
    frequencies: Sequence[IntArray], step: Sequence[int], periods: Sequence[int], modulus: int
) -> IntArray:
    """Return sum_i l_i step_i (modulus / P_i) modulo 2 modulus, without overflow."""
    total = np.zeros(frequencies[0].size, dtype=np.int64)
    for axis, x, period in zip(frequencies, step, periods, strict=True):
        total += (axis * (x % (2 * period)) % (2 * period)) * (modulus // period)
    return total % (2 * modulus)
