"""Least and greatest value of an expression by interval arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from trackperm.statistic.expressions.tree import COMPARISONS, Binary, Call, Literal, Name, Node, Unary

Range = tuple[Fraction, Fraction]

_CONDITION = Fraction(0), Fraction(1)
_CONNECTIVES = {"&", "|", "and", "or", "~", "not"}


def range_of(node: Node, named: Mapping[str, Range]) -> Range | None:
    """Return the least and the greatest value of a node, from the ranges of names; None if it is unknown."""
    match node:
        case Literal(value=bool() | int() | Fraction()):
            return Fraction(node.value), Fraction(node.value)
        case Name():
            return named.get(node.full)
        case Unary() | Binary() if node.operator in _CONNECTIVES | COMPARISONS.keys():
            return _CONDITION
        case Unary():
            found = range_of(node.operand, named)
            return found if found is None or node.operator == "+" else (-found[1], -found[0])
        case Binary(operator="+" | "-" | "*"):
            return _combined(node.operator, range_of(node.left, named), range_of(node.right, named))
        case Call(function="where"):
            both = [range_of(each, named) for each in node.arguments[1:]]
            known = [each for each in both if each is not None]
            return (min(low for low, _ in known), max(high for _, high in known)) if len(known) == 2 else None
    return None


def _combined(operator: str, left: Range | None, right: Range | None) -> Range | None:
    if left is None or right is None:
        return None
    if operator == "-":
        right = -right[1], -right[0]
    if operator == "*":
        ends = [x * y for x in left for y in right]
        return min(ends), max(ends)
    return left[0] + right[0], left[1] + right[1]
