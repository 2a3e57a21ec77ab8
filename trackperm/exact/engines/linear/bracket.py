r"""Certified bounds of a tail by rounded steps, for steps such as real scores whose lattice is too fine.

Write X - E/2 = sum_k eps_k d_k / 2 with signs eps_k, and d_k = s q_k + r_k with integers q_k. Then

    X - E/2 = s (Y - F/2) + R,    Y = sum_k B_k q_k,    F = sum_k q_k,    R = sum_k eps_k r_k / 2,

and by Hoeffding's inequality P(|R| > rho) <= 2 exp(-2 rho^2 / sum_k r_k^2). So P(X <= x) lies between
P(s (Y - F/2) <= x - E/2 - rho) - P(|R| > rho) and P(s (Y - F/2) <= x - E/2 + rho) + P(|R| > rho), and both
tails of Y are computed with their own certificates. The result is the upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from trackperm.exact.distributions.characteristic import UNIT
from trackperm.exact.distributions.line import LineLaw
from trackperm.exact.distributions.tilt import TailMass

LOG_FAILURE = -24.0
"""Logarithm, relative to the tail, of the probability that the remainder exceeds rho.

exp(-24) = 4e-11 is small beside the width of a bracket; rho grows only with the root of the logarithm.
"""


def bracket_tail(
    law: LineLaw,
    greatest: int,
    spacing: int,
    log_guess: float,
    tails: Callable[[LineLaw, list[int]], list[TailMass]],
) -> TailMass:
    """Return an upper bound of P(X <= greatest) whose `error` reaches down to a certified lower bound.

    Parameters
    ----------
    law, greatest, spacing
        Distribution of X, the end of the tail x, and the width s to which steps are rounded.
    log_guess : float
        Estimated logarithm of the tail; only the width of the bracket depends on it.
    tails : callable
        Function that returns P(Y <= y) at several y, the greatest first, for a distribution of small steps.
    """
    rough, remainder_squares = rounded(law, spacing)
    log_failure = log_guess + LOG_FAILURE
    # rho^2 = squares (log 2 - log failure) / 2, rounded up to an integer.
    rho = math.isqrt(remainder_squares * math.ceil(32.0 * (math.log(2.0) - log_failure)) // 64) + 1
    limits = [
        (2 * (greatest + shift) - law.total + rough.total * spacing) // (2 * spacing) for shift in (rho, -rho)
    ]
    ends = tails(rough, [limit for limit in limits if limit >= 0]) if limits[0] >= 0 else []
    reference = max(log_guess, *(end.log for end in ends), -math.inf)
    failure = math.exp(log_failure - reference)
    # The observed swap is in the tail.
    low, high = math.exp(-law.n_coins * math.log(2.0) - reference), failure
    if len(ends) > 0:
        high += math.exp(ends[0].log - reference) * (1.0 + ends[0].error)
    if len(ends) > 1:
        low = max(low, math.exp(ends[1].log - reference) * (1.0 - min(ends[1].error, 1.0)) - failure)
    high = max(high, low)
    # Roundings of two exponentials and a logarithm of this size.
    roundings = 16.0 * UNIT * (4.0 + abs(reference))
    width = high / low * (1.0 + 4.0 * roundings) - 1.0 if low > 0.0 else math.inf
    return TailMass(reference, high * (1.0 + roundings), width)


def sufficient_spacing(law: LineLaw, greatest: int, width: float) -> int:
    """Estimate the largest spacing for which the bracket of P(X <= greatest) has relative width `width`.

    Beyond two standard deviations the width may be greater, in proportion to the deviations.
    """
    # z standard deviations below the mean, the mass grows by about 1.2 (1 + z) per standard deviation;
    # remainders spread evenly over a spacing have the mean square spacing^2 / 12.
    z = max((law.total - 2 * greatest) / law.root, 0.0)
    rho_in_deviations = width * max(1.0, z / 2.0) / (2.4 * (1.0 + z))
    log_failure = LOG_FAILURE - z * z / 2.0
    spacing = rho_in_deviations / 2.0 * math.sqrt(24.0 / (law.n_coins * (math.log(2.0) - log_failure)))
    return max(int(law.root * Fraction(spacing)), 1)


def rounded(law: LineLaw, spacing: int) -> tuple[LineLaw, int]:
    """Return the distribution of rounded steps in units of `spacing`, and a bound of sum_k c_k r_k^2."""
    quotients = law.steps // spacing
    left_over = law.steps - quotients * spacing
    upwards = left_over >= spacing - left_over
    quotients = quotients + upwards
    left_over = np.where(upwards, spacing - left_over, left_over)
    if left_over.dtype == object:
        squares = int(law.multiplicities.astype(object) @ (left_over * left_over))
    else:
        squares = math.ceil(float(law.multiplicities @ left_over.astype(np.float64) ** 2) * (1.0 + 1e-9))
    quotients = quotients.astype(np.int64)
    # Steps ascend and rounding keeps their order, so that equal quotients are neighbours.
    first = np.flatnonzero(np.diff(quotients, prepend=0))
    counts = np.add.reduceat(law.multiplicities, first) if first.size else law.multiplicities[:0]
    return LineLaw(quotients[first], counts), squares
