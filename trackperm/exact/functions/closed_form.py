r"""Sums of roots, powers of e and logarithms of rational numbers, with an exact test for zero.

For q + sum_i c_i P_i + sum_j q_j log(r_j), with rational q, c_i, q_j, r_j > 0 and irrational powers
P_i = d_i^(1/n_i) e^p_i (`power`):

- Roots of natural numbers of which no two have a rational quotient are linearly independent over the
  rationals, with 1 (Besicovitch 1940), and powers of e with distinct rational exponents are so over the
  algebraic numbers (Lindemann and Weierstrass). So powers with a rational quotient are merged, and then
  q + sum_i c_i P_i is zero only where each coefficient is.
- sum_j q_j log(r_j) is the logarithm of an algebraic number, and by Lindemann's theorem no non-zero algebraic
  number is the logarithm of one. So where all p_i are 0, the whole is zero only where both parts are. Nobody
  knows whether e + log(2) is rational: a sum of powers of e and logarithms has no closed form here.
- With q_j = n_j / n, sum_j q_j log(r_j) is zero where prod_j r_j^n_j is 1: where every element of a set of
  coprime integers from which the r_j are multiplied has exponent 0.

Hence sqrt(8) and 2 sqrt(2), log(4) and 2 log(2), or exp(1 + log(2) / 2) and e sqrt(2), are the same number
without a digit of either.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from trackperm.exact.functions.ball import Ball
from trackperm.exact.functions.power import MAX_BITS, MAX_ORDER, Power, Rational

FEWEST_DIGITS = 40
"""Digits that the sign of a number that is not zero is looked for in first; they double until it is found."""


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """q + sum_i c_i P_i + sum_j q_j log(r_j).

    Attributes
    ----------
    rational : int or Fraction
        q.
    powers : mapping of Power to int or Fraction
        c_i by P_i; not zero, no P_i and no quotient of two P_i rational.
    logs : mapping of Fraction to int or Fraction
        q_j by r_j; not zero, and none where a P_i has another exponent than 0.
    """

    rational: Rational
    powers: Mapping[Power, Rational] = field(default_factory=dict)
    logs: Mapping[Rational, Rational] = field(default_factory=dict)

    @classmethod
    def root(cls, value: Rational) -> ClosedForm:
        """Return the square root of a rational number, not negative."""
        return cls._of(0, [Power.of_root(value, 2)])

    @classmethod
    def log(cls, value: Rational) -> ClosedForm:
        """Return the natural logarithm of a positive rational number."""
        return cls(0, logs={value: 1} if value != 1 else {})

    @classmethod
    def _of(
        cls,
        rational: Rational,
        powers: Iterable[tuple[Power, Rational]],
        logs: Mapping[Rational, Rational] | None = None,
    ) -> ClosedForm:
        """Merge powers that are rational multiples of one another."""
        merged: dict[Power, Rational] = {}
        for power, coefficient in powers:
            if power not in merged:
                root = power.root
                if root is not None:
                    rational = rational + coefficient * root
                    continue
                for known in merged:
                    quotient = power.over(known)
                    if quotient is not None:
                        power, coefficient = known, coefficient * quotient
                        break
            merged[power] = merged.get(power, 0) + coefficient
        return cls(rational, {power: c for power, c in merged.items() if c}, logs or {})

    @property
    def is_rational(self) -> bool:
        """Whether there are neither powers nor logarithms."""
        return not self.powers and not self.logs

    def plus(self, other: ClosedForm) -> ClosedForm | None:
        """Return the sum; None where it has no such form, since it has powers of e and logarithms."""
        logs = dict(self.logs)
        for argument, factor in other.logs.items():
            logs[argument] = logs.get(argument, 0) + factor
        logs = {argument: factor for argument, factor in logs.items() if factor}
        powers = [*self.powers.items(), *other.powers.items()]
        total = ClosedForm._of(self.rational + other.rational, powers, logs)
        return None if logs and any(power.exponent for power in total.powers) else total

    def scaled(self, factor: Rational) -> ClosedForm:
        """Return the number times a rational one that is not zero."""
        return ClosedForm(
            self.rational * factor,
            {power: c * factor for power, c in self.powers.items()},
            {argument: q * factor for argument, q in self.logs.items()},
        )

    def times(self, other: ClosedForm) -> ClosedForm | None:
        """Return the product; None where it has no such form, since both are irrational and one has a log."""
        for one, another in ((self, other), (other, self)):
            if one.is_rational:
                return another.scaled(one.rational) if one.rational else one
        if self.logs or other.logs:
            return None
        terms = []
        for power, c in self._terms():
            for factor, f in other._terms():
                product = power.times(factor)
                if product is None:
                    return None
                terms.append((product, c * f))
        return ClosedForm._of(0, terms)

    def reciprocal(self) -> ClosedForm | None:
        """Return 1 over a number that is not zero; None unless it is c P or rational."""
        if self.is_rational:
            return ClosedForm(1 / Fraction(self.rational))
        term = self._single_power()
        if term is None:
            return None
        (radicand, order, exponent), c = term
        # 1 / (c d^(1/n) e^q) = d^((n - 1)/n) e^-q / (c d)
        return ClosedForm(0, {Power(radicand ** (order - 1), order, -exponent): 1 / Fraction(c * radicand)})

    def root_of_power(self) -> ClosedForm | None:
        """Return the square root of c P, positive; None of other numbers."""
        term = self._single_power()
        if term is None:
            return None
        (radicand, order, exponent), c = term
        # sqrt(c d^(1/n) e^q) = (c^n d)^(1/(2 n)) e^(q/2)
        return _root(c**order * radicand, 2 * order, Fraction(exponent) / 2)

    def log_of_power(self) -> ClosedForm | None:
        """Return the natural logarithm of c P, positive; None of other numbers."""
        term = self._single_power()
        if term is None:
            return None
        (radicand, order, exponent), c = term
        # log(c d^(1/n) e^q) = q + log(c^n d) / n
        logs = ClosedForm.log(c**order * radicand).logs
        return ClosedForm(exponent, logs=dict.fromkeys(logs, Fraction(1, order)))

    def exp(self) -> ClosedForm | None:
        """Return e to the number; None where it has no such form, as with roots."""
        if self.powers:
            return None
        order = math.lcm(*(factor.denominator for factor in self.logs.values()))
        exponents = {argument: int(factor * order) for argument, factor in self.logs.items()}
        if order > MAX_ORDER or sum(map(_bits, exponents, exponents.values())) > MAX_BITS:
            return None
        # exp(q + sum_j n_j / n log(r_j)) = e^q (prod_j r_j^n_j)^(1/n)
        base = math.prod((Fraction(r) ** n for r, n in exponents.items()), start=Fraction(1))
        return _root(base, order, self.rational)

    def _terms(self) -> list[tuple[Power, Rational]]:
        """Return the summands but for logarithms."""
        rational = [(Power(1, 1), self.rational)] if self.rational else []
        return [*rational, *self.powers.items()]

    def _single_power(self) -> tuple[Power, Rational] | None:
        """Return P and c where the number is c P, else None."""
        if self.rational or self.logs or len(self.powers) != 1:
            return None
        return next(iter(self.powers.items()))

    @property
    def is_zero(self) -> bool:
        """Whether the number is zero, decided without a digit."""
        return not self.rational and not self.powers and (not self.logs or _product_is_one(self.logs))

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
        for power, coefficient in self.powers.items():
            total += Ball.of(coefficient, digits) * power.ball(digits)
        for argument, factor in self.logs.items():
            total += Ball.of(factor, digits) * _log(argument, digits)
        return total


def _root(value: Rational, order: int, exponent: Rational) -> ClosedForm | None:
    """Return value^(1 / order) e^exponent; None where that takes a root too high or of integers too long."""
    if order > MAX_ORDER or _bits(value, order) > MAX_BITS:
        return None
    power, factor = Power.of_root(value, order)
    return ClosedForm._of(0, [(power._replace(exponent=exponent), factor)])


def _bits(value: Rational, exponent: int) -> int:
    """Bound the bits of the numerator and denominator of a power."""
    return abs(exponent) * (value.numerator.bit_length() + value.denominator.bit_length())


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
