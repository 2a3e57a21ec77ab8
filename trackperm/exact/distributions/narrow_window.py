"""Windows by Chernoff's bound of each axis, which are narrower under a tilt than those by Hoeffding's."""

from __future__ import annotations

import math

import numpy as np

from trackperm.exact.distributions.characteristic import FloatArray, SwapDistribution, log_cosh
from trackperm.exact.distributions.pmf import Window, plan_window

SLOPES = 2.0 ** np.linspace(-3.0, 3.0, 25)
"""Further tilts that are tried, relative to that of a normal law; each gives a valid bound."""

ROUNDING = 1e-6
"""Bound of the absolute error of differences of cumulants below 1e8."""


def narrow_window(law: SwapDistribution, tilt: FloatArray, log_mass: float) -> Window:
    """Choose a small window that leaves at most exp(log_mass) of the tilted mass outside.

    For s > 0, P_lambda(X_i - E_i/2 > t) <= exp(K(lambda + s e_i) - K(lambda) - s t), and the same with s < 0
    for small values.
    """
    widest = plan_window(law, tilt, log_mass, fast=False)
    share = log_mass - math.log(2.0 * law.rank)
    a = law.coordinates @ tilt / 2.0
    deviations = np.sqrt(np.diag(law.covariance(tilt)))
    cumulant = law.multiplicities @ log_cosh(a)
    starts, periods = [], []
    for axis, (start, period) in enumerate(zip(widest.start, widest.periods, strict=True)):
        ends = [float(start), float(start + period - 1)]
        if deviations[axis] > 0.0:
            steps = law.coordinates[:, axis] / 2.0
            slopes = SLOPES * math.sqrt(-2.0 * share) / deviations[axis]
            for side, sign in enumerate((-1.0, 1.0)):
                moved = log_cosh(a + np.outer(sign * slopes, steps)) @ law.multiplicities
                reach = float(((moved - cumulant - share + ROUNDING) / slopes).min())
                ends[side] = law.total[axis] / 2 + sign * reach
        low, high = max(math.ceil(ends[0]), start), min(math.floor(ends[1]), start + period - 1)
        starts.append(low)
        periods.append(max(high - low + 1, 1))
    return Window(tuple(starts), tuple(periods))
