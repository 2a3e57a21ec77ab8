r"""Radicals times powers of e, :math:`d^{1/n} e^q`, and when one is a rational multiple of another.

With natural d and n, and rational q, d^(1/n) e^q is a rational multiple of f^(1/m) e^p only where q = p,
since e^(q - p) is no algebraic number otherwise (Lindemann), and d^(1/n) / f^(1/m) is rational. With a common
multiple N of n and m that is so where both parts of d^(N/n) / f^(N/m), in lowest terms, are N-th powers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from trackperm.exact.functions.ball import Ball

Rational = int | Fraction

MAX_ORDER = 64
"""Roots of a higher order are not kept as such."""

MAX_BITS = 2**14
"""Nor are roots of longer integers, where these are powers of those that were given."""


class Power(NamedTuple):
    """radicand^(1 / order) e^exponent.

    Attributes
    ----------
    radicand, order : int
        Positive.
    exponent : int or Fraction
        Of e.
    """

    radicand: int
    order: int = 2
    exponent: Rational = 0

    @classmethod
    def of_root(cls, value: Rational, order: int) -> tuple[Power, Fraction]:
        """Return a power, and the factor by which it is `value`^(1 / order), of a number not negative."""
        # (n / d)^(1/k) = (n d^(k - 1))^(1/k) / d
        radicand = value.numerator * value.denominator ** (order - 1)
        return cls(radicand, order), Fraction(1, value.denominator)

    @property
    def root(self) -> int | None:
        """The power as an integer, where it is one; it is not rational elsewhere."""
        return None if self.exponent else perfect_root(self.radicand, self.order)

    def times(self, other: Power) -> Power | None:
        """Return the product; None where the order of its root would be too high."""
        order = math.lcm(self.order, other.order)
        if order > MAX_ORDER:
            return None
        return Power(
            self.radicand ** (order // self.order) * other.radicand ** (order // other.order),
            order,
            self.exponent + other.exponent,
        )

    def over(self, other: Power) -> Fraction | None:
        """Return the quotient where it is rational, else None."""
        if self.exponent != other.exponent:
            return None
        order = math.lcm(self.order, other.order)
        above = self.radicand ** (order // self.order)
        below = other.radicand ** (order // other.order)
        common = math.gcd(above, below)
        numerator = perfect_root(above // common, order)
        if numerator is None:
            return None
        denominator = perfect_root(below // common, order)
        return None if denominator is None else Fraction(numerator, denominator)

    def ball(self, digits: int) -> Ball:
        """Return the power to so many digits."""
        return _ball(self, digits)


@lru_cache(maxsize=2**12)
def _ball(power: Power, digits: int) -> Ball:
    value, order = Ball.of(power.radicand, digits), power.order
    while order % 2 == 0:
        value, order = value.sqrt(), order // 2
    if order > 1:
        value = (value.log() / Ball.of(order, digits)).exp()
    return value * Ball.of(power.exponent, digits).exp() if power.exponent else value


def perfect_root(integer: int, order: int) -> int | None:
    """Return the root of a positive integer where it is an integer, else None."""
    while order % 2 == 0:
        root = math.isqrt(integer)
        if root * root != integer:
            return None
        integer, order = root, order // 2
    if order == 1 or integer == 1:
        return integer
    # Newton's iteration from above falls until it is the floor of the root.
    root = 1 << -(-integer.bit_length() // order)
    while (smaller := ((order - 1) * root + integer // root ** (order - 1)) // order) < root:
        root = smaller
    return root if root**order == integer else None
