"""Ways of counting swaps against one another, and against them the algorithms that benchmarks measure."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from benchmarks.paper_algorithms import convolve_dp, convolve_fft, exact_perm_test, monte_carlo
from hypothesis import given, settings
from scipy import stats
from support import oracles
from support.budget import cases
from support.cases import f1_difference, paired_points
from support.oracles import Point

Pairs = tuple[list[Point], list[Point]]


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


@pytest.mark.parametrize(("convolve", "error"), [(convolve_dp, 1e-15), (convolve_fft, 1e-12)])
def test_convolutions_against_integer_polynomials(convolve: Callable[..., object], error: float) -> None:
    differences = np.random.default_rng(20).integers(-9, 10, (30, 50))
    for row in differences:
        truth = oracles.difference_pvalues(row.tolist())["two-sided"]
        assert exact_perm_test(row, -row, convolve) == pytest.approx(float(truth), rel=0, abs=error)


def test_monte_carlo_covers_the_exact_pvalue() -> None:
    u, v = np.random.default_rng(11).integers(0, 5, (2, 40, 2))
    stay, swap = np.hstack([u, v]), np.hstack([v, u])
    points = [list(map(tuple, x.tolist())) for x in (stay, swap)]
    counts = oracles.sums_by_dictionary(*points)
    truth = oracles.structured_pvalues(counts, points[0], f1_difference)["two-sided"]
    n = 20_000
    estimate = monte_carlo(stay, swap, lambda point: abs(f1_difference(point)), n)
    interval = stats.binomtest(round(estimate * (n + 1)) - 1, n).proportion_ci(1 - 1e-6)
    assert interval.low <= truth <= interval.high
