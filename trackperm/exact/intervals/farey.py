"""Farey sequences: fractions of bounded denominators (Graham, Knuth and Patashnik 1994, section 4.5)."""

from __future__ import annotations

import math
from fractions import Fraction


def simplest_fraction(below: Fraction, above: Fraction) -> Fraction:
    """Return the fraction with the least denominator in (below, above], by continued fractions."""
    whole = math.floor(below)
    if whole + 1 <= above:
        return Fraction(whole + 1)
    # Both are in [whole, whole + 1), and the reciprocals of the fractional parts are in the opposite order.
    rest, end = below - whole, above - whole
    return whole + 1 / _simplest_from(1 / end, 1 / rest if rest else None)


def _simplest_from(least: Fraction, beyond: Fraction | None) -> Fraction:
    """Return the fraction with the least denominator in [least, beyond)."""
    whole = math.ceil(least)
    if beyond is None or whole < beyond:
        return Fraction(whole)
    whole -= 1
    rest, end = least - whole, beyond - whole
    return whole + 1 / simplest_fraction(1 / end, 1 / rest)


def next_fraction(here: Fraction, order: int) -> Fraction:
    """Return the next fraction above `here` among those with denominators of at most `order`.

    Neighbours a/b < c/d have bc - ad = 1, with the greatest such d up to the order.
    """
    a, b = here.numerator, here.denominator
    least = -pow(a, -1, b) % b
    d = least + (order - least) // b * b
    return Fraction((1 + a * d) // b, d)


def previous_fraction(here: Fraction, order: int) -> Fraction:
    """Return the previous fraction below `here` among those with denominators of at most `order`."""
    return -next_fraction(-here, order)


def floor_fraction(here: Fraction, order: int) -> Fraction:
    """Return the greatest fraction up to `here` with a denominator of at most `order`."""
    nearest = here.limit_denominator(order)
    return nearest if nearest <= here else previous_fraction(nearest, order)
