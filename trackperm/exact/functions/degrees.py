"""Degrees of a statistic along a line, and its affine parts, proved from its written form."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from trackperm.exact.functions.operations import OperationTree, Tree

Form = tuple[int, ...]
"""Integer slopes of a linear form in the variables, without a common divisor; the first one is positive."""


def degrees_along(h: OperationTree, steps: Sequence[int]) -> tuple[int, int] | None:
    """Return degrees of a numerator and a denominator of h along a line, which bound the least ones.

    Return None if something else than arithmetic changes along the line.

    Parameters
    ----------
    h : OperationTree
        A function of m variables.
    steps : sequence of m int
        Direction of the line.
    """
    if h.operation == "variable":
        return int(steps[h.index] != 0), 0
    parts = []
    for operand in h.operands:
        part = degrees_along(operand, steps)
        if part is None:
            return None
        parts.append(part)
    if all(part == (0, 0) for part in parts):
        return 0, 0
    match h.operation, parts:
        case "+", [(a, b), (c, d)]:
            return max(a + d, c + b), b + d
        case "*", [(a, b), (c, d)]:
            return a + c, b + d
        case "/", [(a, b), (c, d)]:
            return a + d, b + c
        case "**", [(a, b)]:
            return a * h.index, b * h.index
    return None


def linear_forms(h: Tree, constants: Mapping[int, int]) -> tuple[list[Form], Tree]:
    """Return linear forms on which h depends, and h as a function of them.

    The forms are the largest affine parts of the written form, without their constants.

    Parameters
    ----------
    h : OperationTree
        A function of m variables.
    constants : mapping of int to int
        Values of the variables that are the same everywhere.
    """
    forms: dict[Form, int] = {}
    found = _in_forms(h, constants, forms)
    tree = _of_affine(h, found, forms) if isinstance(found, tuple) else found
    return list(forms), _with_variables(tree, len(forms))


_Affine = tuple[Fraction, dict[int, Fraction]]
"""Constant and slopes by variable."""


def _in_forms(h: Tree, constants: Mapping[int, int], forms: dict[Form, int]) -> _Affine | Tree:
    """Return h if it is affine, else its tree with every affine operand in terms of `forms`."""
    if h.operation == "constant":
        return h.value, {}
    if h.operation == "variable":
        if h.index in constants:
            return Fraction(constants[h.index]), {}
        return Fraction(0), {h.index: Fraction(1)}
    parts = [_in_forms(operand, constants, forms) for operand in h.operands]
    affine = [part for part in parts if isinstance(part, tuple)]
    if len(affine) == len(parts):
        joined = _joined(h.operation, affine)
        if joined is not None:
            return joined
    operands = tuple(_of_affine(h, part, forms) if isinstance(part, tuple) else part for part in parts)
    return replace(h, operands=operands)


def _joined(operation: str, parts: Sequence[_Affine]) -> _Affine | None:
    """Return the sum of two affine functions, or a multiple of one; None for anything else."""
    if len(parts) != 2:
        return None
    (a, rising), (b, other) = parts
    if operation == "+":
        slopes = {i: rising.get(i, Fraction(0)) + other.get(i, Fraction(0)) for i in {*rising, *other}}
        return a + b, {i: slope for i, slope in sorted(slopes.items()) if slope}
    if operation == "*" and not rising:
        (a, rising), (b, other) = parts[1], parts[0]
    if other or operation not in ("*", "/") or (operation == "/" and b == 0):
        return None
    factor = b if operation == "*" else 1 / b
    return a * factor, {i: slope * factor for i, slope in rising.items() if factor}


def _of_affine(h: Tree, part: _Affine, forms: dict[Form, int]) -> Tree:
    """Return an affine function as a multiple of one of the forms, plus a constant."""
    constant, slopes = part
    if not slopes:
        return type(h).constant(constant, h.n_variables)
    scale = Fraction(
        math.gcd(*(s.numerator for s in slopes.values())), math.lcm(*(s.denominator for s in slopes.values()))
    )
    scale *= 1 if next(iter(slopes.values())) > 0 else -1
    form = tuple(int(slopes.get(i, Fraction(0)) / scale) for i in range(h.n_variables))
    tree = replace(type(h).constant(0, h.n_variables), operation="variable")
    tree = replace(tree, index=forms.setdefault(form, len(forms)))
    if scale != 1:
        tree = tree * scale
    return tree + constant if constant else tree


def _with_variables(h: Tree, n: int) -> Tree:
    """Return the same tree as a function of n variables."""
    return replace(h, n_variables=n, operands=tuple(_with_variables(operand, n) for operand in h.operands))
