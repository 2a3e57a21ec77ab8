"""Difference of two scores that is a signed sum over coins."""

from __future__ import annotations

from dataclasses import dataclass

from trackperm.exact.types import IntArray


@dataclass(frozen=True)
class LinearDifference:
    """Difference of scores scale * sum_k sign_k moves_k, with the sign -1 for coins that exchange.

    Attributes
    ----------
    moves : ndarray of int64, shape (n_coins,)
        Weight of each coin.
    scale : float
        Contribution of a weight of 1; 0 if the difference is 0 after every exchange.
    """

    moves: IntArray
    scale: float
