"""The paper's algorithms against exact counts, and the three ways of counting against one another."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support import oracles, reference_data
from support.budget import cases
from support.cases import F1_TIE_STAY, F1_TIE_SWAP, f1_difference, mirrored_points, paired_points
from support.oracles import Point
from support.paper_algorithms import (
    PMF,
    convolve_dp,
    convolve_fft,
    enumerate_swaps,
    exact_perm_test,
    exact_perm_test_m,
    monte_carlo,
    pmf_z,
)

from trackperm.errors import CapacityError, InputError, InputTypeError

each_convolution = pytest.mark.parametrize("convolve", [convolve_dp, convolve_fft])
Pairs = tuple[list[Point], list[Point]]


def fft_error(n_cells: int, n_examples: int) -> float:
    """Bound on the error of a sum over cells after log2(N) convolutions by FFT.

    A transform of n cells errs by less than 4 log2(n) rounding units of the 2-norm (at most 1), and a sum
    over cells by the square root of their number times the error's 2-norm.
    """
    levels = 1 + math.ceil(math.log2(n_examples))
    return 2.0**-52 * 4 * (2 + math.log2(n_cells)) * levels * math.sqrt(n_cells)


def assert_same_law(law: PMF, counts: dict[Point, int], error: float) -> None:
    n_swaps = sum(counts.values())
    found = dict(law.items())
    assert found.keys() == counts.keys()
    for point, count in counts.items():
        assert abs(found[point] - count / n_swaps) <= error


# --- the oracles ----------------------------------------------------------------------------------


@settings(max_examples=cases(100), deadline=None)
@given(paired_points())
def test_three_ways_of_counting_agree(pairs: Pairs) -> None:
    by_enumeration = oracles.enumerated_sums(*pairs)
    assert oracles.sums_by_dictionary(*pairs) == by_enumeration
    assert oracles.sums_by_polynomial(*pairs) == by_enumeration


@settings(max_examples=cases(60), deadline=None)
@given(paired_points(m=1, low=-300, high=300))
def test_difference_oracles_against_enumeration(pairs: Pairs) -> None:
    differences = [a[0] - b[0] for a, b in zip(*pairs, strict=True)]
    centre = sum(a[0] + b[0] for a, b in zip(*pairs, strict=True))
    truth = oracles.structured_pvalues(
        oracles.enumerated_sums(*pairs), pairs[0], lambda point: 2 * point[0] - centre
    )
    assert oracles.difference_pvalues(differences) == truth
    histogram = {d: differences.count(d) for d in set(differences)}
    for alternative, (low, high) in oracles.histogram_pvalue_ends(histogram, sum(differences)).items():
        assert low <= truth[alternative] <= high
        assert high - low < 1e-60


@pytest.mark.parametrize(
    ("histogram", "observed"),
    [({1: 3, 2: 4, 5: 300}, 211), ({1: 200, 7: 3, 100_000: 30}, 100_211), ({3: 50, -3: 20, 10**6: 1}, 90)],
)
def test_large_differences_cost_no_large_polynomial(histogram: dict[int, int], observed: int) -> None:
    differences = [(e,) for e, c in histogram.items() for _ in range(c)]
    counts = oracles.sums_by_dictionary(differences, [(-e,) for (e,) in differences])
    n_swaps = sum(counts.values())
    for alternative, pvalue in oracles.histogram_pvalues(histogram, observed).items():
        extreme = sum(n for (s,), n in counts.items() if oracles.rejects(s, observed, alternative))
        assert pvalue == Fraction(extreme, n_swaps)


def test_binomial_ends_against_scipy() -> None:
    low, high = oracles.histogram_pvalue_ends({1: 10**6}, 3_000)["greater"]
    assert high - low < 1e-60
    assert float(low) == pytest.approx(stats.binom.sf(501_499, 10**6, 0.5), rel=1e-9)


# --- convolutions ---------------------------------------------------------------------------------


@settings(max_examples=cases(100), deadline=None)
@given(paired_points())
def test_convolutions_against_enumeration(pairs: Pairs) -> None:
    counts = oracles.enumerated_sums(*pairs)
    pmfs = [pmf_z(a, b) for a, b in zip(*pairs, strict=True)]
    assert_same_law(convolve_dp(pmfs), counts, 0.0)  # multiples of 2**-N: every operation is exact
    by_fft = convolve_fft(pmfs)
    assert_same_law(by_fft, counts, fft_error(by_fft.mass.size, len(pmfs)))


@pytest.mark.parametrize("m", [1, 2, 3])
def test_convolutions_against_integer_polynomials(m: int) -> None:
    rng = np.random.default_rng(20 + m)
    n = {1: 400, 2: 60, 3: 20}[m]
    stay, swap = (list(map(tuple, rng.integers(0, 4, (n, m)).tolist())) for _ in range(2))
    counts = oracles.sums_by_polynomial(stay, swap)
    pmfs = [pmf_z(a, b) for a, b in zip(stay, swap, strict=True)]
    by_dp, by_fft = convolve_dp(pmfs), convolve_fft(pmfs)
    for point, mass in by_dp.items():
        truth = Fraction(counts[point], 2**n)
        assert abs(Fraction(mass) - truth) <= n * truth * Fraction(1, 2**52)
    assert_same_law(by_fft, counts, fft_error(by_fft.mass.size, n))


@each_convolution
def test_domain_survives_underflow(convolve: Callable[..., PMF]) -> None:
    law = convolve([pmf_z((0,), (1,))] * 1_200)  # 2**-1200 is below the smallest double
    assert law.domain.all()
    assert law.mass.sum() == pytest.approx(1, abs=fft_error(1_201, 1_200))


@each_convolution
def test_nothing_to_convolve(convolve: Callable[..., PMF]) -> None:
    assert dict(convolve([]).items()) == {(0,): 1.0}


# --- tests ----------------------------------------------------------------------------------------


@settings(max_examples=cases(100), deadline=None)
@given(paired_points(), st.data())
def test_exact_perm_test_m_against_enumeration(pairs: Pairs, data: st.DataObject) -> None:
    m = len(pairs[0][0])
    weights = data.draw(st.tuples(*[st.integers(-3, 3)] * m))

    def quadratic(point: Point) -> Fraction:
        return Fraction(sum(w * x for w, x in zip(weights, point, strict=True)) + point[0] * point[-1], 3)

    truth = oracles.structured_pvalues(oracles.enumerated_sums(*pairs), pairs[0], quadratic)
    by_dp = exact_perm_test_m(*pairs, quadratic, convolve=convolve_dp)
    assert by_dp == truth["greater"]
    by_fft = exact_perm_test_m(*pairs, lambda x: abs(quadratic(x)))
    n_cells = math.prod(1 + sum(abs(a[i] - b[i]) for a, b in zip(*pairs, strict=True)) for i in range(m))
    assert abs(by_fft - truth["two-sided"]) <= fft_error(n_cells, len(pairs[0]))


@settings(max_examples=cases(100), deadline=None)
@given(mirrored_points())
def test_f1_against_enumeration(pairs: Pairs) -> None:
    truth = oracles.structured_pvalues(oracles.enumerated_sums(*pairs), pairs[0], f1_difference)
    assert exact_perm_test_m(*pairs, f1_difference, convolve=convolve_dp) == truth["greater"]
    assert (
        exact_perm_test_m(*pairs, lambda x: abs(f1_difference(x)), convolve=convolve_dp) == truth["two-sided"]
    )


@settings(max_examples=cases(60), deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=50))
def test_exact_perm_test_against_integer_polynomials(differences: list[int]) -> None:
    truth = oracles.difference_pvalues(differences)
    stay, swap = np.array(differences), -np.array(differences)
    error = fft_error(1 + 2 * sum(map(abs, differences)), len(differences))
    assert exact_perm_test(stay, swap, convolve=convolve_dp) == truth["two-sided"]
    assert abs(exact_perm_test(stay, swap) - truth["two-sided"]) <= error
    assert abs(exact_perm_test(stay, swap, h=lambda x: x) - truth["greater"]) <= error
    assert abs(exact_perm_test(stay, swap, h=lambda x: -x) - truth["less"]) <= error


@each_convolution
def test_ties_need_exact_values(convolve: Callable[..., PMF]) -> None:
    """F1 of six examples: 11/16 in fractions, 10/16 in floating point."""

    def in_floats(point: Point) -> float:
        tp_u, incorrect_u, tp_v, incorrect_v = point
        f1_u = tp_u / (tp_u + 0.5 * incorrect_u) if tp_u + incorrect_u else 0.0
        f1_v = tp_v / (tp_v + 0.5 * incorrect_v) if tp_v + incorrect_v else 0.0
        return abs(f1_u - f1_v)

    def in_fractions(point: Point) -> Fraction:
        return abs(f1_difference(point))

    counts = oracles.enumerated_sums(F1_TIE_STAY, F1_TIE_SWAP)
    assert oracles.structured_pvalues(counts, F1_TIE_STAY, f1_difference)["two-sided"] == Fraction(11, 16)
    pvalues = [
        exact_perm_test_m(F1_TIE_STAY, F1_TIE_SWAP, h, convolve=convolve) for h in (in_fractions, in_floats)
    ]
    assert pvalues == pytest.approx([11 / 16, 10 / 16], abs=fft_error(10_000, 6))


def test_h_sees_attained_points_only() -> None:
    def on_the_diagonal(point: Point) -> Fraction:
        x, y = point
        return Fraction(x, 1 - abs(x - y))  # undefined off the diagonal, at (1, 2) and (2, 1) for instance

    pvalue = exact_perm_test_m([[1, 1], [2, 2]], [[0, 0], [0, 0]], on_the_diagonal)
    assert pvalue == pytest.approx(1 / 4, abs=fft_error(16, 2))


def test_against_scipy_permutation_test() -> None:
    rng = np.random.default_rng(5)
    u, v = rng.integers(0, 6, (2, 9))
    for alternative, h in (("two-sided", abs), ("greater", int), ("less", lambda x: -x)):
        theirs = stats.permutation_test(
            (u, v),
            lambda x, y: np.sum(x - y),
            permutation_type="samples",
            n_resamples=np.inf,
            alternative=alternative,
        )
        assert exact_perm_test(u - v, v - u, h, convolve=convolve_dp) == pytest.approx(
            theirs.pvalue, abs=1e-15
        )


@pytest.mark.skipif(not reference_data.available(), reason=reference_data.ABSENT)
def test_against_published_values() -> None:
    """Fisher (1935) on Darwin's maize: 863 of 32,768 one-sided."""
    maize = reference_data.reference("classic/darwin_zea_mays")
    difference = np.subtract(maize.candidate, maize.baseline)[:, 0]
    assert exact_perm_test(difference, -difference, lambda x: x, convolve=convolve_dp) == 863 / 32_768
    assert exact_perm_test(difference, -difference, convolve=convolve_dp) == 1_726 / 32_768


# --- Monte Carlo and enumeration ------------------------------------------------------------------


def test_monte_carlo_covers_the_exact_pvalue() -> None:
    rng = np.random.default_rng(11)
    u, v = rng.integers(0, 5, (2, 40, 2))
    stay, swap = np.hstack([u, v]), np.hstack([v, u])
    counts = oracles.sums_by_dictionary(*(list(map(tuple, x.tolist())) for x in (stay, swap)))
    truth = oracles.structured_pvalues(counts, list(map(tuple, stay.tolist())), f1_difference)["two-sided"]

    def h(point: Point) -> Fraction:
        return abs(f1_difference(point))

    n = 20_000
    estimate = monte_carlo(stay, swap, h, n_resamples=n, rng=3)
    assert estimate == monte_carlo(stay, swap, h, n_resamples=n, rng=np.random.default_rng(3))
    assert estimate != monte_carlo(stay, swap, h, n_resamples=n, rng=4)
    count = round(estimate * (n + 1)) - 1
    interval = stats.binomtest(count, n).proportion_ci(1 - 1e-6)
    assert interval.low <= truth <= interval.high


def test_monte_carlo_counts_the_observed_swap() -> None:
    wins = np.ones((60, 1), dtype=int)
    assert monte_carlo(wins, -wins, lambda x: abs(x[0]), n_resamples=99, rng=0) == 1 / 100


def test_monte_carlo_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    wins = np.ones((2**21, 1), dtype=int)  # two random swaps fit one block
    assert monte_carlo(wins, -wins, lambda x: abs(x[0]), n_resamples=5, rng=0) == 1 / 6


def test_monte_carlo_of_no_resamples() -> None:
    with pytest.raises(InputError, match="`n_resamples` is 0, expected at least 1"):
        monte_carlo([[1]], [[0]], lambda x: x[0], n_resamples=0)


@settings(max_examples=cases(50), deadline=None)
@given(paired_points())
def test_enumerate_swaps(pairs: Pairs) -> None:
    sums = enumerate_swaps(*pairs)
    assert tuple(sums[0]) == tuple(np.sum(pairs[0], axis=0))
    points, counts = np.unique(sums, axis=0, return_counts=True)
    assert dict(zip(map(tuple, points.tolist()), counts, strict=True)) == oracles.enumerated_sums(*pairs)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stay", "swap", "error", "message"),
    [
        ([[1.5]], [[0]], InputTypeError, "`stay` has type float64, expected integers"),
        ([[1]], [["a"]], InputTypeError, "`swap` has type <U1, expected integers"),
        ([[1, 2]], [[1]], InputError, r"`stay` has shape \(1, 2\) and `swap` \(1, 1\), expected one shape"),
        ([1], [1], InputError, r"`stay` has shape \(1,\), expected \(N, m\) with N and m at least 1"),
        (np.zeros((0, 1), int), np.zeros((0, 1), int), InputError, r"has shape \(0, 1\)"),
        (
            [[2**62]],
            [[-(2**63)]],
            InputError,
            "sums of 1 integers as large as 9223372036854775808 do not fit",
        ),
        (
            [[10**15, 1]],
            [[0, 0]],
            CapacityError,
            "the support of 1000000000000001 x 2 points takes more than 1 GiB",
        ),
    ],
)
def test_unusable_points(stay: object, swap: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        exact_perm_test_m(stay, swap, lambda x: x[0])


@each_convolution
def test_supports_too_large(convolve: Callable[..., PMF]) -> None:
    pmfs = [pmf_z((0, 0, 0), (9, 9, 9))] * 100
    with pytest.raises(CapacityError, match="the support of 901 x 901 x 901 points takes more than 1 GiB"):
        convolve(pmfs)


def test_swaps_too_many_to_list() -> None:
    with pytest.raises(CapacityError, match=r"an array of 2\^2000 swaps takes more than 1 GiB\n\nHint: "):
        enumerate_swaps(np.ones((2_000, 1), int), np.zeros((2_000, 1), int))


def test_one_sum_has_no_second_axis() -> None:
    with pytest.raises(InputError, match=r"`stay` has shape \(1, 1\), expected \(N,\)"):
        exact_perm_test([[1]], [[0]])
