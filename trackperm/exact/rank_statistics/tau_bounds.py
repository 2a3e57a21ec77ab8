r"""Bounds of a difference of tau-b after exchanges, from two sums over the coins.

Let A_u and A_v be the numerators of two systems after an exchange, and n_u and n_v their tied pairs, among
n_0 pairs of which m differ in their labels. With x_u = n_0 - n_u and x_v = n_0 - n_v, the difference of tau-b
is

.. math::

    \frac{1}{\sqrt m} \left( \frac{A_u}{\sqrt{x_u}} - \frac{A_v}{\sqrt{x_v}} \right)
    = \frac{1}{2 \sqrt m} \left[ (A_u - A_v) (x_u^{-1/2} + x_v^{-1/2})
    + (A_u + A_v) (x_u^{-1/2} - x_v^{-1/2}) \right].

Give coin k the sign s_k = 1 if it stays and -1 if it exchanges. Two sums are linear in the signs:

- A_u - A_v is half the sum of s_k moves_k (:mod:`trackperm.exact.pairwise.weights`).
- Of the t_g scores of both systems in a group of equal scores, one system has t_g / 2 + d_g and the other one
  t_g / 2 - d_g, where d_g is half the sum of s_k over the coins whose candidate's score is there, minus that
  over those whose baseline's score is there. So n_u - n_v is the sum of (t_g - 1) d_g.

The other two are quadratic in the signs and hardly vary. A_u + A_v has a term c_kl s_k s_l for each pair of
coins, with |c_kl| <= 1, and 0 unless the ranges between both scores overlap. n_u + n_v is the sum of
t_g^2 / 4 - t_g / 2 + d_g^2, whose terms s_k s_l have factors with squares that add up to at most
sum_g m_g (m_g - 1) / 4, for m_g coins in group g. If such a polynomial X has the variance v, then
E |X - E X|^q <= (q - 1)^q v^(q/2) (Bonami 1970), so that

    P(|X - E X| >= e (q - 1) sqrt(v)) <= exp(-q).

References
----------
A. Bonami (1970), "Étude des coefficients de Fourier des fonctions de L^p(G)", Annales de l'Institut Fourier
20.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.rank_statistics.order import SwappedOrder
from trackperm.exact.types import IntArray

ORDER = 36.0
"""The q of the bounds: one of them is wrong with a probability below 2 exp(-36) = 5e-16 for each draw."""


@dataclass(frozen=True)
class TauBounds:
    """Bounds of the difference of tau-b of two systems.

    Attributes
    ----------
    weights : ndarray of float64, shape (n_coins, 2)
        Weights of the signs in A_u - A_v and in n_u - n_v, which are integers or halves.
    sums : tuple of float
        Bounds of A_u + A_v.
    ties : tuple of float
        Bounds of n_u + n_v.
    n_pairs, n_untied_labels : int
        n_0 and m.
    """

    weights: FloatArray
    sums: tuple[float, float]
    ties: tuple[float, float]
    n_pairs: int
    n_untied_labels: int

    @classmethod
    def of(
        cls, order: SwappedOrder, moves: IntArray, codes: tuple[IntArray, IntArray], mean: float, untied: int
    ) -> TauBounds:
        """Compute the bounds for coins that exchange one example each.

        Parameters
        ----------
        order : SwappedOrder
            The scores in order.
        moves : ndarray of int64, shape (n_coins,)
            Twice the weight of each coin in the difference of the numerators.
        codes : tuple of ndarray of int64, shape (n_coins,)
            Codes of both scores of each coin's example.
        mean : float
            Expected A_u + A_v.
        untied : int
            m.
        """
        n = moves.size
        groups = np.searchsorted(order.ends, np.arange(order.n_slots))
        sizes = np.diff(order.n_both[order.ends], prepend=0).astype(np.float64)
        of_column = np.zeros(2 * n + 1)
        of_column[order.columns] = sizes[groups]
        weights = np.stack([moves, of_column[:n] - of_column[n : 2 * n]], axis=1) / 2.0
        n_moved = np.bincount(groups[order.columns < 2 * n], minlength=sizes.size).astype(np.float64)
        least = float((sizes**2 / 4.0 - sizes / 2.0).sum())
        ties = least + float(n_moved.sum()) / 4.0
        reach = [
            math.e * (ORDER - 1.0) * math.sqrt(square)
            for square in (_n_overlaps(*codes), float((n_moved * (n_moved - 1.0)).sum()) / 4.0)
        ]
        return cls(
            weights,
            (mean - reach[0], mean + reach[0]),
            (max(ties - reach[1], least), ties + reach[1]),
            math.comb(order.n, 2),
            untied,
        )

    @cached_property
    def _total(self) -> FloatArray:
        """Both sums if no coin exchanges."""
        return np.asarray(self.weights.sum(axis=0))

    def ends(self, tosses: npt.NDArray[np.uint8]) -> tuple[FloatArray, FloatArray]:
        """Return a lower and an upper bound of the difference, shape (B,), after tosses of the coins."""
        linear = self._total - 2.0 * (tosses.astype(np.float64) @ self.weights)
        difference, ties = linear.T
        factors = []
        for total in self.ties:
            left, right = (self.n_pairs - (total + sign * ties) / 2.0 for sign in (1.0, -1.0))
            with np.errstate(divide="ignore", invalid="ignore"):
                scales = [1.0 / np.sqrt(part * (4.0 * self.n_untied_labels)) for part in (left, right)]
            factors.append((scales[0] + scales[1], scales[0] - scales[1]))
        # Both factors are monotone in n_u + n_v.
        main = np.stack([difference * factor for factor, _ in factors])
        rest = np.stack([each * factor for _, factor in factors for each in self.sums])
        low, high = main.min(axis=0) + rest.min(axis=0), main.max(axis=0) + rest.max(axis=0)
        known = np.isfinite(low) & np.isfinite(high)
        return np.where(known, low, -np.inf), np.where(known, high, np.inf)


def _n_overlaps(first: IntArray, second: IntArray) -> float:
    """Return the number of pairs of ranges between two codes that have a code in common."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    apart = np.searchsorted(np.sort(high), low)
    return math.comb(low.size, 2) - float(apart.sum())
