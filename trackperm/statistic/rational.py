"""Expressions as exact rational functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from trackperm.errors import CapacityError
from trackperm.exact import RationalStatistic
from trackperm.statistic.check import constant_integer
from trackperm.statistic.expression import Binary, Expression, Literal, Name, Node, Unary, children


def is_rational(expression: Expression) -> bool:
    """Whether an expression is built from numbers and names by ``+ - * /`` and integer powers alone."""

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
    """Return a rational expression as an exact function of `names`, with `undefined` as 0/0.

    Raises
    ------
    SpecError
        If it divides by something that is zero everywhere.
    """
    index = {name: i for i, name in enumerate(names)}
    return _compile(expression, expression.tree, index, undefined)


def refuse_constant_zero(expression: Expression, divisor: Node, index: Mapping[str, int]) -> None:
    """Refuse a divisor that is a rational function and zero everywhere.

    Raises
    ------
    SpecError
        If it is, with its place.
    """
    if not is_rational(replace(expression, tree=divisor)):
        return
    try:
        vanishes = not _compile(expression, divisor, index, None).quotient[0].terms
    except CapacityError:
        vanishes = False  # a zero that long would show in every value
    if vanishes:
        raise expression.error(divisor, "a division by something that is always 0")


def _compile(
    expression: Expression, node: Node, index: Mapping[str, int], undefined: Fraction | None
) -> RationalStatistic:
    def compiled(part: Node) -> RationalStatistic:
        return _compile(expression, part, index, undefined)

    match node:
        case Name():
            return RationalStatistic.variable(index[node.full], len(index))
        case Literal():
            return RationalStatistic.constant(Fraction(node.value), len(index))
        case Unary():
            return compiled(node.operand) if node.operator == "+" else -compiled(node.operand)
        case Binary(operator="+"):
            return compiled(node.left) + compiled(node.right)
        case Binary(operator="-"):
            return compiled(node.left) - compiled(node.right)
        case Binary(operator="*"):
            return compiled(node.left) * compiled(node.right)
        case Binary(operator="/"):
            refuse_constant_zero(expression, node.right, index)
            return compiled(node.left).divide(compiled(node.right), undefined)
        case Binary(operator="**"):
            exponent = constant_integer(node.right) or 0
            if exponent >= 0:
                return compiled(node.left) ** exponent
            refuse_constant_zero(expression, node.left, index)
            return RationalStatistic.constant(1, len(index)).divide(compiled(node.left) ** -exponent)
    raise TypeError(f"not a rational expression: {node!r}")
