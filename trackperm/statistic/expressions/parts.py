"""Strata and classes: what a score becomes that is the mean of those of parts, and which g allow groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from trackperm.statistic.expressions.tree import Binary, Expression, Literal, Name, Node, Unary, transform

MAX_PARTS = 500
"""How many strata or classes there may be."""


def in_parts(names: Iterable[str], parts: Iterable[str]) -> tuple[str, ...]:
    """Return the names of counts of each of the parts, as ``correct[en]``; as they are if there are none."""
    names, parts = tuple(names), tuple(parts)
    return tuple(_within(name, part) for part in parts for name in names) if parts else names


def in_part(expression: Expression, part: str) -> Expression:
    """Replace every name by that of one part."""

    def renamed(node: Node) -> Node:
        return replace(node, name=_within(node.name, part)) if isinstance(node, Name) else node

    return replace(expression, tree=transform(expression.tree, renamed))


def weighted_mean(expression: Expression, weights: Mapping[str, Fraction]) -> Expression:
    """Return the mean over parts of an expression of each, with fixed weights."""
    total = sum(weights.values(), Fraction(0))
    start, end = expression.tree.start, expression.tree.end

    def joined(operator: str, left: Node, right: Node) -> Node:
        return Binary(start, end, operator, left, right)

    terms = [
        joined("*", in_part(expression, part).tree, Literal(start, end, weight / total))
        for part, weight in weights.items()
    ]
    while len(terms) > 1:  # in pairs, so that the depth is the logarithm of their number
        pairs = zip(terms[::2], terms[1::2], strict=False)
        odd = terms[-1:] if len(terms) % 2 else []
        terms = [*(joined("+", left, right) for left, right in pairs), *odd]
    return replace(expression, tree=terms[0])


def first_not_additive(node: Node) -> Node | None:
    """Return the first part that keeps an expression from being a sum of multiples of names, if any."""
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
