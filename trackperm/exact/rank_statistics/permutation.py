"""Tests of rank statistics: exact for signed sums and few coins, else by random exchanges.

A difference of scores that is a signed sum over coins is tested as such. Otherwise the scores are computed
after every exchange that is listed or drawn, in floating point: values within :data:`BAND` of the observed
one count as ties.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from trackperm.errors import CapacityError, InputError
from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.distributions.tilt import EMPTY, share_of_swaps
from trackperm.exact.engines.monte_carlo import tail_of_draws
from trackperm.exact.null_distribution import NullDistribution
from trackperm.exact.options import N_SAMPLES, TestOptions
from trackperm.exact.outcome import ResultFields, TailResult, all_extreme, computed_result, monte_carlo_result
from trackperm.exact.rank_statistics.examples import RankedExamples
from trackperm.exact.rank_statistics.linear import LinearDifference
from trackperm.exact.rank_statistics.order import n_rows
from trackperm.exact.rank_statistics.registry import MeanOverStrata
from trackperm.exact.rank_statistics.tau_bounds import TauBounds
from trackperm.exact.result import PermutationTest
from trackperm.exact.sums import sum_test_of
from trackperm.exact.types import Membership

BAND = 2.0**-40
"""Largest difference of a value from the observed one that counts as a tie: scores are at most 1, and their
rounding errors about 10^-16 times the square root of the number of examples."""

LISTED = 16
"""Most coins whose exchanges are all listed by default: 65,536, fewer than are drawn."""

MOST_LISTED = 24
"""Most coins whose exchanges can be listed."""

CELLS = 2**18
"""Slots of the draws that are computed together: arrays of 1 to 2 MiB, which suit the cache."""

BYTES_PER_CELL = 48
"""Memory of a slot of one draw: a few arrays of integers and floats."""

MOST_SLOTS = 2 * 10**9
"""Slots of all draws by default: about 10 s on one core. More examples are drawn less often."""

LEAST_DRAWN = 1_000
"""Fewest draws by default."""


def draws_by_default(n_examples: int) -> int:
    """Return the number of random exchanges of so many examples by default.

    Examples
    --------
    >>> draws_by_default(10_000), draws_by_default(100_000)
    (100000, 10000)
    """
    return max(min(N_SAMPLES, MOST_SLOTS // (2 * n_examples)), LEAST_DRAWN)


def changes_by_coin(scores: MeanOverStrata, ranked: RankedExamples) -> FloatArray:
    """Return half of what each coin alone changes in the difference of scores, shape (n_coins,)."""
    if scores.linear is not None:
        return scores.linear.moves.astype(np.float64) * scores.linear.scale
    n_coins, size = ranked.n_coins, n_rows(scores.n_slots, CELLS)
    observed = _differences(scores, ranked, np.zeros((1, n_coins), dtype=np.uint8))
    changed = np.empty(n_coins)
    for first in range(0, n_coins, size):
        coins = np.arange(first, min(first + size, n_coins))
        tosses = (coins[:, None] == np.arange(n_coins)).astype(np.uint8)
        changed[coins] = _differences(scores, ranked, tosses)
    return (observed - changed) / 2.0


def _differences(scores: MeanOverStrata, ranked: RankedExamples, tosses: npt.NDArray[np.uint8]) -> FloatArray:
    candidate, baseline = scores.scores(ranked.states(tosses))
    return np.asarray(candidate - baseline)


def rank_test_of(
    scores: MeanOverStrata, ranked: RankedExamples, options: TestOptions, *, n_units: int
) -> PermutationTest:
    """Test the difference of a rank statistic of two systems.

    Parameters
    ----------
    scores : MeanOverStrata
        The scores after any exchange.
    ranked : RankedExamples
        The examples.
    options : TestOptions
        Options of the test; the number of draws is by default that of :func:`draws_by_default`.
    n_units : int
        Number of units that are exchanged: N, or fewer if examples are exchanged together.

    Raises
    ------
    InputError
        If the named engine does not apply.
    CapacityError
        If the exchanges are too many to be listed, or one block of draws exceeds the memory budget.
    """
    n_coins, n_examples = ranked.n_coins, ranked.n
    differences = partial(_differences, scores, ranked)
    observed = float(differences(np.zeros((1, n_coins), dtype=np.uint8))[0])
    if scores.linear is not None and scores.linear.scale:
        drawn = replace(options, n_samples=options.draws(draws_by_default(n_examples)))
        test = _linear_test(scores.linear, observed, n_units, drawn)
        return replace(test, n_discordant=n_coins)
    if options.method not in ("auto", "enumerate", "monte-carlo"):
        raise InputError(
            f"`--method {options.method}` does not apply to this statistic; expected `enumerate`,"
            " `monte-carlo` or `auto`"
        )
    size = n_rows(scores.n_slots, CELLS)
    n_threads = min(os.cpu_count() or 1, options.memory_budget // (size * scores.n_slots * BYTES_PER_CELL))
    if n_threads and scores.bounds is not None:
        n_threads = 1  # blocks that bounds decide take so little time that threads wait for each other
    if not n_threads:
        raise CapacityError(
            f"{size:,} exchanges of {n_examples:,} examples at a time take more than the memory budget of"
            f" {options.memory_budget} bytes"
        )
    fields = ResultFields(
        observed=observed,
        ties=lambda: "approximate",
        n_examples=n_units,
        n_discordant=n_coins,
        rank=n_coins,
        n_better=None,
        n_worse=None,
        distribution=_no_distribution,
    )
    certain = all_extreme(n_coins, options.two_sided and abs(observed) <= BAND)
    if certain is not None and not (options.mid_p and n_coins):
        return computed_result(certain, options, fields)
    if options.method == "enumerate" and n_coins > MOST_LISTED:
        raise CapacityError(
            f"`--method enumerate` cannot solve this problem: {n_coins} examples have 2^{n_coins} exchanges;"
            f" at most 2^{MOST_LISTED} are listed",
            hint="use `--method auto`, which chooses an engine that fits.",
        )
    if options.method == "enumerate" or (options.method == "auto" and n_coins <= LISTED):
        return _listed_test(differences, observed, certain, n_coins, size, options, fields)
    if options.mid_p:
        raise CapacityError("the mid-p-value needs an exact method", hint="omit `--mid-p`.")
    return _drawn_test(
        differences, scores.bounds, observed, n_coins, n_examples, size, n_threads, options, fields
    )


def _linear_test(
    linear: LinearDifference, observed: float, n_units: int, options: TestOptions
) -> PermutationTest:
    """Test a signed sum; units without a coin count as differences of 0."""
    moves, counts = np.unique(linear.moves, return_counts=True)
    without = n_units - linear.moves.size
    moves, counts = np.append(moves, 0), np.append(counts, without).astype(np.int64)
    present = counts > 0
    test = sum_test_of(moves[present], counts[present], Fraction(1), options)

    def distribution() -> NullDistribution:
        return test.null_distribution.transformed(lambda values: values * linear.scale)

    return replace(test, observed=observed, _distribution=distribution)


def _listed_test(
    differences: Callable[[npt.NDArray[np.uint8]], FloatArray],
    observed: float,
    certain: TailResult | None,
    n_coins: int,
    size: int,
    options: TestOptions,
    fields: ResultFields,
) -> PermutationTest:
    """Test by all exchanges; the mass of a `certain` tail is known, and only its interior is counted."""
    places = np.arange(2**n_coins, dtype="<u4")
    values = np.concatenate(
        [
            differences(
                np.unpackbits(
                    places[first : first + size, None].view(np.uint8),
                    axis=1,
                    bitorder="little",
                    count=n_coins,
                )
            )
            for first in range(0, places.size, size)
        ]
    )
    # Exchanging all examples turns a value into its negative, so that both sides have equal masses.
    sign = -1.0 if options.tested == "less" or (options.two_sided and observed < 0.0) else 1.0
    extreme = int(np.count_nonzero(sign * values >= sign * observed - BAND))
    inner = int(np.count_nonzero(sign * values > sign * observed + BAND))
    found = TailResult(
        share_of_swaps(extreme, n_coins) if certain is None else certain.mass,
        "enumerate",
        f"all 2^{n_coins} exchanges",
        interior=share_of_swaps(inner, n_coins) if options.mid_p and inner else EMPTY,
        certain=certain is not None,
    )
    listed, sizes = np.unique(values, return_counts=True)

    def distribution() -> NullDistribution:
        return NullDistribution(listed, sizes / 2.0**n_coins, 0.0, BAND)

    return computed_result(found, options, fields._replace(distribution=distribution))


def _drawn_test(
    differences: Callable[[npt.NDArray[np.uint8]], FloatArray],
    bounds: TauBounds | None,
    observed: float,
    n_coins: int,
    n_examples: int,
    size: int,
    n_threads: int,
    options: TestOptions,
    fields: ResultFields,
) -> PermutationTest:
    """Test by random exchanges."""
    n_bytes = -(-n_coins // 8)
    sign = -1.0 if options.tested == "less" else 1.0

    def sizes(values: FloatArray) -> FloatArray:
        """Return how extreme values are, to be compared with the observed one."""
        return np.abs(values) if options.two_sided else sign * values

    threshold = float(sizes(np.array(observed))) - BAND

    def classify(chunk: int) -> Membership:
        child = np.random.SeedSequence(options.seed, spawn_key=(chunk,))
        words = np.random.Generator(np.random.PCG64(child)).integers(
            0, 2**64, size=n_bytes * size // 8, dtype=np.uint64
        )
        packed = words.astype("<u8", copy=False).view(np.uint8).reshape(size, n_bytes)
        tosses = np.unpackbits(packed, axis=1, count=n_coins)
        if bounds is None:
            return (sizes(differences(tosses)) >= threshold).astype(np.int8)
        low, high = bounds.ends(tosses)
        if options.two_sided:
            low, high = np.maximum(np.maximum(low, -high), 0.0), np.maximum(-low, high)
        elif sign < 0.0:
            low, high = -high, -low
        found = (low >= threshold + BAND).astype(np.int8)
        (open_,) = np.nonzero((low < threshold + BAND) & (high >= threshold - BAND))
        if open_.size:
            found[open_] = sizes(differences(tosses[open_])) >= threshold
        return found

    by_default = draws_by_default(n_examples)
    found = tail_of_draws(
        classify,
        size,
        n_samples=options.draws(by_default),
        seed=options.seed,
        exceedances=options.exceedances,
        n_threads=n_threads,
    )
    test = monte_carlo_result(found, options, fields)
    if options.n_samples is None and by_default < N_SAMPLES:
        why = f"{test.why}; {by_default:,} by default for {n_examples:,} examples, `--samples` draws more"
        return replace(test, why=why)
    return test


def _no_distribution() -> NullDistribution:
    raise CapacityError("p is an estimate from random exchanges, whose values are not kept")
