"""Values of the parameters of a spec, and which expressions need their types."""

from __future__ import annotations

import math
import numbers

import numpy as np

from trackperm.errors import InputError, InputTypeError
from trackperm.messages import kind
from trackperm.statistic.definition import ParameterValue
from trackperm.statistic.expressions.tree import Binary, Literal, Node, children
from trackperm.statistic.expressions.types import MAX_INTEGER


def parameter_value(name: str, value: object) -> ParameterValue:
    """Return a value as a parameter: text, a boolean, or a finite number, integers of at most 64 bits.

    Raises
    ------
    InputError
        If the number is too large or not finite.
    InputTypeError
        If the value is of another type.
    """
    if isinstance(value, str):
        return str(value)  # texts of NumPy have a type of their own
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, numbers.Integral):
        if abs(int(value)) > MAX_INTEGER:
            raise InputError(f"the parameter `{name}` has more than 64 bits")
        return int(value)
    if isinstance(value, numbers.Real):
        if not math.isfinite(value):
            raise InputError(f"the parameter `{name}` is {value}, not a finite number")
        return float(value)
    found = kind(value) if value is None or isinstance(value, list) else f"`{type(value).__name__}`"
    raise InputTypeError(f"the parameter `{name}` must be a number, text or a boolean, not {found}")


def computed_with(node: Node) -> set[str]:
    """Return the parameters in a tree that are used for more than comparisons of equality."""
    found = set().union(*map(computed_with, children(node)))
    compared = isinstance(node, Binary) and node.operator in ("==", "!=")
    operands = () if compared else children(node)
    return found | {part.parameter for part in operands if isinstance(part, Literal) and part.parameter}
