"""Tails on the integers by dynamic programming: how many swaps reach each value.

The recursion of Zmigrod, Vieira and Cotterell (2022), Algorithm 2, on the cells that matter only: coins are
added in ascending order of their steps, and values beyond the tail are dropped. All terms are positive, so
the result is accurate relative to itself without tilting: counts below 2^53 are exact, larger ones err by one
rounding a coin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trackperm.exact.characteristic import UNIT
from trackperm.exact.line_law import LineLaw
from trackperm.exact.tilt import TailMass

MOST_COINS = 1000
"""Coins up to which the number of swaps is within the range of floats."""

BYTES_PER_CELL = 24
"""The count of a cell, and copies while arrays are added."""


def dynamic_tails(law: LineLaw, limits: Sequence[int]) -> list[TailMass]:
    """Return P(X <= limit) for each limit, of at most 1000 coins, in 24 bytes an integer up to the limits."""
    greatest = max(limits)
    ways = np.zeros(greatest + 1)
    ways[0] = 1.0
    reach = 0
    for step, count in zip(law.steps.tolist(), law.multiplicities.tolist(), strict=True):
        for _ in range(count):
            reach = min(reach + step, greatest)
            ways[step : reach + 1] += ways[: max(reach + 1 - step, 0)]
    n_roundings = 0.0 if law.n_coins <= 53 else law.n_coins + math.log2(greatest + 1) + 16.0
    return [
        TailMass(0.0, math.ldexp(float(ways[: limit + 1].sum()), -law.n_coins), n_roundings * UNIT)
        for limit in limits
    ]
