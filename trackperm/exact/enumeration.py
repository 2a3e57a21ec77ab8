"""Exact p-values of tiny inputs by listing what swaps can do, counted in integers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trackperm.errors import InputError
from trackperm.exact.characteristic import SwapSum
from trackperm.exact.counts import IntArray
from trackperm.exact.region import INSIDE, UNDEFINED, Region


def n_configurations(multiplicities: IntArray) -> int:
    """Return prod_k (c_k + 1): how many ways there are to choose how many pairs of each kind are swapped."""
    return math.prod(int(c) + 1 for c in multiplicities)


def count_inside(law: SwapSum, regions: Sequence[Region]) -> int:
    """Return how many of the 2^n swaps lead into the union of disjoint `regions`.

    Every configuration (j_1..j_K) stands for prod_k C(c_k, j_k) swaps.

    Raises
    ------
    InputError
        If the statistic is undefined after some swap.
    """
    points = np.zeros((1, law.rank), dtype=np.int64)
    ways = np.ones(1, dtype=object)
    for step, c in zip(law.coordinates, law.multiplicities, strict=True):
        chosen = np.arange(int(c) + 1, dtype=np.int64)
        points = (points[:, None, :] + chosen[:, None] * step).reshape(-1, law.rank)
        binomials = np.array([math.comb(int(c), j) for j in range(int(c) + 1)], dtype=object)
        ways = (ways[:, None] * binomials).ravel()
    total = 0
    for region in regions:
        membership = region.membership(list(points.T))
        if (membership == UNDEFINED).any():
            raise InputError(
                "the statistic is undefined after some swaps of outputs: it divides by 0 there",
                hint="declare the value of 0/0 with `undefined`; a non-zero number over 0 has no value.",
            )
        total += int(ways[membership == INSIDE].sum())
    return total
