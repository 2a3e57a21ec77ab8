"""Antisymmetry of h under the exchange of two runs, which a two-sided test requires."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from trackperm.errors import CapacityError, SpecError
from trackperm.exact import RationalStatistic, RealStatistic
from trackperm.statistic.definition import joint_values
from trackperm.statistic.expressions.arrays import integers
from trackperm.statistic.expressions.tree import Binary, Expression, Name, Node, with_names, written

_SAMPLES = 150  # random totals; an h that is wrong on one in ten of them passes once in 10^7 times
_EXAMPLES = 3  # examples per sum: with several, products of sums differ from sums of products


def require_antisymmetry(
    counts: Mapping[str, Expression],
    substitutes: Sequence[Mapping[str, Expression]],
    g: Mapping[str, Expression],
    h: RationalStatistic | RealStatistic,
    h_expression: Expression,
) -> None:
    """Refuse a two-sided test of an h that is not antisymmetric: h(swapped) = -h.

    If exchanging u and v permutes the g, an h written as the difference of one function of both runs is
    antisymmetric, and algebra decides a rational h. Any other h is evaluated on random counts, some of them
    zero. A rational one is too, exactly, to see where it has no value.
    """
    shared = frozenset(
        name
        for name, expression in counts.items()
        if _is_shared(expression)
        and all(counts.get(name, expression).tree == expression.tree for counts in substitutes)
    )
    trees = [_merged(expression.tree, shared) for expression in g.values()]
    permutation = _permutation(trees, shared)
    if permutation is not None:
        distinct = h.renamed([trees.index(tree) for tree in trees])
        if _is_difference(distinct, permutation):
            return
        try:
            if isinstance(distinct, RationalStatistic) and not distinct.is_antisymmetric_under(permutation):
                raise _refusal(h_expression)
        except CapacityError:
            pass  # too large to expand: the samples decide
    found: list[tuple[Fraction | float | None, Fraction | float | None]] = []
    for smallest in (0, 1):  # 1 if g divides by a count, or h by so many counts that zeros leave it no value
        try:
            observed, swapped = _samples(counts, g, shared, smallest)
        except SpecError:
            if smallest:
                raise
            continue
        values = [(_value(h, a), _value(h, b)) for a, b in zip(observed, swapped, strict=True)]
        found = [pair for pair in values if pair != (None, None)]
        if found:
            break
    if not found or any(_differ(*pair) for pair in found):
        raise _refusal(h_expression)


def _is_shared(expression: Expression) -> bool:
    """Whether a count is the same in both runs, as it reads only ids and labels."""
    return all(name.full in ("id", "label") for name in expression.names)


def _merged(tree: Node, shared: frozenset[str]) -> Node:
    """Write ``u.`` before counts that are the same in both runs."""
    return with_names(tree, lambda name: replace(name, scope="u") if name.name in shared else name)


def _permutation(trees: Sequence[Node], shared: frozenset[str]) -> list[int] | None:
    """Return which g each g becomes when u and v are exchanged; None where that is not a g."""

    def mirrored(name: Name) -> Name:
        return name if name.name in shared else replace(name, scope="v" if name.scope == "u" else "u")

    try:
        return [trees.index(with_names(tree, mirrored)) for tree in trees]
    except ValueError:
        return None


def _is_difference(h: RationalStatistic | RealStatistic, permutation: Sequence[int]) -> bool:
    """Whether h is one function minus the same function of exchanged runs."""
    if h.operation != "+":
        return False
    first, second = h.operands
    return second == -first.renamed(permutation)


def _samples(
    counts: Mapping[str, Expression], g: Mapping[str, Expression], shared: frozenset[str], smallest: int
) -> tuple[Any, Any]:
    """Return sums of g over a few random examples, observed and swapped, as Python integers."""
    rng = np.random.default_rng(0)
    names = tuple(counts)
    shape = (_SAMPLES, _EXAMPLES, len(names))
    largest = rng.choice([1, 5, 1000], size=(_SAMPLES, 1, 1))
    u, v = (rng.integers(smallest, largest, size=shape, endpoint=True) for _ in range(2))
    for side in (u, v):  # counts that are 0 in the whole run
        side[np.broadcast_to(rng.random((_SAMPLES, 1, len(names))) < 0.2, shape)] = smallest
    for i, (name, expression) in enumerate(counts.items()):
        if name in shared:
            v[..., i] = u[..., i]
        if name in shared and not list(expression.names):
            u[..., i] = v[..., i] = integers(expression, {}, 1)[0]
    flat = [side.reshape(-1, len(names)).astype(object) for side in (u, v)]

    def sums(first: Any, second: Any) -> Any:
        values = joint_values(names, first, second)
        columns = [integers(expression, values, len(first)).astype(object) for expression in g.values()]
        return np.stack(columns, axis=-1).reshape(_SAMPLES, _EXAMPLES, -1).sum(axis=1)

    return sums(*flat), sums(*reversed(flat))


def _value(h: RationalStatistic | RealStatistic, point: Any) -> Fraction | float | None:
    if isinstance(h, RationalStatistic):
        try:
            return h(point)
        except ZeroDivisionError:
            return None
    try:
        value = float(h(point.astype(np.float64)[np.newaxis])[0])
    except OverflowError:  # a sum that no float can hold
        return None
    return value if math.isfinite(value) else None


def _differ(observed: Fraction | float | None, swapped: Fraction | float | None) -> bool:
    if observed is None or swapped is None:
        return True
    if isinstance(observed, Fraction):
        return observed != -swapped
    return not math.isclose(observed, -swapped, rel_tol=1e-6, abs_tol=1e-9)


def _refusal(h: Expression) -> SpecError:
    difference, ratio = "a - b", "log(a / b)"
    if isinstance(h.tree, Binary) and h.tree.operator == "/":
        difference = written(replace(h.tree, operator="-"))
        ratio = f"log({h})"
    return h.error(
        h.tree,
        "a two-sided test needs an h that changes sign when the runs are exchanged",
        hint=f"test the difference, `h: {difference}`, or the log ratio, `h: {ratio}`; or choose"
        " `alternative: greater` or `less`.",
    )
