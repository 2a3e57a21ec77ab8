"""Exact p-values by enumeration of all swaps, counted in integers.

A configuration (j_1..j_K), the number of swapped pairs of each kind, is reached by prod_k C(c_k, j_k) swaps.
On the integers the kinds are split into two halves, each listed separately, which meet in the middle
(Horowitz and Sahni 1974): the time grows with the square root of the number of configurations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.errors import UndefinedStatisticError
from trackperm.exact.counts import LARGEST
from trackperm.exact.distributions.characteristic import SwapDistribution
from trackperm.exact.distributions.line import LineLaw
from trackperm.exact.types import INSIDE, UNDEFINED, Region

MOST_COINS = 62
"""Largest number of coins for which numbers of swaps fit int64."""


def count_inside(law: SwapDistribution, region: Region) -> int:
    """Return the number of the 2^n swaps that lead into a region; it refuses undefined points."""
    points = np.zeros((1, law.rank), dtype=np.int64)
    ways = np.ones(1, dtype=object)
    for step, c in zip(law.coordinates, law.multiplicities, strict=True):
        chosen = np.arange(int(c) + 1, dtype=np.int64)
        points = (points[:, None, :] + chosen[:, None] * step).reshape(-1, law.rank)
        ways = (ways[:, None] * _binomials(int(c))).ravel()
    membership = region.membership(list(points.T))
    if (membership == UNDEFINED).any():
        raise UndefinedStatisticError(
            "the statistic is undefined after some swaps of outputs: it divides by 0 there",
            hint="declare the value of 0/0 with `undefined`; a non-zero number over 0 has no value.",
        )
    return int(ways[membership == INSIDE].sum())


def halves(law: LineLaw) -> tuple[list[int], list[int]]:
    """Split the rows of a law so that both halves have about as many configurations."""
    order = np.argsort(-law.multiplicities, kind="stable").tolist()
    sides: tuple[list[int], list[int]] = ([], [])
    sizes = [1, 1]
    for row in order:
        smaller = 0 if sizes[0] <= sizes[1] else 1
        sides[smaller].append(row)
        sizes[smaller] *= int(law.multiplicities[row]) + 1
    return sides


def counts_up_to(law: LineLaw, limits: Sequence[int]) -> list[int]:
    """Return the number of the 2^n swaps with X <= limit, for each limit; steps are integers of any size."""
    left, right = (_listed(law, rows) for rows in halves(law))
    order = np.argsort(right[0], kind="stable")
    values, swaps = right[0][order], right[1][order]
    cumulated = np.concatenate([np.zeros(1, dtype=swaps.dtype), np.add.accumulate(swaps)])
    met = [np.searchsorted(values, limit - left[0], side="right") for limit in limits]
    return [int((left[1] * cumulated[found]).sum()) for found in met]


def _listed(law: LineLaw, rows: Sequence[int]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the sums of the coins of some rows, and the number of swaps of each."""
    sums = np.zeros(1, dtype=object if law.total > LARGEST else np.int64)
    ways = np.ones(1, dtype=np.int64 if law.n_coins <= MOST_COINS else object)
    for row in rows:
        c = int(law.multiplicities[row])
        chosen = np.arange(c + 1).astype(sums.dtype) * law.steps[row]
        sums = (chosen[:, None] + sums).ravel()
        ways = (_binomials(c).astype(ways.dtype)[:, None] * ways).ravel()
    return sums, ways


def _binomials(c: int) -> npt.NDArray[Any]:
    """Return C(c, 0), ..., C(c, c) as Python integers, each from the one before."""
    coefficients = [1]
    for j in range(c):
        coefficients.append(coefficients[-1] * (c - j) // (j + 1))
    return np.array(coefficients, dtype=object)
