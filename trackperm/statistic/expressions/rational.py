"""Expressions converted to exact rational functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from trackperm.exact import RationalStatistic
from trackperm.statistic.expressions.tree import Binary, Expression, Literal, Name, Node, Unary, children
from trackperm.statistic.expressions.types import constant_integer

_PRIME = 2**521 - 1  # greater than any number in an expression, which has at most 100 digits
_POINTS = 3  # random points: a function of degree 32 vanishes at all by chance with probability 3e-52


def is_rational(expression: Expression) -> bool:
    """Return whether an expression consists of numbers, names, ``+ - * /`` and integer powers."""

    def holds(node: Node) -> bool:
        match node:
            case Name():
                return True
            case Literal():
                return not isinstance(node.value, bool | str)
            case Unary(operator="-" | "+") | Binary(operator="+" | "-" | "*" | "/" | "**"):
                return all(map(holds, children(node)))
        return False

    return holds(expression.tree)


def rational(expression: Expression, names: Sequence[str], undefined: Fraction | None) -> RationalStatistic:
    """Convert a rational expression to an exact function of `names`, with `undefined` as 0/0.

    Raises
    ------
    SpecError
        If it divides by a function that is zero everywhere.
    """
    index = {name: i for i, name in enumerate(names)}
    return _Compiler(expression, index, undefined).compiled(expression.tree)


def refuse_constant_zero(expression: Expression, divisor: Node, index: Mapping[str, int]) -> None:
    """Refuse a divisor that is a rational function and zero everywhere.

    Raises
    ------
    SpecError
        If it is, with its place.
    """
    if is_rational(replace(expression, tree=divisor)):
        _Compiler(expression, index, None).divisor(divisor)


class _Compiler:
    def __init__(self, expression: Expression, index: Mapping[str, int], undefined: Fraction | None) -> None:
        self.expression, self.index, self.undefined = expression, index, undefined
        self.zeros = _Zeros()

    def constant(self, value: int | Fraction) -> RationalStatistic:
        return RationalStatistic.constant(value, len(self.index))

    def divisor(self, node: Node) -> RationalStatistic:
        """Compile a divisor, which must not be zero everywhere."""
        function = self.compiled(node)
        if self.zeros.is_zero(function):
            raise self.expression.error(node, "this divisor is always 0")
        return function

    def compiled(self, node: Node) -> RationalStatistic:
        match node:
            case Name():
                return RationalStatistic.variable(self.index[node.full], len(self.index))
            case Literal():
                return self.constant(Fraction(node.value))
            case Unary():
                operand = self.compiled(node.operand)
                return operand if node.operator == "+" else -operand
            case Binary(operator="+"):
                return self.compiled(node.left) + self.compiled(node.right)
            case Binary(operator="-"):
                return self.compiled(node.left) - self.compiled(node.right)
            case Binary(operator="*"):
                return self.compiled(node.left) * self.compiled(node.right)
            case Binary(operator="/"):
                divisor = self.divisor(node.right)
                return self.compiled(node.left).divide(divisor, self.undefined)
            case Binary(operator="**"):
                exponent = constant_integer(node.right) or 0
                if exponent >= 0:
                    return self.compiled(node.left) ** exponent
                return self.constant(1).divide(self.divisor(node.left) ** -exponent)
        raise TypeError(f"not a rational expression: {node!r}")


class _Zeros:
    """Test whether rational functions are zero everywhere: whether they are at random points modulo a prime.

    By the Schwartz-Zippel lemma another function of degree d is zero at a random point with a probability of
    at most d / 2^62. Expanding the function instead could need more terms than fit in memory.
    """

    def __init__(self) -> None:
        # The function is stored as well, so that its id is not reused.
        self.known: dict[int, tuple[RationalStatistic, tuple[int | None, ...]]] = {}

    def is_zero(self, function: RationalStatistic) -> bool:
        return not any(residue != 0 for residue in self.residues(function))

    def residues(self, function: RationalStatistic) -> tuple[int | None, ...]:
        """Return the values at all points, modulo the prime; None where there is no value."""
        if id(function) not in self.known:
            operands = [self.residues(operand) for operand in function.operands]
            found = tuple(_residue(function, i, [values[i] for values in operands]) for i in range(_POINTS))
            self.known[id(function)] = function, found
        return self.known[id(function)][1]


def _residue(function: RationalStatistic, point: int, operands: Sequence[int | None]) -> int | None:
    match function.operation, operands:
        case "variable", _:
            return _coordinates(function.index)[point]
        case "constant", _:
            left, right = function.value.numerator % _PRIME, function.value.denominator % _PRIME
        case operation, (int(left), int(right)):
            if operation != "/":
                return (left + right if operation == "+" else left * right) % _PRIME
        case _:
            return None
    return left * pow(right, -1, _PRIME) % _PRIME if right else None


@lru_cache(maxsize=1024)
def _coordinates(index: int) -> tuple[int, ...]:
    """Return the values of a variable at all points."""
    return tuple(np.random.default_rng(index).integers(1, 2**62, size=_POINTS).tolist())
