"""Where a p-value that rises in steps with the shift reaches a level."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy.special import ndtri_exp

from trackperm.exact.intervals.additive import AdditiveScores

PValue = Callable[[Fraction], float]


def spread(rows: AdditiveScores) -> tuple[Fraction, float]:
    """Return the estimate, and about its standard deviation under random swaps."""
    total = int(rows.weights @ rows.multiplicities)
    mean = Fraction(int(rows.moves.astype(object) @ rows.multiplicities.astype(object)), total)
    centred = rows.moves.astype(np.float64) - float(mean) * rows.weights
    return mean, math.sqrt(float(rows.multiplicities @ centred**2)) / total


def bracket(rows: AdditiveScores, pvalue: PValue, tau: float, length: Fraction) -> tuple[Fraction, Fraction]:
    """Return shifts less than `length` apart, the first with p < tau and the second with p >= tau.

    Normal scores of p are nearly linear in the shift: the end is guessed by interpolation, and shifts a
    little to either side of the guess are tried. The margin shrinks as guesses come true.
    """
    mean, deviation = spread(rows)
    target = float(ndtri_exp(math.log(tau)))
    least = min(Fraction(int(m), int(w)) for m, w in zip(rows.moves, rows.weights, strict=True)) - 1
    greatest = max(Fraction(int(m), int(w)) for m, w in zip(rows.moves, rows.weights, strict=True))

    def score(shift: Fraction) -> tuple[bool, float]:
        p = pvalue(shift)
        return p < tau, float(ndtri_exp(math.log(min(p, 1.0 - 1e-16)))) - target if p > 0.0 else -40.0

    step = Fraction(max(1.0, abs(target)) * deviation / 4.0)
    guess = mean + Fraction(target * deviation)
    rejected, excess = score(guess)
    known = {rejected: (guess, excess)}
    while len(known) < 2:
        guess = guess + step if rejected else guess - step
        if not least <= guess <= greatest:
            # Below every subset mean only the empty set is left, and at the greatest one all are in.
            guess = least if not rejected else greatest
            known[not rejected] = (guess, -40.0 if not rejected else 40.0)
            break
        again, excess = score(guess)
        known[again] = (guess, excess)
        rejected, step = again, 2 * step
    margin, failed = 1.0 / 8.0, 0
    while known[False][0] - known[True][0] >= length:
        (below, low), (above, high) = known[True], known[False]
        span = above - below
        place = 0.5 if failed > 1 or high <= low else min(max(-low / (high - low), 0.0), 1.0)
        nudges = (0.0,) if failed > 1 else (-margin, margin)
        hit = True
        for nudge in nudges:
            shift = _short(below + span * Fraction(min(max(place + nudge, 1e-6), 1.0 - 1e-6)), span)
            if not known[True][0] < shift < known[False][0]:
                continue
            rejected, excess = score(shift)
            known[rejected] = (shift, excess)
            hit = hit and rejected == (nudge < 0.0)
        if failed > 1:
            failed = 0
        elif hit:
            margin, failed = max(margin * margin * 2.0, 1e-5), 0
        else:
            margin, failed = min(margin * 8.0, 0.25), failed + 1
    return known[True][0], known[False][0]


def _short(shift: Fraction, span: Fraction) -> Fraction:
    """Return a shift with few binary digits, close by in terms of `span`."""
    digits = max((span.denominator // span.numerator).bit_length(), 0) + 24
    return Fraction(round(shift * 2**digits), 2**digits)


def simplest_fraction(below: Fraction, above: Fraction) -> Fraction:
    """Return the fraction of the least denominator in (below, above], by continued fractions."""
    whole = math.floor(below)
    if whole + 1 <= above:
        return Fraction(whole + 1)
    # Both in [whole, whole + 1): the reciprocals of the fractional parts are in the opposite order.
    rest, end = below - whole, above - whole
    return whole + 1 / _simplest_from(1 / end, 1 / rest if rest else None)


def _simplest_from(least: Fraction, beyond: Fraction | None) -> Fraction:
    """Return the fraction of the least denominator in [least, beyond)."""
    whole = math.ceil(least)
    if beyond is None or whole < beyond:
        return Fraction(whole)
    whole -= 1
    rest, end = least - whole, beyond - whole
    return whole + 1 / simplest_fraction(1 / end, 1 / rest)
