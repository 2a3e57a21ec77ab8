"""Expressions converted to exact functions: rational ones where possible, real ones otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from trackperm.exact import RationalStatistic, RealStatistic
from trackperm.statistic.expressions.tree import (
    COMPARISONS,
    Binary,
    Call,
    Expression,
    Literal,
    Name,
    Node,
    Unary,
    children,
)
from trackperm.statistic.expressions.types import constant_integer

_PRIME = 2**521 - 1  # greater than any number in an expression, which has at most 100 digits
_POINTS = 3  # random points: a function of degree 32 vanishes at all by chance with probability 3e-52

_JOINED: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "and": lambda a, b: a.where(b, 0),
    "or": lambda a, b: a.where(1, b),
    "==": lambda a, b: a.equals(b),
    "!=": lambda a, b: ~a.equals(b),
    **{sign: COMPARISONS[sign] for sign in ("<", "<=", ">", ">=")},
}


def exact_function(
    expression: Expression, names: Sequence[str], undefined: Fraction | None, *, real: bool = False
) -> RationalStatistic | RealStatistic:
    """Convert a checked expression to a function of `names`, with `undefined` as 0/0.

    It is a RationalStatistic if the expression is rational, unless `real` asks for a RealStatistic.

    Raises
    ------
    SpecError
        If it divides by a rational function that is zero everywhere.
    """
    kind = RationalStatistic if not real and is_rational(expression) else RealStatistic
    compiler = _Compiler(expression, {name: i for i, name in enumerate(names)}, undefined, kind)
    found: RationalStatistic | RealStatistic = compiler.compiled(expression.tree)
    return found


def is_rational(expression: Expression) -> bool:
    """Whether an expression consists of numbers, names, ``+ - * /`` and integer powers."""

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


class _Compiler:
    """Compiler to functions of one `kind`: RationalStatistic or RealStatistic."""

    def __init__(
        self, expression: Expression, index: dict[str, int], undefined: Fraction | None, kind: Any
    ) -> None:
        self.expression, self.index, self.undefined, self.kind = expression, index, undefined, kind
        self.zeros = _Zeros()

    def constant(self, value: int | Fraction) -> Any:
        return self.kind.constant(value, len(self.index))

    def divisor(self, node: Node) -> Any:
        """Compile a divisor, which must not be zero everywhere."""
        function = self.compiled(node)
        if self.zeros.is_zero(function):
            raise self.expression.error(node, "this divisor is always 0")
        return function

    def compiled(self, node: Node) -> Any:
        match node:
            case Name():
                return self.kind.variable(self.index[node.full], len(self.index))
            case Literal(value=str()):
                pass  # text has no value; only comparisons read it
            case Literal():
                return self.constant(Fraction(node.value))
            case Unary(operator="~" | "not"):
                return ~self.compiled(node.operand)
            case Unary():
                operand = self.compiled(node.operand)
                return operand if node.operator == "+" else -operand
            case Binary(operator="/"):
                return self.compiled(node.left).divide(self.divisor(node.right), self.undefined)
            case Binary(operator="**"):
                exponent = constant_integer(node.right) or 0
                base = self.compiled(node.left) if exponent >= 0 else self.divisor(node.left)
                return base**exponent
            case Binary():
                if node.operator in COMPARISONS and _is_text(node.left):
                    same = self.same_text(node.left, node.right)
                    return same if node.operator == "==" else ~same
                return _JOINED[node.operator](self.compiled(node.left), self.compiled(node.right))
            case Call():
                return self.call(node.function, *map(self.compiled, node.arguments))
        raise TypeError(f"not a part of a function: {node!r}")

    def call(self, function: str, first: Any, *others: Any) -> Any:
        if function == "abs":
            return abs(first)
        method = {"min": "minimum", "max": "maximum"}.get(function, function)
        return getattr(first, method)(*others)

    def same_text(self, left: Node, right: Node) -> Any:
        """Compare two texts, each a literal or a choice of literals."""
        if isinstance(left, Call):
            condition, *choices = left.arguments
            return self.compiled(condition).where(*(self.same_text(choice, right) for choice in choices))
        if isinstance(right, Call):
            return self.same_text(right, left)
        return self.constant(
            isinstance(left, Literal) and isinstance(right, Literal) and left.value == right.value
        )


def _is_text(node: Node) -> bool:
    """Whether a node is text: in `h` and `score`, a literal or a choice of literals."""
    if isinstance(node, Call) and node.function == "where":
        return _is_text(node.arguments[1])
    return isinstance(node, Literal) and isinstance(node.value, str)


class _Zeros:
    """Test whether rational functions are zero everywhere, by their values at random points modulo a prime.

    By the Schwartz-Zippel lemma any other function of degree d is zero at a random point with a probability
    of at most d / 2^62. Expanding the function instead could need more terms than fit in memory.
    """

    def __init__(self) -> None:
        # The function is stored as well, so that its id is not reused.
        self.known: dict[int, tuple[Any, tuple[int | None, ...]]] = {}

    def is_zero(self, function: Any) -> bool:
        return not any(residue != 0 for residue in self.residues(function))

    def residues(self, function: Any) -> tuple[int | None, ...]:
        """Return the values at all points, modulo the prime; None for a pole or an irrational operation."""
        if id(function) not in self.known:
            operands = [self.residues(operand) for operand in function.operands]
            found = tuple(_residue(function, i, [values[i] for values in operands]) for i in range(_POINTS))
            self.known[id(function)] = function, found
        return self.known[id(function)][1]


def _residue(function: Any, point: int, operands: Sequence[int | None]) -> int | None:
    match function.operation, operands:
        case "variable", _:
            return _coordinates(function.index)[point]
        case "constant", _:
            left, right = function.value.numerator % _PRIME, function.value.denominator % _PRIME
        case "+", (int(left), int(right)):
            return (left + right) % _PRIME
        case "*", (int(left), int(right)):
            return left * right % _PRIME
        case "**", (int(left),):
            return pow(left, function.index, _PRIME)
        case "/", (int(left), int(right)):
            pass
        case _:
            return None
    return left * pow(right, -1, _PRIME) % _PRIME if right else None


@lru_cache(maxsize=1024)
def _coordinates(index: int) -> tuple[int, ...]:
    """Return the values of a variable at all points."""
    return tuple(np.random.default_rng(index).integers(1, 2**62, size=_POINTS).tolist())
