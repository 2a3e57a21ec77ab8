"""Quantiles of beta distributions, also at levels so small that SciPy returns NaN.

References
----------
A. DiDonato and A. Morris (1992), "Algorithm 708", ACM Transactions on Mathematical Software 18; the method
of SciPy's inverses, which fail at some levels below 1e-100.
"""

from __future__ import annotations

import math

from scipy.special import betainc, betainccinv, betaincinv, betaln

from trackperm.exact.root import bracketed_root

_LEAST = math.ulp(0.0)


def beta_quantile(a: int, b: int, level: float) -> float:
    """Return the point below which Beta(a, b) has the probability `level`, which is above 0."""
    found = float(betaincinv(a, b, level))
    return found if not math.isnan(found) else _far_quantile(a, b, level)


def upper_beta_quantile(a: int, b: int, level: float) -> float:
    """Return the point above which Beta(a, b) has the probability `level`, which is above 0."""
    found = float(betainccinv(a, b, level))
    return found if not math.isnan(found) else 1.0 - _far_quantile(b, a, level)


def _far_quantile(a: int, b: int, level: float) -> float:
    """Find a quantile by its logarithm; P(Beta(a, b) <= x) is at most x^a / (a B(a, b)), as b >= 1."""

    def excess(log: float) -> float:
        return math.log(max(float(betainc(a, b, math.exp(log))), _LEAST)) - math.log(level)

    least = (math.log(level) + math.log(a) + float(betaln(a, b))) / a - 1.0
    return math.exp(bracketed_root(excess, least, 0.0, xtol=1e-14, max_steps=300))
