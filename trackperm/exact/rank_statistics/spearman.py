r"""Spearman's rank correlation after exchanges of scores.

With R_i and Y_i twice the mid-ranks of score and label of example i, both of mean n + 1, and T the sum of
t^3 - t over the sizes t of groups of ties,

.. math:: \rho = \frac{\sum_i (Y_i - n - 1) R_i}{\sqrt{V_s V_y}}, \qquad V = (n^3 - n - T) / 3.

As R_i = n + 1 + sum_j sign(s_i - s_j), the numerator is sum_{i<j} (Y_i - Y_j) sign(s_i - s_j), a sum over
pairs of examples. The difference of the numerators of two systems is therefore a signed sum over examples
(:mod:`trackperm.exact.pairwise.weights`), with weights

.. math:: 2 d_i = K_i(u_i) - K_i(v_i), \quad
    K_i(x) = \sum_j (Y_i - Y_j) (sign(x - u_j) + sign(x - v_j)).

Without ties, V_s is the same after every exchange, and the difference of the correlations is that sum: its
tail is exact. With ties V_s changes, and both correlations are computed for every exchange.

References
----------
C. Spearman (1904), "The proof and measurement of association between two things", American Journal of
Psychology 15.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.errors import CapacityError
from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.rank_statistics.examples import RankedExamples
from trackperm.exact.rank_statistics.linear import LinearDifference
from trackperm.exact.rank_statistics.order import SwappedOrder
from trackperm.exact.rank_statistics.ties import tied_groups, ties_change
from trackperm.exact.types import IntArray

MOST_EXAMPLES = 2**21
"""Largest number of examples whose numerators, at most n^3 / 3, are exact integers below 2^62. With more of
them ties are refused; without ties, the numerators are shown but do not decide anything."""


@dataclass(frozen=True)
class Spearman:
    """Spearman's correlations of the scores of two systems with the labels, after any exchange; 0 for 0/0.

    Attributes
    ----------
    order : SwappedOrder
        The scores in ascending order.
    linear : LinearDifference or None
        The difference of the correlations, if no exchange changes the correction for ties.
    moves : ndarray of int64, shape (n_coins,)
        Sum of 2 d_i over the examples of each coin.
    labels : ndarray of int64, shape (S,)
        Y_i - n - 1 of the example of each slot; float64 for more than `MOST_EXAMPLES`.
    variance_of_labels : float
        V_y.
    tied : ndarray of int64
        Groups of slots whose sizes enter the correction for ties.
    n_tied : ndarray of int64
        Number of scores of both runs together in each of them.
    """

    order: SwappedOrder
    linear: LinearDifference | None
    moves: IntArray
    labels: npt.NDArray[Any]
    variance_of_labels: float
    tied: IntArray
    n_tied: IntArray

    @classmethod
    def of(cls, ranked: RankedExamples) -> Spearman:
        """Sort scores and labels.

        It raises CapacityError for more than `MOST_EXAMPLES` if ties change.
        """
        n, order = ranked.n, SwappedOrder.of(ranked)
        labels, sizes = _centred_midranks(ranked.labels)
        variance = float(_variance(n, (sizes.astype(np.float64) ** 3 - sizes).sum()))
        moves = np.zeros(ranked.n_coins, dtype=np.int64)
        is_moved = ranked.coins >= 0
        np.add.at(moves, ranked.coins[is_moved], _moves(ranked, labels)[is_moved])
        linear = None
        if ties_change(ranked, order):
            if n > MOST_EXAMPLES:
                raise CapacityError(
                    f"tied scores of {n:,} examples are too many for Spearman's correlation; the limit is"
                    f" {MOST_EXAMPLES:,}"
                )
        else:
            scale = math.sqrt(float(_variance(n, np.zeros(()))) * variance)
            linear = LinearDifference(moves, 0.5 / scale if scale else 0.0)
        tied, n_tied = tied_groups(order) if linear is None else (np.zeros(0, dtype=np.int64),) * 2
        by_slot = labels[order.examples].astype(np.int64 if n <= MOST_EXAMPLES else np.float64)
        return cls(order, linear, moves, by_slot, variance, tied, n_tied)

    def scores(self, states: npt.NDArray[np.int32]) -> tuple[FloatArray, FloatArray]:
        """Return the correlations of candidate and baseline, shape (B,) each, after exchanges `states`."""
        order, n_coins = self.order, self.moves.size
        active = order.active(states)
        counts, _ = order.n_up_to(active, order.ends)
        # Rows have the sum 0, as labels are centred, so that one running sum serves all; it is an integer.
        sums = np.cumsum((active * self.labels).ravel()).reshape(active.shape)
        if order.ends.size < order.n_slots:
            sums = np.take(sums, order.ends, axis=1)
        # sum_g (E_g + E_{g-1}) (L_g - L_{g-1}), by parts, for counts E and sums L up to each group.
        # Terms are up to n times the result and cancel; int64 is exact, since it wraps around modulo 2^64.
        exact = np.einsum("bg,bg->b", counts[:, :-1], sums[:, 1:])
        exact -= np.einsum("bg,bg->b", counts[:, 1:], sums[:, :-1])
        own, places = exact.astype(np.float64), counts.astype(np.float64)
        # A coin's weight is -moves / 2 if it exchanges, else moves / 2.
        exchanged = states[:, n_coins : 2 * n_coins].astype(np.float64) @ self.moves.astype(np.float64)
        other = own - (float(self.moves.astype(np.float64).sum()) / 2.0 - exchanged)
        sizes = places[:, self.tied] - np.where(self.tied > 0, places[:, self.tied - 1], 0.0)
        return self._scaled(own, sizes), self._scaled(other, self.n_tied - sizes)

    def _scaled(self, numerators: FloatArray, sizes: FloatArray) -> FloatArray:
        variances = _variance(self.order.n, (sizes**3 - sizes).sum(axis=1))
        scales = np.sqrt(variances * self.variance_of_labels)
        return np.divide(numerators, scales, out=np.zeros_like(numerators), where=scales > 0.0)


def _centred_midranks(values: IntArray) -> tuple[IntArray, IntArray]:
    """Return twice the mid-ranks minus their mean, and the sizes of groups of equal values."""
    _, codes, sizes = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(sizes)
    return (2 * ends - sizes + 1)[codes] - (values.size + 1), sizes


def _moves(ranked: RankedExamples, labels: IntArray) -> IntArray:
    """Return 2 d_i of the examples."""
    pooled = np.concatenate([ranked.u, ranked.v])
    order = np.argsort(pooled, kind="stable")
    codes, sums = pooled[order], np.concatenate([[0], np.cumsum(np.tile(labels, 2)[order])])

    def parts(scores: IntArray) -> IntArray:
        below, up_to = (np.searchsorted(codes, scores, side=side) for side in ("left", "right"))
        return np.asarray(labels * (below + up_to) - (sums[below] + sums[up_to]))

    return parts(ranked.u) - parts(ranked.v)


def _variance(n: int, ties: FloatArray) -> FloatArray:
    """Return the sum of squares of centred doubled mid-ranks, given the sums of t^3 - t."""
    return (float(n) ** 3 - n - ties) / 3.0
