"""Scores of both systems in one order, from which every exchange of outputs selects one of each example.

Sorting once replaces sorting after every exchange. The scores of both systems, two of an example or one if
they are equal, are slots in ascending order. After an exchange, the candidate has one slot of every example,
its active ones; the baseline has the others, and the slots of equal scores as well. The number of a run's
scores up to a slot is a cumulated sum of active slots, and ranks, ties and precisions follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trackperm.exact.rank_statistics.examples import RankedExamples
from trackperm.exact.types import IntArray


@dataclass(frozen=True)
class SwappedOrder:
    """Slots of the scores of two systems, and groups of equal scores among them.

    Attributes
    ----------
    n : int
        Number of examples.
    examples : ndarray of int64, shape (S,)
        Example of each slot.
    columns : ndarray of int64, shape (S,)
        Column of :meth:`.RankedExamples.states` that says whether the slot is the candidate's.
    n_both : ndarray of int64, shape (S,)
        Number of scores of the candidate and of the baseline together up to each slot.
    ends : ndarray of int64, shape (G,)
        Last slot of each group of equal scores, in order.
    is_tied : ndarray of bool, shape (G,)
        Whether a group has several slots.
    """

    n: int
    examples: IntArray
    columns: IntArray
    n_both: IntArray
    ends: IntArray
    is_tied: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, ranked: RankedExamples, *, descending: bool = False) -> SwappedOrder:
        """Sort the scores of both systems."""
        n = ranked.n_coins
        (moved,) = np.nonzero(ranked.coins >= 0)
        coins = ranked.coins[moved]
        examples = np.concatenate([np.arange(ranked.n), moved])
        codes = np.concatenate([ranked.u, ranked.v[moved]])
        own = np.full(ranked.n, 2 * n, dtype=np.int64)
        own[moved] = coins
        columns = np.concatenate([own, n + coins])
        shares = np.where(columns == 2 * n, 2, 1)
        order = np.argsort(-codes if descending else codes, kind="stable")
        codes = codes[order]
        is_end = np.append(codes[1:] != codes[:-1], True)[: codes.size]
        (ends,) = np.nonzero(is_end)
        sizes = np.diff(ends, prepend=-1)
        return cls(ranked.n, examples[order], columns[order], np.cumsum(shares[order]), ends, sizes > 1)

    @property
    def n_slots(self) -> int:
        """Number of slots S."""
        return int(self.columns.size)

    def active(self, states: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Whether each slot is the candidate's, shape (B, S)."""
        return np.take(states, self.columns, axis=1)

    def n_up_to(
        self, active: npt.NDArray[np.int32], slots: IntArray
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return the number of scores of each run up to some slots, shape (B, len(slots)) each."""
        # One sum over all rows is faster than a sum of each; every row has N active slots.
        running = np.cumsum(active.ravel(), dtype=np.int32).reshape(active.shape)
        own = running if slots.size == active.shape[1] else np.take(running, slots, axis=1)
        own -= (np.arange(len(active), dtype=np.int32) * self.n)[:, None]
        return own, self.n_both[slots] - own


def n_rows(n_slots: int, n_cells: int) -> int:
    """Return a number of draws whose slots are about `n_cells`, at least 8 and a multiple of 8."""
    return max(8, n_cells // max(n_slots, 1) // 8 * 8)
