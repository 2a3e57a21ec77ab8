r"""Distribution of X = sum_k sum_{j <= c_k} B_kj x_k, and its characteristic function under tilts.

The B are fair coins. X - E/2 is symmetric, with E = sum_k c_k x_k. The tilt lambda gives each coin of row k
the odds exp(lambda . x_k) : 1. With the centred cumulant function
K(lambda) = sum_k c_k log cosh(lambda . x_k / 2),

    P(X = x) = exp(K(lambda) - lambda . (x - E/2)) P_lambda(X = x),
    E_lambda exp(i theta . X) = exp(i theta . E/2) prod_k (cos b_k + i tanh a_k sin b_k)^c_k,

where a_k = lambda . x_k / 2 and b_k = theta . x_k / 2. The squared modulus of a factor is
1 - sech^2(a) sin^2(b), and its phase is atan(tanh a tan b), plus pi where cos b < 0.

Accuracy. Phases are reduced as integers before any sine is taken, so that b has a few roundings wherever
it lies. With q = sin^2 b where |b| <= pi/4 and q = cos^2 b = sin^2 (pi/2 - |b|) elsewhere, the logarithm of
the squared modulus is log1p(-q sech^2 a) or log(tanh^2 a + q sech^2 a). The first has a
relative error of a few units, exact zeros included. The second has an absolute error of a few units where it
is near 0: tanh |a| is large there, and so is the phase, which the bound counts as well. log cosh a is
log1p(2 sinh^2(a/2)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.exact.counts import exact_column_sums
from trackperm.exact.types import IntArray

FloatArray = npt.NDArray[np.float64]
ComplexArray = npt.NDArray[np.complex128]

UNIT = 2.0**-53
"""Unit roundoff of float64."""

FACTOR_ROUNDINGS = 24.0
"""Roundings of a factor, relative to the sum of its log modulus and phase: six of the sine, which the square
doubles and the logarithm increases by half, and two for each of the squares, products and logarithm."""

EXACT_PHASES = 2**51
"""Largest phase for which floats hold the integers that it is summed from."""

CHUNK = 5 * 2**12
"""Frequency-row pairs per step: work arrays of up to 160 KiB, which the C library keeps. It asks the system
for those of 256 KiB each time, and their pages then cost more than what is computed in them."""

LEAST = 1e-300
"""Least tangent that is divided by: the quotient is finite, and its angle is a right one."""

ROWS = 2**9
"""Rows whose logarithms are added in one sum: a sum of sums has fewer roundings, at best with sqrt(K) rows
each."""


def log_sum(one: float, other: float) -> float:
    """Return log(exp(one) + exp(other))."""
    low, high = sorted((one, other))
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


def log_cosh(a: FloatArray) -> FloatArray:
    """Return log cosh a, accurate relative to its value (about a^2/2 near 0)."""
    magnitude = np.abs(a)
    small = np.log1p(2.0 * np.sinh(np.minimum(magnitude, 1.0) / 2.0) ** 2)
    return np.asarray(np.where(magnitude <= 1.0, small, magnitude + log_cosh_excess(magnitude)))


def log_cosh_excess(a: FloatArray) -> FloatArray:
    """Return log cosh a - |a|, between -log 2 and 0, accurate relative to its value."""
    magnitude = np.abs(a)
    small = np.log1p(2.0 * np.sinh(np.minimum(magnitude, 1.0) / 2.0) ** 2) - magnitude
    large = np.log1p(np.exp(-2.0 * magnitude)) - math.log(2.0)
    return np.asarray(np.where(magnitude <= 0.5, small, large))


@dataclass(frozen=True)
class SwapDistribution:
    """Distribution of the random vector X on the lattice Z^r.

    Attributes
    ----------
    coordinates : ndarray of int64, shape (K, r)
        Steps x_k.
    multiplicities : ndarray of int64, shape (K,)
        Number of independent fair coins with each step, c_k.
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
        """E, the value of X if every coin shows 1; X and E - X have the same law."""
        return tuple(low + high for low, high in self.support)

    @cached_property
    def support(self) -> tuple[tuple[int, int], ...]:
        """Least and greatest value of X on each axis."""
        parts = [np.minimum(self.coordinates, 0), np.maximum(self.coordinates, 0)]
        sums = exact_column_sums(np.hstack(parts), self.multiplicities)
        return tuple(zip(sums[: self.rank], sums[self.rank :], strict=True))

    @cached_property
    def ranges(self) -> tuple[float, ...]:
        """Upper bounds of sqrt(sum_k c_k x_ki^2) on each axis, the scale of Hoeffding's inequality."""
        sums = self.multiplicities @ self.coordinates.astype(np.float64) ** 2
        return tuple(math.sqrt(s) * (1 + (len(self.multiplicities) + 8) * UNIT) for s in sums.tolist())

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
        return log_sum(-2.0 * (below / scale) ** 2, -2.0 * (above / scale) ** 2)

    @cached_property
    def fair_covariance(self) -> FloatArray:
        """Covariance matrix of X without a tilt."""
        return self.covariance(np.zeros(self.rank))

    @cached_property
    def least_precision(self) -> FloatArray:
        """Slightly less than the inverse of `fair_covariance`: bounds by it hold in spite of roundings."""
        return np.asarray(np.linalg.inv(self.fair_covariance) * (1.0 - 1e-9), dtype=np.float64)

    def cumulant(self, tilt: FloatArray) -> float:
        """Return K(tilt), with a few roundings relative to it."""
        return math.fsum(self.multiplicities * log_cosh(self.coordinates @ tilt / 2.0))

    def centred_mean(self, tilt: FloatArray) -> FloatArray:
        """Return the mean of X - E/2 under `tilt`, shape (r,): the gradient of K."""
        if not tilt.any():
            return np.zeros(self.rank)
        weights = self.multiplicities * np.tanh(self.coordinates @ tilt / 2.0) / 2.0
        return np.asarray(weights @ self.coordinates)

    def covariance(self, tilt: FloatArray) -> FloatArray:
        """Return the covariance matrix of X under `tilt`, shape (r, r)."""
        weights = self.multiplicities / 4.0
        if tilt.any():
            weights /= np.cosh(np.minimum(np.abs(self.coordinates @ tilt / 2.0), 350.0)) ** 2
        return np.asarray((self.coordinates.T * weights) @ self.coordinates)


def characteristic_function(
    law: SwapDistribution,
    tilt: FloatArray,
    start: Sequence[int],
    periods: Sequence[int],
    frequencies: IntArray,
) -> tuple[ComplexArray, FloatArray]:
    """Evaluate the characteristic function of X - start under a tilt at grid frequencies.

    Parameters
    ----------
    law, tilt, start, periods
        The law of X; lambda, shape (r,); the origin, which only shifts the phase; grid sizes P_i.
    frequencies : ndarray of int64, shape (n, r)
        l, for theta_i = 2 pi l_i / P_i.

    Returns
    -------
    values, errors : ndarray, shape (n,)
        Conjugates of E_lambda exp(i theta . (X - start)), and bounds on the moduli of their errors.
    """
    modulus = math.lcm(*periods)
    a = (law.coordinates @ tilt / 2.0)[:, None]
    is_tilted = bool(a.any())
    n, n_rows = frequencies.shape[0], law.multiplicities.size
    # Where the periods have a small common multiple, there are fewer phases than frequencies.
    all_phases = np.arange(modulus // 2 + 1.0) if modulus <= n else None
    of_phases = None if all_phases is None or is_tilted else _log_factors(all_phases, modulus, a[:1])
    log_modulus, angle, angle_size = np.zeros(n), np.zeros(n), np.zeros(n)
    shift = [(total - 2 * low) % (2 * p) for total, low, p in zip(law.total, start, periods, strict=True)]
    phases = _Phases(frequencies, periods, modulus)
    (shifted,), (half_turns,) = phases.folded(np.array([shift]))
    rows = max(1, min(CHUNK // max(n, 1), ROWS))
    for first in range(0, n_rows, rows):
        chunk = slice(first, first + rows)
        counts = law.multiplicities[chunk]
        # b = pi folded / modulus, in [-pi/2, pi/2]; each half turn is a factor -1.
        folded, turns = phases.folded(law.coordinates[chunk])
        half_turns += (counts % 2).astype(np.float64) @ turns
        half_turns -= 2.0 * np.floor(half_turns / 2.0)
        distances = np.abs(folded)
        if all_phases is None:
            logs, angles = _log_factors(distances, modulus, a[chunk])
        else:
            logs, angles = of_phases or _log_factors(all_phases, modulus, a[chunk])
            places = distances.astype(np.intp)
            if is_tilted:
                places += all_phases.size * np.arange(counts.size)[:, None]
            logs, angles = logs.take(places), None if angles is None else angles.take(places)
        log_modulus += (counts / 2.0) @ logs
        if angles is not None:
            angles *= np.sign(folded) * counts[:, None]
            angle += angles.sum(axis=0)
            angle_size += np.abs(angles).sum(axis=0)
    turned = (shifted + half_turns.astype(shifted.dtype) * modulus) * (math.pi / modulus)
    angle += turned
    size = np.exp(log_modulus)
    roundings = FACTOR_ROUNDINGS + min(rows, n_rows) + n_rows / rows
    # A modulus of 0 has no error, and its logarithm is infinite.
    logs_error = size * roundings * (angle_size - np.maximum(log_modulus, -1e3))
    errors = UNIT * (logs_error + size * (4.0 * (angle_size + np.abs(turned)) + 8.0))
    values = np.empty(n, dtype=np.complex128)
    values.real, values.imag = size * np.cos(angle), -size * np.sin(angle)
    return values, errors


def _log_factors(
    distances: npt.NDArray[Any], modulus: int, slopes: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    """Return logarithms of squared moduli of factors, and their phases up to signs and half turns.

    They are those at b = pi distances / modulus, from 0 to pi/2, for a = `slopes`, shape (K, 1). Without
    slopes there are no such phases.
    """
    sech2, tanh = 1.0 / np.cosh(np.minimum(np.abs(slopes), 350.0)) ** 2, np.tanh(slopes)
    twice = 2 * distances
    far = twice > modulus / 2
    nearest = np.minimum(twice, modulus - twice) * (math.pi / (2 * modulus))
    squares = np.sin(nearest)
    squares *= squares
    squares = sech2 * squares
    logs = tanh * tanh + squares
    with np.errstate(divide="ignore"):
        np.log(logs, out=logs)
    np.negative(squares, out=squares)
    np.log1p(squares, out=squares)
    logs = np.where(far, logs, squares)
    if not tanh.any():
        return logs, None
    tangents = np.tan(nearest)
    return logs, np.arctan(tanh * np.where(far, 1.0 / np.maximum(tangents, LEAST), tangents))


class _Phases:
    """Phases of rows at the frequencies l_i / P_i, shape (n, r), in units of half turns over `modulus`."""

    def __init__(self, frequencies: IntArray, periods: Sequence[int], modulus: int) -> None:
        self._frequencies, self._periods, self._modulus = frequencies, periods, modulus
        self._factors = [modulus // period for period in periods]
        # Matrices of few columns are multiplied faster in this order.
        scales = np.array(self._factors, dtype=np.float64)[:, None]
        self._scaled = np.multiply(frequencies.T, scales, order="C")

    def folded(self, steps: IntArray) -> tuple[npt.NDArray[Any], FloatArray]:
        """Return the phases of rows, shape (K, n), as folded + turns * modulus with |folded| <= modulus / 2.

        They are exact integers, `turns` up to an even number; of float64 where that holds all phases,
        which is several times faster than int64.
        """
        modulus, spans = self._modulus, np.abs(steps).max(axis=0).tolist()
        if modulus * sum(spans) <= EXACT_PHASES:
            phases = steps.astype(np.float64) @ self._scaled
            turns = phases / modulus
            np.rint(turns, out=turns)
            phases -= turns * modulus
            return phases, turns
        reduced = self._reduced(steps)
        folded = reduced % modulus
        folded -= np.where(2 * folded > modulus, modulus, 0)
        return folded, ((reduced - folded) // modulus).astype(np.float64)

    def _reduced(self, steps: IntArray) -> IntArray:
        """Return the phases modulo 2 modulus, without overflow."""
        total = np.zeros((steps.shape[0], self._frequencies.shape[0]), dtype=np.int64)
        for axis, (period, factor) in enumerate(zip(self._periods, self._factors, strict=True)):
            reduced = (steps[:, axis, None] % (2 * period)).astype(np.int64)
            total += remainders(self._frequencies[:, axis], reduced, 2 * period) * factor
        return total % (2 * self._modulus)


def remainders(factors: IntArray, others: IntArray, modulus: int) -> IntArray:
    """Return factors * others modulo a modulus of at most 2^51, for integers from 0 to the modulus.

    Beyond 2^31 the quotient in floats is off by at most 2; products modulo 2^64 then give the remainder.
    """
    if modulus <= 2**31:
        return factors * others % modulus
    quotients = (factors * (others / modulus)).astype(np.int64)
    return (factors * others - quotients * modulus) % modulus
