"""Roots of functions of one number, by Brent's method.

Each operation is that of :func:`scipy.optimize.brentq`, so that roots agree to the last digit. It is not
imported because loading :mod:`scipy.optimize` takes longer than a comparison.

References
----------
R. P. Brent (1973), "Algorithms for minimization without derivatives", chapter 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

LEAST_RTOL = 4.0 * float(np.finfo(np.float64).eps)
"""Smallest relative tolerance: four units in the last place, as in SciPy."""


def bracketed_root(
    f: Callable[[float], float],
    low: float,
    high: float,
    *,
    xtol: float = 2e-12,
    rtol: float = LEAST_RTOL,
    max_steps: int = 100,
    must_converge: bool = True,
) -> float:
    """Return a root of a continuous function between two points at which its signs differ.

    It interpolates through two or three points if that shortens the step, and bisects otherwise (Brent 1973,
    section 4.2). The root is off by at most ``xtol + rtol * |root|``.

    Raises
    ------
    ValueError
        If the signs are the same, or a value is NaN.
    RuntimeError
        If the root is not found in `max_steps`; unless `must_converge`, the last point is returned instead.
    """
    before, at = low, high
    f_before, f_at = _value(f, before), _value(f, at)
    if f_before == 0.0:
        return before
    if f_at == 0.0:
        return at
    if (f_before < 0.0) == (f_at < 0.0):
        raise ValueError(f"the function has the same sign at {low!r} and {high!r}; expected different signs")
    # The root is between `at`, the best point so far, and `other`.
    other = f_other = step_before = step = 0.0
    for _ in range(max_steps):
        if f_before != 0.0 and f_at != 0.0 and (f_before < 0.0) != (f_at < 0.0):
            other, f_other = before, f_before
            step_before = step = at - before
        if abs(f_other) < abs(f_at):
            before, at, other = at, other, at
            f_before, f_at, f_other = f_at, f_other, f_at
        tolerance = (xtol + rtol * abs(at)) / 2.0
        half = (other - at) / 2.0
        if f_at == 0.0 or abs(half) < tolerance:
            return at
        tried = math.inf
        if abs(step_before) > tolerance and abs(f_at) < abs(f_before):
            tried = _interpolated((before, f_before), (at, f_at), (other, f_other))
        if 2.0 * abs(tried) < min(abs(step_before), 3.0 * abs(half) - tolerance):
            step_before, step = step, tried
        else:
            step_before = step = half
        before, f_before = at, f_at
        at += step if abs(step) > tolerance else math.copysign(tolerance, half)
        f_at = _value(f, at)
    if must_converge:
        raise RuntimeError(f"no root between {low!r} and {high!r} in {max_steps} steps; the last is {at!r}")
    return at


def _value(f: Callable[[float], float], x: float) -> float:
    value = float(f(x))
    if math.isnan(value):
        raise ValueError(f"the function is NaN at {x!r}; expected a number")
    return value


def _interpolated(before: tuple[float, float], at: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the step from `at` to the root of a curve through the points; infinite if it has none."""
    (x_before, f_before), (x, y), (x_other, f_other) = before, at, other
    if x_before == x_other:
        return -y * (x - x_before) / (y - f_before)
    slope, slope_other = (f_before - y) / (x_before - x), (f_other - y) / (x_other - x)
    divisor = slope_other * slope * (f_other - f_before)
    if divisor == 0.0:
        return math.inf
    return -y * (f_other * slope_other - f_before * slope) / divisor
