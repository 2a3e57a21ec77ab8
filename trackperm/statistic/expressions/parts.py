"""Scores of strata and classes: names of their counts, and the weighted mean of their scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from trackperm.statistic.expressions.tree import Binary, Expression, Literal, Name, Node, Unary, transform

MAX_PARTS = 500
"""Maximum number of strata or classes, as the engines' time grows with the number of counts."""


def in_parts(names: Iterable[str], parts: Iterable[str]) -> tuple[str, ...]:
    """Return the names of counts of each part, such as ``correct[en]``; unchanged without parts."""
    names, parts = tuple(names), tuple(parts)
    return tuple(_within(name, part) for part in parts for name in names) if parts else names


def in_part(expression: Expression, part: str) -> Expression:
    """Replace every name in an expression by that of one part."""

    def renamed(node: Node) -> Node:
        return replace(node, name=_within(node.name, part)) if isinstance(node, Name) else node

    return replace(expression, tree=transform(expression.tree, renamed))


def weighted_mean(expression: Expression, weights: Mapping[str, Fraction]) -> Expression:
    """Return the weighted mean over parts of a score, as one expression."""
    total = sum(weights.values(), Fraction(0))
    start, end = expression.tree.start, expression.tree.end

    def joined(operator: str, left: Node, right: Node) -> Node:
        return Binary(start, end, operator, left, right)

    terms = [
        joined("*", in_part(expression, part).tree, Literal(start, end, weight / total))
        for part, weight in weights.items()
    ]
    while len(terms) > 1:  # adding pairs makes the depth logarithmic
        pairs = zip(terms[::2], terms[1::2], strict=False)
        odd = terms[-1:] if len(terms) % 2 else []
        terms = [*(joined("+", left, right) for left, right in pairs), *odd]
    return replace(expression, tree=terms[0])


def first_not_additive(node: Node) -> Node | None:
    """Return the first part of an expression that is not a sum of multiples of names; None if it is one."""
    match node:
        case Name():
            return None
        case Unary(operator="+" | "-", operand=operand):
            return first_not_additive(operand)
        case Binary(operator="+" | "-", left=left, right=right):
            return first_not_additive(left) or first_not_additive(right)
        case Binary(operator="*", left=Literal(), right=factor):
            return first_not_additive(factor)
        case Binary(operator="*", left=factor, right=Literal()):
            return first_not_additive(factor)
    return node


def _within(name: str, part: str) -> str:
    return f"{name}[{part}]"
