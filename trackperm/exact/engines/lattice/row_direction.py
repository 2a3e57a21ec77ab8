"""Choice of the rows of a lattice: few, and with a region that is known in closed form."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from trackperm.exact.engines.lattice.lattice import Lattice, along
from trackperm.exact.engines.lattice.statistic import LatticeStatistic
from trackperm.exact.functions.operations import OperationTree
from trackperm.exact.types import IntArray

ROW_RANKS = (2, 3)
"""Ranks of the lattices that are summed row by row."""

MOST_FORMS = 24
"""Largest number of distinct counts whose intersections are tried as directions."""


def in_short_rows(statistic: LatticeStatistic) -> LatticeStatistic:
    """Return the statistic on a basis whose last vector is the direction of rows.

    Of the directions in which a region in a row is known in closed form, that with the fewest rows is taken.
    They are sought among the basis vectors and those along which one or two counts stay the same: Matthews'
    correlation is affine in the true positives if the predictions stay the same.
    """
    lattice, h = statistic.lattice, statistic.h
    if lattice.rank not in ROW_RANKS or not isinstance(h, OperationTree):
        return statistic
    gram = _gram(lattice.coordinates, statistic.histogram.multiplicities)
    best, fewest = statistic, math.inf
    for direction in _directions(lattice):
        if not statistic.is_closed_along(direction):
            continue
        moved = along(lattice, gram, direction)
        heads = moved.coordinates[:, :-1].astype(np.float64)
        squares = (heads.T * statistic.histogram.multiplicities) @ heads
        n_rows = math.prod(math.sqrt(variance) for variance in np.diag(squares))
        if n_rows < (1.0 - 1e-9) * fewest:
            best, fewest = replace(statistic, lattice=moved), n_rows
    return best


def _gram(coordinates: IntArray, multiplicities: IntArray) -> list[list[int]]:
    """Return sum_k c_k x_k x_k^T in Python integers."""
    exact = coordinates.astype(object)
    return [[int(value) for value in row] for row in (exact.T * multiplicities.astype(object)) @ exact]


def _directions(lattice: Lattice) -> Iterator[tuple[int, ...]]:
    """Yield the basis vectors, the last one first, and primitive directions in which counts are constant."""
    rank = lattice.rank
    seen: set[tuple[int, ...]] = set()
    candidates = [tuple(int(i == j) for j in range(rank)) for i in reversed(range(rank))]
    counts = list({_primitive(row) for row in lattice.basis if any(row)})
    if len(counts) <= MOST_FORMS:
        candidates += [_orthogonal(chosen) for chosen in itertools.combinations(sorted(counts), rank - 1)]
    for candidate in candidates:
        if any(candidate) and (direction := _primitive(candidate)) not in seen:
            seen.add(direction)
            yield direction


def _orthogonal(forms: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return a vector on which r - 1 forms of rank r are 0, for r = 2 or 3."""
    if len(forms) == 1:
        ((a, b),) = forms
        return -b, a
    (a, b, c), (d, e, f) = forms
    return b * f - c * e, c * d - a * f, a * e - b * d


def _primitive(vector: Sequence[int]) -> tuple[int, ...]:
    """Divide a vector by the common divisor of its entries; the first one other than 0 becomes positive."""
    divisor = math.gcd(*vector)
    if next(x for x in vector if x) < 0:
        divisor = -divisor
    return tuple(x // divisor for x in vector)
