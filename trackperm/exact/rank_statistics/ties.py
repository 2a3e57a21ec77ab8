"""Ties among the scores of rank statistics, and whether exchanges change them."""

from __future__ import annotations

import numpy as np

from trackperm.exact.rank_statistics.examples import RankedExamples
from trackperm.exact.rank_statistics.order import SwappedOrder
from trackperm.exact.types import IntArray


def ties_change(ranked: RankedExamples, order: SwappedOrder) -> bool:
    """Whether the ties of a run can differ between the runs, or after exchanges."""
    if ranked.by_run:
        return any(np.unique(side).size < side.size for side in (ranked.u, ranked.v))
    return bool(order.is_tied.any())


def tied_groups(order: SwappedOrder) -> tuple[IntArray, IntArray]:
    """Return the groups of several slots, and the number of scores of both runs together in each of them."""
    (tied,) = np.nonzero(order.is_tied)
    return tied, np.diff(order.n_both[order.ends], prepend=0)[tied]
