"""Floating-point arithmetic on arrays with a running bound on its rounding errors.

The error of an operation is that propagated from its operands plus its own rounding error, which is at most
`ROUNDING` times the result unless that underflows. An infinite or NaN bound means that nothing is known: a
condition, a divisor or the argument of a root or logarithm is too close to its limit, or a number is beyond
the range of floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

ROUNDING = 2.0**-52
"""Relative error of one operation: twice that of a correctly rounded one, which covers the bound's own
roundings."""

TRANSCENDENTAL = 2.0**-49
"""Relative error of a logarithm or exponential: NumPy's have 4 units in the last place at most; this is 8."""

LARGEST_EXPONENT = 1e15
"""Largest size of an exponent: beyond it floats have no fraction left, and the exponential is undefined."""

SLACK = 1.0 + 2.0**-30
"""Factor that covers the roundings in the computation of bounds, for up to 2^20 operations."""

EXACT = 2.0**53
"""Limit below which sums and products of integers are exact."""

SMALL, UNDERFLOW = 1e-290, 1e-300
"""Results below SMALL may have lost digits to underflow, of at most the size UNDERFLOW."""


@dataclass(frozen=True)
class Enclosure:
    """Values, bounds of their absolute errors, and flags of certainly undefined ones.

    The three arrays broadcast. Conditions have the values 1 and 0.
    """

    value: FloatArray
    error: FloatArray
    undefined: BoolArray

    @classmethod
    def of_integers(cls, integers: npt.NDArray[Any]) -> Enclosure:
        """Enclose integers of any size, or float64 integers."""
        value = integers.astype(np.float64)
        return cls(value, _rounding(value, integral=True), np.zeros((), dtype=bool))

    @classmethod
    def of_constant(cls, constant: Fraction) -> Enclosure:
        """Enclose one rational number."""
        try:
            value = np.asarray(float(constant))
        except OverflowError:
            value = np.asarray(np.inf)
        exact = np.isfinite(value) and Fraction(float(value)) == constant
        return cls(
            value,
            np.zeros(()) if exact else np.abs(value) * ROUNDING + UNDERFLOW,
            np.zeros((), dtype=bool),
        )

    @property
    def is_zero(self) -> BoolArray:
        """Flags of values that are certainly zero."""
        return np.asarray((self.value == 0) & (self.error == 0))

    @property
    def bound(self) -> FloatArray:
        """Error bound that includes the roundings of its own computation."""
        return self.error * SLACK

    def add(self, other: Enclosure, *, integral: bool) -> Enclosure:
        """Add; `integral` states that both numbers are integers, so sums below 2^53 are exact."""
        value = self.value + other.value
        error = self.error + other.error + _rounding(value, integral)
        return Enclosure(value, error, self.undefined | other.undefined)

    def multiply(self, other: Enclosure, *, integral: bool) -> Enclosure:
        """Multiply; `integral` as in :meth:`add`."""
        value = self.value * other.value
        error = np.abs(self.value) * other.error + (np.abs(other.value) + other.error) * self.error
        error = error + _rounding(value, integral)
        if not integral:
            error = error + _lost(value, ~(self.is_zero | other.is_zero))
        return Enclosure(value, error, self.undefined | other.undefined)

    def divide(self, other: Enclosure, declared: Fraction | None) -> Enclosure:
        """Divide, with a declared value of 0/0."""
        value = self.value / other.value
        margin = np.abs(other.value) - other.bound
        error = (self.error + np.abs(value) * other.error) / margin + np.abs(value) * ROUNDING
        error = error + _lost(value, ~self.is_zero)
        error = np.where(margin > 0, error, np.inf)
        by_zero, of_zero = other.is_zero, self.is_zero
        undefined = self.undefined | other.undefined
        if declared is None:
            return Enclosure(value, error, undefined | by_zero)
        constant = Enclosure.of_constant(declared)
        both = by_zero & of_zero
        return Enclosure(
            np.where((self.value == 0) & (other.value == 0), constant.value, value),
            np.where(both, constant.error, error),
            undefined | (by_zero & (np.abs(self.value) > self.bound)),
        )

    def power(self, exponent: int, *, integral: bool) -> Enclosure:
        """Raise to an integer power, 1 or more."""
        return reduce(lambda power, _: power.multiply(self, integral=integral), range(exponent - 1), self)

    def sqrt(self) -> Enclosure:
        """Take the square root."""
        value = np.sqrt(np.maximum(self.value, 0.0))
        # |sqrt a' - sqrt a| <= |a' - a| / sqrt a
        error = self.error / value + value * ROUNDING
        error = np.where(self.value >= self.bound, error, np.inf)
        error = np.where(self.is_zero, 0.0, error)
        return Enclosure(value, error, self.undefined | (self.value < -self.bound))

    def log(self) -> Enclosure:
        """Take the natural logarithm."""
        value = np.log(self.value)
        # |log a' - log a| <= |a' - a| / min(a', a)
        margin = self.value - self.bound
        error = np.where(margin > 0, self.error / margin + np.abs(value) * TRANSCENDENTAL, np.inf)
        return Enclosure(value, error, self.undefined | self.is_zero | (self.value < -self.bound))

    def exp(self) -> Enclosure:
        """Raise e to the number."""
        value = np.exp(self.value)
        # |e^a' - e^a| <= e^a (e^|a' - a| - 1)
        error = np.maximum(value, SMALL) * np.expm1(self.bound) * SLACK + 2 * value * TRANSCENDENTAL
        error = error + _lost(value, np.asarray(True))
        size = np.abs(self.value)
        error = np.where(size + self.bound <= LARGEST_EXPONENT, error, np.inf)
        return Enclosure(value, error, self.undefined | (size - self.bound > LARGEST_EXPONENT))

    def abs(self) -> Enclosure:
        """Take the absolute value."""
        return Enclosure(np.abs(self.value), self.error, self.undefined)

    def extreme(self, other: Enclosure, *, greater: bool) -> Enclosure:
        """Take the greater, or smaller, of two numbers; the error is at most the larger of theirs."""
        choose = np.maximum if greater else np.minimum
        return Enclosure(
            choose(self.value, other.value),
            np.maximum(self.error, other.error),
            self.undefined | other.undefined,
        )

    def holds(self, comparison: str) -> Enclosure:
        """Compare with zero: ``> 0``, ``>= 0`` or ``== 0``."""
        value = {"> 0": np.greater, ">= 0": np.greater_equal, "== 0": np.equal}[comparison](self.value, 0.0)
        settled = (np.abs(self.value) > self.bound) | (self.error == 0)
        return Enclosure(value.astype(np.float64), np.where(settled, 0.0, np.inf), self.undefined)

    def choose(self, yes: Enclosure, no: Enclosure) -> Enclosure:
        """Take `yes` if this condition holds, else `no`."""
        holds, settled = self.value != 0, self.error == 0
        return Enclosure(
            np.where(holds, yes.value, no.value),
            np.where(settled, np.where(holds, yes.error, no.error), np.inf),
            self.undefined | (settled & np.where(holds, yes.undefined, no.undefined)),
        )


def _rounding(value: FloatArray, integral: bool) -> FloatArray:
    rounding = np.abs(value) * ROUNDING
    return np.where(np.abs(value) < EXACT, 0.0, rounding) if integral else rounding


def _lost(value: FloatArray, nonzero: BoolArray) -> FloatArray:
    """Bound the underflow of a product or quotient of numbers that may not be zero."""
    return np.where((np.abs(value) < SMALL) & nonzero, UNDERFLOW, 0.0)


def extreme_of(enclosures: Sequence[Enclosure], *, greater: bool) -> Enclosure:
    """Return the greatest, or the smallest, of several numbers."""
    return reduce(lambda one, other: one.extreme(other, greater=greater), enclosures)
