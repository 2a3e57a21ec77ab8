r"""Exponential tilts, and probabilities with an error bound.

With a reference point x*, any tilt lambda gives in exact arithmetic

    P(X in R) = exp(K(lambda) - lambda . (x* - E/2)) sum_{x in R} exp(-lambda . (x - x*)) P_lambda(X = x),

and the choice of lambda decides the rounding error. If R contains the mean of X, lambda = 0. Otherwise the
tilted mean is put on the boundary of R: at the observed value in one dimension, at the dominating point in
several. Tilts have 20 bits, or fewer if steps have more than 33, so that lambda . x_k is exact in float64.

For a single point z the factor is Chernoff's bound of P(X = z), and the size of its rounding errors. A sum
over a region may therefore use several tilts, each for the points where its bound is the least. As the
Hessian of K is at most C = sum_k c_k x_k x_k^T / 4 everywhere, one tilt also bounds the mass away from its
mean:

    P(X = z) <= exp(K - lambda . (z - E/2) - (z - mean)^T C^-1 (z - mean) / 2).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trackperm.errors import UndefinedStatisticError
from trackperm.exact.counts import exact_column_sums
from trackperm.exact.distributions.characteristic import UNIT, FloatArray, SwapDistribution, log_cosh_excess
from trackperm.exact.distributions.pmf import Window, plan_window
from trackperm.exact.types import IntArray

Excess = Callable[[FloatArray], FloatArray]
"""Function of points X - E/2, shape (..., r), that is 0 on the boundary of a region and positive inside."""

MOST_STEPS = 100
"""Largest number of Newton steps to a tilt; any tilt is valid, so stopping early costs only accuracy."""

CLOSE = 1e-3
"""Predicted decrease of a bound's logarithm below which the tilt is close enough."""

SHORTEST = 2.0**-40
"""Smallest part of a Newton step: shorter ones change nothing but roundings."""


class TailMass(NamedTuple):
    """Probability exp(log_scale) * scaled, with `error` as a bound of its relative error.

    An `error` of 1 means that exp(log_scale) * scaled is an upper bound, and nothing else is known.
    """

    log_scale: float
    scaled: float
    error: float

    @property
    def log(self) -> float:
        """Natural logarithm of the probability; -inf of 0."""
        return self.log_scale + math.log(self.scaled) if self.scaled > 0.0 else -math.inf


CERTAIN = TailMass(0.0, 1.0, 0.0)
EMPTY = TailMass(0.0, 0.0, 0.0)


def share_of_swaps(count: int, n_coins: int) -> TailMass:
    """Return count / 2^n_coins, rounded once; as a logarithm below the range of floats."""
    spare = max(count.bit_length() - 64, 0)
    exponent = count.bit_length() - n_coins
    mantissa = math.ldexp(float(count >> spare), spare - count.bit_length())
    # One rounding is that to a float; bits cut off beyond 64 count as another.
    error = 0.0 if count.bit_length() <= 53 else 2.0 * UNIT
    if exponent > -1000:
        return TailMass(0.0, math.ldexp(mantissa, exponent), error)
    return TailMass(exponent * math.log(2.0), mantissa, error + (2.0 + 2.0 * abs(exponent)) * UNIT)


def quantised(tilt: FloatArray, n_bits: int = 20) -> FloatArray:
    """Round a tilt to `n_bits` bits of its largest entry."""
    largest = float(np.abs(tilt).max(initial=0.0))
    if largest == 0.0:
        return np.zeros_like(tilt)
    _, exponent = math.frexp(largest)
    return np.asarray(np.ldexp(np.rint(np.ldexp(tilt, n_bits - exponent)), exponent - n_bits))


@dataclass(frozen=True)
class ScaleFactor:
    """Factor exp(K(lambda) - lambda . (x* - E/2)) as its logarithm, with a bound of its relative error."""

    log: float
    error: float


def scale_factor(law: SwapDistribution, tilt: FloatArray, point: Sequence[int]) -> ScaleFactor:
    """Return exp(K(lambda) - lambda . (x* - E/2)) for a lattice point x*.

    K and lambda . (x* - E/2) cancel if x* is near the edge of the support. With v the corner of the support
    that the tilt points to, the same exponent is

        sum_k c_k (log cosh a_k - |a_k|) + lambda . (v - x*),

    where v - x* is a small integer vector near the edge. The form with the smaller terms is used.
    """
    if not tilt.any():
        return ScaleFactor(0.0, 4.0 * UNIT)
    a = law.coordinates @ tilt / 2.0
    cumulant = law.cumulant(tilt)
    offsets = [float(t) * ((2 * x - e) / 2) for t, x, e in zip(tilt, point, law.total, strict=True)]
    central_size = cumulant + math.fsum(map(abs, offsets))
    corner = exact_column_sums(law.coordinates[a > 0], law.multiplicities[a > 0])
    gaps = [float(t) * (v - x) for t, v, x in zip(tilt, corner, point, strict=True)]
    losses = law.multiplicities * log_cosh_excess(a)
    edge_size = math.fsum(np.abs(losses)) + math.fsum(map(abs, gaps))
    if edge_size < central_size:
        log, size = math.fsum(losses) + math.fsum(gaps), edge_size
    else:
        log, size = cumulant - math.fsum(offsets), central_size
    return ScaleFactor(log, UNIT * (8.0 * size + 4.0 * abs(log) + 4.0))


def certified(log_scale: float, total: float, error: float) -> TailMass:
    """Turn a sum with an absolute error into a probability with a relative one."""
    if total <= 2.0 * error:
        # Only an upper bound is known: return that bound.
        return TailMass(log_scale, total + error if total + error > 0 else error, 1.0)
    return TailMass(log_scale, total, error / (total - error))


def without_undefined(tail: TailMass, undefined: TailMass, point: Sequence[int]) -> TailMass:
    """Return a tail whose certificate includes the mass of points where the statistic is undefined.

    It raises UndefinedStatisticError, which names one such `point`, if that mass is proved to be positive.
    """
    if undefined.error < 0.5:
        raise UndefinedStatisticError(
            "the statistic is undefined after some swaps of outputs: it divides by 0 there "
            f"(first at lattice point ({', '.join(map(str, point))}))",
            hint="declare the value of 0/0 with `undefined`; a non-zero number over 0 has no value.",
        )
    more = undefined.scaled * float(upper_exp(undefined.log_scale - tail.log_scale))
    if tail.error >= 1.0:
        return TailMass(tail.log_scale, tail.scaled + more, 1.0)
    return certified(tail.log_scale, tail.scaled, tail.scaled * tail.error / (1.0 + tail.error) + more)


def line_tilt(law: SwapDistribution, target: float) -> float:
    """Return the tilt of a law on the integers whose centred mean is near `target`, inside the support."""
    return tilt_of_coins(law.coordinates[:, 0] / 2.0, law.multiplicities, target)


def tilt_of_coins(halves: FloatArray, multiplicities: IntArray, target: float) -> float:
    """Return the tilt of coins that show plus or minus half a step, with a mean near `target`."""
    weights = multiplicities * halves

    def moments(tilt: float) -> tuple[float, float]:
        tanh = np.tanh(tilt * halves)
        return float(weights @ tanh), float((weights * halves) @ (1.0 - tanh * tanh))

    return solved_tilt(moments, target)


def solved_tilt(moments: Callable[[float], tuple[float, float]], target: float) -> float:
    """Return a tilt of at least 0 with a mean near `target`; `moments` gives mean and variance of a tilt.

    Newton's method runs within a bracket until the mean is off by 1/1000 standard deviation at most.
    """
    tilt, low, high = 0.0, 0.0, math.inf
    for _ in range(100):
        mean, variance = moments(tilt)
        gap = target - mean
        if abs(gap) <= 1e-3 * math.sqrt(variance):
            break
        low, high = (tilt, high) if gap > 0 else (low, tilt)
        tilt = tilt + gap / variance if variance > 0.0 else math.inf
        if not low < tilt < high:
            tilt = 2.0 * low if math.isinf(high) else (low + high) / 2.0
    return tilt


def tilt_along(
    law: SwapDistribution, direction: FloatArray, excess: Callable[[FloatArray], FloatArray]
) -> float:
    """Return s > 0 for which the mean under the tilt s * direction has excess 0, or the largest useful s."""

    def at(s: float) -> float:
        return max(float(excess(law.centred_mean(s * direction))), -1e300)

    reach = float(np.abs(law.coordinates @ direction).max())
    spread = math.sqrt(float(direction @ law.fair_covariance @ direction))
    low, high = 0.0, min(0.5 / max(spread, 1e-300), 1.0 / reach)
    slopes = law.coordinates @ direction
    # Smaller slopes are roundings of the tilt and of the divided differences that gave the direction.
    moving = np.abs(slopes) > 2.0**-20 * np.abs(law.coordinates).sum(axis=1) * np.abs(direction).max()
    at_low, at_high = -1e300, at(high)
    while at_high < 0:
        undecided = law.multiplicities * (1.0 - np.abs(np.tanh(high * slopes / 2.0)))
        rest = undecided[moving] @ np.abs(law.coordinates[moving])
        if float(rest.max()) < 0.1 or high * reach > 1e15:
            return high
        low, at_low = high, at_high
        high *= 2.0
        at_high = at(high)
    # False position with halved weights (the Illinois rule of Dowell and Jarratt 1971).
    for _ in range(60):
        if high - low <= 1e-6 * high:
            break
        share = at_low / (at_low - at_high) if at_low > -1e299 else 0.5
        middle = low + min(max(share, 0.01), 0.99) * (high - low)
        at_middle = at(middle)
        if at_middle < 0:
            low, at_low, at_high = middle, at_middle, at_high / 2.0
        else:
            high, at_high, at_low = middle, at_middle, at_low / 2.0
    return high


def dominating_tilt(law: SwapDistribution, excess: Excess) -> FloatArray:
    """Return a tilt along the normal of the region's boundary, with its mean there; else zeros.

    Such a point minimises the rate function over the boundary (Bahadur and Rao's dominating point). The
    iteration looks for a fixed point of direction = gradient at the tilted mean.
    """
    scale = np.sqrt(np.maximum(np.diag(law.fair_covariance), 1e-300))

    steps = np.minimum(1e-3 * scale, 0.25)

    tilt = np.zeros(law.rank)
    for _ in range(40):
        normal = slopes_at(excess, law.centred_mean(tilt), steps)
        length = float(np.linalg.norm(normal * scale))
        if not math.isfinite(length) or length == 0.0:
            return tilt
        normal = normal / length
        moved = tilt_along(law, normal, excess) * normal
        change = float(np.abs((moved - tilt) * scale).max())
        tilt = moved
        if change <= 1e-4 * float(np.abs(tilt * scale).max()):
            break
    return tilt


def slopes_at(excess: Excess, at: FloatArray, steps: FloatArray) -> FloatArray:
    """Return the divided differences of a function of points, shape (..., r), at one of them."""
    above, below = excess(at + np.concatenate([np.diag(steps), -np.diag(steps)])).reshape(2, -1)
    with np.errstate(invalid="ignore"):  # of infinite values, the slope is not a number
        return np.asarray((above - below) / (2.0 * steps))


@dataclass(frozen=True)
class Tilted:
    """Tilt of the distribution of X.

    Attributes
    ----------
    tilt : ndarray of float, shape (r,)
        The tilt lambda.
    reference : tuple of int, length r
        Lattice point next to the mean.
    scale : ScaleFactor
        exp(K - lambda . (reference - E/2)).
    mean : ndarray of float, shape (r,)
        Mean of X under the tilt.
    window : Window
        Window with all but a negligible part of the tilted mass.
    """

    tilt: FloatArray
    reference: tuple[int, ...]
    scale: ScaleFactor
    mean: FloatArray
    window: Window

    @classmethod
    def of(cls, law: SwapDistribution, tilt: FloatArray, log_outside: float, *, fast: bool) -> Tilted:
        """Tilt a distribution; its window omits at most exp(log_outside), and is enlarged if `fast`."""
        mean = law.centred_mean(tilt) + np.array([float(e) / 2 for e in law.total])
        reference = tuple(round(float(x)) for x in mean)
        window = plan_window(law, tilt, log_outside, fast=fast)
        return cls(tilt, reference, scale_factor(law, tilt, reference), mean, window)

    def log_weight(self, points: Sequence[IntArray | FloatArray]) -> FloatArray:
        """Return -lambda . (z - reference), exact, at r coordinate arrays of one shape."""
        total = np.zeros(points[0].shape)
        for axis, slope, at in zip(points, self.tilt.tolist(), self.reference, strict=True):
            if slope:
                total -= slope * (axis - at)
        return total

    def chernoff(self, points: Sequence[IntArray | FloatArray]) -> FloatArray:
        """Return K - lambda . (z - E/2), the log bounds of the mass of points."""
        return self.scale.log + self.log_weight(points)

    def falling_off(self, points: Sequence[IntArray | FloatArray], precision: FloatArray) -> FloatArray:
        """Return (z - mean)^T C^-1 (z - mean) / 2, the decrease of log bounds away from the mean."""
        offsets = [axis - at for axis, at in zip(points, self.mean.tolist(), strict=True)]
        total = np.zeros(points[0].shape)
        for i, j in itertools.combinations_with_replacement(range(len(offsets)), 2):
            total += (0.5 if i == j else 1.0) * precision[i, j] * offsets[i] * offsets[j]
        return total


def tilt_at(law: SwapDistribution, point: FloatArray) -> FloatArray:
    """Return a tilt with nearly the least Chernoff bound at a point, shape (r,).

    Newton's method, with halved steps, minimises the convex function K(lambda) - lambda . (point - E/2). At
    the minimum the tilted mean is the point; on the edge of the support it is approached along a ray.
    """
    goal = point - np.array([float(e) / 2 for e in law.total])
    tilt = np.zeros(law.rank)

    def objective(at: FloatArray) -> float:
        return law.cumulant(at) - float(at @ goal)

    value = objective(tilt)
    for _ in range(MOST_STEPS):
        gradient = goal - law.centred_mean(tilt)
        # Coins that are certain under the tilt leave a covariance of lower rank.
        step = np.linalg.lstsq(law.covariance(tilt), gradient, rcond=1e-12)[0]
        if float(gradient @ step) < CLOSE:
            break
        size = 1.0
        while not (moved := objective(tilt + size * step)) < value and size > SHORTEST:
            size /= 2.0
        if size <= SHORTEST:
            break
        tilt, value = tilt + size * step, moved
    return tilt


def common_scale(tilts: Sequence[Tilted], log_tail: float) -> float:
    """Return the logarithm of the unit in which masses under several tilts are added.

    It is one of the scale factors, which saves roundings, unless none is near enough to the tail for floats.
    """
    nearest = min((tilt.scale.log for tilt in tilts), key=lambda log: abs(log - log_tail))
    return nearest if abs(nearest - log_tail) < 100.0 else log_tail


def upper_exp(logs: FloatArray | float) -> FloatArray:
    """Return exp of the logarithms of bounds: 0 for -inf only, and infinite beyond the range of floats."""
    with np.errstate(over="ignore"):
        return np.where(logs == -math.inf, 0.0, np.exp(np.maximum(logs, -700.0)))
