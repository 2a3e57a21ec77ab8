"""Random swaps with tilted coins: independent binomial numbers of each row, and their sums."""

from __future__ import annotations

import math

import numpy as np

from trackperm.exact.distributions.characteristic import FloatArray, SwapDistribution
from trackperm.exact.engines.linear.tails import EXACT_IN_FLOATS
from trackperm.exact.engines.monte_carlo import LARGEST_COUNT
from trackperm.exact.types import IntArray

BLOCK_CELLS = 2**19
"""Most rows drawn together, or coordinates of a block, times draws: 4 MiB for each array."""

TOSSED = 4
"""Largest multiplicity that is tossed coin by coin, which is faster than a binomial draw."""

LISTED = 256
"""Largest multiplicity whose distribution function is listed, which is several times as fast as rejection."""

CELLS = 256
"""Equal parts of the unit interval for a first look-up: some 15 % of them contain a step."""

_LOG_FACTORIALS = np.array([math.lgamma(n + 1.0) for n in range(LISTED + 1)])

LARGEST_LOG = 700.0
"""Largest exponent of a tilt's odds: beyond it, exp overflows."""

LOW_BITS = 26
"""Bits of the lower part of steps whose sums exceed 2^52: up to 2^26 lower parts add up exactly in floats."""

MOST_SPLIT = 2 ** (52 - LOW_BITS)
"""Largest number of coins whose steps are summed in two parts."""


def tilted_swaps(
    law: SwapDistribution, tilt: FloatArray, size: int, generator: np.random.Generator
) -> IntArray:
    """Draw X under a tilt, shape (r, size).

    Sums of at most 2^52 are exact in floats. For larger ones, up to 2^62, the upper and the lower bits of the
    steps are summed separately, of :data:`MOST_SPLIT` coins at most.
    """
    slopes = np.clip(law.coordinates @ tilt, -LARGEST_LOG, LARGEST_LOG)
    counts = law.multiplicities
    is_split = exceeds_floats(law)
    parts = [law.coordinates >> LOW_BITS, law.coordinates & (2**LOW_BITS - 1)]
    steps = np.hstack(parts if is_split else [law.coordinates]).T.astype(np.float64)
    sums = np.zeros((len(steps), size))
    most = max(BLOCK_CELLS // (size + LISTED), 1)
    for least, greatest, draw in (
        (1, TOSSED, _by_coins),
        (TOSSED + 1, LISTED, _by_lists),
        (LISTED + 1, LARGEST_COUNT, _by_rejection),
    ):
        (chosen,) = np.nonzero((counts >= least) & (counts <= greatest))
        for first in range(0, chosen.size, most):
            rows = chosen[first : first + most]
            heads = draw(counts[rows], slopes[rows], size, generator)
            sums += steps[:, rows] @ heads
    whole = sums.astype(np.int64)
    return (whole[: law.rank] << LOW_BITS) + whole[law.rank :] if is_split else whole


def exceeds_floats(law: SwapDistribution) -> bool:
    """Whether sums of steps exceed 2^52, beyond which floats are not exact."""
    return any(max(-low, high) > EXACT_IN_FLOATS for low, high in law.support)


def _by_coins(counts: IntArray, slopes: FloatArray, size: int, generator: np.random.Generator) -> FloatArray:
    """Draw binomial numbers, shape (n, size), of small counts with the odds exp(slopes)."""
    chances = 1.0 / (1.0 + np.exp(-slopes))
    heads = (generator.random((counts.size, size)) < chances[:, None]).astype(np.float64)
    for coin in range(1, int(counts.max())):
        rows = counts > coin
        heads[rows] += generator.random((int(rows.sum()), size)) < chances[rows, None]
    return heads


def _by_rejection(
    counts: IntArray, slopes: FloatArray, size: int, generator: np.random.Generator
) -> FloatArray:
    """Draw binomial numbers, shape (n, size), of large counts with the odds exp(slopes)."""
    chances = 1.0 / (1.0 + np.exp(-slopes))
    drawn = generator.binomial(counts[:, None], chances[:, None], size=(counts.size, size))
    return np.asarray(drawn, dtype=np.float64)


def _by_lists(counts: IntArray, slopes: FloatArray, size: int, generator: np.random.Generator) -> FloatArray:
    """Draw binomial numbers, shape (n, size), by the inverse of their distribution function.

    A uniform number is first looked up among :data:`CELLS` equal cells, most of which contain no step of the
    function.
    """
    heads = np.arange(int(counts.max()) + 1)
    tails = counts[:, None] - heads
    logs = _LOG_FACTORIALS[counts[:, None]] - _LOG_FACTORIALS[heads] - _LOG_FACTORIALS[np.maximum(tails, 0)]
    logs += heads * slopes[:, None] - (counts * np.logaddexp(0.0, slopes))[:, None]
    below = np.cumsum(np.exp(np.where(tails >= 0, logs, -np.inf)), axis=1)
    drawn = np.empty((counts.size, size))
    uniform = np.empty(size)
    for row, (count, steps) in enumerate(zip(counts.tolist(), below, strict=True)):
        # The largest number has the rest, whatever the roundings.
        steps = steps[:count]
        in_cell = np.bincount(np.minimum(steps * CELLS, CELLS - 1).astype(np.intp), minlength=CELLS)
        table = np.where(in_cell == 0, np.cumsum(in_cell), -1).astype(np.float64)
        generator.random(out=uniform)
        found = table.take((uniform * CELLS).astype(np.intp))
        (open_,) = np.nonzero(found < 0.0)
        found[open_] = np.searchsorted(steps, uniform[open_], side="right")
        drawn[row] = found
    return drawn
