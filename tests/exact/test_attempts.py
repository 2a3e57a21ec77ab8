"""Attempts permuted within examples, against every permutation, integer polynomials, and tests with names."""

from __future__ import annotations

import math
import time
import tracemalloc
from collections import Counter
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest
import scipy.stats
from support.certificates import check_pvalue
from support.permuted_attempts import (
    ALTERNATIVES,
    Example,
    permuted,
    pvalue,
    pvalues_by_polynomials,
    statistic,
)

from trackperm.choices import Method, MethodOfResult
from trackperm.errors import CapacityError, InputError, InputTypeError
from trackperm.exact import PermutationTest, TestOptions, attempts_test, difference_test
from trackperm.exact.attempts import attempts_test_of
from trackperm.exact.distributions import listed_values
from trackperm.exact.engines import attempts as engine


def tested(examples: list[Example], **options: Any) -> PermutationTest:
    return attempts_test(*np.array(examples).T, **options)


def drawn(rng: np.random.Generator, n: int, most: int, least: int = 1) -> list[Example]:
    a, b = rng.integers(least, most + 1, (2, n))
    chance = rng.random()
    columns = np.column_stack([rng.binomial(a, chance), a, rng.binomial(b, chance), b])
    return [(x, n, y, m) for x, n, y, m in columns.tolist()]


ENGINES = {
    "listed": [],
    "transformed": [(listed_values, "LOG2_LISTED", -1.0), (engine, "QUICK", math.inf)],
    "summed over frequencies": [(listed_values, "LOG2_LISTED", -1.0), (engine, "QUICK", -1.0)],
}


@pytest.fixture(params=ENGINES)
def each_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    for module, name, value in ENGINES[request.param]:
        monkeypatch.setattr(module, name, value)
    return str(request.param)


@pytest.mark.sample(4)
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_against_every_permutation(each_engine: str, alternative: str) -> None:
    rng = np.random.default_rng(17)
    for _ in range(25):
        examples = drawn(rng, int(rng.integers(1, 5)), int(rng.integers(1, 6)))
        law, observed = permuted(examples), statistic(examples)
        for mid in (False, True):
            result = tested(examples, alternative=alternative, mid_p=mid)
            truth = pvalue(law, observed, alternative, mid=mid)
            check_pvalue(result, truth, useful=1e-11)
            assert Fraction(result.interval[0]) <= truth <= Fraction(result.interval[1])
            smallest = min(pvalue(law, value, alternative, mid=mid) for value in law)
            assert result.log10_smallest_pvalue == pytest.approx(math.log10(smallest), abs=1e-12)
        assert result.observed == float(observed)
        assert (result.method, result.ties) == ("attempts", "exact")
        assert result.n_discordant == sum(0 < x + y < a + b for x, a, y, b in examples)


def test_null_distribution_against_every_permutation(each_engine: str) -> None:
    rng = np.random.default_rng(18)
    for _ in range(25):
        examples = drawn(rng, int(rng.integers(1, 5)), int(rng.integers(1, 6)))
        law = permuted(examples)
        found = tested(examples).null_distribution
        assert found.values == pytest.approx([float(value) for value in sorted(law)], abs=1e-14)
        off = np.abs(found.mass - [float(law[value]) for value in sorted(law)])
        assert off.sum() <= found.mass_error_bound + 1e-16
        assert found.mass_error_bound < 1e-10


MIXTURES: dict[str, list[Example]] = {
    "3 against 5": [(3, 3, 1, 5), (2, 3, 3, 5), (1, 3, 0, 5), (2, 3, 0, 5), (0, 3, 1, 5), (3, 3, 5, 5)],
    "numbers with a common multiple of 420": [(3, 3, 2, 5), (1, 1, 2, 4), (2, 7, 1, 5), (1, 2, 0, 3)],
    "one attempt against ten": [(1, 1, 2, 10), (0, 1, 0, 10), (0, 1, 1, 10), (1, 1, 9, 10)],
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("copies", [3, 30])
@pytest.mark.parametrize("mixture", MIXTURES)
def test_small_pvalues_against_integer_polynomials(
    mixture: str, copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = MIXTURES[mixture]
    counts = [copies + 7 * index for index in range(len(rows))]
    truths = pvalues_by_polynomials(dict(zip(rows, counts, strict=True)))
    for way in ("transformed", "summed over frequencies"):
        for module, name, value in ENGINES[way]:
            monkeypatch.setattr(module, name, value)
        for alternative, truth in truths.items():
            result = tested(rows, multiplicities=counts, alternative=alternative)
            check_pvalue(result, truth, useful=1e-10)


def test_pvalues_far_below_the_range_of_floats() -> None:
    rows: list[Example] = [(3, 3, 0, 5), (2, 3, 0, 5), (3, 3, 1, 5)]
    counts = [500, 300, 200]
    result = tested(rows, multiplicities=counts)
    assert result.pvalue == 0.0
    assert result.log10_pvalue < -1000
    check_pvalue(result, pvalues_by_polynomials(dict(zip(rows, counts, strict=True)))["two-sided"])
    # As extreme as can be: exactly the probability of this one way.
    edge = tested(rows[:1], multiplicities=[1000])
    assert edge.log10_pvalue == pytest.approx(-1000 * math.log10(56), rel=1e-14)
    assert edge.log10_pvalue == pytest.approx(edge.log10_smallest_pvalue, rel=1e-14)


@pytest.mark.parametrize("table", [(3, 5, 0, 3), (1, 1, 4, 9), (6, 8, 2, 7), (40, 60, 35, 80), (2, 2, 3, 3)])
def test_one_example_is_fishers_exact_test(table: Example) -> None:
    x, a, y, b = table
    for alternative in ("greater", "less"):
        _, fisher = scipy.stats.fisher_exact([[x, a - x], [y, b - y]], alternative=alternative)
        assert tested([table], alternative=alternative).pvalue == pytest.approx(fisher, rel=1e-12)
    law = scipy.stats.hypergeom(a + b, x + y, a)
    rates = {
        k: abs(Fraction(k, a) - Fraction(x + y - k, b)) for k in range(max(0, x + y - b), min(a, x + y) + 1)
    }
    both = sum(law.pmf(k) for k, rate in rates.items() if rate >= rates[x])
    assert tested([table]).pvalue == pytest.approx(min(both, 1.0), rel=1e-12)


@pytest.mark.parametrize(("better", "worse"), [(3, 0), (9, 2), (30, 30), (70, 41), (4_000, 3_000)])
def test_one_attempt_each_is_the_sign_test(better: int, worse: int) -> None:
    rows: list[Example] = [(1, 1, 0, 1)] * better + [(0, 1, 1, 1)] * worse + [(1, 1, 1, 1), (0, 1, 0, 1)]
    result = tested(rows)
    assert result.pvalue == pytest.approx(scipy.stats.binomtest(better, better + worse).pvalue, rel=1e-11)
    assert result.n_discordant == better + worse
    candidate, _, baseline, _ = np.array(rows).T
    for alternative in ALTERNATIVES:
        swapped = difference_test(candidate, baseline, alternative=alternative)
        permuted_one = tested(rows, alternative=alternative)
        assert permuted_one.log10_pvalue == pytest.approx(swapped.log10_pvalue, rel=1e-11, abs=1e-11)
        assert permuted_one.log10_smallest_pvalue == pytest.approx(swapped.log10_smallest_pvalue)


def test_exchanging_the_runs_mirrors_the_test() -> None:
    rng = np.random.default_rng(3)
    for _ in range(10):
        examples = drawn(rng, 60, 4)
        mirrored = [(y, b, x, a) for x, a, y, b in examples]
        one, other = tested(examples), tested(mirrored)
        assert one.observed == -other.observed
        assert one.pvalue == pytest.approx(other.pvalue, rel=1e-11)
        greater, less = tested(examples, alternative="greater"), tested(mirrored, alternative="less")
        assert greater.pvalue == pytest.approx(less.pvalue, rel=1e-11)


def test_the_order_and_grouping_of_examples_do_not_matter() -> None:
    rng = np.random.default_rng(4)
    examples = drawn(rng, 200, 3)
    shuffled = [examples[index] for index in rng.permutation(200).tolist()]
    rows, counts = zip(*Counter(examples).items(), strict=True)
    results = [tested(examples), tested(shuffled), tested(list(rows), multiplicities=list(counts))]
    assert results[0] == results[1] == results[2]


def test_examples_that_all_pass_or_all_fail_weigh_in_the_mean_alone() -> None:
    examples: list[Example] = [(3, 3, 2, 5), (2, 3, 0, 5), (0, 3, 1, 5)]
    # The number of their attempts, however large, is on no lattice.
    settled: list[Example] = [(3, 3, 5, 5), (0, 10**15 + 37, 0, 10**14 + 31)]
    few, more = tested(examples), tested(examples + settled)
    assert more.pvalue == few.pvalue
    assert more.observed == pytest.approx(few.observed * 3 / 5)
    assert (more.n_examples, more.n_discordant) == (5, 3)


def test_nothing_to_permute() -> None:
    for mid in (False, True):
        result = tested([(3, 3, 5, 5), (0, 2, 0, 1)], mid_p=mid)
        assert result.pvalue == (0.5 if mid else 1.0)
        assert result.n_discordant == 0
        assert result.null_distribution.values.tolist() == [0.0]
        assert 10**result.log10_smallest_pvalue == pytest.approx(result.pvalue)


def test_observed_difference_of_zero() -> None:
    examples: list[Example] = [(3, 6, 1, 2), (1, 3, 2, 6)] * 30
    assert statistic(examples) == 0
    assert tested(examples).pvalue == 1.0
    truths = pvalues_by_polynomials(Counter(examples))
    for alternative, truth in truths.items():
        check_pvalue(tested(examples, alternative=alternative), truth)
    # Ties with 0 count half.
    at_zero = truths["greater"] + truths["less"] - 1
    check_pvalue(tested(examples, mid_p=True), 1 - at_zero / 2)


@pytest.mark.extended
def test_ten_thousand_examples_take_seconds() -> None:
    rng = np.random.default_rng(5)
    easy = rng.beta(0.7, 0.7, 10_000)
    fives = np.full(10_000, 5)
    tracemalloc.start()
    started = time.process_time()
    for better in (0.0, 0.05, 0.3):
        passed = rng.binomial(3, np.minimum(easy + better, 1.0))
        result = attempts_test(passed, fives - 2, rng.binomial(5, easy), fives)
        assert result.error_bound < 1e-10
    for most in (6, 12):
        a, b = rng.integers(1, most + 1, (2, 10_000))
        result = attempts_test(rng.binomial(a, easy), a, rng.binomial(b, easy), b)
        assert result.error_bound < 1e-9
        assert result.pvalue > 1e-4
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert time.process_time() - started < 60.0
    assert peak < 2**29


@pytest.mark.extended
def test_numbers_of_attempts_without_a_common_lattice_are_bracketed() -> None:
    primes = [11, 13, 17, 19, 23, 29, 31, 37]
    examples: list[Example] = [(a - 4, a, b - 9, b) for a, b in zip(primes[:4], primes[4:], strict=True)][:3]
    law = {Fraction(0): Fraction(1)}
    for x, a, y, b in examples:
        moves = {
            (Fraction(k, a) - Fraction(x + y - k, b)) / 3: Fraction(
                math.comb(a, k) * math.comb(b, x + y - k), math.comb(a + b, x + y)
            )
            for k in range(max(0, x + y - b), min(a, x + y) + 1)
        }
        law = {
            value + move: mass * other for value, mass in law.items() for move, other in moves.items()
        }  # no two sums are the same
    for alternative in ("greater", "two-sided"):
        truth = pvalue(law, statistic(examples), alternative, mid=False)
        result = tested(examples, alternative=alternative)
        assert "rounded" in result.why
        assert result.error_bound < 0.1
        assert truth <= Fraction(result.pvalue) <= truth * (1 + Fraction(result.error_bound))
        assert Fraction(result.interval[0]) <= truth <= Fraction(result.interval[1])
    shown = result.null_distribution
    # Remainders of rounded steps add up to more than the distance of two values.
    assert float(np.diff(shown.values).min()) < shown.value_error_bound < 1e-3
    assert float(shown.mass @ shown.values) == pytest.approx(0.0, abs=1e-6)


def test_a_bracket_is_near_the_lattice(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    easy = rng.beta(0.7, 0.7, 400)
    a, b = rng.integers(1, 9, (2, 400))
    x, y = rng.binomial(a, np.minimum(easy + 0.1, 1.0)), rng.binomial(b, easy)
    exact = attempts_test(x, a, y, b)
    monkeypatch.setattr(engine, "EXACT_IN_FLOATS", 2**17)
    monkeypatch.setattr(engine, "LOG2_GREATEST", 5)
    monkeypatch.setattr(engine, "LOG2_CELLS", (16,))
    bracket = attempts_test(x, a, y, b)
    assert "rounded" in bracket.why
    assert exact.pvalue < 1e-4
    assert exact.pvalue <= bracket.pvalue <= exact.pvalue * (1 + bracket.error_bound)
    assert bracket.error_bound < 0.6


def test_a_common_denominator_beyond_machine_words() -> None:
    attempts = [(10_007, 12_011), (9_001, 15_013), (20_011, 8_009), (7_919, 11_003)]
    examples: list[Example] = [(1, a, 0, b) for a, b in attempts]
    greater = tested(examples, alternative="greater")
    # Each example's one pass is the candidate's with as much chance as it has of the attempts.
    check_pvalue(greater, math.prod((Fraction(a, a + b) for a, b in attempts), start=Fraction(1)))
    assert greater.log10_pvalue == pytest.approx(greater.log10_smallest_pvalue)
    found = greater.null_distribution
    assert found.values.size == 2**4
    assert found.values[-1] == greater.observed


def test_too_many_attempts_are_refused_before_anything_is_allocated() -> None:
    # Few of them are chosen, however many there are.
    assert attempts_test([400_000], [10**6], [1], [2]).error_bound < 1e-15
    tracemalloc.start()
    with pytest.raises(CapacityError, match="up to 2000000 attempts are too many") as refusal:
        attempts_test([400_000], [10**6], [300_000], [10**6])
    assert "swap the means" in str(refusal.value)
    with pytest.raises(CapacityError, match="same weight vary over more than"):
        attempts_test([2], [3], [2], [5], multiplicities=[2**40])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**24
    small = drawn(np.random.default_rng(1), 300, 12)
    with pytest.raises(CapacityError, match=r"60\.0 MiB"):
        tested(small, memory_budget=1_000)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (([1], [0], [1], [1]), "`attempts_u` is 0 at index 0; expected at least one attempt"),
        (([1, 1], [1, 1], [0, 3], [2, 2]), "`passed_v` is 3 at index 1; expected 0 to 2"),
        (([-1], [1], [0], [2]), "`passed_u` is -1 at index 0"),
        (([1, 1], [1, 1], [0], [2]), "the arrays have different lengths: 2 of `passed_u`"),
        (([[1]], [1], [0], [2]), "`passed_u` has shape"),
        (([], [], [], []), "`passed_u` is empty"),
    ],
)
def test_refusals(arrays: tuple[list[int], ...], message: str) -> None:
    with pytest.raises(InputError) as refusal:
        attempts_test(*(np.array(each, dtype=np.int64) for each in arrays))
    assert message in refusal.value.message


def test_scores_are_not_passes() -> None:
    with pytest.raises(InputTypeError, match="needs integers"):
        attempts_test([0.5], [1], [1], [1])
    with pytest.raises(InputError, match="multiplicities"):
        attempts_test([1], [1], [1], [1], multiplicities=[0])


def test_the_method_is_reported_and_not_chosen() -> None:
    assert set(get_args(MethodOfResult)) == {*get_args(Method), "attempts"}
    with pytest.raises(InputError, match=r"`method`.*attempts"):
        TestOptions(method="attempts")  # type: ignore[arg-type]
    with pytest.raises(InputError, match='`method="dp"` is not for attempts'):
        attempts_test_of([1], [2], [1], [3], TestOptions(method="dp"))
