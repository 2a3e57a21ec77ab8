"""Intervals for paired proportions: agreement with the test, coverage by enumeration, published values."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import gammaln, xlogy
from scipy.stats import beta
from support.budget import Measured, cases

from trackperm.errors import InputError
from trackperm.exact import difference_test
from trackperm.exact.intervals import mcnemar_pvalue, paired_proportions_interval

ALPHAS = (0.001, 0.05, 0.0625, 0.25, 0.9)
"""Those that are powers of 2 are attained by p-values."""


def scores_of(b: int, c: int) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat([1, 0], [b, c]), np.repeat([0, 1], [b, c])


@pytest.mark.sample(4)
@pytest.mark.parametrize("n", [1, 2, 4, 7])
@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_excludes_zero_exactly_when_the_test_rejects(n: int, alternative: str) -> None:
    for b, c in itertools.product(range(n + 1), repeat=2):
        if not 0 < b + c <= n:
            continue
        pvalue = difference_test(*scores_of(b, c), alternative=alternative).pvalue
        for alpha in ALPHAS:
            interval = paired_proportions_interval(b, c, n, alpha=alpha, alternative=alternative)
            assert (0.0 in interval) == (not pvalue < alpha), (b, c, n, alpha)
            assert -1.0 <= interval.low <= interval.high <= 1.0
            if alpha < 0.5:
                assert interval.low <= (b - c) / n <= interval.high


@settings(max_examples=cases(25), deadline=None)
@given(
    st.integers(1, 10**6).flatmap(
        lambda n: st.tuples(st.just(n), st.integers(0, n), st.floats(-6.0, 6.0), st.sampled_from(ALPHAS))
    )
)
def test_agrees_with_the_test_for_many_examples(case: tuple[int, int, float, float]) -> None:
    n, m, deviations, alpha = case
    b = min(max(round(m / 2 + deviations * math.sqrt(m) / 2), 0), m)
    interval = paired_proportions_interval(b, m - b, n, alpha=alpha)
    assert (0.0 in interval) == (not mcnemar_pvalue(b, m - b) < alpha)
    assert interval.low < interval.high
    # Every one-sided error is certified: the interval of the other order is the mirror image, to the bit.
    mirrored = paired_proportions_interval(m - b, b, n, alpha=alpha)
    assert (mirrored.low, mirrored.high) == (-interval.high, -interval.low)


@pytest.mark.parametrize("n", [30, 1000, 200_000])
def test_agrees_to_the_last_digit_of_the_level(n: int) -> None:
    for worse in range(n // 5, n // 4, max(n // 200, 1)):
        better = n // 2 - worse
        pvalue = mcnemar_pvalue(better, worse)
        if 1e-250 < pvalue < 1.0:
            assert 0.0 in paired_proportions_interval(better, worse, n, alpha=pvalue)
            assert 0.0 not in paired_proportions_interval(better, worse, n, alpha=math.nextafter(pvalue, 1.0))


def test_the_pvalue_is_that_of_the_test() -> None:
    for b, c in itertools.product(range(8), repeat=2):
        for alternative in ("two-sided", "less", "greater"):
            if b + c:
                expected = difference_test(*scores_of(b, c), alternative=alternative).pvalue
                assert mcnemar_pvalue(b, c, alternative) == expected
    assert mcnemar_pvalue(0, 0) == 1.0


def greatest_error(n: int, alpha: float, n_nuisance: int) -> float:
    """Return sup P(lower end > Delta), over all Delta and a grid of the discordance.

    The lower ends that occur are the only places at which that probability, as a function of Delta, jumps;
    just below one of them it is the probability of all outcomes with at least that end.
    """
    outcomes = np.array([(b, c) for b in range(n + 1) for c in range(n + 1 - b)])
    lows = np.array([paired_proportions_interval(int(b), int(c), n, alpha=alpha).low for b, c in outcomes])
    order = np.argsort(lows, kind="stable")
    (b, c), lows = outcomes[order].T[:, :, None], lows[order]
    ways = gammaln(n + 1) - gammaln(b + 1) - gammaln(c + 1) - gammaln(n - b - c + 1)
    greatest = 0.0
    for k, delta in enumerate(lows.tolist()):
        if delta <= -1.0:
            continue
        discordance = np.linspace(abs(delta), 1.0, n_nuisance)
        better, worse = (discordance + delta) / 2.0, np.maximum((discordance - delta) / 2.0, 0.0)
        log_mass = ways[k:] + xlogy(b[k:], better) + xlogy(c[k:], worse)
        log_mass += xlogy((n - b - c)[k:], 1.0 - discordance)
        greatest = max(greatest, float(np.exp(log_mass).sum(axis=0).max()))
    return greatest


@pytest.mark.parametrize("n", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.3])
def test_coverage_by_enumeration(n: int, alpha: float) -> None:
    # Where all outcomes point one way the end is Clopper and Pearson's, which is attained: rounding is left.
    assert greatest_error(n, alpha, 200) <= alpha / 2.0 * (1.0 + 1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("n", [14, 18, *(pytest.param(n, marks=pytest.mark.nightly) for n in (22, 30, 40))])
def test_coverage_by_enumeration_of_more(n: int, measured: Measured) -> None:
    for alpha in (0.05, 0.1):
        error = greatest_error(n, alpha, 400)
        measured(f"n = {n}, alpha = {alpha}: an end misses with at most {error:.9f}")
        assert error <= alpha / 2.0 * (1.0 + 1e-10)


def distribution_at(delta: float, b: int, c: int, n: int) -> float:
    """P(pi (2 theta_L - 1) <= delta) by an integral over pi instead of theta."""
    pi = beta(b + c, n - b - c + 1) if delta > 0 else beta(b + c + 1, n - b - c)
    low, high = pi.ppf(1e-13), pi.isf(1e-13)
    value, _ = quad(
        lambda p: pi.pdf(p) * beta.cdf((1 + max(min(delta / p, 1.0), -1.0)) / 2, b, c + 1),
        low,
        high,
        limit=400,
        epsabs=1e-13,
        points=[p for p in (abs(delta), pi.median()) if low < p < high],
    )
    return value


@pytest.mark.sample(7)
@pytest.mark.parametrize(
    ("b", "c", "n"),
    [(12, 2, 50), (2, 12, 50), (7, 1, 21), (6, 16, 161), (40, 20, 160), (3, 3, 9), (1, 0, 500)],
)
@pytest.mark.parametrize("alpha", [0.05, 0.2, 1e-4])
def test_against_an_integral_the_other_way(b: int, c: int, n: int, alpha: float) -> None:
    interval = paired_proportions_interval(b, c, n, alpha=alpha)
    assert distribution_at(interval.low, b, c, n) == pytest.approx(alpha / 2, rel=1e-7)
    assert b == 0 or c == 0 or distribution_at(-interval.high, c, b, n) == pytest.approx(alpha / 2, rel=1e-7)


@pytest.mark.parametrize("n", [1, 10, 1000, 10**6])
def test_identical_runs_and_one_sided_outcomes_have_closed_forms(n: int) -> None:
    interval = paired_proportions_interval(0, 0, n, alpha=0.1)
    # Clopper and Pearson's upper end for no discordant pair in n.
    assert interval.high == pytest.approx(-math.expm1(math.log(0.05) / n), rel=1e-12)
    assert interval.low == -interval.high
    everything = paired_proportions_interval(n, 0, n, alpha=0.1)
    assert everything.high == 1.0


@pytest.mark.parametrize(("b", "c"), [(100_000, 99_000), (100_500, 100_000), (250_000, 249_000)])
def test_a_million_examples(b: int, c: int) -> None:
    n = 10**6
    interval = paired_proportions_interval(b, c, n)
    error = math.sqrt(b + c - (b - c) ** 2 / n) / n
    # The normal interval, up to half a pair for being exact and a skewness of 1/sqrt(m).
    assert interval.low == pytest.approx((b - c) / n - 1.959964 * error, abs=2e-3 * error + 1.5 / n)
    assert interval.high == pytest.approx((b - c) / n + 1.959964 * error, abs=2e-3 * error + 1.5 / n)


def test_small_levels_and_far_tails() -> None:
    interval = paired_proportions_interval(100_000, 90_000, 10**6, alpha=1e-100)
    assert 0.0 < interval.low < interval.high
    assert mcnemar_pvalue(100_000, 90_000) < 1e-100
    assert paired_proportions_interval(100_000, 90_000, 10**6, alpha=1e-120).low < 0.0
    nested = [paired_proportions_interval(30, 12, 300, alpha=a) for a in (1e-9, 1e-3, 0.05, 0.5, 0.99)]
    for wide, narrow in itertools.pairwise(nested):
        assert wide.low < narrow.low
        assert narrow.high < wide.high


def test_one_sided_intervals_are_ends_of_two_sided_ones() -> None:
    both = paired_proportions_interval(12, 2, 50, alpha=0.1)
    above = paired_proportions_interval(12, 2, 50, alpha=0.05, alternative="greater")
    below = paired_proportions_interval(12, 2, 50, alpha=0.05, alternative="less")
    assert (above.low, above.high) == (both.low, 1.0)
    assert (below.low, below.high) == (-1.0, both.high)


def test_refusals() -> None:
    with pytest.raises(InputError, match="add up"):
        paired_proportions_interval(3, 3, 5)
    with pytest.raises(InputError, match="add up"):
        paired_proportions_interval(-1, 3, 5)
    with pytest.raises(InputError, match="`alpha` is 1"):
        paired_proportions_interval(1, 3, 5, alpha=1.0)
