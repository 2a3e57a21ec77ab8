"""Integer expressions, such as g, evaluated exactly on NumPy arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

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

Array = npt.NDArray[Any]

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    **COMPARISONS,
}


def integers(expression: Expression, values: Mapping[str, Array], size: int) -> Array:
    """Evaluate an integer expression on int64 arrays of `size` entries, exactly.

    The result is int64, or Python integers where 64 bits might not hold every step. It raises SpecError if
    the expression divides by zero.
    """
    values = {name.full: values[name.full] for name in expression.names}
    # `np.abs` of the smallest int64 is that number itself.
    extremes = [
        side
        for column in values.values()
        for side in (-int(column.min(initial=0)), int(column.max(initial=0)))
    ]
    largest = max(extremes, default=0)
    dtype = np.dtype(np.int64 if _magnitude(expression.tree, largest) <= 2**62 else object)
    values = {name: column.astype(dtype, copy=False) for name, column in values.items()}
    return _Evaluator(expression, dtype).number(expression.tree, values, size)


def _magnitude(node: Node, largest: int) -> int:
    """Bound the absolute value of an integer expression and of all its parts."""
    match node:
        case Literal(value=int(value)):
            return abs(value)
        case Literal():
            return 2**62 + 1  # text and fractions are not int64
        case Name():
            return largest
    parts = [_magnitude(child, largest) for child in children(node)]
    match node:
        case Binary(operator="**"):
            return int(max(1, parts[0]) ** max(1, parts[1]))
        case Binary(operator="*"):
            return max(1, parts[0]) * max(1, parts[1])
        case Binary(operator="+" | "-"):
            return sum(parts)
    return max(1, *parts)


@dataclass(frozen=True)
class _Evaluator:
    expression: Expression
    dtype: np.dtype[Any]

    def number(self, node: Node, values: Mapping[str, Array], size: int) -> Array:
        """Evaluate `node`; a condition is 1 or 0."""
        result = self.evaluate(node, values, size)
        return result.astype(int).astype(self.dtype) if result.dtype == bool else result

    def evaluate(self, node: Node, values: Mapping[str, Array], size: int) -> Array:
        match node:
            case Literal():
                value = node.value
                types = {bool: np.dtype(bool), str: np.dtype(object)}
                return np.full(size, value, dtype=types.get(type(value), self.dtype))
            case Name():
                return values[node.full]
            case Unary(operator="~" | "not"):
                return np.logical_not(self.evaluate(node.operand, values, size))
            case Unary():
                operand = self.number(node.operand, values, size)
                return operand if node.operator == "+" else -operand
            case Binary(operator="and" | "or"):
                return self.short_circuit(node, values, size)
            case Binary(operator="&" | "|"):
                left = self.evaluate(node.left, values, size)
                return np.asarray(_OPERATORS[node.operator](left, self.evaluate(node.right, values, size)))
            case Binary():
                return self.arithmetic(node, values, size)
            case Call(function="where"):
                condition = self.evaluate(node.arguments[0], values, size)
                return self.chosen(condition, node.arguments[1], node.arguments[2], values)
            case Call():
                return self.call(node, [self.number(item, values, size) for item in node.arguments])
        raise TypeError(f"not a part of an expression: {node!r}")

    def arithmetic(self, node: Binary, values: Mapping[str, Array], size: int) -> Array:
        left = self.number(node.left, values, size)
        if node.operator == "**":
            factors = [left] * (constant_integer(node.right) or 0)
            return reduce(operator.mul, factors, np.full(left.shape, 1, dtype=self.dtype))
        right = self.number(node.right, values, size)
        if node.operator in ("//", "%"):
            if (right == 0).any():
                raise self.expression.error(node.right, "a division by zero")
            return np.asarray(left // right if node.operator == "//" else left % right)
        return np.asarray(_OPERATORS[node.operator](left, right))

    def short_circuit(self, node: Binary, values: Mapping[str, Array], size: int) -> Array:
        left = self.evaluate(node.left, values, size).astype(bool)
        unread = Literal(node.left.start, node.left.end, node.operator == "or")
        if node.operator == "and":
            return self.chosen(left, node.right, unread, values)
        return self.chosen(left, unread, node.right, values)

    def chosen(self, condition: Array, yes: Node, no: Node, values: Mapping[str, Array]) -> Array:
        """Evaluate each of two nodes only where the condition selects it."""
        condition = condition.astype(bool)
        parts = []
        for node, rows in ((yes, condition), (no, ~condition)):
            selected = {name: column[rows] for name, column in values.items()}
            parts.append((rows, self.evaluate(node, selected, int(rows.sum()))))
        both_boolean = all(part.dtype == bool for _, part in parts)
        result = np.empty(condition.shape, dtype=bool if both_boolean else self.dtype)
        for rows, part in parts:
            result[rows] = part.astype(int) if part.dtype == bool and not both_boolean else part
        return result

    def call(self, node: Call, arguments: Sequence[Array]) -> Array:
        if node.function == "abs":
            return np.abs(arguments[0])
        return np.asarray(reduce(np.minimum if node.function == "min" else np.maximum, arguments))
