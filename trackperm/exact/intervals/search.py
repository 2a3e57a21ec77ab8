r"""Where a p-value that rises in steps with the shift reaches a level.

It rises at means of subsets, fractions whose denominators are at most W = sum_n w_n: between two such
fractions next to each other it is constant, and the first shift that is not rejected is one of them. They are
searched by certified p-values. Where to look comes from the saddlepoint approximation of the tail (Lugannani
and Rice 1980, in the form of Barndorff-Nielsen 1986), with s = sum d / 2 and the centred cumulant function K,
of which K'(t) = s,

    p = Phi(-r - log(v / r) / r),    r = sqrt(2 (t s - K(t))),    v = t sqrt(K''(t)),    d = m - shift w,

and then from secants through normal scores, which are nearly linear in the shift. No guarantee rests on it.

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
"""Distance in standard deviations from the end at which a search may stop."""

ROUNDED_PRECISION = 5e-5
"""The same where differences have to be rounded, about what that adds."""

FINISH = 0.15
"""Seconds that may be spent beyond this on the end itself."""

LOWEST = -40.0
"""Normal score below which scores are not told apart."""

CAUTION = 1.0 / 8.0
"""Error of a guess in terms of its last correction."""


MOST_MISSES = 2
"""Steps in a row that do not halve the bracket, after which it is bisected."""


@dataclass(frozen=True)
class End:
    """The least shift that is not rejected, or one below it.

    Attributes
    ----------
    shift : Fraction
        No greater than the end.
    is_exact : bool
        Whether it is the end, if p-values decide.
    is_rounded : bool
        Whether p-values of rounded differences took part.
    """

    shift: Fraction
    is_exact: bool
    is_rounded: bool


def spread(rows: AdditiveScores) -> tuple[Fraction, float]:
    """Return the estimate, and about its standard deviation under random swaps."""
    total = int(rows.weights @ rows.multiplicities)
    mean = Fraction(int(rows.moves.astype(object) @ rows.multiplicities.astype(object)), total)
    centred = rows.moves.astype(np.float64) - float(mean) * rows.weights
    return mean, math.sqrt(float(rows.multiplicities @ centred**2)) / total


def lower_end(rows: AdditiveScores, tau: float, memory_budget: int) -> End:
    """Return the least shift with p >= tau; of rows that are not all alike, with 2^-N < tau.

    Each step aims a little to the other side of the guess, so that the bracket closes from both sides.

    Raises
    ------
    CapacityError
        If a p-value does not fit `memory_budget`.
    """
    order = int(rows.weights @ rows.multiplicities)
    tail = ShiftedTail(rows, math.log(tau), memory_budget)
    mean, deviation = spread(rows)
    target = float(ndtri_exp(math.log(tau)))
    ratios = [Fraction(int(m), int(w)) for m, w in zip(rows.moves, rows.weights, strict=True)]
    # Below every subset mean only the empty set is left; at the greatest one all are in.
    low, high = previous_fraction(min(ratios), order), max(ratios)
    guess, slope = _first_guess(rows, float(mean), deviation, target)
    unit = Fraction(deviation)
    doubt, step, misses, rounded_low, rounded_high = 1e-3, 0.0, 0, False, False
    known: dict[bool, tuple[float, float]] = {}
    while next_fraction(low, order) < high:
        length = high - low
        if length <= unit * Fraction(ROUNDED_PRECISION):
            seconds = tail.seconds(floor_fraction((low + high) / 2, order))
            if math.isinf(seconds):
                return End(low, False, True)
            # There are about 3 / pi^2 order^2 fractions in a unit.
            n_steps = 1.0 + math.log2(1.0 + 3.0 / math.pi**2 * order**2 * float(length))
            if length <= unit * Fraction(PRECISION) and seconds * n_steps > FINISH:
                return End(low, False, rounded_low or rounded_high)
        aim, radius = mean + unit * Fraction(guess + step), unit * Fraction(doubt / 2.0)
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
        known[excess < 0.0] = at, excess
        if len(known) == 2:
            (left, below), (right, above) = known[True], known[False]
            slope = (above - below) / (right - left) if right > left and above > below else slope
        moved = at - excess / slope
        is_hit = 2 * (high - low) <= length
        doubt = max(CAUTION * abs(moved - guess), 0.0 if is_hit else 8.0 * doubt, 1e-14)
        guess, misses = moved, 0 if is_hit else misses + 1
        step = doubt if excess < 0.0 else -doubt
    return End(high, not rounded_high, rounded_low or rounded_high)


def _first_guess(rows: AdditiveScores, mean: float, deviation: float, target: float) -> tuple[float, float]:
    """Return about where the normal score of p is `target`, and its slope, in standard deviations."""
    if target > -0.5:
        return target, 1.0
    moves = (rows.moves.astype(np.float64) - mean * rows.weights) / deviation
    least = float((moves / rows.weights).min())

    def excess(shift: float) -> float:
        score = _saddlepoint_score(moves - shift * rows.weights, rows.multiplicities)
        return max(score, LOWEST) - target

    highest = -1e-3
    if not least < highest or excess(highest) <= 0.0 or excess(least) >= 0.0:
        return target, 1.0
    found = bracketed_root(excess, least, highest, xtol=1e-6, rtol=1e-6, must_converge=False)
    nearby = found + 1e-2 * (highest - found)
    return found, max((excess(nearby) - excess(found)) / (nearby - found), 1e-3)


def _saddlepoint_score(differences: FloatArray, multiplicities: IntArray) -> float:
    """Return about Phi^-1 P(sum_A d <= 0), for sum d > 0."""
    if (differences >= 0.0).all():
        return -math.inf
    halves, goal = np.abs(differences) / 2.0, float(multiplicities @ differences) / 2.0
    tilt = tilt_of_coins(halves, multiplicities, goal)
    rate = tilt * goal - float(multiplicities @ log_cosh(tilt * halves))
    with np.errstate(over="ignore"):
        variance = float(
            (multiplicities * halves**2) @ (1.0 / np.cosh(np.minimum(tilt * halves, 350.0)) ** 2)
        )
    if not 0.0 < rate < math.inf or variance <= 0.0:
        return LOWEST
    root = math.sqrt(2.0 * rate)
    return -root - math.log(tilt * math.sqrt(variance) / root) / root
