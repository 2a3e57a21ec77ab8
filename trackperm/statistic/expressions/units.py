"""Units of counts: expressions of real numbers rewritten for integers in given units."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from trackperm.statistic.counters import COUNTERS
from trackperm.statistic.expressions.tree import (
    COMPARISONS,
    Binary,
    Call,
    Expression,
    Literal,
    Name,
    Node,
    Unary,
    transform,
)
from trackperm.statistic.expressions.types import constant_integer

_ONE = Fraction(1)
Quantity = tuple[Node, Fraction]
"""An integer expression and the value of its unit."""


def in_units(expression: Expression, unit: Callable[[Name], Fraction]) -> tuple[Expression, Fraction]:
    """Rewrite a checked expression of real counts for counts that are integers of some unit.

    `unit` returns the unit of a name. The new expression has integers only; times the returned factor, it
    equals the old one. It is unchanged if every unit is 1 and every number an integer.
    """
    tree, value = _quantity(expression.tree, unit)
    return replace(expression, tree=tree), value


def with_units(expression: Expression, units: Mapping[str, Fraction]) -> Expression:
    """Multiply names by their units, where these are not 1."""

    def multiplied(node: Node) -> Node:
        factor = units[node.full] if isinstance(node, Name) else _ONE
        return node if factor == 1 else _times(node, factor)

    return replace(expression, tree=transform(expression.tree, multiplied))


def _quantity(node: Node, unit: Callable[[Name], Fraction]) -> Quantity:
    def of(part: Node) -> Quantity:
        return _quantity(part, unit)

    match node:
        case Name():
            return node, unit(node)
        case Literal(value=Fraction() as value):
            return replace(node, value=value.numerator), Fraction(1, value.denominator)
        case Unary():
            operand, value = of(node.operand)
            return replace(node, operand=operand), value
        case Binary(operator="**"):
            base, value = of(node.left)
            return replace(node, left=base), value ** (constant_integer(node.right) or 0)
        case Binary():
            return _binary(node, of(node.left), of(node.right))
        case Call(function=name) if name in COUNTERS:
            return node, _ONE
        case Call(function="where"):
            condition, _ = of(node.arguments[0])
            choices, value = _aligned([of(choice) for choice in node.arguments[1:]])
            return replace(node, arguments=(condition, *choices)), value
        case Call():
            arguments, value = _aligned([of(argument) for argument in node.arguments])
            return replace(node, arguments=tuple(arguments)), value
    return node, _ONE


def _binary(node: Binary, left: Quantity, right: Quantity) -> Quantity:
    if node.operator == "*":
        return replace(node, left=left[0], right=right[0]), left[1] * right[1]
    sides, value = _aligned([left, right])
    # Comparisons and `//` return numbers without a unit.
    pure = node.operator in COMPARISONS or node.operator == "//"
    return replace(node, left=sides[0], right=sides[1]), _ONE if pure else value


def _aligned(quantities: Sequence[Quantity]) -> tuple[list[Node], Fraction]:
    """Convert quantities to the largest common divisor of their units."""
    units = [unit for _, unit in quantities]
    denominator = math.lcm(*(unit.denominator for unit in units))
    common = Fraction(math.gcd(*(int(unit * denominator) for unit in units)), denominator)
    return [node if unit == common else _times(node, unit / common) for node, unit in quantities], common


def _times(node: Node, factor: Fraction) -> Node:
    value = factor.numerator if factor.denominator == 1 else factor
    return Binary(node.start, node.end, "*", node, Literal(node.start, node.end, value))
