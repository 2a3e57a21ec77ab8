"""Table of a term over pairs: its values by kinds of examples, and by the order of values and scores.

Parts of an expression that read one example only are computed for each example; their distinct values are its
kinds. Comparisons between the two examples are replaced by their outcomes, and the term is evaluated for all
outcomes and kinds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.errors import InputError
from trackperm.exact.pairwise import Roles
from trackperm.statistic.expressions.tree import Node
from trackperm.statistic.pairs.columns import Array, PairColumns
from trackperm.statistic.pairs.trees import (
    LEFT,
    RIGHT,
    Axis,
    NotByOrderError,
    Steps,
    atoms_of,
    outcome_in,
    value_of,
    with_side,
)

MOST_KINDS = 64
"""Largest number of kinds of left or right examples that are tabulated; more are rarely needed."""


@dataclass(frozen=True)
class PairTable:
    """Term and pairs by kinds, order of places and region of the difference of scores."""

    roles: Roles
    terms: Array
    is_pair: npt.NDArray[np.bool_]
    steps: tuple[Fraction, ...]
    kinds: npt.NDArray[np.int64]

    @classmethod
    def of(
        cls, trees: tuple[Node, Node, Node], data: PairColumns, strata: npt.NDArray[np.int64]
    ) -> PairTable:
        """Tabulate a term, given the trees of both conditions and of the term.

        Raises
        ------
        NotByOrderError
            If it depends on more than comparisons and few kinds of examples.
        """
        left, right, tree = trees
        atoms = {**atoms_of(left), **atoms_of(right), **atoms_of(tree)}
        steps = {node: atom for node, atom in atoms.items() if isinstance(atom, Steps)}
        axes: dict[tuple[Node, Node], int] = {}
        for atom in atoms.values():
            if isinstance(atom, Axis):
                axes.setdefault((atom.left, atom.right), len(axes))
        values = sorted({value for atom in steps.values() for value in atom.steps})
        kinds = {side: _kinds(side, atoms, data) for side in (LEFT, RIGHT)}
        n_regions = 2 * len(values) + 1
        shape = (len(kinds[LEFT][1]), len(kinds[RIGHT][1]), *[3] * len(axes), n_regions)
        if len(axes) > 3 or math.prod(shape) > 2**16:
            raise NotByOrderError
        terms = np.full(shape, Fraction(0), dtype=object)
        is_pair = np.zeros(shape[:-1], dtype=bool)
        for place in product(*map(range, shape[:-1])):
            known: dict[Node, Any] = {**kinds[LEFT][1][place[0]], **kinds[RIGHT][1][place[1]]}
            signs = dict(zip(axes, (sign - 1 for sign in place[2:]), strict=True))
            known |= {
                node: atom.compare(signs[atom.left, atom.right], 0)
                for node, atom in atoms.items()
                if isinstance(atom, Axis)
            }
            if not (value_of(left, known) and value_of(right, known)):
                continue
            is_pair[place] = True
            for region in range(n_regions):
                outcomes = {node: outcome_in(atom, values, region) for node, atom in steps.items()}
                at = (*place, region)
                try:
                    terms[at] = Fraction(value_of(tree, {**known, **outcomes}))
                except (ZeroDivisionError, OverflowError):
                    raise InputError(
                        "the term of a pair is undefined", hint="it divides by 0 on some pairs."
                    ) from None
        return cls._with_places(data, strata, kinds, list(axes), terms, is_pair, tuple(values))

    @classmethod
    def _with_places(
        cls,
        data: PairColumns,
        strata: npt.NDArray[np.int64],
        kinds: Mapping[str, tuple[npt.NDArray[np.int64], Any]],
        axes: list[tuple[Node, Node]],
        terms: Array,
        is_pair: npt.NDArray[np.bool_],
        steps: tuple[Fraction, ...],
    ) -> PairTable:
        """Make groups of the values that have to be equal in pairs, and places of the one that is ordered."""
        groups = [(strata, strata)]
        ordered: list[int] = []
        for i, axis in enumerate(axes):
            unequal = np.delete(np.moveaxis(is_pair, 2 + i, 0), 1, axis=0)
            if unequal.any():
                ordered.append(i)
            else:
                groups.append(_coded(data, axis))
        if len(ordered) > 1:
            raise NotByOrderError
        n = strata.size
        places = _coded(data, axes[ordered[0]]) if ordered else (np.zeros(n, dtype=np.int64),) * 2
        for i in reversed(range(len(axes))):
            if i not in ordered:
                terms = np.take(terms, 1, axis=2 + i)
                is_pair = np.asarray(np.take(is_pair, 1, axis=2 + i))
        if not ordered:
            terms = np.repeat(np.expand_dims(terms, 2), 3, axis=2)
            is_pair = np.repeat(np.expand_dims(is_pair, 2), 3, axis=2)
        left, right = kinds[LEFT][0], kinds[RIGHT][0]
        sides = [
            np.where(np.asarray(is_pair.any(axis=unused))[kind], kind, -1)
            for kind, unused in ((left, (1, 2)), (right, (0, 2)))
        ]
        group = _numbered([np.concatenate(pair) for pair in groups])
        roles = Roles(sides[0], sides[1], places[0], places[1], group[:n], group[n:])
        return cls(roles, terms, is_pair, steps, _numbered([left, right]))


def width_of(tree: Node) -> Fraction | None:
    """Return the largest minus the smallest value of a term by any outcomes of its comparisons.

    None if it reads more than comparisons of both examples, so that data bound it only, or if it is undefined
    for some outcomes.
    """
    try:
        atoms = atoms_of(tree)
    except NotByOrderError:
        return None
    comparisons = {node: atom for node, atom in atoms.items() if isinstance(atom, Axis | Steps)}
    axes = list({(atom.left, atom.right) for atom in comparisons.values() if isinstance(atom, Axis)})
    values = sorted({step for atom in comparisons.values() if isinstance(atom, Steps) for step in atom.steps})
    if len(comparisons) < len(atoms) or len(axes) > 3:
        return None
    found = []
    for *signs, region in product(*[(-1, 0, 1)] * len(axes), range(2 * len(values) + 1)):
        by_axis = dict(zip(axes, signs, strict=True))
        known: dict[Node, Any] = {
            node: outcome_in(atom, values, region)
            if isinstance(atom, Steps)
            else atom.compare(by_axis[atom.left, atom.right], 0)
            for node, atom in comparisons.items()
        }
        try:
            found.append(Fraction(value_of(tree, known)))
        except (ZeroDivisionError, OverflowError):
            return None
    return max(found) - min(found)


def _kinds(
    side: str, atoms: Mapping[Node, object], data: PairColumns
) -> tuple[npt.NDArray[np.int64], list[dict[Node, Any]]]:
    """Return the kind of each example on a side, and the values of its parts for each kind."""
    parts = [node for node, atom in atoms.items() if atom == side]
    if not parts:
        return np.zeros(len(data.rows), dtype=np.int64), [{}]
    columns = [_distinct(data.of_example(node)) for node in parts]
    kinds = _numbered([codes for _, codes in columns])
    n_kinds = int(kinds.max(initial=-1)) + 1
    if n_kinds > MOST_KINDS:
        raise NotByOrderError
    examples = np.zeros(n_kinds, dtype=np.int64)
    examples[kinds] = np.arange(kinds.size)
    known = [
        {node: _exact(values[codes[i]]) for node, (values, codes) in zip(parts, columns, strict=True)}
        for i in examples
    ]
    return kinds, known


def _distinct(values: Array) -> tuple[Array, npt.NDArray[np.int64]]:
    """Return the distinct values in order, and the number of each entry's value among them."""
    low = int(values.min(initial=0)) if values.dtype.kind in "iu" else 0
    if values.dtype.kind not in "iu" or int(values.max(initial=0)) - low >= max(2 * values.size, 2**10):
        distinct, codes = np.unique(values, return_inverse=True)
        return distinct, codes.astype(np.int64)
    (present,) = np.nonzero(np.bincount(values - low))
    numbers = np.zeros(int(present.max(initial=-1)) + 1, dtype=np.int64)
    numbers[present] = np.arange(present.size)
    return present + low, numbers[values - low]


def _exact(value: Any) -> Any:
    """Return a value of an array as a Python number; a float by its shortest digits, or text."""
    item = value.item() if isinstance(value, np.generic) else value
    return Fraction(repr(item)) if isinstance(item, float) else item


def _coded(data: PairColumns, axis: tuple[Node, Node]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return integer codes of a value of the left and right examples, in ascending order of both together."""
    if axis[0] == with_side(axis[1], LEFT):
        codes = _distinct(data.of_example(axis[0]))[1]
        return codes, codes
    values = [data.of_example(node) for node in axis]
    codes = _distinct(np.concatenate(values))[1]
    return codes[: len(values[0])], codes[len(values[0]) :]


def _numbered(codes: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Assign numbers from 0 to the distinct combinations of codes."""
    found = codes[0]
    for other in codes[1:]:
        found = _distinct(found * (int(other.max(initial=0)) + 1) + other)[1]
    return found
