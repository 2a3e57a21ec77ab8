r"""Sums of square roots, and logarithms: irrational numbers with a sign that needs no rounding.

- Square roots of natural numbers, no two of which have a rational quotient, are linearly independent over
  the rationals (Besicovitch 1940). Once roots with a rational quotient are merged,
  :math:`\sum_i c_i \sqrt{d_i}` is therefore zero only if no term is left: sqrt(8) equals 2 sqrt(2).
- :math:`\sum_j q_j \log r_j` with rational q_j is :math:`\frac{1}{n} \log \prod_j r_j^{n q_j}`, whose sign is
  that of the product minus 1: log(4) equals 2 log(2).

References
----------
A. S. Besicovitch (1940), "On the linear independence of fractional powers of integers", Journal of the London
Mathematical Society 15.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from trackperm.exact.functions.ball import Ball

Rational = int | Fraction

MOST_BITS = 2**14
"""Longest argument of a logarithm, in bits: longer powers take more time than 480 digits."""


@dataclass(frozen=True, slots=True)
class RootSum:
    """Irrational sum of square roots, sum_i c_i sqrt(d_i).

    Attributes
    ----------
    coefficients : mapping of int to int or Fraction
        c_i, not zero, by d_i; no product of two d_i is a square, and d_i = 1 is the rational part.
    """

    coefficients: Mapping[int, Rational]

    def scaled(self, factor: Rational) -> RootSum:
        """Return the sum times a rational number other than 0."""
        return RootSum({d: c * factor for d, c in self.coefficients.items()})

    def times(self, other: RootSum) -> Rational | RootSum:
        """Return the product of two sums."""
        return sum_of_roots(
            (d * e, c * f) for d, c in self.coefficients.items() for e, f in other.coefficients.items()
        )

    def reciprocal(self) -> RootSum | None:
        """Return 1 / (c sqrt(d)); None for a sum of several roots."""
        if len(self.coefficients) > 1:
            return None
        ((d, c),) = self.coefficients.items()
        return RootSum({d: 1 / Fraction(c * d)})

    def ball(self, digits: int) -> Ball:
        """Return a ball of the sum."""
        total = Ball.of(0, digits)
        for radicand, coefficient in self.coefficients.items():
            total += Ball.of(coefficient, digits) * _root(radicand, digits)
        return total


@dataclass(frozen=True, slots=True)
class Logarithm:
    """Irrational number factor * log(argument), with a factor other than 0 and an argument other than 1."""

    factor: Rational
    argument: Rational

    @property
    def sign(self) -> int:
        """Sign of the number, decided by rational comparisons."""
        return 1 if (self.factor > 0) == (self.argument > 1) else -1

    def scaled(self, factor: Rational) -> Logarithm:
        """Return the logarithm times a rational number other than 0."""
        return Logarithm(self.factor * factor, self.argument)

    def plus(self, other: Logarithm) -> Rational | Logarithm | None:
        """Return the sum; None if the argument would be longer than `MOST_BITS`."""
        order = math.lcm(self.factor.denominator, other.factor.denominator)
        parts = [(part.argument, int(part.factor * order)) for part in (self, other)]
        if (
            sum(abs(n) * (r.numerator.bit_length() + r.denominator.bit_length()) for r, n in parts)
            > MOST_BITS
        ):
            return None
        return logarithm(math.prod(Fraction(r) ** n for r, n in parts), Fraction(1, order))

    def ball(self, digits: int) -> Ball:
        """Return a ball of the number."""
        return Ball.of(self.factor, digits) * _log(self.argument, digits)


def sum_of_roots(terms: Iterable[tuple[int, Rational]]) -> Rational | RootSum:
    """Return sum_i c_i sqrt(d_i) for pairs (d_i, c_i) with natural d_i, as a rational number if it is one."""
    merged: dict[int, Rational] = {1: 0}
    for radicand, coefficient in terms:
        for known in merged:
            root = math.isqrt(radicand * known)
            if root * root == radicand * known:
                # sqrt(d) = sqrt(d e) / e * sqrt(e)
                radicand, coefficient = known, coefficient * Fraction(root, known)
                break
        merged[radicand] = merged.get(radicand, 0) + coefficient
    rational = merged[1]
    left = {d: c for d, c in merged.items() if c}
    return RootSum(left) if left.keys() - {1} else rational


def square_root(value: Rational) -> Rational | RootSum:
    """Return the square root of a rational number of at least 0."""
    # sqrt(n / d) = sqrt(n d) / d
    return sum_of_roots([(value.numerator * value.denominator, Fraction(1, value.denominator))])


def logarithm(argument: Rational, factor: Rational = 1) -> Rational | Logarithm:
    """Return factor * log(argument) of a positive rational number."""
    return 0 if argument == 1 else Logarithm(factor, argument)


@lru_cache(maxsize=2**12)
def _root(radicand: int, digits: int) -> Ball:
    return Ball.of(radicand, digits).sqrt()


@lru_cache(maxsize=2**12)
def _log(argument: Rational, digits: int) -> Ball:
    return Ball.of(argument, digits).log()
