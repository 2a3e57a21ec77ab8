"""Examples of a rank statistic: the codes of both systems' scores, labels, and the coins of exchanges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trackperm.exact.types import IntArray


@dataclass(frozen=True)
class RankedExamples:
    """Scores of two systems as codes, with the label and the coin of every example.

    Attributes
    ----------
    u, v : ndarray of int64, shape (N,)
        Codes of the candidate's and of the baseline's scores, in the order of the scores.
    labels : ndarray of int64, shape (N,)
        Labels, or their codes in the order of the labels.
    coins : ndarray of int64, shape (N,)
        Number of the coin that exchanges the scores of an example, from 0; -1 where the scores are equal.
        Examples that are exchanged together have the same coin.
    n_coins : int
        Number of coins.
    by_run : bool
        Whether codes are ranks within each system, so that equal codes of two systems are not tied scores.
    """

    u: IntArray
    v: IntArray
    labels: IntArray
    coins: IntArray
    n_coins: int
    by_run: bool

    @classmethod
    def of(
        cls,
        u: IntArray,
        v: IntArray,
        labels: IntArray,
        units: IntArray | None = None,
        *,
        by_run: bool = False,
    ) -> RankedExamples:
        """Give each example a coin, or each of the `units` that are exchanged together, shape (N,)."""
        differs = u != v
        coins = np.full(u.size, -1, dtype=np.int64)
        if units is None:
            coins[differs] = np.arange(np.count_nonzero(differs))
        else:
            coins[differs] = np.unique(units[differs], return_inverse=True)[1]
        return cls(u, v, labels, coins, int(coins.max(initial=-1)) + 1, by_run)

    @property
    def n(self) -> int:
        """Number of examples N."""
        return int(self.u.size)

    def part(self, examples: npt.NDArray[np.bool_]) -> RankedExamples:
        """Return some of the examples, with the same coins."""
        u, v, labels, coins = (each[examples] for each in (self.u, self.v, self.labels, self.coins))
        return RankedExamples(u, v, labels, coins, self.n_coins, self.by_run)

    def states(self, tosses: npt.NDArray[np.uint8]) -> npt.NDArray[np.int32]:
        """Return the columns that :class:`~.order.SwappedOrder` selects from, given tosses of the coins.

        Parameters
        ----------
        tosses : ndarray of uint8, shape (B, n_coins)
            1 where a coin exchanges, for each of B draws.

        Returns
        -------
        ndarray of int32, shape (B, 2 n_coins + 1)
            Whether each coin does not exchange, whether it does, and 1.
        """
        n = self.n_coins
        found = np.ones((len(tosses), 2 * n + 1), dtype=np.int32)
        found[:, n : 2 * n] = tosses
        found[:, :n] -= found[:, n : 2 * n]
        return found
