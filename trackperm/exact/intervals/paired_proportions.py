r"""Intervals for the difference of paired proportions: 0/1 scores with one example a row.

The candidate alone solves b examples, the baseline alone c, and m = b + c of n. The counts are multinomial
with pi = P(discordant) and theta = P(better | discordant), and the difference is

    Delta = pi (2 theta - 1),    m ~ Binomial(n, pi),    b | m ~ Binomial(m, theta).

Each of the two binomials has exact lower and upper confidence distributions (Clopper and Pearson 1934):

    theta_L ~ Beta(b, c + 1),        theta_U ~ Beta(b + 1, c),
    pi_L ~ Beta(m, n - m + 1),       pi_U ~ Beta(m + 1, n - m),

where Beta(0, .) means 0 and Beta(., 0) means 1. Melding inserts independent variables of these laws into
Delta (Fay, Proschan and Brittain 2015): the lower end is the tau-quantile of pi (2 theta_L - 1), with the pi
that makes it smaller. That is pi_L if the end is positive and pi_U if it is negative, since the distributions
of pi_L and pi_U are ordered. In either case

    P(pi (2 theta_L - 1) <= 0) = P(theta_L <= 1/2) = P(Binomial(m, 1/2) >= b),

the one-sided p-value of the exact McNemar test. So the lower end is positive exactly when that is below tau,
and the interval of level alpha = 2 tau excludes 0 exactly when p < alpha. Exchanging b and c turns the lower
end into minus the upper one. Fay and Lumbard (2021) propose this interval; that each end misses with
probability at most tau is their conjecture, supported by enumeration but not proved.

The quantile is where the distribution function, an integral over theta, equals tau. The integral is split at
quantiles of theta, and where pi meets its own quantiles; Gauss and Legendre's rule integrates each smooth
piece.

References
----------
M. P. Fay and K. Lumbard (2021), "Confidence intervals for difference in proportions for matched pairs
compatible with exact McNemar's or sign tests", Statistics in Medicine 40.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy.special import betainc, betainccinv, betaincinv, betaln, ndtri

from trackperm.choices import Alternative
from trackperm.errors import InputError
from trackperm.exact.distributions.beta_quantiles import beta_quantile, upper_beta_quantile
from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.intervals.additive import AdditiveScores
from trackperm.exact.intervals.interval import Interval, tail_level
from trackperm.exact.options import TestOptions
from trackperm.exact.root import bracketed_root
from trackperm.exact.sums import sum_test_of

RESOLUTION = 1e-18
"""Absolute precision of an end next to 0."""

RELATIVE = 1e-12
"""Relative precision of other ends: that of the quadrature."""

NEGLIGIBLE = 1e-14
"""Share of the level beyond the outermost quantiles: below the error of the quadrature."""

LEAST = 1e-300
"""Smallest probability of a quantile, near the smallest float."""

LARGEST_SCORE = 40.0
"""Largest absolute normal score: beyond 38, probabilities underflow."""

PANELS_PER_TAIL = 6
NODES = 16
"""Pieces of the integral on either side of a median, and nodes of the rule in each.

Neighbouring quantiles differ by a factor of about 400 in probability: with four times as many pieces of 24
nodes, no end changes by a part in 10^11.
"""

EXACT_NOTE = (
    "agrees with the exact test. It combines exact binomial intervals for how often and in which direction"
    " the runs differ (Fay and Lumbard 2021); its coverage was checked by enumeration, not proved"
)

_GAUSS_NODES, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(NODES)


def paired_proportions_interval(
    n_better: int,
    n_worse: int,
    n_examples: int,
    *,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> Interval:
    """Return the interval for a difference of paired proportions that matches the exact McNemar test.

    Parameters
    ----------
    n_better, n_worse : int
        Numbers of examples that only the candidate solves, and that only the baseline solves.
    n_examples : int
        Number of all examples, which count once each and are independent.
    alpha : float
        Level of the matching test.
    alternative : {'two-sided', 'less', 'greater'}
        Alternative of that test; one-sided intervals reach to -1 or 1.

    Raises
    ------
    InputError
        If numbers are negative or do not add up, or `alpha` is not between 0 and 1.

    Examples
    --------
    >>> interval = paired_proportions_interval(12, 2, 50)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.0361, 0.355)

    References
    ----------
    Fay and Lumbard (2021).
    """
    tau = tail_level(alpha, alternative)
    _check(n_better, n_worse, n_examples)
    rejected = mcnemar_pvalue(n_better, n_worse, alternative) < alpha
    both = alternative == "two-sided"
    low, high = -1.0, 1.0
    if alternative != "less":
        positive = rejected and (n_better > n_worse or not both)
        low = _lower_end(n_better, n_worse, n_examples, tau, positive=positive)
    if alternative != "greater":
        positive = rejected and (n_worse > n_better or not both)
        high = 0.0 - _lower_end(n_worse, n_better, n_examples, tau, positive=positive)
    return Interval(low, high, alpha, alternative, "paired proportions", "agrees", EXACT_NOTE)


def binary_interval(scores: AdditiveScores, *, alpha: float, alternative: Alternative) -> Interval:
    """Return :func:`paired_proportions_interval` of equally weighted scores with two values, such as 0/1."""
    if scores.gap is None or not scores.equally_weighted:
        raise InputError("an interval for paired proportions requires 0/1 scores and one example a row")
    interval = paired_proportions_interval(
        scores.n_up, scores.n_down, scores.n_rows, alpha=alpha, alternative=alternative
    )
    gap = float(scores.gap)
    return replace(interval, low=interval.low * gap, high=interval.high * gap)


def mcnemar_pvalue(n_better: int, n_worse: int, alternative: Alternative = "two-sided") -> float:
    """Return the exact McNemar p-value, by the paired-permutation test of differences of +-1."""
    if n_better == n_worse == 0:
        return 1.0
    options = TestOptions(alternative=alternative)
    test = sum_test_of(np.array([1, -1]), np.array([n_better, n_worse]), Fraction(1), options)
    return max(test.pvalue, test.interval[1])


def _check(b: int, c: int, n: int) -> None:
    if min(b, c) < 0 or n < 1 or b + c > n:
        raise InputError(f"{b} better and {c} worse do not fit {n:,} examples; expected numbers that add up")


def _lower_end(b: int, c: int, n: int, tau: float, *, positive: bool) -> float:
    """Return the tau-quantile of pi (2 theta_L - 1); `positive` is its sign according to the test."""
    m = b + c
    if b == 0:
        return -1.0 if m == n else -upper_beta_quantile(m + 1, n - m, tau)
    if m == n and not positive:
        # pi_U is 1.
        return min(2.0 * beta_quantile(b, c + 1, tau) - 1.0, 0.0)
    pi = (m, n - m + 1) if positive else (m + 1, n - m)
    below_half = float(betainc(b, c + 1, 0.5))
    sign = 1 if positive else -1
    edges = _quantiles(b, c + 1, tau), _quantiles(*pi, tau)

    target = float(ndtri(tau))

    @functools.cache
    def excess(size: float) -> float:
        """Return the normal score of P(pi (2 theta_L - 1) <= sign * size) minus that of tau."""
        probability = below_half
        if size > 0.0:
            met = _met((b, c + 1), pi, size, sign, edges)
            probability = below_half + met if positive else met
        return min(max(float(ndtri(min(probability, 1.0))), -LARGEST_SCORE), LARGEST_SCORE) - target

    # At 0 the probability is that of the test: up to rounding it is below tau only if `positive`.
    if (below_half - tau) * sign >= 0.0:
        return math.ulp(0.0) if positive else 0.0
    deviation = math.sqrt(m - (b - c) ** 2 / n) / n
    guess = sign * ((b - c) / n + target * deviation)
    size = _root(excess, guess, deviation, rises=positive)
    return max(size, math.ulp(0.0)) if positive else -size


def _root(excess: Callable[[float], float], guess: float, deviation: float, *, rises: bool) -> float:
    """Return the root between 0 and 1 of a function that is nearly linear around the guess."""
    ends = [0.0, 1.0]
    step = deviation / 8.0
    at = min(max(guess, step), 1.0 - step)
    while 0.0 < at < 1.0:
        is_below = (excess(at) < 0.0) == rises
        ends[0 if is_below else 1] = at
        if ends[0] > 0.0 and ends[1] < 1.0:
            break
        at, step = at + step if is_below else at - step, 4.0 * step
    return bracketed_root(excess, *ends, xtol=RESOLUTION, rtol=RELATIVE, max_steps=300)


def _met(
    theta_shape: tuple[int, int],
    pi_shape: tuple[int, int],
    size: float,
    sign: int,
    quantiles: tuple[FloatArray, FloatArray],
) -> float:
    """Return P(theta > 1/2, pi (2 theta - 1) <= size), or P(pi (1 - 2 theta) >= size) if `sign` is -1.

    theta and pi have beta distributions of the given shapes; their quantiles separate the pieces.
    """
    a, b = theta_shape
    low, high = (0.5, 1.0) if sign > 0 else (0.0, (1.0 - size) / 2.0)
    edges = np.concatenate([quantiles[0], (1.0 + sign * size / quantiles[1]) / 2.0, [low, high]])
    cuts = np.unique(np.clip(edges, low, high))
    middle, half = (cuts[1:] + cuts[:-1]) / 2.0, (cuts[1:] - cuts[:-1]) / 2.0
    theta = (middle[:, None] + half[:, None] * _GAUSS_NODES).ravel()
    weights = (half[:, None] * _GAUSS_WEIGHTS).ravel()
    inside = (theta > 0.0) & (theta < 1.0)
    theta, weights = theta[inside], weights[inside]
    density = np.exp((a - 1.0) * np.log(theta) + (b - 1.0) * np.log1p(-theta) - betaln(a, b))
    with np.errstate(divide="ignore", over="ignore"):
        ratio = np.minimum(size / np.abs(2.0 * theta - 1.0), 1.0)
    # Beyond the outermost quantiles of pi, its distribution function is 0 or 1.
    least, greatest = quantiles[1].min(), quantiles[1].max()
    share = np.where((ratio >= greatest) == (sign > 0), 1.0, 0.0)
    unsettled = (ratio > least) & (ratio < greatest)
    ratio = ratio[unsettled]
    # P(Beta(a, b) >= x) = P(Beta(b, a) <= 1 - x), which SciPy computes in a sixth of the time of `betaincc`.
    share[unsettled] = betainc(*pi_shape, ratio) if sign > 0 else betainc(*pi_shape[::-1], 1.0 - ratio)
    return float((weights * density) @ share)


def _quantiles(a: int, b: int, tau: float) -> FloatArray:
    """Return quantiles of Beta(a, b) at probabilities from far below tau to far above 1 - tau."""
    levels = np.geomspace(max(NEGLIGIBLE * tau, LEAST), 0.5, PANELS_PER_TAIL + 1)
    quantiles = np.concatenate([betaincinv(a, b, levels), betainccinv(a, b, levels)])
    return quantiles[quantiles > 0.0]
