r"""Monte Carlo p-values, for statistics whose lattice has too high a rank for exact sums.

Draws. X = sum_k Binomial(c_k, 1/2) x_k takes K draws, not one for each example. Up to :data:`COINS` pairs of
one kind are tossed as coins, eight to a random byte: tables of the 256 possible sums of eight coins turn
bytes into sums, exactly. For kinds with more pairs, NumPy draws the number. As many axes as fit 2^62 are
packed into one integer, as mixed-radix digits of X - low on the box of its support. Every partial sum lies in
that box, so no digit carries and the int64 sums are exact.

Reproducibility. Chunk i of the draws has its own generator, the i-th child of the seed, and a size that only
the rank determines: the draws depend neither on the number of threads nor on memory, and a longer run begins
with the draws of a shorter one.

Validity. Under the null hypothesis the observed value and n drawn ones are exchangeable. Let g of the drawn
ones be as extreme as the observed one. Then p = (g + 1)/(n + 1) <= a has probability at most a. Sequentially
(Besag and Clifford 1991), draw until h are as extreme: p = h/l if that happens at draw l <= n, else
p = (g + 1)/(n + 1). Then p <= h/l means that fewer than h of the first l - 1 drawn are as extreme, so the
observed value is among the h most extreme of l, which has probability at most h/l; p <= (g + 1)/(n + 1) < h/l
means that at most g of n are, whether draws stop or not. A test that stops early is therefore valid at every
level too.

The interval contains the exact p-value q with the stated confidence: it consists of all q that neither of two
one-sided tests of level (1 - confidence)/2 rejects (Clopper and Pearson 1934). Outcomes are ordered by their
p-values: early stops are above late ones, and both above outcomes without a stop. The tails of this order are
binomial, since n draws have at least g < h extreme ones exactly if drawing stops, or goes on to n with g or
more:

    P(at least g extreme in n, or stopped) = P(Binomial(n, q) >= g),
    P(at most g extreme in n, not stopped) = P(Binomial(n, q) <= g),
    P(stopped at draw l or before)         = P(Binomial(l, q) >= h),
    P(not stopped before draw l)           = P(Binomial(l - 1, q) <= h - 1).

The last two are the tails of the negative binomial law. With I the regularised incomplete beta function,
P(Binomial(n, q) >= g) = I_q(g, n - g + 1), which its inverse solves for q.

References
----------
J. Besag and P. Clifford (1991), "Sequential Monte Carlo p-values", Biometrika 78.
C. J. Clopper and E. S. Pearson (1934), "The use of confidence or fiducial limits", Biometrika 26.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trackperm.errors import CapacityError, InputError, UndefinedStatisticError
from trackperm.exact.counts import LARGEST
from trackperm.exact.distributions.characteristic import SwapDistribution
from trackperm.exact.types import INSIDE, UNDEFINED, IntArray, Membership, Region

CONFIDENCE = 0.99
"""Confidence of intervals for the exact p-value: rarely wrong, and 1.3 times as wide as with 95 %."""

COINS = 256
"""Largest multiplicity that is tossed as coins: a binomial draw takes about as long as so many."""

LARGEST_COUNT = 2**40
"""Largest multiplicity c: NumPy's rejection method has errors of about c 2^-53 in log probabilities."""

CHUNK = 4096
"""Samples per chunk: 32 KiB for each packed word stay in the cache."""

CHUNK_CELLS = 2**20
"""Largest number of coordinates in a chunk, which makes it smaller at high ranks: 8 MiB."""

BLOCK = 1024
"""Coins whose tables are built together: 256 KiB of tables for each packed word."""

REGION_BYTES = 64
"""Memory for one coordinate of one sample in a region: a few copies of points and counts."""

SAMPLE_BYTES = 512
"""Memory for one sample beyond its coordinates: random bytes and values of the statistic."""


@dataclass(frozen=True)
class MonteCarloTail:
    """Monte Carlo p-value and a confidence interval of the exact one.

    Attributes
    ----------
    pvalue : float
        A valid p-value: ``(n_extreme + 1) / (n_samples + 1)``, or ``n_extreme / n_samples`` if drawing
        stopped at the required number of exceedances.
    n_samples : int
        Number of random swaps.
    n_extreme : int
        Number of these that are at least as extreme as the observed one.
    interval : tuple of float
        Confidence interval of the exact p-value, at :data:`CONFIDENCE`, for the stopping rule that was used.
    stopped : bool
        Whether drawing stopped at the required number of exceedances.
    seed : int
        Seed that gives the same numbers again, on any number of threads.
    """

    pvalue: float
    n_samples: int
    n_extreme: int
    interval: tuple[float, float]
    stopped: bool
    seed: int


def monte_carlo_tail(
    law: SwapDistribution,
    region: Region,
    *,
    two_sided: bool,
    n_samples: int,
    seed: int,
    memory_budget: int,
    exceedances: int | None = None,
    n_threads: int | None = None,
) -> MonteCarloTail:
    """Estimate P(X in R), or P(X in R or E - X in R) if `two_sided`, from random swaps.

    Parameters
    ----------
    law : SwapDistribution
        Distribution of X, of rank 1 or more.
    region : Region
        R. Several threads call it at a time, so a statistic given as a callable must allow that.
    n_samples, exceedances : int
        Largest number of random swaps, and the number of extreme ones after which to stop.
    seed, n_threads, memory_budget : int
        Threads, by default one for each core, or fewer to fit the bytes of the budget, do not change results.

    Raises
    ------
    InputError
        If the statistic is undefined after a drawn swap, or an argument is out of range.
    CapacityError
        If sums exceed 2^62, a multiplicity 2^40, or one chunk of samples the budget.
    """
    for name, value, least in (
        ("n_samples", n_samples, 1),
        ("seed", seed, 0),
        ("exceedances", 1 if exceedances is None else exceedances, 1),
        ("n_threads", 1 if n_threads is None else n_threads, 1),
    ):
        if value < least:
            raise InputError(f"`{name}` is {value}; expected at least {least}")
    sampler = SwapSampler(law)
    size = max(8, min(CHUNK, CHUNK_CELLS // law.rank // 8 * 8))
    affordable = memory_budget // sampler.n_bytes(size)
    if affordable < 1:
        raise CapacityError(
            f"{size} samples of {law.rank} coordinates at a time take {sampler.n_bytes(size)} bytes; "
            f"the memory budget is {memory_budget}"
        )
    mirror = np.array(law.total, dtype=np.int64)

    def classify(chunk: int) -> Membership:
        child = np.random.SeedSequence(seed, spawn_key=(chunk,))
        points = sampler.draw(np.random.Generator(np.random.PCG64(child)), size)
        membership = region.membership(list(points))
        if two_sided:
            mirrored = region.membership(list(mirror[:, None] - points))
            undefined = (membership == UNDEFINED) | (mirrored == UNDEFINED)
            membership = np.where(undefined, np.int8(UNDEFINED), np.maximum(membership, mirrored))
        return membership

    threads = min(n_threads or os.cpu_count() or 1, affordable)
    return tail_of_draws(
        classify, size, n_samples=n_samples, seed=seed, exceedances=exceedances, n_threads=threads
    )


def tail_of_draws(
    classify: Callable[[int], Membership],
    size: int,
    *,
    n_samples: int,
    seed: int,
    exceedances: int | None,
    n_threads: int,
) -> MonteCarloTail:
    """Draw chunks of random swaps until there are enough, and estimate the tail.

    Parameters
    ----------
    classify : callable
        Draws the chunk with a number, from 0, and returns the membership of its swaps, shape (size,). Several
        threads call it at a time.
    size : int
        Number of swaps in a chunk.
    n_samples, exceedances : int
        Largest number of random swaps, and the number of extreme ones after which to stop.
    seed : int
        Seed from which `classify` draws, for the result.
    n_threads : int
        Number of threads.
    """
    with closing(_in_order(classify, -(-n_samples // size), n_threads)) as chunks:
        drawn, extreme = tally(chunks, n_samples, exceedances)
    stopped = extreme == exceedances
    return MonteCarloTail(
        pvalue=valid_pvalue(extreme, drawn, stopped=stopped),
        n_samples=drawn,
        n_extreme=extreme,
        interval=exact_interval(extreme, drawn, stopped=stopped),
        stopped=stopped,
        seed=seed,
    )


def tally(chunks: Iterable[Membership], n_samples: int, exceedances: int | None) -> tuple[int, int]:
    """Count draws, at most `n_samples`, and those inside, until the latter reach `exceedances` if given.

    `chunks` has the membership of draws in their order. An undefined statistic at a counted draw is an error.
    """
    drawn = extreme = 0
    for chunk in chunks:
        counted = chunk[: n_samples - drawn]
        (inside,) = np.nonzero(counted == INSIDE)
        if exceedances is not None and extreme + inside.size >= exceedances:
            inside = inside[: exceedances - extreme]
            counted = counted[: inside[-1] + 1]
        if (counted == UNDEFINED).any():
            raise undefined_after_swaps()
        drawn += counted.size
        extreme += inside.size
        if extreme == exceedances:
            break
    return drawn, extreme


def undefined_after_swaps() -> UndefinedStatisticError:
    """Return the error for a drawn swap after which the statistic is undefined."""
    return UndefinedStatisticError(
        "the statistic is undefined after some swaps of outputs: it divides by 0 there",
        hint="declare the value of 0/0 with `undefined`; a non-zero number over 0 has no value.",
    )


def valid_pvalue(extreme: int, drawn: int, *, stopped: bool) -> float:
    """Return the p-value of `extreme` among `drawn` swaps; `stopped` states that `drawn` was random."""
    return extreme / drawn if stopped else (extreme + 1) / (drawn + 1)


def exact_interval(extreme: int, drawn: int, *, stopped: bool) -> tuple[float, float]:
    """Return a two-sided interval of the exact p-value with confidence :data:`CONFIDENCE` or more.

    `stopped` states that the number of draws was random and that of extreme ones fixed. Clopper and Pearson
    (1934); for the negative binomial law, as derived above.
    """
    tail = (1.0 - CONFIDENCE) / 2.0
    # P(Binomial(n, q) <= g) = 1 - I_q(g + 1, n - g), at g = h - 1 and n = l - 1 if draws stopped.
    successes, failures = (extreme if stopped else extreme + 1), drawn - extreme
    from scipy import special  # importing it takes as long as the rest of NumPy

    low = float(special.betaincinv(extreme, drawn - extreme + 1, tail)) if extreme else 0.0
    high = float(special.betaincinv(successes, failures, 1.0 - tail)) if failures else 1.0
    return low, high


class SwapSampler:
    """Draws of X in bulk, for a law of rank 1 or more.

    It raises CapacityError if sums exceed 2^62 or a multiplicity 2^40.
    """

    def __init__(self, law: SwapDistribution) -> None:
        if any(max(-low, high) > LARGEST for low, high in law.support):
            raise CapacityError(
                "sums of the differences exceed 2^62", hint="use a statistic with smaller integers."
            )
        if int(law.multiplicities.max(initial=0)) > LARGEST_COUNT:
            raise CapacityError(
                f"{int(law.multiplicities.max()):,} examples have the same counts; "
                f"Monte Carlo draws at most {LARGEST_COUNT} at a time"
            )
        self._low = np.array([low for low, _ in law.support], dtype=np.int64)
        self._spans = [high - low + 1 for low, high in law.support]
        self._words = _packed(self._spans)
        keys = self._pack(law.coordinates)
        tossed = law.multiplicities <= COINS
        self._coins, self._n_coins = keys[tossed], law.multiplicities[tossed]
        self._many = list(zip(law.multiplicities[~tossed].tolist(), keys[~tossed].tolist(), strict=True))

    def n_bytes(self, size: int) -> int:
        """Estimate the memory of `size` draws and their classification."""
        tables = (BLOCK + COINS) // 8 * 256 * 8 * len(self._words)
        random_bits = (BLOCK + COINS) // 8 * size
        return size * (REGION_BYTES * len(self._spans) + SAMPLE_BYTES) + tables + random_bits

    def draw(self, generator: np.random.Generator, size: int) -> IntArray:
        """Draw X, shape (r, size); `size` is a multiple of 8."""
        sums = np.zeros((len(self._words), size), dtype=np.int64)
        for coins in self._blocks_of_eight():
            n_bytes = coins.shape[0] * size
            words = generator.integers(0, 2**64, size=n_bytes // 8, dtype=np.uint64)
            tosses = words.astype("<u8", copy=False).view(np.uint8).reshape(coins.shape[0], size)
            groups, touched = np.nonzero(coins.any(axis=1))
            tables = subset_sums(coins[groups, :, touched])
            for group, word, table in zip(groups.tolist(), touched.tolist(), tables, strict=True):
                sums[word] += table.take(tosses[group])
        for count, keys in self._many:
            heads = generator.binomial(count, 0.5, size=size)
            for word, key in enumerate(keys):
                if key:
                    sums[word] += heads * key
        return self._unpack(sums)

    def _blocks_of_eight(self) -> Iterator[IntArray]:
        """Yield the keys of coins, padded with idle coins to shape (n, 8, words)."""
        ends = np.cumsum(self._n_coins)
        first, tossed = 0, 0
        while first < ends.size:
            last = int(np.searchsorted(ends, tossed + BLOCK + COINS, side="right"))
            coins = np.repeat(self._coins[first:last], self._n_coins[first:last], axis=0)
            idle = np.zeros((-coins.shape[0] % 8, coins.shape[1]), dtype=np.int64)
            yield np.concatenate([coins, idle]).reshape(-1, 8, coins.shape[1])
            first, tossed = last, int(ends[last - 1])

    def _pack(self, points: IntArray) -> IntArray:
        """Return the keys of points, shape (n, words): linear, and exact on the support."""
        keys = np.zeros((points.shape[0], len(self._words)), dtype=np.int64)
        for word, axes in enumerate(self._words):
            stride = 1
            for axis in axes:
                keys[:, word] += points[:, axis] * stride
                stride *= self._spans[axis]
        return keys

    def _unpack(self, sums: IntArray) -> IntArray:
        """Return the points of keys, shape (r, n)."""
        points = np.empty((len(self._spans), sums.shape[1]), dtype=np.int64)
        origins = self._pack(self._low[None, :])[0]
        for axes, key, origin in zip(self._words, sums, origins, strict=True):
            rest = key - origin
            for axis in axes[:-1]:
                rest, digit = np.divmod(rest, self._spans[axis])
                points[axis] = digit + self._low[axis]
            points[axes[-1]] = rest + self._low[axes[-1]]
        return points


def subset_sums(steps: npt.NDArray[np.int64]) -> IntArray:
    """Return sum_b bit_b(j) steps_b for every byte j: shape (n, 256) from shape (n, 8)."""
    sums = np.zeros((steps.shape[0], 256), dtype=np.int64)
    for bit in range(8):
        sums[:, 1 << bit : 2 << bit] = sums[:, : 1 << bit] + steps[:, bit, None]
    return sums


def _packed(spans: list[int]) -> list[list[int]]:
    """Split axes into runs whose product of spans is at most 2^62; a larger axis is a run of its own."""
    words: list[list[int]] = []
    product = LARGEST + 1
    for axis, span in enumerate(spans):
        if product * span > LARGEST:
            words.append([])
            product = 1
        words[-1].append(axis)
        product *= span
    return words


def _in_order(
    work: Callable[[int], Membership], n_chunks: int, n_threads: int
) -> Generator[Membership, None, None]:
    """Yield work(0), work(1), ... in order; threads run at most two chunks each ahead."""
    if n_threads == 1:
        yield from map(work, range(n_chunks))
        return
    pending: deque[Future[Membership]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for chunk in range(n_chunks + 2 * n_threads):
                if chunk < n_chunks:
                    pending.append(pool.submit(work, chunk))
                if pending and chunk >= 2 * n_threads:
                    yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
