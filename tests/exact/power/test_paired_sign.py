"""The rule of the exact conditional test: whom it rejects, and how often."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from trackperm.choices import Alternative
from trackperm.errors import InputError
from trackperm.exact import difference_test
from trackperm.exact.power.binomial_law import binomial_masses, binomial_window, one_more_example
from trackperm.exact.power.paired_sign import SignTest, upper_tail

ALPHAS = [0.05, 0.01, 1 / 16, 1 / 32, 0.5, 0.9, 1e-9, 1e-40]


def least_by_integers(m: int, level: Fraction) -> int:
    """The least k with P(Binomial(m, 1/2) >= k) < level, by counting swaps."""
    tail, k = 0, m + 1
    while k > 0 and Fraction(tail + math.comb(m, k - 1), 2**m) < level:
        k -= 1
        tail += math.comb(m, k)
    return k


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_least_rejected_against_integers(alpha: float, alternative: Alternative):
    """Also where a tail equals the level, which dyadic levels make happen: p < alpha is strict."""
    m = np.arange(160)
    test = SignTest(alpha, alternative)
    level = Fraction(alpha) / test.sides
    assert test.least_rejected(m).tolist() == [least_by_integers(int(i), level) for i in m]


def test_a_tail_that_equals_the_level_is_not_rejected():
    # 1 + 23 + 253 + 1771 = 2^11: the perfect Golay code
    assert SignTest(2.0**-12, "greater").least_rejected(np.array([23])) == 21
    assert SignTest(2.0**-12 * (1 + 1e-15), "greater").least_rejected(np.array([23])) == 20


@pytest.mark.parametrize("m", [1, 2, 5, 6, 9, 40, 1234, 10_007])
@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_same_rejections_as_the_permutation_test(m: int, alternative: Alternative):
    test = SignTest(0.05, alternative)
    (k,) = test.least_rejected(np.array([m])).tolist()
    for b in {k - 1, k, k + 1} & set(range(m + 1)):
        better = m - b if alternative == "less" else b
        candidate, baseline = np.arange(m) < better, np.arange(m) >= better
        found = difference_test(candidate, baseline, alternative=alternative)
        assert (max(found.pvalue, found.interval[1]) < 0.05) == (b >= k)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.77, 1.0])
def test_rejection_against_scipy(share: float):
    m = np.arange(60)
    for alternative in ("two-sided", "less", "greater"):
        test = SignTest(0.05, alternative)
        k = test.least_rejected(m)
        better = stats.binom.sf(k - 1, m, share)
        worse = stats.binom.sf(k - 1, m, 1.0 - share)
        expected = {"two-sided": better + worse, "less": worse, "greater": better}[alternative]
        assert test.rejection(m, k, share) == pytest.approx(expected, abs=1e-13)


def test_bounds_on_stretches_hold_inside_them():
    generator = np.random.default_rng(0)
    test = SignTest(0.05, "two-sided")
    m = np.arange(3000)
    least = test.least_rejected(m)
    assert set(np.diff(least).tolist()) == {0, 1}
    for share in (0.5, 0.52, 0.6, 0.9):
        chance = test.rejection(m, least, share)
        a = generator.integers(0, 2900, 50)
        b = a + generator.integers(0, 100, 50)
        low = test.rejection(a, least[b], share)
        high = test.rejection(b, least[a], share)
        for i, (first, last) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
            inside = chance[first : last + 1]
            assert low[i] <= inside.min() + 1e-12
            assert inside.max() <= high[i] + 1e-12


@pytest.mark.parametrize("share", [0.51, 0.6, 0.95, 1.0])
def test_hoeffding_is_on_the_safe_side(share: float):
    test = SignTest(0.05, "two-sided")
    first = test.certain_from(share, 0.9)
    m = np.unique(np.geomspace(first, 50 * first, 500).astype(np.int64))
    assert test.rejection(m, test.least_rejected(m), share).min() >= 0.9


def test_upper_tail_at_its_ends():
    assert upper_tail(np.array([0, 0, 3, 3]), np.array([0, 1, 0, 4]), 0.5).tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(
    ("n", "share"), [(1, 0.5), (10, 1.0), (37, 0.02), (5000, 0.3), (10**6, 0.25), (10**7, 1e-6)]
)
def test_masses_against_scipy(n: int, share: float):
    low, high = binomial_window(n, share)
    masses = binomial_masses(n, share, low, high)
    expected = stats.binom.pmf(np.arange(low, high + 1), n, share)
    assert masses == pytest.approx(expected, rel=1e-9, abs=1e-15)
    assert stats.binom.cdf(low - 1, n, share) + stats.binom.sf(high, n, share) <= 1e-16
    following = one_more_example(masses, share)[1:-1]
    assert following == pytest.approx(
        stats.binom.pmf(np.arange(low + 1, high), n + 1, share), rel=1e-9, abs=1e-15
    )


def test_refusals():
    with pytest.raises(InputError, match=r"`alpha` is 1\.0; expected a number between 0 and 1"):
        SignTest(1.0, "two-sided")
    with pytest.raises(InputError, match="`alternative` is 'both'"):
        SignTest(0.05, "both")
