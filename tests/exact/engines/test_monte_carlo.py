"""Monte Carlo p-values: what is drawn, what is concluded from it, and that threads change nothing."""

from __future__ import annotations

import math
import threading
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from support import oracles
from support.cases import F1

from trackperm.choices import Alternative
from trackperm.errors import CapacityError, InputError
from trackperm.exact import DifferenceHistogram, RationalStatistic, structured_test
from trackperm.exact.distributions.characteristic import SwapDistribution
from trackperm.exact.engines.lattice.lattice import reduce_rank
from trackperm.exact.engines.lattice.statistic import LatticeStatistic, Statistic
from trackperm.exact.engines.monte_carlo import (
    CONFIDENCE,
    MonteCarloTail,
    SwapSampler,
    _in_order,
    exact_interval,
    monte_carlo_tail,
    subset_sums,
    tally,
    valid_pvalue,
)
from trackperm.exact.types import INSIDE, OUTSIDE, UNDEFINED, Membership, Region

BUDGET = 2**28


class Above:
    """The points whose first coordinate is at least a threshold."""

    def __init__(self, threshold: int) -> None:
        self.threshold = threshold

    def membership(self, points: Sequence[npt.NDArray[np.int64]]) -> Membership:
        return np.where(points[0] >= self.threshold, INSIDE, OUTSIDE).astype(np.int8)


class Dictated(np.random.Generator):
    """A generator whose random bytes are given, and whose binomial draws are not random."""

    def __init__(self, random_bytes: npt.NDArray[np.uint8]) -> None:
        super().__init__(np.random.PCG64(0))
        self.random_bytes = random_bytes

    def integers(self, *args: object, size: int, **options: object) -> npt.NDArray[np.uint64]:
        taken, self.random_bytes = self.random_bytes[: 8 * size], self.random_bytes[8 * size :]
        return np.ascontiguousarray(taken).view("<u8")


def law_of(coordinates: npt.ArrayLike, multiplicities: npt.ArrayLike) -> SwapDistribution:
    return SwapDistribution(np.array(coordinates, dtype=np.int64), np.array(multiplicities, dtype=np.int64))


def fair(n_coins: int, step: int = 1) -> SwapDistribution:
    return law_of([[step]], [n_coins])


def tail(law: SwapDistribution, region: Region, **options: Any) -> MonteCarloTail:
    return monte_carlo_tail(law, region, **{"two_sided": False, "seed": 0, "memory_budget": BUDGET} | options)


# --- what is drawn ------------------------------------------------------------------------------------


def test_subset_sums_of_all_bytes() -> None:
    steps = np.random.default_rng(0).integers(-50, 50, size=(3, 8))
    for row, sums in zip(steps.tolist(), subset_sums(steps).tolist(), strict=True):
        assert sums == [sum(x for bit, x in enumerate(row) if byte >> bit & 1) for byte in range(256)]


@pytest.mark.parametrize(
    ("coordinates", "multiplicities"),
    [
        ([[1]], [16]),
        ([[2, -1, 0], [0, 0, 3], [-1, 1, 1]], [9, 1, 6]),
        ([[3, 1], [1, -2], [5, 5], [-7, 0]], [2, 2, 2, 5]),  # 11 coins: 5 bits of the second byte are idle
        ([[2**61], [2**59], [-(2**60)]], [1, 3, 2]),
        (
            [[2**60, -(2**60), 1], [-(2**58), 2**58, 5], [1, 1, 2**40]],
            [2, 3, 4],
        ),  # no two axes fit one integer
    ],
)
def test_coins_against_all_swaps(coordinates: list[list[int]], multiplicities: list[int]) -> None:
    """Every pattern of 16 bits once: draws are then all swaps, each as often as idle coins allow."""
    law = law_of(coordinates, multiplicities)
    n_bytes = -(-sum(multiplicities) // 8)
    patterns = np.arange(256**n_bytes)
    tosses = np.stack([patterns >> 8 * byte & 255 for byte in range(n_bytes)]).astype(np.uint8)
    draws = SwapSampler(law).draw(Dictated(tosses.ravel()), patterns.size)
    idle = 2 ** (8 * n_bytes - law.n_coins)
    coins = [tuple(step) for step, c in zip(coordinates, multiplicities, strict=True) for _ in range(c)]
    ways = oracles.sums_by_dictionary(coins, [(0,) * law.rank] * len(coins))
    assert Counter(zip(*draws.tolist(), strict=True)) == {point: n * idle for point, n in ways.items()}


def test_coins_in_many_blocks() -> None:
    """Rows of 1 to 256 coins, thousands in all, each tossed once: with all heads X is E, with all tails 0."""
    rng = np.random.default_rng(1)
    law = law_of(rng.integers(-(2**30), 2**30, size=(61, 7)), [256, 256, *rng.integers(1, 257, size=59)])
    assert law.n_coins > 6000
    for byte, expected in ((0, (0,) * 7), (255, law.total)):
        tosses = Dictated(np.full(8 * (law.n_coins + 8 * 61), byte, dtype=np.uint8))
        assert [tuple(x) for x in SwapSampler(law).draw(tosses, 8).T.tolist()] == [expected] * 8


def test_many_pairs_of_a_kind_are_binomial() -> None:
    """Beyond 256 coins: NumPy's binomials, times coordinates, in Python integers."""
    counts = [257, 10**9, 2**40, 300]
    coordinates = [[1, 0, 3, 0], [2**31, -1, 0, 1], [-(2**21), 5, 0, 0], [0, -7, 2**52, 1]]
    law = law_of(coordinates, counts)
    draws = SwapSampler(law).draw(np.random.default_rng(7), 400)
    generator = np.random.default_rng(7)
    heads = [generator.binomial(c, 0.5, size=400).tolist() for c in counts]
    for i, values in enumerate(draws.tolist()):
        assert values == [
            sum(h * row[i] for h, row in zip(column, coordinates, strict=True))
            for column in zip(*heads, strict=True)
        ]


@pytest.mark.parametrize("c", [1, 5, 200, 256, 257, 10**9])
def test_moments_of_draws(c: int) -> None:
    """Mean and variance of Binomial(c, 1/2) within six standard errors."""
    n = 2**14
    draws = SwapSampler(fair(c)).draw(np.random.default_rng(c), n)[0]
    scaled = (2 * draws - c) / math.sqrt(c)
    assert abs(scaled.mean()) <= 6 / math.sqrt(n)
    kurtosis = 3 - 2 / c
    assert abs((scaled**2).mean() - 1) <= 6 * math.sqrt((kurtosis - 1) / n)


def test_refusals() -> None:
    SwapSampler(fair(4, 2**60))
    with pytest.raises(CapacityError, match=r"exceed 2\^62"):
        SwapSampler(fair(5, 2**60))
    with pytest.raises(CapacityError, match="draws at most 1099511627776"):
        SwapSampler(fair(2**40 + 1))
    with pytest.raises(CapacityError, match="the memory budget is 1000"):
        tail(fair(9), Above(8), n_samples=9, memory_budget=1000)


# --- what is concluded --------------------------------------------------------------------------------


def outcomes(n_samples: int, exceedances: int | None) -> Iterator[tuple[int, int, int]]:
    """Every outcome as drawn, extreme and the number of sequences of draws that lead to it."""
    h = n_samples + 1 if exceedances is None else exceedances
    for g in range(min(h, n_samples + 1)):
        yield n_samples, g, math.comb(n_samples, g)
    for drawn in range(h, n_samples + 1):
        yield drawn, h, math.comb(drawn - 1, h - 1)


SCHEMES = [(1, None), (1, 1), (7, None), (20, None), (20, 1), (20, 4), (20, 20), (60, 5)]


@pytest.mark.parametrize("exceedances", [None, 1, 3, 9, 12])
@pytest.mark.parametrize("n_samples", [1, 4, 9])
def test_tally_of_every_sequence(n_samples: int, exceedances: int | None) -> None:
    """In chunks of 4, with draws to spare: counting stops at the very draw."""
    found: Counter[tuple[int, int]] = Counter()
    for flags in product((OUTSIDE, INSIDE), repeat=n_samples):
        draws = np.array([*flags, *[INSIDE] * 3], dtype=np.int8)
        stop = np.cumsum(flags).tolist().index(exceedances) + 1 if exceedances in np.cumsum(flags) else None
        drawn = n_samples if stop is None else stop
        last = tally((draws[i : i + 4] for i in range(0, 12, 4)), n_samples, exceedances)
        found[last] += 1
        assert last == (drawn, sum(flags[:drawn]))
    for drawn, extreme, ways in outcomes(n_samples, exceedances):
        assert found[drawn, extreme] == ways * 2 ** (n_samples - drawn)


@pytest.mark.parametrize(("n_samples", "exceedances"), SCHEMES)
def test_pvalues_are_uniform_where_the_statistic_is_continuous(
    n_samples: int, exceedances: int | None
) -> None:
    """P(p <= a) = a at every attainable a, from beta integrals over the exact p-value."""
    law: Counter[float] = Counter()
    for drawn, extreme, ways in outcomes(n_samples, exceedances):
        # integral of q^g (1 - q)^(n - g)
        share = Fraction(ways, (drawn + 1) * math.comb(drawn, extreme))
        law[valid_pvalue(extreme, drawn, stopped=extreme == exceedances)] += share
    below = Fraction(0)
    for pvalue in sorted(law):
        below += law[pvalue]
        assert below == Fraction(pvalue).limit_denominator(1000)
    assert below == 1


@pytest.mark.parametrize(("n_samples", "exceedances"), SCHEMES)
@pytest.mark.parametrize("steps", [[1], [1, 1, 1], [1, 2, 4, 8], [1, 1, 2, 5], [3, 3, 3, 3, 3, 1]])
def test_pvalues_are_valid_where_the_statistic_is_discrete(
    steps: list[int], n_samples: int, exceedances: int | None
) -> None:
    """P(p <= a) <= a over all data sets and all draws, in fractions."""
    values = [sum(chosen) for chosen in product(*((0, e) for e in steps))]
    law: Counter[float] = Counter()
    for value in values:
        exact = Fraction(sum(other >= value for other in values), len(values))
        for drawn, extreme, ways in outcomes(n_samples, exceedances):
            probability = ways * exact**extreme * (1 - exact) ** (drawn - extreme) / len(values)
            law[valid_pvalue(extreme, drawn, stopped=extreme == exceedances)] += probability
    assert sum(law.values()) == 1
    below = Fraction(0)
    for pvalue in sorted(law):
        below += law[pvalue]
        assert below <= Fraction(pvalue).limit_denominator(1000)


@pytest.mark.parametrize(
    ("extreme", "drawn"), [(0, 1), (1, 1), (0, 99), (1, 99), (50, 99), (99, 99), (3, 10**6)]
)
def test_interval_against_binomtest(extreme: int, drawn: int) -> None:
    known = stats.binomtest(extreme, drawn).proportion_ci(CONFIDENCE, "exact")
    np.testing.assert_allclose(exact_interval(extreme, drawn, stopped=False), known, rtol=1e-7)


@pytest.mark.parametrize(("exceedances", "drawn"), [(1, 2), (5, 6), (5, 40), (20, 1000)])
def test_stopped_interval_against_negative_binomial(exceedances: int, drawn: int) -> None:
    """Both ends leave 0.005 in a tail of the law of the draw at which drawing stops."""
    low, high = exact_interval(exceedances, drawn, stopped=True)
    failures = drawn - exceedances
    assert stats.nbinom.cdf(failures, exceedances, low) == pytest.approx(0.005, rel=1e-8)
    assert stats.nbinom.sf(failures - 1, exceedances, high) == pytest.approx(0.005, rel=1e-8)


@pytest.mark.parametrize(("n_samples", "exceedances"), SCHEMES)
def test_interval_covers(n_samples: int, exceedances: int | None) -> None:
    """The probability of all outcomes whose interval holds the exact p-value, for a grid of those."""
    for exact in np.concatenate([np.linspace(0, 1, 101), np.logspace(-6, -2, 9)]).tolist():
        covered = total = 0.0
        for drawn, extreme, ways in outcomes(n_samples, exceedances):
            probability = ways * exact**extreme * (1 - exact) ** (drawn - extreme)
            low, high = exact_interval(extreme, drawn, stopped=extreme == exceedances)
            total += probability
            covered += probability * (low <= exact <= high)
        assert total == pytest.approx(1)
        assert covered >= CONFIDENCE - 1e-9


# --- from data to a tail ------------------------------------------------------------------------------


def problem(
    seed: int, n_examples: int, h: Statistic = F1, alternative: Alternative = "two-sided"
) -> tuple[SwapDistribution, Region, float]:
    """F1 of random counts: the law, the region and the exact p-value."""
    rng = np.random.default_rng(seed)
    u = rng.binomial(4, (0.5, 0.3), size=(n_examples, 2))
    v = rng.binomial(4, (rng.uniform(0.35, 0.5), 0.3), size=(n_examples, 2))
    observed, swapped = np.hstack([u, v]), np.hstack([v, u])
    histogram = DifferenceHistogram.from_pairs(observed, swapped)
    lattice = reduce_rank(histogram)
    statistic = LatticeStatistic(h, histogram, lattice)
    threshold = statistic.observed if statistic.observed_exact is None else statistic.observed_exact
    upper = threshold > 0 if alternative == "two-sided" else alternative == "greater"
    law = SwapDistribution(lattice.coordinates, histogram.multiplicities)
    exact = structured_test(observed, swapped, F1, alternative=alternative).pvalue
    return law, statistic.region(threshold, upper=upper), exact


def f1_of_floats(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    scores = x[..., 0::2] / (x[..., 0::2] + x[..., 1::2] / 2)
    return np.asarray(scores[..., 0] - scores[..., 1])


@pytest.mark.parametrize(
    ("alternative", "h", "exceedances"),
    [
        ("two-sided", F1, None),
        ("two-sided", f1_of_floats, 40),
        ("less", F1, 40),
        ("greater", f1_of_floats, None),
    ],
)
def test_against_exact_pvalues(alternative: Alternative, h: Statistic, exceedances: int | None) -> None:
    """Of twenty intervals of confidence 0.99 at most one misses, which has probability 0.983 or more."""
    missed = []
    for seed in range(20):
        law, region, exact = problem(seed, 15 + 10 * seed, h, alternative)
        options = {"two_sided": alternative == "two-sided", "exceedances": exceedances}
        found = tail(law, region, n_samples=3000, seed=seed, **options)
        low, high = found.interval
        if not low <= exact <= high:
            missed.append((seed, exact, found))
    assert len(missed) <= 1, missed


@pytest.mark.parametrize("exceedances", [None, 2500])
def test_the_result_does_not_depend_on_threads_and_memory(exceedances: int | None) -> None:
    law, region, _ = problem(7, 300)
    drawn = partial(tail, law, region, two_sided=True, n_samples=60_001, seed=5, exceedances=exceedances)
    one = drawn(n_threads=1)
    assert [drawn(n_threads=n) for n in (2, 4, None)] == [one] * 3
    assert drawn(n_threads=4, memory_budget=SwapSampler(law).n_bytes(4096) + 1) == one
    assert one.stopped == (exceedances is not None)
    assert one.seed == 5


def test_chunks_are_drawn_from_children_of_the_seed() -> None:
    """Each chunk of 4096 from its own, and all of them are classified, in any order."""
    seen: dict[bytes, int] = {}

    class Recorded(Above):
        def membership(self, points: Sequence[npt.NDArray[np.int64]]) -> Membership:
            membership = super().membership(points)
            seen[points[0].tobytes()] = int(membership.sum())
            return membership

    law = law_of([[1], [3], [-5]], [400, 30, 7])
    found = tail(law, Above(238), n_samples=5 * 4096, seed=8)
    tail(law, Recorded(238), n_samples=5 * 4096, seed=8)
    children = np.random.SeedSequence(8).spawn(5)
    chunks = [SwapSampler(law).draw(np.random.Generator(np.random.PCG64(child)), 4096) for child in children]
    assert {chunk.tobytes() for chunk in chunks} == set(seen)
    assert len(seen) == 5
    assert found.n_extreme == sum(seen.values())


def test_stops_at_the_draw_that_is_enough() -> None:
    """A stopped run is the beginning of a longer one; a draw less is not enough."""
    law, region, _ = problem(7, 300)
    drawn = partial(tail, law, region, two_sided=True, seed=11)
    for exceedances in (1, 10, 1500):
        stopped = drawn(n_samples=100_000, exceedances=exceedances)
        assert stopped.stopped
        assert stopped.n_extreme == exceedances
        assert stopped.pvalue == exceedances / stopped.n_samples
        assert drawn(n_samples=stopped.n_samples).n_extreme == exceedances
        before = drawn(n_samples=stopped.n_samples - 1, exceedances=exceedances)
        assert not before.stopped
        assert before.n_extreme == exceedances - 1
        assert before.pvalue == exceedances / stopped.n_samples


def test_stopping_early_leaves_later_chunks_undone() -> None:
    """Two threads are at chunks 1 and 2 when chunk 0 is enough; what waits behind them is dropped."""
    started: list[int] = []
    release = threading.Event()

    def work(chunk: int) -> Membership:
        started.append(chunk)
        if chunk:
            release.wait(30)
        return np.zeros(1, dtype=np.int8)

    chunks = _in_order(work, 100, 2)
    next(chunks)
    timer = threading.Timer(0.2, release.set)
    timer.start()
    chunks.close()
    timer.join()
    assert max(started) <= 2


def test_no_extreme_draw() -> None:
    found = tail(fair(80), Above(80), two_sided=True, n_samples=999, exceedances=5)
    assert (found.pvalue, found.n_samples, found.n_extreme, found.stopped) == (0.001, 999, 0, False)
    assert found.interval[0] == 0.0
    assert found.interval[1] == pytest.approx(1 - 0.005 ** (1 / 999))


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("two_sided", [True, False])
def test_undefined_after_a_swap(two_sided: bool, n_threads: int) -> None:
    """1/(x - 5) on 0..9 has no value at 5; two-sided, its mirror image 4 has none either."""

    class Undefined(Above):
        def membership(self, points: Sequence[npt.NDArray[np.int64]]) -> Membership:
            return np.where(points[0] == 5, np.int8(UNDEFINED), super().membership(points))

    with pytest.raises(InputError, match="the statistic is undefined after some swaps"):
        tail(fair(9), Undefined(9), two_sided=two_sided, n_samples=100_000, n_threads=n_threads)


def test_undefined_where_only_the_mirror_image_is() -> None:
    """Of x and -x one has no value: a single draw is enough to see it, whatever it is."""

    class Undefined(Above):
        def membership(self, points: Sequence[npt.NDArray[np.int64]]) -> Membership:
            return np.where(points[0] <= 0, np.int8(UNDEFINED), super().membership(points))

    law = law_of([[1], [-3]], [3, 1])  # from -3 to 3; E = 0
    for seed in range(10):
        with pytest.raises(InputError, match="undefined"):
            tail(law, Undefined(3), two_sided=True, n_samples=1, seed=seed)


def test_undefined_counts_up_to_the_stop() -> None:
    draws = np.array([INSIDE, OUTSIDE, INSIDE, UNDEFINED, INSIDE], dtype=np.int8)
    assert tally([draws], 5, 2) == (3, 2)
    assert tally([draws], 3, None) == (3, 2)
    for n_samples, exceedances in ((5, 3), (5, None), (4, None)):
        with pytest.raises(InputError, match="undefined after some swaps"):
            tally([draws], n_samples, exceedances)


@pytest.mark.parametrize("name", ["n_samples", "exceedances", "n_threads", "seed"])
def test_arguments_out_of_range(name: str) -> None:
    value = -1 if name == "seed" else 0
    with pytest.raises(InputError, match=f"`{name}` is {value}"):
        tail(fair(9), Above(8), **{"n_samples": 5, name: value})


@pytest.mark.extended
@pytest.mark.parametrize("n_threads", [1, 2])
def test_memory_stays_below_the_estimate(n_threads: int) -> None:
    """Tens of thousands of samples of a statistic of 60 counts take no more than the estimate per thread."""
    rng = np.random.default_rng(2)
    law = law_of(rng.integers(-9, 9, size=(200, 30)), rng.integers(1, 300, size=200))
    counts = np.hstack([np.eye(30), -np.eye(30)])

    class Callable(Above):
        def membership(self, points: Sequence[npt.NDArray[np.int64]]) -> Membership:
            totals = np.stack(points, axis=-1).astype(float) @ counts
            values = (totals[..., :30] / (1.0 + np.abs(totals[..., 30:]))).mean(axis=-1)
            return (values >= 0.9).astype(np.int8)

    budget = n_threads * SwapSampler(law).n_bytes(4096)
    tracemalloc.start()
    try:
        tail(law, Callable(0), two_sided=True, n_samples=12_000, memory_budget=budget)
        assert tracemalloc.get_traced_memory()[1] <= budget
    finally:
        tracemalloc.stop()


@pytest.mark.extended
def test_more_ways_to_swap_than_an_integer_is_written_with():
    """Python writes no integer of more than 4,300 digits."""
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 1000, size=(2, 15_000, 9))
    x = [RationalStatistic.variable(i, 18) for i in range(18)]
    total = sum((x[i] / (x[i] + 1) for i in range(9)), 0 * x[0])
    other = sum((x[i] / (x[i] + 1) for i in range(9, 18)), 0 * x[0])
    observed, swapped = np.hstack([counts[0], counts[1]]), np.hstack([counts[1], counts[0]])
    found = structured_test(observed, swapped, total - other)
    assert found.method == "bracket"
