"""Numbers to many digits with a bound on their error, in Python's `decimal`.

A ball is a middle and a radius, and contains the number. Sums, products, quotients, roots, logarithms and
exponentials of `decimal` are correctly rounded, so each adds at most one unit in the last digit; radii are
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
    """Enclosure of a number within `radius` of `middle`, computed with `digits` digits."""

    middle: Decimal
    radius: Decimal
    digits: int

    @classmethod
    def of(cls, value: int | Fraction, digits: int) -> Ball:
        """Return the ball of a rational number."""
        middle = _context(digits).divide(Decimal(value.numerator), Decimal(value.denominator))
        return cls._rounded(middle, Decimal(0), digits)

    @classmethod
    def _rounded(cls, middle: Decimal, radius: Decimal, digits: int) -> Ball:
        """Add the rounding error of `middle`, at most |middle| 10^(1 - digits)."""
        unit = _RADII.abs(middle).scaleb(1 - digits, _RADII)
        return cls(middle, _RADII.add(radius, unit), digits)

    @property
    def size(self) -> Decimal:
        """Upper bound of the absolute value."""
        return _RADII.add(_RADII.abs(self.middle), self.radius)

    @property
    def sign(self) -> int | None:
        """Sign of the number; None if the ball contains both signs."""
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
        """Divide by a number with a known sign."""
        middle = _context(self.digits).divide(self.middle, other.middle)
        # |a'/b' - a/b| <= (|a' - a| + |a/b| |b' - b|) / |b'|
        quotient = _RADII.add(_RADII.abs(middle), _RADII.abs(middle).scaleb(1 - self.digits, _RADII))
        radius = _RADII.divide(_RADII.fma(quotient, other.radius, self.radius), other._least())
        return Ball._rounded(middle, radius, self.digits)

    def sqrt(self) -> Ball:
        """Return the square root of a positive number."""
        middle = _context(self.digits).sqrt(self.middle)
        # |sqrt a' - sqrt a| <= |a' - a| / sqrt a
        return Ball._rounded(middle, _RADII.divide(self.radius, self._below(middle)), self.digits)

    def log(self) -> Ball:
        """Return the natural logarithm of a positive number."""
        middle = _context(self.digits).ln(self.middle)
        # |log a' - log a| <= |a' - a| / min(a', a)
        return Ball._rounded(middle, _RADII.divide(self.radius, self._least()), self.digits)

    def exp(self) -> Ball:
        """Return the exponential of a number of at most 10^17 in size."""
        middle = _context(self.digits).exp(self.middle)
        # |e^a' - e^a| <= e^a |a' - a| e^|a' - a|; the factor covers that `exp` rounds to the nearest.
        spread = _RADII.multiply(self.radius, _RADII.multiply(_RADII.exp(self.radius), Decimal("1.01")))
        return Ball._rounded(middle, _RADII.multiply(self._above(middle), spread), self.digits)

    def _least(self) -> Decimal:
        """Return a positive lower bound of the absolute value."""
        return self._below(_context(self.digits).subtract(self.middle.copy_abs(), self.radius))

    @staticmethod
    def _above(value: Decimal) -> Decimal:
        """Return a slightly greater number, to few digits."""
        return _RADII.multiply(value, Decimal("1.01"))

    @staticmethod
    def _below(value: Decimal) -> Decimal:
        """Return a slightly smaller positive number, to few digits, so that radii stay cheap."""
        return _RADII.multiply(value, Decimal("0.99"))
