r"""Tilts, their windows, and bounds of the mass of lattice points.

In terms of the tilt lambda, the probability of a point z is

    P(X = z) = exp(K - lambda . (z - E/2)) P_lambda(X = z),

and the factor, Chernoff's bound, is the size of its rounding errors. A sum over a region therefore uses
several tilts, each for the points where its bound is the least. As the Hessian of K is at most
C = sum_k c_k x_k x_k^T / 4 everywhere, one tilt also bounds the mass away from its mean:

    P(X = z) <= exp(K - lambda . (z - E/2) - (z - mean)^T C^-1 (z - mean) / 2).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trackperm.exact.distributions.characteristic import FloatArray, SwapDistribution
from trackperm.exact.distributions.pmf import Window, plan_window
from trackperm.exact.distributions.tilt import ScaleFactor, scale_factor
from trackperm.exact.types import IntArray

MOST_STEPS = 100
"""Largest number of Newton steps to a tilt; any tilt is valid, so stopping early costs only accuracy."""

CLOSE = 1e-3
"""Predicted decrease of a bound's logarithm below which the tilt is close enough."""

SHORTEST = 2.0**-40
"""Smallest part of a Newton step: shorter ones change nothing but roundings."""


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

    def log_weight(self, points: Sequence[IntArray]) -> FloatArray:
        """Return -lambda . (z - reference), exact, at r coordinate arrays of one shape."""
        total = np.zeros(points[0].shape)
        for axis, slope, at in zip(points, self.tilt.tolist(), self.reference, strict=True):
            if slope:
                total -= slope * (axis - at)
        return total

    def chernoff(self, points: Sequence[IntArray]) -> FloatArray:
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


def least_precision(law: SwapDistribution) -> FloatArray:
    """Return slightly less than C^-1, shape (r, r), so that roundings do not make bounds too small."""
    covariance = law.covariance(np.zeros(law.rank))
    return np.asarray(np.linalg.inv(covariance) * (1.0 - 1e-9), dtype=np.float64)


def common_scale(tilts: Sequence[Tilted], log_tail: float) -> float:
    """Return the logarithm of the unit in which masses under several tilts are added.

    It is one of the scale factors, which saves roundings, unless none is near enough to the tail for floats.
    """
    nearest = min((tilt.scale.log for tilt in tilts), key=lambda log: abs(log - log_tail))
    return nearest if abs(nearest - log_tail) < 100.0 else log_tail


def never_zero(logs: FloatArray | float) -> FloatArray:
    """Return exp of logarithms, within the range of floats and 0 for -inf only, so no bound underflows."""
    return np.where(np.isneginf(logs), 0.0, np.exp(np.clip(logs, -700.0, 700.0)))
