"""Three ways of counting swaps against one another, and the paper's algorithm against them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support import oracles
from support.budget import cases
from support.cases import paired_points
from support.coin_sums import CoinSum
from support.oracles import Point
from support.paper_algorithms import exact_perm_test

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
    kinds = Counter(abs(d) for d in differences if d)
    observed = sum(d for d in differences if d > 0)
    for alternative, pvalue in truth.items() if kinds else ():
        share = CoinSum(kinds).pvalue(observed, alternative)
        assert Fraction(share.low, 1 << share.bits) == Fraction(share.high, 1 << share.bits) == pvalue


def test_binomial_ends_against_scipy() -> None:
    share = CoinSum({1: 10**6}).pvalue(501_500, "greater")
    assert share.high - share.low < share.low >> 80
    assert share.low / (1 << share.bits) == pytest.approx(stats.binom.sf(501_499, 10**6, 0.5), rel=1e-9)


@settings(max_examples=cases(40), deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=50))
def test_convolutions_against_integer_polynomials(differences: list[int]) -> None:
    truth = oracles.difference_pvalues(differences)
    statistics: dict[str, Callable[[Any], Any]] = {
        "two-sided": np.abs, "greater": np.positive, "less": np.negative
    }  # fmt: skip
    for alternative, h in statistics.items():
        for least, error in ((0.0, 1e-13), (1e-8, 3e-5)):
            found = exact_perm_test(np.array(differences), -np.array(differences), h, least=least)
            assert abs(found - truth[alternative]) <= error
