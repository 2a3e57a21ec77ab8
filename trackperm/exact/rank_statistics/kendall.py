r"""Kendall's tau-b after exchanges of scores.

With C concordant and D discordant pairs among n_0 = n (n - 1) / 2, and n_s and n_y pairs that are tied in the
scores and in the labels,

.. math:: \tau_b = \frac{C - D}{\sqrt{(n_0 - n_s) (n_0 - n_y)}}.

The numerator is a sum over pairs of examples, so that the difference of the numerators of two systems is a
signed sum over examples (:mod:`trackperm.exact.pairwise.weights`). Without ties among scores, n_s is 0 after
every exchange, and the difference of the coefficients is that sum: its tail is exact. With ties n_s changes.
Bounds (:mod:`.tau_bounds`) then decide for most exchanges whether they are as extreme as the observed one,
and both coefficients are computed for the others.

The numerator is counted bit by bit of the labels. Two labels are ordered by the highest bit in which they
differ, so each pair counts once: among the examples whose labels agree in all higher bits. With E_g examples
up to the g-th distinct score there, of which L_g have a 1, concordant minus discordant pairs are

.. math:: \sum_g (L_g E_{g-1} - L_{g-1} E_g).

Each bit takes one running sum over the scores of both systems, which are sorted once: O(N log K) steps for an
exchange, with K distinct labels.

References
----------
M. G. Kendall (1945), "The treatment of ties in ranking problems", Biometrika 33.
W. R. Knight (1966), "A computer method for calculating Kendall's tau with ungrouped data", Journal of the
American Statistical Association 61.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.pairwise import PairSums, Roles, coded_scores, ranked_pairs
from trackperm.exact.rank_statistics.examples import RankedExamples
from trackperm.exact.rank_statistics.linear import LinearDifference
from trackperm.exact.rank_statistics.order import SwappedOrder
from trackperm.exact.rank_statistics.tau_bounds import TauBounds
from trackperm.exact.rank_statistics.ties import tied_groups, ties_change
from trackperm.exact.types import IntArray

ONES = 32
"""Bit from which a running sum counts the examples with a 1; below, it counts all examples."""


@dataclass(frozen=True)
class KendallTauB:
    """Kendall's tau-b of the scores of two systems with the labels, after any exchange; 0 for 0/0.

    Attributes
    ----------
    order : SwappedOrder
        The scores in ascending order.
    linear : LinearDifference or None
        The difference of the coefficients, if no exchange changes the number of ties.
    moves : ndarray of int64, shape (n_coins,)
        Twice the weight of each coin in the difference of the numerators.
    bits : tuple of LabelBit
        The bits of the labels.
    n_untied_labels : int
        n_0 - n_y.
    tied : ndarray of int64
        Groups of slots whose sizes enter n_s.
    n_tied : ndarray of int64
        Number of scores of both runs together in each of them.
    bounds : TauBounds or None
        Bounds of the difference, if ties change and each coin exchanges one example.
    """

    order: SwappedOrder
    linear: LinearDifference | None
    moves: IntArray
    bits: tuple[LabelBit, ...]
    n_untied_labels: int
    tied: IntArray
    n_tied: IntArray
    bounds: TauBounds | None

    @classmethod
    def of(cls, ranked: RankedExamples) -> KendallTauB:
        """Sort scores and labels."""
        n, order = ranked.n, SwappedOrder.of(ranked)
        _, labels, sizes = np.unique(ranked.labels, return_inverse=True, return_counts=True)
        untied = math.comb(n, 2) - _pairs_within(sizes)
        is_moved = ranked.coins >= 0
        moves = np.zeros(ranked.n_coins, dtype=np.int64)
        labels = labels.astype(np.int64)
        np.add.at(moves, ranked.coins[is_moved], _moves(ranked, labels)[is_moved])
        linear, bounds, bits = None, None, tuple[LabelBit, ...]()
        if not ties_change(ranked, order):
            scale = math.sqrt(math.comb(n, 2)) * math.sqrt(untied)
            linear = LinearDifference(moves, 0.5 / scale if scale else 0.0)
        elif np.count_nonzero(is_moved) == ranked.n_coins:
            bounds = _bounds(ranked, order, labels, moves, untied)
        for shift in reversed(range(int(labels.max(initial=0)).bit_length())):
            bits += (LabelBit.of(order, labels[order.examples], shift),)
        tied, n_tied = tied_groups(order) if linear is None else (np.zeros(0, dtype=np.int64),) * 2
        return cls(order, linear, moves, bits, untied, tied, n_tied, bounds)

    def scores(self, states: npt.NDArray[np.int32]) -> tuple[FloatArray, FloatArray]:
        """Return the coefficients of candidate and baseline, shape (B,) each, after exchanges `states`."""
        order, n_coins = self.order, self.moves.size
        active = order.active(states)
        own = np.zeros(len(states), dtype=np.int64)
        for bit in self.bits:
            own += bit.concordance(active)
        # A coin's weight is -moves / 2 if it exchanges, else moves / 2.
        exchanged = states[:, n_coins : 2 * n_coins].astype(np.int64) @ self.moves
        other = own - (int(self.moves.sum()) - 2 * exchanged) // 2
        running, _ = order.n_up_to(active, order.ends)
        counts = running.astype(np.int64)
        sizes = counts[:, self.tied] - np.where(self.tied > 0, counts[:, self.tied - 1], 0)
        return self._scaled(own, sizes), self._scaled(other, self.n_tied - sizes)

    def _scaled(self, numerators: IntArray, sizes: IntArray) -> FloatArray:
        untied = math.comb(self.order.n, 2) - (sizes * (sizes - 1)).sum(axis=1) // 2
        scales = np.sqrt(untied) * math.sqrt(self.n_untied_labels)
        found = np.divide(numerators, scales, out=np.zeros(len(scales)), where=scales > 0.0)
        return np.asarray(found)


@dataclass(frozen=True)
class LabelBit:
    """Slots by the higher bits of the label of their example, then by score, with one bit of the label.

    Attributes
    ----------
    slots : ndarray of int64, shape (S',)
        The slots; those of examples that all have the same bit are left out.
    steps : ndarray of int64, shape (S',)
        1, and 2^32 more where the bit is 1.
    ends : ndarray of int64, shape (G,)
        Last of the slots with the same higher bits and score.
    total : int
        Sum of the steps of one run.
    excess : int
        What pairs with different higher bits add to the sum over the groups.
    """

    slots: IntArray
    steps: IntArray
    ends: IntArray
    total: int
    excess: int

    @classmethod
    def of(cls, order: SwappedOrder, labels: IntArray, shift: int) -> LabelBit:
        """Sort slots by the bits of their labels above the one at `shift`."""
        prefixes, ones = labels >> (shift + 1), (labels >> shift) & 1
        # A run has one slot of each example: half of the two, or the only one.
        weights = np.diff(order.n_both, prepend=0)
        sizes, n_ones = (
            np.rint(np.bincount(prefixes, weights=each) / 2).astype(np.int64)
            for each in (weights, weights * ones)
        )
        is_mixed = (n_ones > 0) & (n_ones < sizes)
        (kept,) = np.nonzero(is_mixed[prefixes])
        slots = kept[np.argsort(prefixes[kept], kind="stable")]
        groups = np.searchsorted(order.ends, slots)
        differs = (np.diff(groups, append=-1) != 0) | (np.diff(prefixes[slots], append=-1) != 0)
        sizes, n_ones = sizes[is_mixed], n_ones[is_mixed]
        ones_before, all_before = (np.cumsum(each) - each for each in (n_ones, sizes))
        return cls(
            slots,
            1 + (ones[slots] << ONES),
            np.flatnonzero(differs),
            int(sizes.sum()) + (int(n_ones.sum()) << ONES),
            int((all_before * n_ones - ones_before * sizes).sum()),
        )

    def concordance(self, active: npt.NDArray[np.int32]) -> IntArray:
        """Return concordant minus discordant pairs of the candidate, shape (B,), from its active slots."""
        # One sum over all rows is faster than a sum of each; every row has the same total.
        found = np.take(active, self.slots, axis=1) * self.steps
        running = np.cumsum(found.ravel(), out=found.ravel()).reshape(found.shape)
        running = np.take(running, self.ends, axis=1)
        running -= (np.arange(len(active)) * self.total)[:, None]
        ones, all_ = running >> ONES, running & ((1 << ONES) - 1)
        found = np.einsum("bg,bg->b", ones[:, 1:], all_[:, :-1])
        found -= np.einsum("bg,bg->b", ones[:, :-1], all_[:, 1:])
        return np.asarray(found - self.excess)


def _pairs_within(sizes: IntArray) -> int:
    """Return the number of pairs within groups of these sizes."""
    return int((sizes * (sizes - 1)).sum()) // 2


def _moves(ranked: RankedExamples, labels: IntArray) -> IntArray:
    """Return 2 d_i of the examples, for the numerators."""
    return _concordance(ranked.u, ranked.v, labels).weights // 2


def _bounds(
    ranked: RankedExamples, order: SwappedOrder, labels: IntArray, moves: IntArray, untied: int
) -> TauBounds:
    """Return the bounds of the difference, if each coin exchanges one example."""
    # Pairs of both systems' scores together: each pair of examples has four of them, each example none.
    both = np.concatenate([ranked.u, ranked.v])
    pooled = int(_concordance(both, both, np.tile(labels, 2)).candidate.sum()) // 2
    (moved,) = np.nonzero(ranked.coins >= 0)
    moved = moved[np.argsort(ranked.coins[moved])]
    return TauBounds.of(order, moves, (ranked.u[moved], ranked.v[moved]), pooled / 2.0, untied)


def _concordance(u: IntArray, v: IntArray, labels: IntArray) -> PairSums:
    """Sum concordant minus discordant pairs, each twice: with either example as the left one."""
    zeros = np.zeros_like(labels)
    terms = np.zeros((1, 1, 3, 3), dtype=np.int64)
    terms[:, :, 0], terms[:, :, 2] = (1, 0, -1), (-1, 0, 1)
    roles = Roles(zeros, zeros, labels, labels, zeros, zeros)
    return ranked_pairs(coded_scores(u, v), roles, terms, np.ones((1, 1, 3), dtype=bool))
