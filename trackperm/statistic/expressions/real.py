"""Expressions converted to real functions: with roots, exponentials, logarithms, extremes and conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from trackperm.exact.functions.real import RealStatistic
from trackperm.statistic.expressions.rational import refuse_constant_zero
from trackperm.statistic.expressions.tree import (
    COMPARISONS,
    Binary,
    Call,
    Expression,
    Literal,
    Name,
    Node,
    Unary,
)
from trackperm.statistic.expressions.types import constant_integer

_JOINED: dict[str, Callable[[RealStatistic, RealStatistic], RealStatistic]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "and": lambda a, b: a.where(b, 0),
    "or": lambda a, b: a.where(1, b),
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a.equals(b),
    "!=": lambda a, b: ~a.equals(b),
}


def real(expression: Expression, names: Sequence[str], undefined: Fraction | None) -> RealStatistic:
    """Convert a checked expression to a real function of `names`, with `undefined` as 0/0.

    Raises
    ------
    SpecError
        If it divides by a rational function that is zero everywhere.
    """
    return _Compiler(expression, {name: i for i, name in enumerate(names)}, undefined).compiled(
        expression.tree
    )


class _Compiler:
    def __init__(self, expression: Expression, index: Mapping[str, int], undefined: Fraction | None) -> None:
        self.expression, self.index, self.undefined = expression, index, undefined

    def constant(self, value: int | Fraction) -> RealStatistic:
        return RealStatistic.constant(value, len(self.index))

    def compiled(self, node: Node) -> RealStatistic:
        match node:
            case Name():
                return RealStatistic.variable(self.index[node.full], len(self.index))
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
                refuse_constant_zero(self.expression, node.right, self.index)
                return self.compiled(node.left).divide(self.compiled(node.right), self.undefined)
            case Binary(operator="**"):
                exponent = constant_integer(node.right) or 0
                if exponent < 0:
                    refuse_constant_zero(self.expression, node.left, self.index)
                return self.compiled(node.left) ** exponent
            case Binary():
                if node.operator in COMPARISONS and _is_text(node.left):
                    same = self.same_text(node.left, node.right)
                    return same if node.operator == "==" else ~same
                return _JOINED[node.operator](self.compiled(node.left), self.compiled(node.right))
            case Call():
                return self.call(node.function, *map(self.compiled, node.arguments))
        raise TypeError(f"not a real expression: {node!r}")

    def call(self, function: str, first: RealStatistic, *others: RealStatistic) -> RealStatistic:
        match function:
            case "where":
                return first.where(*others)
            case "abs":
                return abs(first)
            case "min":
                return first.minimum(*others)
            case "max":
                return first.maximum(*others)
            case "sqrt":
                return first.sqrt()
            case "log":
                return first.log()
        return first.exp()

    def same_text(self, left: Node, right: Node) -> RealStatistic:
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
    """Return whether a node is text: in `h` and `score`, a literal or a choice of literals."""
    if isinstance(node, Call) and node.function == "where":
        return _is_text(node.arguments[1])
    return isinstance(node, Literal) and isinstance(node.value, str)
