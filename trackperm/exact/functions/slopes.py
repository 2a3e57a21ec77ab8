"""Values and slopes of statistics in floating point, by reverse accumulation over their trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.exact.functions.operations import OperationTree

FloatArray = npt.NDArray[np.float64]
Pull = Callable[[FloatArray], None]
"""Function of the slope by a part that adds its contributions to the slopes by the variables."""

SMOOTH = frozenset({"variable", "constant", "+", "*", "/", "**", "sqrt", "log", "exp"})
"""Operations that are differentiable wherever they are defined, except a root at 0."""


def corners(h: OperationTree) -> frozenset[str]:
    """Return the operations of `h` that are not differentiable everywhere, such as ``min``."""
    found = frozenset() if h.operation in SMOOTH else frozenset({h.operation})
    return found.union(*(corners(operand) for operand in h.operands))


def values_and_slopes(h: OperationTree, totals: npt.NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Return the values of `h` at points, shape (..., m), and its slopes by every variable, shape (..., m).

    Values are NaN where undefined, and slopes infinite at a root of 0. A division with its declared value of
    0/0 counts as constant: its slopes are 0. Griewank and Walther (2008), "Evaluating derivatives", chapter
    3. It raises ValueError if `h` has :func:`corners`.
    """
    points = np.asarray(totals, dtype=np.float64)
    slopes = np.zeros(points.shape)
    with np.errstate(all="ignore"):
        value, pull = _traced(h, points, slopes)
        pull(np.ones(points.shape[:-1]))
    return np.array(np.broadcast_to(value, points.shape[:-1])), slopes


def _traced(h: OperationTree, points: FloatArray, slopes: FloatArray) -> tuple[FloatArray, Pull]:
    """Return the value of a part, and the function that carries its slope to the variables."""
    if h.operation == "variable":

        def add(slope: FloatArray) -> None:
            slopes[..., h.index] += slope

        return points[..., h.index], add
    if h.operation == "constant":
        return np.asarray(float(h.value)), lambda _: None
    parts = [_traced(operand, points, slopes) for operand in h.operands]
    if h.operation == "+":
        (x, by_x), (y, by_y) = parts

        def both(slope: FloatArray) -> None:
            by_x(slope)
            by_y(slope)

        return x + y, both
    value, factors = _value_and_factors(h, [part for part, _ in parts])

    def pull(slope: FloatArray) -> None:
        for operand, (_, down), factor in zip(h.operands, parts, factors, strict=True):
            if operand.operation != "constant":
                # A zero slope stays zero, even times an infinite factor.
                down(np.where(slope == 0.0, 0.0, slope * factor))

    return value, pull


def _value_and_factors(h: OperationTree, parts: list[FloatArray]) -> tuple[FloatArray, list[FloatArray]]:
    """Return the value of an operation and its slopes by its operands."""
    x, y = parts[0], parts[-1]
    match h.operation:
        case "*":
            return x * y, [y, x]
        case "/":
            value = np.where(y == 0.0, np.nan, x / y)
            by_x, by_y = 1.0 / y, -value / y
            if h.undefined is not None:
                declared = (x == 0.0) & (y == 0.0)
                value = np.where(declared, float(h.undefined), value)
                by_x, by_y = (np.where(declared, 0.0, by) for by in (by_x, by_y))
            return value, [by_x, by_y]
        case "**":
            return x**h.index, [h.index * x ** (h.index - 1)]
        case "sqrt":
            root = np.sqrt(x)
            return root, [0.5 / root]
        case "log":
            return np.where(x > 0.0, np.log(x), np.nan), [1.0 / x]
        case "exp":
            return np.exp(x), [np.exp(x)]
    raise ValueError(f"`{h.operation}` is not differentiable everywhere")
