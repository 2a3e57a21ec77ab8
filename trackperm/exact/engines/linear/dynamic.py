"""Tails on the integers by dynamic programming over the number of swaps of each value.

This is the recursion of Zmigrod, Vieira and Cotterell (2022), Algorithm 2, on the cells of the tail only:
coins are added in ascending order of their steps, and values beyond the tail are dropped. All terms are
positive, so the relative error is small without tilting: counts below 2^53 are exact, and larger ones have
one rounding for each coin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trackperm.errors import CapacityError
from trackperm.exact.distributions.characteristic import UNIT
from trackperm.exact.distributions.line import LineLaw
from trackperm.exact.distributions.tilt import TailMass

BYTES_PER_CELL = 24
"""Memory of a cell: its count, and copies while arrays are added."""

COINS_BETWEEN_SCALES = 400
"""Coins between scalings of large counts: each at most doubles them, so they stay below 2^(500 + 400)."""

LOG2_LARGE = 500
LOG2_TINY = -1074
"""Binary logarithms of a count that is scaled down, and of the least positive float."""


def dynamic_tails(law: LineLaw, limits: Sequence[int]) -> list[TailMass]:
    """Return P(X <= limit) for each limit, with 24 bytes for each integer up to the limits.

    Raises
    ------
    CapacityError
        If the counts span more magnitudes than floats do.
    """
    greatest = max(limits)
    ways = np.zeros(greatest + 1)
    ways[0] = 1.0
    reach, n_coins, exponent, log2_lost = 0, 0, 0, -math.inf
    for step, count in zip(law.steps.tolist(), law.multiplicities.tolist(), strict=True):
        for _ in range(count):
            reach = min(reach + step, greatest)
            ways[step : reach + 1] += ways[: max(reach + 1 - step, 0)]
            n_coins += 1
            if n_coins % COINS_BETWEEN_SCALES == 0:
                shift = math.frexp(float(ways[: reach + 1].max()))[1]
                if shift > LOG2_LARGE:
                    ways[: reach + 1] = np.ldexp(ways[: reach + 1], -shift)
                    exponent += shift
                    if exponent > -LOG2_TINY - 52:
                        # A count that underflows, or loses digits, at most doubles with every coin to come.
                        to_come = law.n_coins - n_coins
                        log2_lost = max(log2_lost, LOG2_TINY + exponent + to_come + math.log2(greatest + 1))
    n_roundings = 0.0 if law.n_coins <= 53 else law.n_coins + math.log2(greatest + 1) + 16.0
    return [
        _share(float(ways[: limit + 1].sum()), exponent, law.n_coins, log2_lost, n_roundings * UNIT)
        for limit in limits
    ]


def _share(total: float, exponent: int, n_coins: int, log2_lost: float, roundings: float) -> TailMass:
    """Return total 2^(exponent - n_coins); each scaling may have lost 2^(log2_lost - n_coins)."""
    n_scales = n_coins // COINS_BETWEEN_SCALES
    lost = log2_lost + math.log2(n_scales + 1) - exponent - (math.log2(total) if total > 0.0 else -math.inf)
    if not lost < -40.0 and log2_lost > -math.inf:
        raise CapacityError(f"the numbers of swaps of {n_coins:,} examples span more than floats do")
    error = roundings + 2.0**lost
    if exponent - n_coins > -900:
        return TailMass(0.0, math.ldexp(total, exponent - n_coins), error)
    log_scale = (exponent - n_coins) * math.log(2.0)
    return TailMass(log_scale, total, error + 2.0 * abs(log_scale) * UNIT)
