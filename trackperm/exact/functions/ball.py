"""Numbers to many digits with a bound on their error, in Python's `decimal`.

A ball is a middle and a radius; the number lies within. Sums, products, quotients, roots, logarithms and
exponentials of `decimal` are correctly rounded, so each adds one unit in the last digit at most; radii are
rounded up.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cache

_RADII = Context(prec=17, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX)


@cache
def _context(digits: int) -> Context:
    return Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX)


@dataclass(frozen=True, slots=True)
class Ball:
    """A number within `radius` of `middle`, computed with so many digits."""

    middle: Decimal
    radius: Decimal
    digits: int

    @classmethod
    def of(cls, value: int | Fraction, digits: int) -> Ball:
        """Return a rational number to so many digits."""
        middle = _context(digits).divide(Decimal(value.numerator), Decimal(value.denominator))
        return cls._rounded(middle, Decimal(0), digits)

    @classmethod
    def _rounded(cls, middle: Decimal, radius: Decimal, digits: int) -> Ball:
        """Add the error of rounding `middle`: |middle| 10^(1 - digits) at most."""
        unit = _RADII.abs(middle).scaleb(1 - digits, _RADII)
        return cls(middle, _RADII.add(radius, unit), digits)

    @property
    def size(self) -> Decimal:
        """A bound of the absolute value."""
        return _RADII.add(_RADII.abs(self.middle), self.radius)

    @property
    def sign(self) -> int | None:
        """The sign; None where the radius leaves room for both."""
        if self.middle.copy_abs() <= self.radius:
            return None if self.radius else 0
        return -1 if self.middle.is_signed() else 1

    def __add__(self, other: Ball) -> Ball:
        middle = _context(self.digits).add(self.middle, other.middle)
        return Ball._rounded(middle, _RADII.add(self.radius, other.radius), self.digits)

    def __neg__(self) -> Ball:
        return Ball(self.middle.copy_negate(), self.radius, self.digits)

    def __sub__(self, other: Ball) -> Ball:
        return self + -other

    def __mul__(self, other: Ball) -> Ball:
        middle = _context(self.digits).multiply(self.middle, other.middle)
        radius = _RADII.fma(self.size, other.radius, _RADII.multiply(_RADII.abs(other.middle), self.radius))
        return Ball._rounded(middle, radius, self.digits)

    def __truediv__(self, other: Ball) -> Ball:
        """Divide by a number whose sign is known."""
        middle = _context(self.digits).divide(self.middle, other.middle)
        # |a'/b' - a/b| <= (|a' - a| + |a/b| |b' - b|) / |b'|
        quotient = _RADII.add(_RADII.abs(middle), _RADII.abs(middle).scaleb(1 - self.digits, _RADII))
        radius = _RADII.divide(_RADII.fma(quotient, other.radius, self.radius), other._least())
        return Ball._rounded(middle, radius, self.digits)

    def sqrt(self) -> Ball:
        """Return the square root of a number that is known to be positive."""
        middle = _context(self.digits).sqrt(self.middle)
        # |sqrt a' - sqrt a| <= |a' - a| / sqrt a
        return Ball._rounded(middle, _RADII.divide(self.radius, self._below(middle)), self.digits)

    def log(self) -> Ball:
        """Return the natural logarithm of a number that is known to be positive."""
        middle = _context(self.digits).ln(self.middle)
        # |log a' - log a| <= |a' - a| / min(a', a)
        return Ball._rounded(middle, _RADII.divide(self.radius, self._least()), self.digits)

    def exp(self) -> Ball:
        """Return e to the number, which is 10^17 at most in size."""
        middle = _context(self.digits).exp(self.middle)
        # |e^a' - e^a| <= e^a |a' - a| e^|a' - a|, and _RADII rounds an exponential to the nearest
        spread = _RADII.multiply(self.radius, _RADII.multiply(_RADII.exp(self.radius), Decimal("1.01")))
        return Ball._rounded(middle, _RADII.multiply(self._above(middle), spread), self.digits)

    def _least(self) -> Decimal:
        """Return a positive number that |self| is not below."""
        return self._below(_context(self.digits).subtract(self.middle.copy_abs(), self.radius))

    @staticmethod
    def _above(value: Decimal) -> Decimal:
        """Return a number a little above a positive one, to few digits."""
        return _RADII.multiply(value, Decimal("1.01"))

    @staticmethod
    def _below(value: Decimal) -> Decimal:
        """Return a number a little below a positive one, to so few digits that radii stay cheap."""
        return _RADII.multiply(value, Decimal("0.99"))
