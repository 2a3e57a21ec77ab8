r"""Search for the least shift whose p-value, a step function, reaches a level.

The p-value rises at means of subsets, fractions whose denominators are at most W = sum_n w_n: between two
neighbouring fractions it is constant, and the first shift that is not rejected is one of them. The search
uses certified p-values. Guesses come from the saddlepoint approximation of the tail (Lugannani and Rice 1980,
in the form of Barndorff-Nielsen 1986), with s = sum d / 2, the centred cumulant function K, and K'(t) = s,

    p = Phi(-r - log(v / r) / r),    r = sqrt(2 (t s - K(t))),    v = t sqrt(K''(t)),    d = m - shift w,

and then from secants through normal scores, which are nearly linear in the shift. No guarantee depends on
them.

References
----------
R. Lugannani and S. Rice (1980), "Saddle point approximation for the distribution of the sum of independent
random variables", Advances in Applied Probability 12.
O. E. Barndorff-Nielsen (1986), "Inference on full or partial parameters based on the standardized signed log
likelihood ratio", Biometrika 73.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import ndtri_exp

from trackperm.exact.distributions.characteristic import FloatArray, log_cosh
from trackperm.exact.distributions.tilt import tilt_of_coins
from trackperm.exact.intervals.additive import AdditiveScores
from trackperm.exact.intervals.farey import (
    floor_fraction,
    next_fraction,
    previous_fraction,
    simplest_fraction,
)
from trackperm.exact.intervals.shifted_tail import ShiftedTail
from trackperm.exact.root import bracketed_root
from trackperm.exact.types import IntArray

PRECISION = 1e-5
"""Distance from the end, in standard deviations, at which a search may stop: invisible in a report."""

ROUNDED_PRECISION = 5e-5
"""The same for rounded differences, to which rounding adds more: mostly 1e-4 to 6e-4, and up to 1.3e-3 of a
hundred examples with three decimals, and of 300 examples of which most have the same difference."""

FINISH = 0.03
"""Estimated seconds that may be spent on the exact end: a few p-values."""

SECANTS = 6
"""Most secants to the first guess; two or three suffice unless a few differences have most of the weight."""

SECANT_PRECISION = 1e-4
"""Length of a step after which a secant errs by less than the saddlepoint approximation."""

LEAST_SLOPE = 1e-3
"""Smallest slope of normal scores in the shift, 1 for many differences, that leads to a guess."""

LOWEST = -40.0
"""Smallest normal score: below -38, probabilities underflow."""

FIRST_DOUBT = 4e-6
"""Expected error of the first guess, in standard deviations: two p-values around it may suffice."""

CAUTION = 1.0 / 32.0
"""Expected error of a guess relative to its last correction; too small a value costs only steps."""


MOST_MISSES = 2
"""Consecutive steps without halving the bracket, after which it is bisected."""


@dataclass(frozen=True)
class End:
    """Least shift that is not rejected, or one below it.

    Attributes
    ----------
    shift : Fraction
        A shift at or below the end.
    is_exact : bool
        Whether it is the end itself.
    is_rounded : bool
        Whether p-values of rounded differences were used.
    """

    shift: Fraction
    is_exact: bool
    is_rounded: bool


def spread(rows: AdditiveScores) -> tuple[Fraction, float]:
    """Return the estimate, and its approximate standard deviation under random swaps."""
    total = int(rows.weights @ rows.multiplicities)
    mean = Fraction(int(rows.moves.astype(object) @ rows.multiplicities.astype(object)), total)
    centred = rows.moves.astype(np.float64) - float(mean) * rows.weights
    return mean, math.sqrt(float(rows.multiplicities @ centred**2)) / total


def lower_end(rows: AdditiveScores, tau: float, memory_budget: int) -> End:
    """Return the least shift with p >= tau, for rows with different ratios and 2^-N < tau.

    Each step aims slightly to the other side of the guess, so the bracket closes from both sides. It raises
    CapacityError if a p-value does not fit `memory_budget`.
    """
    order = int(rows.weights @ rows.multiplicities)
    tail = ShiftedTail(rows, math.log(tau), memory_budget)
    mean, deviation = spread(rows)
    target = float(ndtri_exp(math.log(tau)))
    least, greatest = rows.ratios
    # Below every subset mean only the empty set counts; at the greatest one all subsets do.
    low, high = previous_fraction(least, order), greatest
    guess, slope = _first_guess(rows, float(mean), deviation, target)
    unit = Fraction(deviation)
    doubt, step, misses, rounded_low, rounded_high = FIRST_DOUBT, -FIRST_DOUBT, 0, False, False
    known: dict[bool, tuple[float, float]] = {}
    while next_fraction(low, order) < high:
        length = high - low
        if length <= unit * Fraction(ROUNDED_PRECISION):
            seconds = tail.seconds(floor_fraction((low + high) / 2, order))
            if math.isinf(seconds):
                return End(low, False, True)
            # A unit interval has about 3 / pi^2 order^2 fractions.
            n_steps = 1.0 + math.log2(1.0 + 3.0 / math.pi**2 * order**2 * float(length))
            if length <= unit * Fraction(PRECISION) and seconds * n_steps > FINISH:
                return End(low, False, rounded_low or rounded_high)
        aim, radius = (
            mean + unit * Fraction(guess + step),
            unit * Fraction(doubt / (64.0 if tail.rounds else 2.0)),
        )
        if misses > MOST_MISSES or not low < aim < high:
            aim, radius = (low + high) / 2, length / 8
        shift = floor_fraction(simplest_fraction(aim - radius, aim + radius), order)
        shift = min(max(shift, next_fraction(low, order)), previous_fraction(high, order))
        found = tail.bound(shift)
        if found.pvalue < tau:
            low, rounded_low = shift, found.is_rounded
        else:
            high, rounded_high = shift, found.is_rounded
        at, excess = float((shift - mean) / unit), max(found.score, LOWEST) - target
        excess = min(excess, -LOWEST)
        if found.is_rounded and -ROUNDED_PRECISION <= excess < 0.0:
            return End(shift, False, True)  # normal scores rise by about 1 per standard deviation
        known[excess < 0.0] = at, excess
        if len(known) == 2:
            (left, below), (right, above) = known[True], known[False]
            slope = (above - below) / (right - left) if right > left and above > below else slope
        moved = at - excess / slope
        is_hit = 2 * (high - low) <= length
        doubt = max(CAUTION * abs(moved - guess), 0.0 if is_hit else 4.0 * doubt)
        doubt = max(doubt, PRECISION if found.is_rounded else 1e-14)
        guess, misses = moved, 0 if is_hit else misses + 1
        step = doubt if excess < 0.0 else -doubt
    return End(high, not rounded_high, rounded_low or rounded_high)


def _first_guess(rows: AdditiveScores, mean: float, deviation: float, target: float) -> tuple[float, float]:
    """Estimate where the normal score of p is `target`, and its slope, in standard deviations."""
    if target > -0.5:
        return target, 1.0
    moves = (rows.moves.astype(np.float64) - mean * rows.weights) / deviation
    least, highest = float((moves / rows.weights).min()), -0.1

    def excess(shift: float) -> float:
        return max(_saddlepoint_score(moves - shift * rows.weights, rows.multiplicities), LOWEST) - target

    at, slope = target, 1.0
    for _ in range(SECANTS):  # scores are nearly linear in the shift
        found = excess(at)
        moved = at - found / slope
        if not least < moved < highest:
            break
        if abs(moved - at) <= SECANT_PRECISION:
            return moved, slope
        following = excess(moved)
        if following == found:
            break
        slope = max((following - found) / (moved - at), LEAST_SLOPE)
        at = moved
    if not least < highest or excess(highest) <= 0.0 or excess(least) >= 0.0:
        return target, 1.0
    root = bracketed_root(excess, least, highest, xtol=1e-6, rtol=1e-6, must_converge=False)
    nearby = root + 1e-2 * (highest - root)
    return root, max((excess(nearby) - excess(root)) / (nearby - root), LEAST_SLOPE)


def _saddlepoint_score(differences: FloatArray, multiplicities: IntArray) -> float:
    """Approximate Phi^-1 P(sum_A d <= 0), for sum d > 0."""
    if (differences >= 0.0).all():
        return -math.inf
    halves, goal = np.abs(differences) / 2.0, float(multiplicities @ differences) / 2.0
    tilt = tilt_of_coins(halves, multiplicities, goal)
    tanh = np.tanh(tilt * halves)
    variance = float((multiplicities * halves**2) @ (1.0 - tanh * tanh))
    if not variance > 0.0:
        return LOWEST
    # The tilt is within a thousandth of a standard deviation; another step makes it exact.
    tilt += (goal - float((multiplicities * halves) @ tanh)) / variance
    rate = tilt * goal - float(multiplicities @ log_cosh(tilt * halves))
    if not (tilt > 0.0 and 0.0 < rate < math.inf):
        return LOWEST
    root = math.sqrt(2.0 * rate)
    return -root - math.log(tilt * math.sqrt(variance) / root) / root
