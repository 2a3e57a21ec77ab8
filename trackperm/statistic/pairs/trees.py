"""Expressions over pairs of examples: the comparisons that they consist of, and their exact values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from trackperm.statistic.expressions.tree import (
    COMPARISONS,
    Binary,
    Call,
    Literal,
    Name,
    Node,
    Unary,
    children,
    with_names,
)

SCORE = "score"
"""Name of the scores of a run; all other names in pairs are values of the examples."""


LEFT, RIGHT = "left", "right"


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


class NotByOrderError(Exception):
    """A part of a term that depends on more than comparisons."""


@dataclass(frozen=True)
class Steps:
    """A comparison of the difference of both scores: its outcome by the sign of difference - step."""

    step: Fraction
    compare: Callable[[Any, Any], bool]
    absolute: bool

    @property
    def steps(self) -> tuple[Fraction, ...]:
        """Differences of the scores at which the outcome changes."""
        return (-self.step, self.step) if self.absolute else (self.step,)


@dataclass(frozen=True)
class Axis:
    """A comparison of a value of the left example with one of the right example."""

    left: Node
    right: Node
    compare: Callable[[Any, Any], bool]


def nodes(node: Node) -> Iterator[Node]:
    """Yield a node and all below it."""
    yield node
    for child in children(node):
        yield from nodes(child)


def is_number(node: Node) -> bool:
    """Whether a part is a number whatever the types of columns."""
    match node:
        case Unary(operator=sign):
            return sign in ("-", "+")
        case Binary(operator=sign):
            return sign in ("+", "-", "*", "/", "//", "%", "**")
        case Call(function=function):
            return function != "where"
    return False


def score_parts(node: Node) -> Iterator[Node]:
    """Yield the comparisons that read a score, or the names of scores outside of comparisons."""
    if isinstance(node, Binary) and node.operator in COMPARISONS:
        if any(isinstance(part, Name) and part.name == SCORE for part in nodes(node)):
            yield node
    elif isinstance(node, Name):
        if node.name == SCORE:
            yield node
    else:
        for child in children(node):
            yield from score_parts(child)


def steps_of(node: Node) -> Steps | None:
    """Read a comparison of the difference of both scores with a number; None for another node."""
    if not isinstance(node, Binary) or node.operator not in COMPARISONS:
        return None
    for left, right, sign in (
        (node.left, node.right, node.operator),
        (node.right, node.left, _MIRRORED[node.operator]),
    ):
        if _is_score(left, LEFT) and _is_score(right, RIGHT):
            return Steps(Fraction(0), COMPARISONS[sign], absolute=False)
        step = _constant(right)
        if step is None:
            continue
        if isinstance(left, Call) and left.function == "abs" and _orientation(left.arguments[0]):
            return Steps(step, COMPARISONS[sign], absolute=True) if step >= 0 else None
        direction = _orientation(left)
        if direction:
            sign = sign if direction > 0 else _MIRRORED[sign]
            return Steps(direction * step, COMPARISONS[sign], absolute=False)
    return None


def _orientation(node: Node) -> int:
    """Return 1 for left score - right score, -1 for the reverse, 0 for another node."""
    if not isinstance(node, Binary) or node.operator != "-":
        return 0
    if _is_score(node.left, LEFT) and _is_score(node.right, RIGHT):
        return 1
    return -1 if _is_score(node.left, RIGHT) and _is_score(node.right, LEFT) else 0


def _is_score(node: Node, side: str) -> bool:
    return isinstance(node, Name) and node.name == SCORE and node.scope == side


def with_side(node: Node, side: str) -> Node:
    """Return a tree whose names all have this side of a pair."""
    return with_names(node, lambda name: replace(name, scope=side))


def _constant(node: Node) -> Fraction | None:
    if isinstance(node, Unary) and node.operator in ("-", "+"):
        value = _constant(node.operand)
        return None if value is None else (-value if node.operator == "-" else value)
    if isinstance(node, Literal) and not isinstance(node.value, str | bool):
        return Fraction(node.value)
    return None


def _sides(node: Node) -> set[str]:
    return {part.scope for part in nodes(node) if isinstance(part, Name)}


def _reads_score(node: Node) -> bool:
    return any(isinstance(part, Name) and part.name == SCORE for part in nodes(node))


def atoms_of(node: Node) -> dict[Node, Steps | Axis | str]:
    """Return the parts whose values determine that of a tree: comparisons, and parts of one side.

    Raises
    ------
    NotByOrderError
        If the tree depends on more than these.
    """
    sides = _sides(node)
    if not sides:
        return {}
    if len(sides) == 1 and not _reads_score(node):
        return {node: next(iter(sides))}
    if isinstance(node, Binary) and node.operator in COMPARISONS:
        if _reads_score(node):
            steps = steps_of(node)
            if steps is None:
                raise NotByOrderError
            return {node: steps}
        own, other = _sides(node.left), _sides(node.right)
        if len(own) == len(other) == 1:
            if own == {LEFT}:
                return {node: Axis(node.left, node.right, COMPARISONS[node.operator])}
            return {node: Axis(node.right, node.left, COMPARISONS[_MIRRORED[node.operator]])}
    if not children(node):
        raise NotByOrderError
    found: dict[Node, Steps | Axis | str] = {}
    for child in children(node):
        found |= atoms_of(child)
    return found


_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    **COMPARISONS,
}


def value_of(node: Node, known: Mapping[Node, Any]) -> Any:
    """Evaluate a tree exactly, given the values of its parts."""
    if node in known:
        return known[node]
    match node:
        case Literal(value=value):
            return value
        case Unary(operator="~" | "not"):
            return not value_of(node.operand, known)
        case Unary(operator=sign):
            value = value_of(node.operand, known)
            return -value if sign == "-" else +value
        case Binary(operator="&" | "and"):
            return bool(value_of(node.left, known)) and bool(value_of(node.right, known))
        case Binary(operator="|" | "or"):
            return bool(value_of(node.left, known)) or bool(value_of(node.right, known))
        case Binary(operator="/"):
            return Fraction(value_of(node.left, known)) / Fraction(value_of(node.right, known))
        case Binary(operator="**"):
            return Fraction(value_of(node.left, known)) ** int(value_of(node.right, known))
        case Binary():
            return _ARITHMETIC[node.operator](value_of(node.left, known), value_of(node.right, known))
        case Call(function="where"):
            condition, yes, no = node.arguments
            return value_of(yes if value_of(condition, known) else no, known)
        case Call(function="abs"):
            return abs(value_of(node.arguments[0], known))
        case Call():
            values = [value_of(argument, known) for argument in node.arguments]
            return min(values) if node.function == "min" else max(values)
    raise TypeError(f"not a part of a term: {node!r}")


def outcome_in(atom: Steps, steps: list[Fraction], region: int) -> bool:
    """Return the outcome of a comparison in a region of the difference, in ascending order of regions."""

    # Twice the place of a difference: odd between two steps, even on one.
    def side(step: Fraction) -> int:
        place = 2 * steps.index(step) + 1
        return (region > place) - (region < place)

    if not atom.absolute:
        return bool(atom.compare(side(atom.step), 0))
    above, below = side(atom.step), side(-atom.step)
    size = 1 if above > 0 or below < 0 else 0 if above == 0 or below == 0 else -1
    return bool(atom.compare(size, 0))
