"""Exact arithmetic with square roots and logarithms; balls of many digits for everything else.

A value is an integer, a fraction, a sum of square roots or a logarithm (`closed_forms`); the result of any
other operation is a ball (`ball`). Signs are exact, except that a ball which contains 0 counts as 0.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import total_ordering

from trackperm.errors import UndefinedError
from trackperm.exact.functions.ball import Ball
from trackperm.exact.functions.closed_forms import (
    Logarithm,
    Rational,
    RootSum,
    logarithm,
    square_root,
    sum_of_roots,
)
from trackperm.exact.functions.enclosure import LARGEST_EXPONENT

Value = Rational | RootSum | Logarithm | Ball

_RATIONAL = (int, Fraction)
_ALGEBRAIC = (int, Fraction, RootSum)

DIGITS = (120, 240, 480)
"""Digits used to compare two values; the greater numbers serve values that lose digits by cancellation."""

FEWEST_DIGITS = 40
"""Digits tried first for the sign of a sum of square roots, which is known to be nonzero."""

TIED = Decimal("1e-100")
"""Relative difference below which balls count as tied, 20 digits above the rounding of 120."""


class Arithmetic:
    """Arithmetic on values: exact for closed forms, and balls for all else.

    Parameters
    ----------
    digits : int
        Digits of balls.

    Attributes
    ----------
    by_digits : bool
        Whether a number counted as 0 only because its ball contains 0.
    """

    def __init__(self, digits: int) -> None:
        self.digits = digits
        self.by_digits = False

    def _balls(self, *values: Value) -> list[Ball]:
        return [as_ball(value, self.digits) for value in values]

    def add(self, a: Value, b: Value) -> Value:
        """Return a + b."""
        if isinstance(a, _RATIONAL) and isinstance(b, _RATIONAL):
            return a + b
        if isinstance(a, _ALGEBRAIC) and isinstance(b, _ALGEBRAIC):
            return sum_of_roots([*_terms(a), *_terms(b)])
        total = a.plus(b) if isinstance(a, Logarithm) and isinstance(b, Logarithm) else None
        if total is not None:
            return total
        one, other = self._balls(a, b)
        return one + other

    def multiply(self, a: Value, b: Value) -> Value:
        """Return a b."""
        if isinstance(a, _RATIONAL) and isinstance(b, _RATIONAL):
            return a * b
        for one, other in ((a, b), (b, a)):
            if isinstance(one, _RATIONAL) and isinstance(other, RootSum | Logarithm):
                return other.scaled(one) if one else 0
        if isinstance(a, RootSum) and isinstance(b, RootSum):
            return a.times(b)
        one, other = self._balls(a, b)
        return one * other

    def divide(self, a: Value, b: Value, declared: Fraction | None) -> Value:
        """Return a / b, with a declared value of 0/0."""
        if self.sign(b) == 0:
            if self.sign(a) != 0:
                raise UndefinedError("it divides a number other than 0 by 0")
            if declared is None:
                raise UndefinedError("it divides 0 by 0, and no value is declared for that")
            return declared
        if isinstance(b, _RATIONAL):
            return Fraction(a, b) if isinstance(a, _RATIONAL) else self.multiply(a, 1 / Fraction(b))
        inverse = b.reciprocal() if isinstance(b, RootSum) else None
        if inverse is not None:
            return self.multiply(a, inverse)
        one, other = self._balls(a, b)
        return one / other

    def sqrt(self, a: Value) -> Value:
        """Return the square root."""
        sign = self.sign(a)
        if sign < 0:
            raise UndefinedError("it takes the square root of a negative number")
        if sign == 0:
            return 0
        return square_root(a) if isinstance(a, _RATIONAL) else as_ball(a, self.digits).sqrt()

    def log(self, a: Value) -> Value:
        """Return the natural logarithm."""
        if self.sign(a) <= 0:
            raise UndefinedError("it takes the logarithm of a number that is not positive")
        return logarithm(a) if isinstance(a, _RATIONAL) else as_ball(a, self.digits).log()

    def exp(self, a: Value) -> Value:
        """Return e to a number."""
        if as_ball(a, FEWEST_DIGITS).size > LARGEST_EXPONENT:
            raise UndefinedError(f"it takes the exponential of a number beyond {LARGEST_EXPONENT:.0e}")
        return 1 if a == 0 else as_ball(a, self.digits).exp()

    def order(self, a: Value, b: Value) -> int:
        """Return the sign of a - b."""
        if isinstance(a, _RATIONAL) and isinstance(b, _RATIONAL):
            return (a > b) - (a < b)
        return self.sign(self.add(a, self.multiply(b, -1)))

    def sign(self, a: Value) -> int:
        """Return the sign; 0 also for a ball that contains 0."""
        if isinstance(a, _RATIONAL):
            return (a > 0) - (a < 0)
        if isinstance(a, Logarithm):
            return a.sign
        balls = [a] if isinstance(a, Ball) else (a.ball(digits) for digits in (FEWEST_DIGITS, *DIGITS))
        sign = next((ball.sign for ball in balls if ball.sign is not None), None)
        if sign is None:
            self.by_digits = True
            return 0
        return sign


def _terms(value: Rational | RootSum) -> list[tuple[int, Rational]]:
    return list(value.coefficients.items()) if isinstance(value, RootSum) else [(1, value)]


def as_ball(value: Value, digits: int) -> Ball:
    """Return a value as a ball; an existing ball keeps its digits."""
    if isinstance(value, Ball):
        return value
    return Ball.of(value, digits) if isinstance(value, _RATIONAL) else value.ball(digits)


@total_ordering
class RealNumber:
    """Real number that compares exactly by evaluation to more digits.

    Parameters
    ----------
    evaluate : callable
        Function of an arithmetic that computes the number in it.

    Attributes
    ----------
    by_digits : bool
        Whether an intermediate number counted as 0 only because its ball contains 0.
    """

    def __init__(self, evaluate: Callable[[Arithmetic], Value]) -> None:
        self._evaluate = evaluate
        arithmetic = Arithmetic(DIGITS[0])
        self._value = evaluate(arithmetic)
        self.by_digits = arithmetic.by_digits

    def at(self, digits: int) -> Value:
        """Return the value, to `digits` digits if it has no closed form."""
        if not isinstance(self._value, Ball) or digits == DIGITS[0]:
            return self._value
        return self._evaluate(Arithmetic(digits))

    def compare(self, other: RealNumber | Rational) -> tuple[int, bool]:
        """Compare with another number.

        Returns
        -------
        sign : int
            Sign of the difference; 0 also if 100 digits of the two agree.
        by_digits : bool
            Whether digits alone decided this comparison or one inside a value.
        """
        if other is self:
            return 0, self.by_digits
        doubtful = self.by_digits or (isinstance(other, RealNumber) and other.by_digits)
        for digits in DIGITS:
            one = self.at(digits)
            another = other.at(digits) if isinstance(other, RealNumber) else other
            arithmetic = Arithmetic(digits)
            difference = arithmetic.add(one, arithmetic.multiply(another, -1))
            sign = arithmetic.sign(difference)
            if not arithmetic.by_digits:
                return sign, doubtful
            size = max(as_ball(one, digits).size, as_ball(another, digits).size)
            if as_ball(difference, digits).radius <= TIED * size:
                break
        return 0, True

    def __neg__(self) -> RealNumber:
        return RealNumber(lambda arithmetic: arithmetic.multiply(self._evaluate(arithmetic), -1))

    def __float__(self) -> float:
        """Return the nearest float; infinity beyond their range."""
        return float(as_ball(self._value, DIGITS[0]).middle)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RealNumber | int | Fraction) and self.compare(other)[0] == 0

    def __lt__(self, other: RealNumber | Rational) -> bool:
        return self.compare(other)[0] < 0
