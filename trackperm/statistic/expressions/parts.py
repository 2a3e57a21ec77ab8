"""Scores of strata and classes: names of their counts, and the weighted mean of their scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from trackperm.statistic.expressions.tree import (
    Binary,
    Call,
    Expression,
    Literal,
    Name,
    Node,
    Unary,
    children,
    transform,
)

CLASS = "class"
"""Name of the class in counts."""

MAX_PARTS = 500
"""Maximum number of strata or classes, as the engines' time grows with the number of counts."""


def in_parts(names: Iterable[str], parts: Iterable[str]) -> tuple[str, ...]:
    """Return the names of counts of each part, such as ``correct[en]``; unchanged without parts."""
    names, parts = tuple(names), tuple(parts)
    return tuple(_within(name, part) for part in parts for name in names) if parts else names


def in_part(expression: Expression, part: str) -> Expression:
    """Replace every name in an expression by that of one part."""
    return expression.with_names(lambda name: replace(name, name=_within(name.name, part)))


def weighted_mean(expression: Expression, weights: Mapping[str, Fraction]) -> Expression:
    """Return the weighted mean over parts of a score, as one expression."""
    total = sum(weights.values(), Fraction(0))
    start, end = expression.tree.start, expression.tree.end

    terms = [
        Binary(start, end, "*", in_part(expression, part).tree, Literal(start, end, weight / total))
        for part, weight in weights.items()
    ]
    return replace(expression, tree=_added(terms))


def without_totals(expression: Expression) -> Expression:
    """Return a score with sums over a single class."""

    def inner(node: Node) -> Node:
        return node.arguments[0] if isinstance(node, Call) and node.function == "total" else node

    return replace(expression, tree=transform(expression.tree, inner))


def has_totals(expression: Expression) -> bool:
    """Whether a score contains sums over classes."""
    return any(isinstance(node, Call) and node.function == "total" for node in expression.nodes)


def outside_totals(node: Node) -> Iterator[Name]:
    """Yield the names in a score that are not in a sum over classes."""
    if isinstance(node, Name):
        yield node
    elif not (isinstance(node, Call) and node.function == "total"):
        for child in children(node):
            yield from outside_totals(child)


def over_classes(expression: Expression, parts: Iterable[str]) -> Expression:
    """Return a score of sums over classes, as one expression of the counts of each class.

    A count outside of the sums is the same in each class, and is read from the first.
    """
    parts = tuple(parts)

    def expanded(node: Node) -> Node:
        match node:
            case Call(function="total", arguments=(argument,)):
                inner = replace(expression, tree=argument)
                return _added([in_part(inner, part).tree for part in parts])
            case Name():
                return replace(node, name=_within(node.name, parts[0]))
            case Unary():
                return replace(node, operand=expanded(node.operand))
            case Binary():
                return replace(node, left=expanded(node.left), right=expanded(node.right))
            case Call():
                return replace(node, arguments=tuple(map(expanded, node.arguments)))
        return node

    return replace(expression, tree=expanded(expression.tree))


def _added(terms: Sequence[Node]) -> Node:
    """Add terms in pairs, which makes the depth logarithmic."""
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        odd = terms[-1:] if len(terms) % 2 else []
        terms = [*(Binary(left.start, left.end, "+", left, right) for left, right in pairs), *odd]
    return terms[0]


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
