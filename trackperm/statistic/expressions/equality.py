"""Comparisons of a name for equality, in the expressions of a spec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from trackperm.statistic.expressions.tree import (
    Binary,
    Call,
    Expression,
    Literal,
    Name,
    Node,
    children,
    written,
)


@dataclass(frozen=True)
class Equality:
    """Equality comparisons of one name in expressions.

    Attributes
    ----------
    names, parameters, others : frozenset of str
        Columns, parameters and other expressions, as written, that are compared with it by ``==`` or ``!=``.
    lists : frozenset of str
        Parameters with lists of classes, among which it is looked for by ``is_among``.
    is_all : bool
        Whether it is read in such comparisons alone.
    """

    names: frozenset[str]
    parameters: frozenset[str]
    others: frozenset[str]
    lists: frozenset[str]
    is_all: bool

    @classmethod
    def of(cls, name: str, expressions: Iterable[Expression]) -> Equality:
        """Collect the comparisons of `name`."""
        expressions = tuple(expressions)
        partners = [partner for expression in expressions for partner in _partners(expression.tree, name)]
        sides = [partner for partner in partners if partner is not None]
        names = frozenset(side.full for side in sides if isinstance(side, Name))
        parameters = frozenset(
            side.parameter for side in sides if isinstance(side, Literal) and side.parameter is not None
        )
        others = frozenset(map(written, sides)) - names - parameters
        lists = frozenset(found for expression in expressions for found in _lists(expression.tree, name))
        return cls(names, parameters, others, lists, len(sides) == len(partners))

    def shares(self, other: Equality) -> bool:
        """Whether both names are compared with the same column, parameter or expression."""
        pairs = ((self.names, other.names), (self.parameters, other.parameters), (self.others, other.others))
        return any(own & their for own, their in pairs)


def compared_texts(
    expressions: Iterable[Expression], values: Mapping[str, Iterable[object]]
) -> dict[str, list[tuple[str, str | None]]]:
    """Return the texts with which names are compared by ``==`` and ``!=``, and the parameter of each.

    Names are without their prefixes. `values` are those of the names that have several, such as ``class``.
    """
    found: dict[str, list[tuple[str, str | None]]] = {}
    for expression in expressions:
        for name, text, parameter in _texts(expression.tree, values):
            if (text, parameter) not in (known := found.setdefault(name, [])):
                known.append((text, parameter))
    return found


def _texts(node: Node, values: Mapping[str, Iterable[object]]) -> Iterator[tuple[str, str, str | None]]:
    """Yield each name that is compared with a text, the text and its parameter."""
    if isinstance(node, Binary) and node.operator in ("==", "!="):
        for side, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(side, Name) and isinstance(other, Literal) and isinstance(other.value, str):
                yield side.name, other.value, other.parameter
            elif isinstance(side, Name) and isinstance(other, Name):
                texts = (value for value in values.get(other.name, ()) if isinstance(value, str))
                yield from ((side.name, text, None) for text in texts)
    for child in children(node):
        yield from _texts(child, values)


def _partners(node: Node, name: str) -> Iterator[Node | None]:
    """Yield the other side of each comparison of `name`; None for each other use."""
    if isinstance(node, Name):
        if node.full == name:
            yield None
    elif isinstance(node, Binary) and node.operator in ("==", "!="):
        for side, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(side, Name) and side.full == name:
                yield other
            else:
                yield from _partners(side, name)
    elif isinstance(node, Call) and node.function == "label_count":  # counts the labels that equal a value
        value, label = node.arguments
        for side, other in ((value, label), (label, value)):
            if isinstance(side, Name) and side.full == name:
                yield other
    elif isinstance(node, Call) and node.function == "is_among":  # compares a value with those of a list
        value, *choices = node.arguments
        if isinstance(value, Name) and value.full == name:
            if not choices:
                yield None
            yield from choices
    else:
        for child in children(node):
            yield from _partners(child, name)


def _lists(node: Node, name: str) -> Iterator[str]:
    """Yield the parameters with lists among which a name is looked for."""
    if isinstance(node, Call) and node.function == "is_among":
        value, *choices = node.arguments
        if isinstance(value, Name) and value.full == name:
            yield from (each.parameter for each in choices if isinstance(each, Literal) and each.parameter)
    for child in children(node):
        yield from _lists(child, name)
