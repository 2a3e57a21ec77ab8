"""Statistics with square roots, logarithms, exponentials and conditions, evaluated in floats and exactly.

In floating point, values have a bound on their rounding errors (`enclosure`). At one point they are compared
exactly (`real_number`): as fractions, sums of square roots or logarithms, or by up to 480 digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trackperm.exact.functions.enclosure import Enclosure, FloatArray, extreme_of
from trackperm.exact.functions.operations import OperationTree, parts_of
from trackperm.exact.functions.rational import RationalStatistic
from trackperm.exact.functions.real_number import Arithmetic, RealNumber, Value

RealOperation = Literal[
    "variable",
    "constant",
    "+",
    "*",
    "/",
    "**",
    "sqrt",
    "log",
    "exp",
    "abs",
    "min",
    "max",
    "where",
    "> 0",
    ">= 0",
    "== 0",
]


@dataclass(frozen=True)
class RealStatistic(OperationTree):
    r"""Real function h of m integers: arithmetic, roots, logarithms, exponentials, extremes, conditions.

    It is built with :meth:`variable`, :meth:`constant`, arithmetic and the methods below; operands may be
    integers and fractions, too. Conditions, such as ``x > 1``, are statistics with the values 1 and 0;
    ``&``, ``|`` and ``~`` combine them.

    >>> tp, predicted, actual = (RealStatistic.variable(i, 3) for i in range(3))
    >>> fowlkes_mallows = tp.divide((predicted * actual).sqrt(), undefined=0)
    >>> fowlkes_mallows(np.array([[3, 4, 4], [0, 0, 5]]))
    array([0.75, 0.  ])
    >>> fowlkes_mallows.number([1, 2, 1]) == fowlkes_mallows.number([2, 8, 1])
    True

    Notes
    -----
    The value is undefined for a nonzero number over 0, for 0/0 without a declared value, for the root of a
    negative number, the logarithm of one that is not positive, the exponential of one beyond 10^15 in size,
    and if any part is undefined, except a branch of :meth:`where` that is not chosen.
    """

    operation: RealOperation
    n_variables: int
    operands: tuple[RealStatistic, ...] = ()

    @classmethod
    def from_rational(cls, h: RationalStatistic) -> RealStatistic:
        """Convert a rational statistic in its written form, not multiplied out."""
        operands = tuple(cls.from_rational(operand) for operand in h.operands)
        return cls(h.operation, h.n_variables, operands, h.index, h.value, h.undefined)

    def __pow__(self, exponent: int) -> RealStatistic:
        if exponent < 0:
            return 1 / self**-exponent
        if exponent == 0:
            return self._coerce(1)
        return self if exponent == 1 else replace(self._join("**"), index=exponent)

    def sqrt(self) -> RealStatistic:
        """Return the square root."""
        return self._join("sqrt")

    def log(self) -> RealStatistic:
        """Return the natural logarithm."""
        return self._join("log")

    def exp(self) -> RealStatistic:
        """Return e to this statistic."""
        return self._join("exp")

    def __abs__(self) -> RealStatistic:
        return self._join("abs")

    def minimum(self, *others: RealStatistic | int | Fraction) -> RealStatistic:
        """Return the smallest of this statistic and others."""
        return self._join("min", *others)

    def maximum(self, *others: RealStatistic | int | Fraction) -> RealStatistic:
        """Return the greatest of this statistic and others."""
        return self._join("max", *others)

    def __gt__(self, other: RealStatistic | int | Fraction) -> RealStatistic:
        return (self - other)._join("> 0")

    def __ge__(self, other: RealStatistic | int | Fraction) -> RealStatistic:
        return (self - other)._join(">= 0")

    def __lt__(self, other: RealStatistic | int | Fraction) -> RealStatistic:
        return self._coerce(other) > self

    def __le__(self, other: RealStatistic | int | Fraction) -> RealStatistic:
        return self._coerce(other) >= self

    def equals(self, other: RealStatistic | int | Fraction) -> RealStatistic:
        """Return the condition that this statistic equals another."""
        return (self - other)._join("== 0")

    def __and__(self, other: RealStatistic) -> RealStatistic:
        return self.minimum(other)

    def __or__(self, other: RealStatistic) -> RealStatistic:
        return self.maximum(other)

    def __invert__(self) -> RealStatistic:
        return 1 - self

    def where(self, yes: RealStatistic | int | Fraction, no: RealStatistic | int | Fraction) -> RealStatistic:
        """Return `yes` if this condition holds, else `no`; only the chosen one is evaluated."""
        return self._join("where", yes, no)

    @cached_property
    def _number(self) -> int | Fraction:
        """Constant as an integer if it is one, because integers are faster than fractions."""
        return self.value.numerator if self.value.denominator == 1 else self.value

    @cached_property
    def is_integral(self) -> bool:
        """Whether the written form proves that all values are integers."""
        if self.operation == "constant":
            return self.value.denominator == 1
        if self.operation in ("/", "sqrt", "log", "exp"):
            return False
        if self.operation in ("> 0", ">= 0", "== 0"):
            return True
        return all(operand.is_integral for operand in self.operands[self.operation == "where" :])

    @cached_property
    def divisors(self) -> tuple[RealStatistic, ...]:
        """Divisors of h that are not constant."""
        divisors = (part.operands[1] for part in parts_of(self) if part.operation == "/")
        return tuple(dict.fromkeys(divisor for divisor in divisors if divisor.variables))

    @cached_property
    def factors(self) -> tuple[RealStatistic, ...]:
        """Functions whose zeros are those of h: the factors of a product, and of what is under a root."""
        if self.operation in ("*", "/", "**", "sqrt", "abs"):
            operands = self.operands[:1] if self.operation == "/" else self.operands
            return tuple(dict.fromkeys(factor for operand in operands for factor in operand.factors))
        return (self,) if self.variables else ()

    def renamed(self, variables: Sequence[int]) -> RealStatistic:
        """Return x -> h(x[variables])."""
        if self.operation == "variable":
            return replace(self, index=variables[self.index])
        return replace(self, operands=tuple(operand.renamed(variables) for operand in self.operands))

    def __call__(self, points: npt.ArrayLike) -> FloatArray:
        """Return the values at `points`, shape (..., m), in floating point; NaN where undefined."""
        array = np.asarray(points)
        enclosure = self.enclosed([array[..., i] for i in range(self.n_variables)])
        value = np.where(enclosure.undefined | ~np.isfinite(enclosure.value), np.nan, enclosure.value)
        return np.array(np.broadcast_to(value, array.shape[:-1]))

    def enclosed(self, totals: Sequence[npt.NDArray[Any]]) -> Enclosure:
        """Return values in floating point with a bound on their errors.

        Parameters
        ----------
        totals : sequence of m ndarrays of integers
            Variables as int64, float64 or Python integers, in shapes that broadcast.
        """
        used = {index: Enclosure.of_integers(totals[index]) for index in self.variables}
        with np.errstate(all="ignore"):
            return self._enclosed(used)

    def _enclosed(self, totals: Mapping[int, Enclosure]) -> Enclosure:
        if self.operation == "variable":
            return totals[self.index]
        if self.operation == "constant":
            return Enclosure.of_constant(self.value)
        first, *others = (operand._enclosed(totals) for operand in self.operands)
        match self.operation:
            case "+":
                return first.add(others[0], integral=self.is_integral)
            case "*":
                return first.multiply(others[0], integral=self.is_integral)
            case "/":
                return first.divide(others[0], self.undefined)
            case "**":
                return first.power(self.index, integral=self.is_integral)
            case "sqrt":
                return first.sqrt()
            case "log":
                return first.log()
            case "exp":
                return first.exp()
            case "abs":
                return first.abs()
            case "min" | "max":
                return extreme_of([first, *others], greater=self.operation == "max")
            case "where":
                return first.choose(others[0], others[1])
        return first.holds(self.operation)

    def number(self, point: Sequence[int]) -> RealNumber:
        """Return the value at one point of integers, as a number that compares exactly.

        Raises
        ------
        UndefinedError
            If it is undefined.
        """
        integers = [int(x) for x in point]
        return RealNumber(lambda arithmetic: self.evaluate(integers, arithmetic))

    def evaluate(self, point: Sequence[int], arithmetic: Arithmetic) -> Value:
        """Return the value at one point of Python integers in an arithmetic.

        Raises
        ------
        UndefinedError
            If it is undefined.
        """
        match self.operation:
            case "variable":
                return point[self.index]
            case "constant":
                return self._number
            case "where":
                condition, yes, no = self.operands
                holds = arithmetic.sign(condition.evaluate(point, arithmetic)) != 0
                return (yes if holds else no).evaluate(point, arithmetic)
        values = [operand.evaluate(point, arithmetic) for operand in self.operands]
        match self.operation:
            case "+":
                return arithmetic.add(values[0], values[1])
            case "*":
                return arithmetic.multiply(values[0], values[1])
            case "/":
                return arithmetic.divide(values[0], values[1], self.undefined)
            case "**":
                return reduce(arithmetic.multiply, [values[0]] * self.index)
            case "sqrt":
                return arithmetic.sqrt(values[0])
            case "log":
                return arithmetic.log(values[0])
            case "exp":
                return arithmetic.exp(values[0])
            case "abs":
                return arithmetic.multiply(values[0], -1) if arithmetic.sign(values[0]) < 0 else values[0]
            case "min" | "max":
                side = 1 if self.operation == "max" else -1
                return reduce(lambda a, b: b if side * arithmetic.order(b, a) > 0 else a, values)
            case "== 0":
                return int(arithmetic.sign(values[0]) == 0)
        sign = arithmetic.sign(values[0])
        return int(sign > 0 or (sign == 0 and self.operation == ">= 0"))
