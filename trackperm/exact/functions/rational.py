"""Rational statistics: exact quotients of polynomials over the integers.

A statistic h(g_1, ..., g_m) that is built from integers by ``+ - * /`` is a quotient of two integer
polynomials wherever it is defined. Signs of integers then decide ties between values of h: with d > 0,
``h(x) >= n/d`` holds exactly when ``d * numerator(x) - n * denominator(x)`` is zero or has the sign of
``denominator(x)``. Only :meth:`RationalStatistic.values` rounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from operator import add, itemgetter
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trackperm.errors import CapacityError, InputError
from trackperm.exact.functions.operations import OperationTree, parts_of

Exponents = tuple[int, ...]

MAX_TERMS = 20_000
"""Largest number of terms of a polynomial: products of longer ones take minutes."""


class Polynomial:
    """Polynomial with integer coefficients, as a mapping from exponents to coefficients.

    Parameters
    ----------
    terms : mapping of tuple of int to int
        Coefficient of every monomial; zeros are dropped.
    n_variables : int
        Length of every exponent tuple.

    Raises
    ------
    CapacityError
        If there are more than 20,000 terms.
    """

    __slots__ = ("n_variables", "terms")

    def __init__(self, terms: Mapping[Exponents, int], n_variables: int) -> None:
        self.terms = dict(filter(itemgetter(1), terms.items()))
        self.n_variables = n_variables
        if len(self.terms) > MAX_TERMS:
            raise CapacityError(
                f"the statistic expands to a polynomial of {len(self.terms)} terms; the limit is {MAX_TERMS}"
            )

    @classmethod
    def constant(cls, value: int, n_variables: int) -> Polynomial:
        """Return the constant polynomial `value`."""
        return cls({(0,) * n_variables: value}, n_variables)

    @classmethod
    def variable(cls, index: int, n_variables: int) -> Polynomial:
        """Return the polynomial x_index."""
        return cls({(0,) * index + (1,) + (0,) * (n_variables - 1 - index): 1}, n_variables)

    @classmethod
    def affine(cls, constant: int, coefficients: Sequence[int]) -> Polynomial:
        """Return ``constant + sum_i coefficients[i] * x_i``."""
        n = len(coefficients)
        terms = {(0,) * n: int(constant)}
        for i, c in enumerate(coefficients):
            terms[(0,) * i + (1,) + (0,) * (n - 1 - i)] = int(c)
        return cls(terms, n)

    def __add__(self, other: Polynomial) -> Polynomial:
        terms = dict(self.terms)
        for exponents, c in other.terms.items():
            terms[exponents] = terms.get(exponents, 0) + c
        return Polynomial(terms, self.n_variables)

    def __neg__(self) -> Polynomial:
        return self.scaled(-1)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + (-other)

    def __mul__(self, other: Polynomial) -> Polynomial:
        for one, rest in ((self, other), (other, self)):
            if one.is_constant:
                return rest.scaled(sum(one.terms.values()))
        terms: dict[Exponents, int] = {}
        for left, c in self.terms.items():
            for right, d in other.terms.items():
                exponents = tuple(map(add, left, right))
                terms[exponents] = terms.get(exponents, 0) + c * d
            if len(terms) > 2 * MAX_TERMS:
                raise CapacityError(f"the statistic expands to a polynomial of more than {MAX_TERMS} terms")
        return Polynomial(terms, self.n_variables)

    def __pow__(self, exponent: int) -> Polynomial:
        if exponent == 0:
            return Polynomial.constant(1, self.n_variables)
        return reduce(Polynomial.__mul__, [self] * exponent)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and (self.n_variables, self.terms) == (
            other.n_variables,
            other.terms,
        )

    def __hash__(self) -> int:
        return hash((self.n_variables, frozenset(self.terms.items())))

    def __repr__(self) -> str:
        return f"Polynomial({self.terms}, {self.n_variables})"

    def scaled(self, factor: int) -> Polynomial:
        """Return the polynomial times an integer."""
        if factor == 1:
            return self
        return Polynomial({exponents: factor * c for exponents, c in self.terms.items()}, self.n_variables)

    def exact_quotient(self, divisor: int) -> Polynomial:
        """Return the quotient by a common divisor of all coefficients."""
        if divisor == 1:
            return self
        return Polynomial({exponents: c // divisor for exponents, c in self.terms.items()}, self.n_variables)

    @property
    def is_constant(self) -> bool:
        """Whether all terms have degree 0."""
        return len(self.terms) < 2 and not any(next(iter(self.terms), ()))

    @property
    def degree(self) -> int:
        """Total degree; 0 for constants, zero included."""
        return max((sum(exponents) for exponents in self.terms), default=0)

    @property
    def affine_form(self) -> tuple[int, tuple[int, ...]]:
        """Coefficients of 1 and of each variable."""
        units = (tuple(int(i == j) for j in range(self.n_variables)) for i in range(self.n_variables))
        return self.terms.get((0,) * self.n_variables, 0), tuple(self.terms.get(unit, 0) for unit in units)

    def __call__(self, point: Sequence[Any]) -> Any:
        """Evaluate at `point`, in the arithmetic of its entries (integers, or object arrays of them)."""
        total: Any = 0
        for exponents, c in self.terms.items():
            term: Any = c
            for x, e in zip(point, exponents, strict=True):
                if e:
                    term = term * x**e
            total = total + term
        return total

    def compose(self, arguments: Sequence[Polynomial]) -> Polynomial:
        """Substitute a polynomial for every variable."""
        n = arguments[0].n_variables
        powers: dict[tuple[int, int], Polynomial] = {}
        total = Polynomial({}, n)
        for exponents, c in self.terms.items():
            term = Polynomial.constant(c, n)
            for i, e in enumerate(exponents):
                if e:
                    if (i, e) not in powers:
                        powers[i, e] = arguments[i] ** e
                    term = term * powers[i, e]
            total = total + term
        return total


def always_zero() -> InputError:
    """Return the error for a division that is by zero everywhere."""
    return InputError("the statistic divides by an expression that is always 0")


@dataclass(frozen=True)
class Quotient:
    """Rational function as one quotient of polynomials, valid wherever no division is by zero.

    Attributes
    ----------
    numerator, denominator : Polynomial
        Without a common divisor of all their coefficients.
    factors : tuple of Polynomial
        Polynomials whose zeros make some divisor zero; constants are omitted, except for zero itself.
    """

    numerator: Polynomial
    denominator: Polynomial
    factors: tuple[Polynomial, ...] = ()

    @property
    def divisors(self) -> tuple[Polynomial, ...]:
        """The `factors`; InputError if one of them is 0 everywhere."""
        if not all(factor.terms for factor in self.factors):
            raise always_zero()
        return self.factors

    @property
    def vanishes(self) -> bool:
        """Whether it is 0 everywhere, with no division by zero that could give it another value."""
        return not (self.numerator.terms or self.factors)

    def joined(self, operation: Operation, other: Quotient) -> Quotient:
        """Return the sum, product or quotient of two, with the factors of both."""
        (a, b), (c, d) = (self.numerator, self.denominator), (other.numerator, other.denominator)
        factors = dict.fromkeys((*self.factors, *other.factors))
        if operation == "+":
            numerator, denominator = (a + c, b) if b == d else (a * d + c * b, b * d)
        elif operation == "*":
            numerator, denominator = a * c, b * d
        else:
            numerator, denominator = a * d, b * c
            factors |= dict.fromkeys(p for p in (c, d) if not (p.is_constant and p.terms))
        common = math.gcd(*numerator.terms.values(), *denominator.terms.values()) or 1
        return Quotient(numerator.exact_quotient(common), denominator.exact_quotient(common), tuple(factors))


Operation = Literal["variable", "constant", "+", "*", "/"]


@dataclass(frozen=True)
class RationalStatistic(OperationTree):
    r"""Exact rational function h of m integers.

    It is built with :meth:`variable`, :meth:`constant` and arithmetic; operands may be integers and
    fractions, too:

    >>> tp, incorrect = (RationalStatistic.variable(i, 2) for i in range(2))
    >>> f1 = tp.divide(tp + incorrect / 2, undefined=0)
    >>> f1([3, 2]), f1([0, 0])
    (Fraction(3, 4), Fraction(0, 1))

    Notes
    -----
    `undefined` is the value of 0/0 for that division only. A nonzero number over zero is undefined.
    """

    operation: Operation
    n_variables: int
    operands: tuple[RationalStatistic, ...] = ()

    def __pow__(self, exponent: int) -> RationalStatistic:
        if exponent < 0:
            return 1 / self**-exponent
        one = RationalStatistic.constant(1, self.n_variables)
        return reduce(RationalStatistic.__mul__, [self] * exponent) if exponent else one

    def __call__(self, point: Sequence[int]) -> Fraction:
        """Return the exact value at `point`, a sequence of m integers.

        Raises
        ------
        ZeroDivisionError
            At 0/0 without a declared value, and at a non-zero number over zero.
        """
        found: dict[int, Fraction | int] = {}
        for part in self._parts:
            value: Fraction | int
            if part.operation == "variable":
                value = int(point[part.index])
            elif part.operation == "constant":
                value = part.value
            else:
                left, right = (found[id(operand)] for operand in part.operands)
                if part.operation == "+":
                    value = left + right
                elif part.operation == "*":
                    value = left * right
                elif right != 0:
                    value = Fraction(left) / right
                elif left != 0:
                    raise ZeroDivisionError(f"the statistic divides {left} by 0")
                elif part.undefined is None:
                    raise ZeroDivisionError("the statistic divides 0 by 0, and no value is declared for that")
                else:
                    value = part.undefined
            found[id(part)] = value
        return Fraction(found[id(self)])

    def values(self, points: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return the values at `points`, shape (..., m), in floating point.

        They are NaN where undefined, and infinite beyond the range of floats.
        """
        found: dict[int, npt.NDArray[np.float64]] = {}
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for part in self._parts:
                if part.operation == "variable":
                    values = np.asarray(points[..., part.index], dtype=np.float64)
                elif part.operation == "constant":
                    values = np.asarray(float(part.value))
                else:
                    left, right = (found[id(operand)] for operand in part.operands)
                    if part.operation == "+":
                        values = left + right
                    elif part.operation == "*":
                        values = left * right
                    else:
                        values = np.divide(left, right)
                        if not right.all():
                            at_0 = math.nan if part.undefined is None else float(part.undefined)
                            values = np.where(right == 0, np.where(left == 0, at_0, math.nan), values)
                found[id(part)] = values
        return np.asarray(found[id(self)])

    def of(self, arguments: Mapping[int, Polynomial], n_variables: int) -> Quotient:
        """Return h of polynomials in `n_variables`, by the index of the variable that each one replaces.

        Divisions that are identically their declared value are replaced by it.

        Raises
        ------
        CapacityError
            If a polynomial has more than 20,000 terms.
        """
        one = Polynomial.constant(1, n_variables)
        found: dict[int, Quotient] = {}
        for part in self._parts:
            if part.operation == "variable":
                found[id(part)] = Quotient(arguments[part.index], one)
                continue
            value = part.value if part.operation == "constant" else None
            if value is None:
                left, right = (found[id(operand)] for operand in part.operands)
                # 0/x is 0 wherever x is nonzero, and its declared value elsewhere.
                zero = part.undefined is not None and left.vanishes
                if zero and (right.vanishes or (part.undefined == 0 and not right.factors)):
                    value = part.undefined
            if value is None:
                found[id(part)] = left.joined(part.operation, right)
            else:
                found[id(part)] = Quotient(one.scaled(value.numerator), one.scaled(value.denominator))
        return found[id(self)]

    @cached_property
    def quotient(self) -> Quotient:
        """H as one quotient of polynomials in its variables."""
        n = self.n_variables
        return self.of({i: Polynomial.variable(i, n) for i in self.variables}, n)

    @cached_property
    def affine(self) -> tuple[Fraction, dict[int, Fraction]] | None:
        """Constant and slopes by variable if h is written as an affine function, else None."""
        if self.operation == "variable":
            return Fraction(0), {self.index: Fraction(1)}
        if self.operation == "constant":
            return self.value, {}
        left, right = self.operands[0].affine, self.operands[1].affine
        if left is None or right is None:
            return None
        if self.operation == "+":
            slopes = dict(left[1])
            for index, slope in right[1].items():
                slopes[index] = slopes.get(index, Fraction(0)) + slope
            return left[0] + right[0], slopes
        if self.operation == "*" and right[1]:
            left, right = right, left
        if right[1] or (self.operation == "/" and right[0] == 0):
            return None
        factor = right[0] if self.operation == "*" else 1 / right[0]
        return left[0] * factor, {index: slope * factor for index, slope in left[1].items()}

    @cached_property
    def linear(self) -> RationalStatistic | None:
        """Affine form of h, with its divisions simplified if that is needed; None if there is none."""
        if self.affine is not None:
            return self
        try:
            simple = self.simplified()
        except CapacityError:  # a divisor that is too long to multiply out is not constant
            return None
        return None if simple.affine is None else simple

    @cached_property
    def divisors(self) -> tuple[Polynomial, ...]:
        """Polynomials whose zeros make some divisor of h zero; constants are omitted."""
        found: dict[Polynomial, None] = {}
        for division in (part for part in self._parts if part.operation == "/"):
            divisor = division.operands[1].quotient
            if not divisor.numerator.terms:
                raise always_zero()
            found |= dict.fromkeys(p for p in (divisor.numerator, divisor.denominator) if p.degree > 0)
        return tuple(found)

    @cached_property
    def _parts(self) -> list[RationalStatistic]:
        """The trees of all operations, operands first."""
        return parts_of(self)

    @property
    def vanishes(self) -> bool:
        """Whether h is 0 everywhere, with no division by zero that could give it another value."""
        return not (self.quotient.numerator.terms or self.divisors)

    def substitute(self, arguments: Sequence[RationalStatistic]) -> RationalStatistic:
        """Replace every variable by a statistic; all arguments have the same number of variables."""
        if len(arguments) != self.n_variables:
            raise InputError(
                f"{len(arguments)} statistics cannot replace variables; expected {self.n_variables}"
            )
        n = arguments[0].n_variables
        found: dict[int, RationalStatistic] = {}
        for part in self._parts:
            if part.operation == "variable":
                found[id(part)] = arguments[part.index]
            else:
                operands = tuple(found[id(operand)] for operand in part.operands)
                found[id(part)] = replace(part, n_variables=n, operands=operands)
        return found[id(self)]

    def simplified(self) -> RationalStatistic:
        """Replace every division that is identically its declared value of 0/0 by that value.

        Raises
        ------
        InputError
            If a divisor is 0 wherever it is defined, but has another declared value elsewhere.
        """
        found: dict[int, RationalStatistic] = {}
        for part in self._parts:
            operands = tuple(found[id(operand)] for operand in part.operands)
            found[id(part)] = replace(part, operands=operands) if operands else part
            if part.operation == "/" and part.undefined is not None and operands[0].vanishes:
                # 0/x is 0 wherever x is nonzero, and its declared value elsewhere.
                divisor = operands[1]
                if divisor.vanishes or (part.undefined == 0 and not divisor.divisors):
                    found[id(part)] = RationalStatistic.constant(part.undefined, self.n_variables)
        return found[id(self)]

    def renamed(self, variables: Sequence[int]) -> RationalStatistic:
        """Return x -> h(x[variables])."""
        found: dict[int, RationalStatistic] = {}
        for part in self._parts:
            if part.operation == "variable":
                found[id(part)] = replace(part, index=variables[part.index])
            else:
                found[id(part)] = replace(part, operands=tuple(found[id(each)] for each in part.operands))
        return found[id(self)]

    def is_antisymmetric_under(self, permutation: Sequence[int]) -> bool:
        """Whether ``h(x[permutation]) == -h(x)`` as rational functions."""
        here, there = self.quotient, self.renamed(permutation).quotient
        return not (here.numerator * there.denominator + there.numerator * here.denominator).terms
