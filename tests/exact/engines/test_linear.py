"""Linear statistics: every engine against integer polynomials, and the choice among engines."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from fractions import Fraction

import flint
import numpy as np
import pytest
from support.bands import numbers_of_swaps, relative
from support.certificates import check_pvalue

from trackperm.errors import CapacityError, InputError
from trackperm.exact import TestOptions, difference_test
from trackperm.exact.distributions.line import LineLaw
from trackperm.exact.engines.linear.binomial import binomial_tail
from trackperm.exact.engines.linear.tails import linear_tails
from trackperm.exact.sums import sum_test_of

BUDGET = 2**30


@pytest.mark.sample(16)
@pytest.mark.parametrize("n", [1, 2, 63, 130, 500, 1_025, 20_000, 10**6])
@pytest.mark.parametrize("deviations", [0.0, 0.7, -0.7, 3.0, 12.0, 36.0])
def test_binomial_tail(n: int, deviations: float) -> None:
    limit = min(max(math.floor(n / 2 - deviations * math.sqrt(n) / 2), 0), n)
    tail = binomial_tail(n, limit)
    with flint.ctx.workprec(300):
        x = flint.arb(0.5)
        truth = x.beta_lower(n - limit, limit + 1, regularized=True) if limit < n else flint.arb(1)
        assert relative(tail, truth)[0] <= tail.error * (1 + 1e-6) + 1e-60
    assert tail.error <= 1e-10


@pytest.mark.parametrize("deviations", [0.0, 0.5, 2.0, 5.0])
@pytest.mark.parametrize("n", [60, 150, 800])
def test_bracket_holds_the_truth_and_is_narrow(n: int, deviations: float) -> None:
    """Steps that have a lattice, so that the truth is known, but are bracketed on demand."""
    rng = np.random.default_rng(n)
    steps = np.unique(rng.integers(1, 4_000, n))
    counts = np.ones(steps.size, dtype=np.int64)
    total, root = int(steps.sum()), math.sqrt(float((steps.astype(float) ** 2).sum()))
    limit = int(total / 2 - deviations * root / 2)
    truth, _, _ = linear_tails(LineLaw(steps, counts), [limit], "auto", BUDGET)
    (tail,), used, _ = linear_tails(LineLaw(steps, counts), [limit], "bracket", BUDGET)
    assert used == "bracket"
    high, exact = tail.log, truth[0].log
    assert high >= exact - 1e-12
    assert high - math.log1p(tail.error) <= exact + 1e-12
    assert tail.error <= 0.01


def test_differences_of_hundreds_of_bits() -> None:
    """A macro-average over strata whose common denominator does not fit any machine word."""
    rng = np.random.default_rng(2)
    n = 20_000
    strata = rng.integers(0, 100, n)
    candidate, baseline = rng.binomial(1, 0.62, n), rng.binomial(1, 0.6, n)
    weights = np.array([Fraction(n, 100 * size) for size in np.bincount(strata).tolist()])[strata]
    result = difference_test(candidate * weights, baseline * weights)
    macro = np.mean([(candidate - baseline)[strata == s].mean() for s in range(100)])
    assert result.method == "bracket"
    assert math.isclose(result.observed, macro, rel_tol=1e-12)
    assert result.interval[1] / result.interval[0] <= 1.02


def test_the_engine_follows_the_problem() -> None:
    rng = np.random.default_rng(6)
    ones = difference_test(rng.integers(0, 2, 4_000), rng.integers(0, 2, 4_000))
    assert ones.method == "binomial"
    few = difference_test([0.1, 12.7, 3.14159, 2.71828, 9.5], [0.0] * 5)
    assert few.method == "enumerate"
    assert difference_test(rng.integers(0, 11, 60), rng.integers(0, 11, 60)).method == "dp"
    assert difference_test(rng.integers(0, 11, 6_000), rng.integers(0, 11, 6_000)).method == "lattice"
    assert difference_test(rng.random(400), rng.random(400)).method == "bracket"


@pytest.mark.parametrize(
    ("n", "method", "error", "said"),
    [
        (1_199, "enumerate", CapacityError, "configurations; the limit is 2^42"),
        (60, "binomial", InputError, "expected `enumerate`, `dp`, `lattice`, `bracket`"),
        (60, "fft", InputError, "`method` is 'fft'"),
    ],
)
def test_an_engine_that_cannot_is_refused(n: int, method: str, error: type[Exception], said: str) -> None:
    scores = [(-1) ** i * (i * i % 5_003) for i in range(1, n + 1)]
    with pytest.raises(error) as refusal:
        difference_test(scores, [0] * n, method=method)
    assert said in str(refusal.value)


def test_an_engine_beyond_the_budget_is_refused_before_it_starts() -> None:
    scores = [10**9 * (-1) ** i + i * i for i in range(60)]
    with pytest.raises(CapacityError, match=r"the memory budget is 1\.0 GiB"):
        difference_test(scores, [0] * 60, method="dp")


@pytest.mark.parametrize("n", [1_048_577, 1_048_578, 200_001])
def test_binomial_tail_where_the_exponent_cancels(n: int) -> None:
    """About a quarter of the coins, where the terms of the exponent are far larger than their sum."""
    for limit in range(int(0.23 * n), int(0.27 * n), n // 60):
        tail = binomial_tail(n, limit)
        with flint.ctx.workprec(300):
            truth = flint.arb(0.5).beta_lower(n - limit, limit + 1, regularized=True)
            assert relative(tail, truth)[0] <= tail.error / 2


@pytest.mark.parametrize(("step", "n"), [(1, 1_500), (3, 2_600)])
def test_dp_beyond_the_range_of_floats(step: int, n: int) -> None:
    """More coins than 2^n fits a float: counts are scaled down on the way."""
    kinds = {step: n, step + 1: n // 3}
    law = LineLaw(np.array(list(kinds)), np.array(list(kinds.values())))
    up_to = list(itertools.accumulate(numbers_of_swaps(kinds)))
    for limit in (3, len(up_to) // 3, len(up_to) // 2, len(up_to) - 5):
        (tail,), _, _ = linear_tails(law, [limit], "dp", BUDGET)
        with flint.ctx.workprec(400):
            error, bound = relative(tail, Fraction(up_to[limit], 2**law.n_coins))
        assert error <= bound * (1 + 1e-6) + 2.0**-60
        assert tail.error <= 1e-10


def test_small_types_do_not_wrap() -> None:
    candidate, baseline = np.array([100, 0, 5, 1], np.int8), np.array([-100, 1, 6, 0], np.int8)
    assert difference_test(candidate, baseline) == difference_test(
        candidate.astype(int), baseline.astype(int)
    )


@pytest.mark.parametrize(
    ("candidate", "baseline"),
    [
        (np.array([2**63 - 1, 3, 1]), np.array([-2, 1, 0])),
        (np.array([2**63 + 5, 3, 1], np.uint64), np.array([0, 0, 0])),
        (np.array([2**62, 3, 1]), np.array([-(2**62), 1, 0])),
    ],
)
def test_differences_beyond_64_bits(candidate: np.ndarray, baseline: np.ndarray) -> None:
    result = difference_test(candidate, baseline)
    assert result.pvalue == 0.25
    assert result.observed == pytest.approx(sum(map(int, candidate)) / 3 - sum(map(int, baseline)) / 3)


@pytest.mark.parametrize("options", [{"n_samples": 1e3}, {"seed": None}, {"exceedances": 0}])
def test_options_of_monte_carlo_are_checked(options: dict[str, object]) -> None:
    (name,) = options
    with pytest.raises(InputError, match=f"`{name}` is .*; expected an integer of at least"):
        difference_test([1, 0, 1], [0, 1, 0], method="monte-carlo", **options)


def log_tail_near(steps: np.ndarray, point: int) -> tuple[float, float]:
    """log P(X >= point) by Edgeworth's series under the tilt whose mean is there, and what it leaves out.

    Each step has its own fair coin. With y = X - point in standard deviations, the tail is
    exp(K - tilt point) times the integral of exp(-tilt y) and the density of y, from half a step below 0.
    """
    halves, target = steps / 2.0, point - int(steps.sum()) / 2
    tilt = 0.0
    for _ in range(50):
        t = np.tanh(tilt * halves)
        tilt += (target - float(halves @ t)) / float(halves**2 @ (1.0 - t**2))
    t = np.tanh(tilt * halves)
    deviation = math.sqrt(float(halves**2 @ (1.0 - t**2)))
    # Derivatives of tanh, in tanh itself, are the cumulants of a sign.
    k3, k4, k5, k6 = (
        float((halves / deviation) ** order @ ((1.0 - t**2) * np.polynomial.polynomial.polyval(t, of_tanh)))
        for order, of_tanh in (
            (3, [0, -2]),
            (4, [-2, 0, 6]),
            (5, [0, 16, 0, -24]),
            (6, [16, 0, -120, 0, 120]),
        )
    )
    series = [1, 0, 0, k3 / 6, k4 / 24, k5 / 120, k3**2 / 72, k3 * k4 / 144, 0, k3**3 / 1296]
    last = min(40.0 / max(tilt * deviation, 1e-300), 12.0)
    nodes, weights = np.polynomial.legendre.leggauss(400)
    y = -0.5 / deviation + (nodes + 1.0) * last / 2.0
    density = np.polynomial.hermite_e.hermeval(y, series) * np.exp(-y * y / 2.0) / math.sqrt(2.0 * math.pi)
    mass = last / 2.0 * float(weights @ (density * np.exp(-tilt * deviation * y)))
    cumulant = math.fsum(np.logaddexp(tilt * halves, -tilt * halves) - math.log(2.0))
    # The terms of the next order, at y = 0.
    left_out = abs(k6) / 48 + k4**2 / 11 + abs(k3 * k5) / 7 + k3**2 * abs(k4) / 2 + k3**4 / 3
    return cumulant - tilt * target + math.log(mass), left_out


DISTINCT: dict[str, Callable[[], np.ndarray]] = {
    "consecutive": lambda: np.arange(1, 100_001),
    "odd": lambda: np.arange(1, 200_001, 2),
    "squares": lambda: np.arange(1, 100_001) ** 2,
    "up to 10^6": lambda: np.random.default_rng(1).choice(10**6, 100_000, replace=False) + 1,
    "up to 10^9": lambda: np.unique(np.random.default_rng(2).integers(1, 10**9, 100_000)),
    "amounts": lambda: np.unique(
        np.rint(np.exp(np.random.default_rng(3).normal(8.0, 2.0, 10**5)) * 100)
    ).astype(int),
}


AT_ONCE = {
    ("consecutive", 0.51),
    ("squares", 0.5),
    ("up to 10^6", 0.7),
    ("up to 10^9", 0.5),
    ("amounts", 0.999),
}


def rarely(name: str, share: float) -> list[pytest.MarkDecorator]:
    if (name, share) in AT_ONCE:
        return [pytest.mark.extended]
    return [pytest.mark.slow if name == "odd" else pytest.mark.nightly]


@pytest.mark.parametrize(
    ("name", "share"),
    [
        pytest.param(name, share, marks=rarely(name, share))
        for name in DISTINCT
        for share in (0.5, 0.51, 0.7, 0.999)
    ],
)
def test_a_hundred_thousand_distinct_differences(name: str, share: float) -> None:
    """P-values from the middle of the law to 10^-28,000, against a series that knows no frequencies."""
    steps = DISTINCT[name]()
    up = np.random.default_rng(4).random(steps.size) < share
    start = time.process_time()
    result = difference_test(np.where(up, steps, -steps), np.zeros(steps.size, dtype=np.int64))
    assert time.process_time() - start < 20.0
    assert result.method == "lattice"
    assert result.error_bound <= 1e-10 * max(-result.log10_pvalue / 300.0, 1.0)
    point = int(steps @ up)
    log_tail, left_out = log_tail_near(steps, max(point, int(steps.sum()) - point))
    off = result.log10_pvalue * math.log(10.0) - math.log(2.0) - log_tail
    assert abs(off) <= 3.0 * left_out + 1e-13 * abs(log_tail) + 1e-13


def swaps_up_to(limit: int) -> int:
    """Number of sets of distinct positive integers with a sum of at most `limit`, none of them left out.

    Sets of k integers of at least 1 with sum n: take 1 from each; k - 1 or k are left.
    """
    of_size, found = [1] + [0] * limit, 1
    for k in range(1, math.isqrt(2 * limit) + 1):
        following = [0] * (limit + 1)
        for n in range(k, limit + 1):
            following[n] = following[n - k] + of_size[n - k]
        of_size = following
        found += sum(of_size)
    return found


@pytest.mark.parametrize("method", ["auto", "lattice"])
def test_the_edge_of_a_hundred_thousand_distinct_differences(method: str) -> None:
    """All of 1..10^5 one way but 3,000: subsets of the integers with a sum of at most 3,000 are counted."""
    scores = np.arange(1, 100_001)
    scores[2_999] *= -1
    result = difference_test(scores, np.zeros(scores.size, dtype=np.int64), method=method)
    assert result.method == ("dp" if method == "auto" else method)
    check_pvalue(result, Fraction(2 * swaps_up_to(3_000), 2**100_000))


def test_thousands_of_distinct_differences_by_two_engines() -> None:
    steps = np.unique(np.random.default_rng(9).integers(1, 1_500, 4_000))
    ones = np.ones(steps.size, dtype=np.int64)
    for share in (0.02, 0.2, 0.45):
        limit = int(steps.sum() * share)
        ends = []
        for method in ("dp", "lattice"):
            (tail,), _, _ = linear_tails(LineLaw(steps, ones), [limit], method, BUDGET)
            assert tail.error <= 1e-10
            slack = tail.error + 4 * 2.0**-53 * abs(tail.log)
            ends.append((tail.log - slack, tail.log + slack))
        assert max(low for low, _ in ends) <= min(high for _, high in ends)


@pytest.mark.extended
def test_distinct_differences_beyond_reach_are_bracketed_or_refused() -> None:
    """No frequency can be ruled out by few of 10^5 integers up to 10^12: a bracket, or one clear error."""
    steps = np.unique(np.random.default_rng(5).integers(1, 10**12, 100_000))
    zeros = np.zeros(steps.size, dtype=np.int64)
    for share in (0.5, 0.8):
        up = np.random.default_rng(6).random(steps.size) < share
        start = time.process_time()
        result = difference_test(np.where(up, steps, -steps), zeros)
        assert time.process_time() - start < 10.0
        assert result.method == "bracket"
        point = int(steps @ up)
        log_tail, left_out = log_tail_near(steps, max(point, int(steps.sum()) - point))
        off = result.log10_pvalue * math.log(10.0) - math.log(2.0) - log_tail
        assert -1e-7 <= off <= math.log1p(result.error_bound) + 1e-7
        assert result.error_bound <= 0.3
        assert left_out <= 1e-8
    with pytest.raises(CapacityError, match=r"sums of the differences exceed 2\^52"):
        difference_test(np.where(up, steps, -steps), zeros, method="lattice")
    with pytest.raises(
        CapacityError, match=r"cannot solve this problem: the search for frequencies needs .* factors"
    ):
        difference_test(np.where(up, 10**9, -(10**9)) + np.arange(steps.size), zeros, method="lattice")


def test_denominators_of_thousands_of_bits() -> None:
    sizes = [n for n in range(2, 800) if all(n % k for k in range(2, math.isqrt(n) + 1))]
    multiple, rng = math.lcm(*sizes), np.random.default_rng(8)
    moves = np.repeat(np.array([multiple // size for size in sizes], dtype=object), sizes)
    moves = moves * rng.integers(-1, 2, moves.size)
    counts, unit = np.ones(moves.size, dtype=np.int64), Fraction(1, len(sizes) * multiple)
    result = sum_test_of(moves, counts, unit, TestOptions())
    assert result.method == "bracket"
    assert result.error_bound <= 0.02
    assert float(result.null_distribution.mass.sum()) == pytest.approx(1.0)


def test_real_scores_that_mostly_point_one_way_are_quick() -> None:
    """A steep tilt leaves little of each factor, so that more rows must bound the frequencies."""
    rng = np.random.default_rng(0)
    scores = rng.random(2_000) * np.where(rng.random(2_000) < 0.75, 1, -1)
    start = time.process_time()
    result = difference_test(scores, np.zeros(2_000))
    assert time.process_time() - start < 10.0
    assert result.error_bound <= 0.1


def test_values_that_agree_share_an_attainable_pvalue() -> None:
    null = difference_test([5_001, 2_048, 1_143, 0], [0] * 4).null_distribution
    pvalues = null.attainable_pvalues()
    assert pvalues.tolist() == pytest.approx([0.25, 0.5, 0.75, 1, 1, 0.75, 0.5, 0.25])


@pytest.mark.parametrize(("alternative", "n_halvings"), [("two-sided", 1200), ("greater", 1201)])
def test_the_smallest_mid_p_value_below_the_range_of_floats(alternative: str, n_halvings: int) -> None:
    """No sum is beyond the greatest one, so half of its mass is the mid-p-value of a side."""
    result = difference_test([1] * 1200, [0] * 1200, alternative=alternative, mid_p=True)
    assert result.log10_pvalue == pytest.approx(-n_halvings * math.log10(2.0), rel=1e-12)
    assert result.log10_smallest_pvalue == pytest.approx(result.log10_pvalue, rel=1e-12)


@pytest.mark.parametrize("n", [1000, 1009, 1015, 1022, 1060])
def test_p_values_at_the_end_of_the_range_of_floats(n: int) -> None:
    result = difference_test([1] * n, [0] * n, alternative="greater")
    assert result.pvalue == pytest.approx(2.0**-n, rel=1e-9, abs=2.0**-1074)
    assert result.log10_pvalue == pytest.approx(-n * math.log10(2.0), rel=1e-12)


def test_without_discordant_examples_p_can_only_be_1() -> None:
    assert difference_test([1, 0], [1, 0]).log10_smallest_pvalue == 0.0
    assert difference_test([1, 0], [1, 1]).log10_smallest_pvalue == 0.0


def test_attainable_pvalues() -> None:
    result = difference_test([1, 1, 1, 1, 0, 1], [0, 0, 1, 0, 0, 0])
    assert result.log10_smallest_pvalue == pytest.approx(math.log10(2 / 2**4))
    null = result.null_distribution
    assert null.values.tolist() == pytest.approx([-4 / 6, -2 / 6, 0, 2 / 6, 4 / 6])
    assert null.mass.tolist() == pytest.approx([1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16])
    assert null.attainable_pvalues().tolist() == pytest.approx([2 / 16, 10 / 16, 1, 10 / 16, 2 / 16])
    assert null.attainable_pvalues("greater").tolist() == pytest.approx([1, 15 / 16, 11 / 16, 5 / 16, 1 / 16])
    assert null.attainable_pvalues("less").tolist() == pytest.approx([1 / 16, 5 / 16, 11 / 16, 15 / 16, 1])


def test_the_distribution_of_real_scores_is_rounded_with_a_note() -> None:
    rng = np.random.default_rng(7)
    candidate, baseline = rng.random(300), rng.random(300)
    null = difference_test(candidate, baseline).null_distribution
    assert 0.0 < null.value_error_bound < 1e-3
    deviation = math.sqrt(float(((candidate - baseline) ** 2).sum())) / 300
    found = math.sqrt(float(null.mass @ null.values**2))
    assert math.isclose(found, deviation, rel_tol=1e-4)
    assert math.isclose(float(null.mass.sum()), 1.0, abs_tol=1e-9)
    # A normal variable is beyond 9.3 standard deviations with probability 1e-20; remainders are uniform.
    step = float(np.diff(null.values).min())
    assert null.value_error_bound == pytest.approx(9.7 * step * math.sqrt(300 / 12) / 2, rel=0.1)
