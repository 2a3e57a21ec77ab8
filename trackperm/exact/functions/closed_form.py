r"""Sums of square roots and logarithms of rational numbers, with an exact test for zero.

For q + sum_i c_i sqrt(d_i) + sum_j q_j log(r_j), with rational q, c_i, q_j, r_j > 0 and integers d_i > 1:

- Square roots of integers of which no two have a square as their product are linearly independent over the
  rationals, with 1 (Besicovitch 1940). So roots whose radicands have a square product are merged, and then
  q + sum_i c_i sqrt(d_i) is zero only where each coefficient is.
- sum_j q_j log(r_j) is the logarithm of an algebraic number, and by Lindemann's theorem no non-zero algebraic
  number is the logarithm of one. So the whole is zero only where both parts are.
- With q_j = n_j / n, sum_j q_j log(r_j) is zero where prod_j r_j^n_j is 1: where every element of a set of
  coprime integers from which the r_j are multiplied has exponent 0.

Hence sqrt(8) and 2 sqrt(2), or log(4) and 2 log(2), are the same number without a digit of either.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from trackperm.exact.functions.ball import Ball

Rational = int | Fraction

FEWEST_DIGITS = 40
"""Digits that the sign of a number that is not zero is looked for in first; they double until it is found."""


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """q + sum_i c_i sqrt(d_i) + sum_j q_j log(r_j).

    Attributes
    ----------
    rational : int or Fraction
        q.
    roots : mapping of int to int or Fraction
        c_i by d_i; not zero, no d_i a square, no product of two d_i a square.
    logs : mapping of Fraction to int or Fraction
        q_j by r_j; not zero.
    """

    rational: Rational
    roots: Mapping[int, Rational] = field(default_factory=dict)
    logs: Mapping[Rational, Rational] = field(default_factory=dict)

    @classmethod
    def root(cls, value: Rational) -> ClosedForm:
        """Return the square root of a rational number, not negative."""
        # sqrt(n / d) = sqrt(n d) / d
        return cls._of(0, [(value.numerator * value.denominator, Fraction(1, value.denominator))])

    @classmethod
    def log(cls, value: Rational) -> ClosedForm:
        """Return the natural logarithm of a positive rational number."""
        return cls(0, logs={value: 1} if value != 1 else {})

    @classmethod
    def _of(
        cls,
        rational: Rational,
        roots: Iterable[tuple[int, Rational]],
        logs: Mapping[Rational, Rational] | None = None,
    ) -> ClosedForm:
        """Merge roots of integers that are rational multiples of one another."""
        merged: dict[int, Rational] = {}
        for radicand, coefficient in roots:
            if radicand not in merged:
                root = math.isqrt(radicand)
                if root * root == radicand:
                    rational = rational + coefficient * root
                    continue
                for known in merged:
                    product = radicand * known
                    root = math.isqrt(product)
                    if root * root == product:
                        # sqrt(d) = sqrt(d e) / e sqrt(e)
                        radicand, coefficient = known, coefficient * Fraction(root, known)
                        break
            merged[radicand] = merged.get(radicand, 0) + coefficient
        return cls(rational, {d: c for d, c in merged.items() if c}, logs or {})

    @property
    def is_rational(self) -> bool:
        """Whether there are neither roots nor logarithms."""
        return not self.roots and not self.logs

    def __add__(self, other: ClosedForm) -> ClosedForm:
        logs = dict(self.logs)
        for argument, factor in other.logs.items():
            logs[argument] = logs.get(argument, 0) + factor
        return ClosedForm._of(
            self.rational + other.rational,
            [*self.roots.items(), *other.roots.items()],
            {argument: factor for argument, factor in logs.items() if factor},
        )

    def scaled(self, factor: Rational) -> ClosedForm:
        """Return the number times a rational one that is not zero."""
        return ClosedForm(
            self.rational * factor,
            {d: c * factor for d, c in self.roots.items()},
            {argument: q * factor for argument, q in self.logs.items()},
        )

    def times(self, other: ClosedForm) -> ClosedForm | None:
        """Return the product; None where it has no such form, since both are irrational and one has a log."""
        for one, another in ((self, other), (other, self)):
            if one.is_rational:
                return another.scaled(one.rational) if one.rational else one
        if self.logs or other.logs:
            return None
        terms = [
            (d * e, c * f)
            for d, c in [(1, self.rational), *self.roots.items()]
            for e, f in [(1, other.rational), *other.roots.items()]
            if c and f
        ]
        return ClosedForm._of(0, terms)

    def reciprocal(self) -> ClosedForm | None:
        """Return 1 over a number that is not zero; None unless it is c sqrt(d) or rational."""
        if self.is_rational:
            return ClosedForm(1 / Fraction(self.rational))
        term = self.single_root()
        if term is None:
            return None
        radicand, coefficient = term
        return ClosedForm(0, {radicand: 1 / Fraction(coefficient * radicand)})

    def single_root(self) -> tuple[int, Rational] | None:
        """Return d and c where the number is c sqrt(d), else None."""
        if self.rational or self.logs or len(self.roots) != 1:
            return None
        return next(iter(self.roots.items()))

    @property
    def is_zero(self) -> bool:
        """Whether the number is zero, decided without a digit."""
        return not self.rational and not self.roots and (not self.logs or _product_is_one(self.logs))

    @property
    def sign(self) -> int:
        """The sign."""
        if self.is_zero:
            return 0
        digits = FEWEST_DIGITS
        while (sign := self.ball(digits).sign) is None:
            digits *= 2
        return sign

    def ball(self, digits: int) -> Ball:
        """Return the number to so many digits."""
        total = Ball.of(self.rational, digits)
        for radicand, coefficient in self.roots.items():
            total += Ball.of(coefficient, digits) * _root(radicand, digits)
        for argument, factor in self.logs.items():
            total += Ball.of(factor, digits) * _log(argument, digits)
        return total


@lru_cache(maxsize=2**12)
def _root(radicand: int, digits: int) -> Ball:
    return Ball.of(radicand, digits).sqrt()


@lru_cache(maxsize=2**12)
def _log(argument: Rational, digits: int) -> Ball:
    return Ball.of(argument, digits).log()


def _product_is_one(logs: Mapping[Rational, Rational]) -> bool:
    """Whether prod_j r_j^q_j = 1."""
    arguments = [part for r in logs for part in (r.numerator, r.denominator)]
    for base in coprime_base(arguments):
        exponent = sum(
            (q * (_valuation(r.numerator, base) - _valuation(r.denominator, base)) for r, q in logs.items()),
            Fraction(0),
        )
        if exponent:
            return False
    return True


def coprime_base(integers: Iterable[int]) -> list[int]:
    """Return pairwise coprime integers above 1 of which each of some positive integers is a product."""
    base: list[int] = []
    waiting = list(integers)
    while waiting:
        candidate = waiting.pop()
        if candidate == 1:
            continue
        for i, known in enumerate(base):
            common = math.gcd(candidate, known)
            if common > 1:
                # The product of all numbers at hand falls by the factor `common`, so this ends.
                del base[i]
                waiting += [candidate // common, known // common, common]
                break
        else:
            base.append(candidate)
    return base


def _valuation(integer: int, base: int) -> int:
    exponent = 0
    while integer % base == 0:
        integer //= base
        exponent += 1
    return exponent
