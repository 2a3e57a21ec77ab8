"""Effect sizes, and the exact interval of the odds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binomtest
from support.cases import mean_scores

from trackperm.exact import RationalStatistic, difference_test
from trackperm.exact.intervals import effect_sizes, odds_interval
from trackperm.exact.intervals.effect_size import cohens_dz


def score_difference(n_variables: int = 4) -> RationalStatistic:
    u, n_u, v, n_v = (RationalStatistic.variable(i, n_variables) for i in range(4))
    return u / n_u - v / n_v


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_odds_against_binomtest(alternative: str) -> None:
    for b, c in itertools.product((0, 1, 4, 9, 300), repeat=2):
        if b + c == 0:
            continue
        for alpha in (0.01, 0.05, 0.3):
            oracle = binomtest(b, b + c, alternative=alternative).proportion_ci(1 - alpha, method="exact")
            found = odds_interval(b, c, alpha=alpha, alternative=alternative)
            for end, share in ((found.low, oracle.low), (found.high, oracle.high)):
                assert end == pytest.approx(share / (1 - share) if share < 1 else math.inf, rel=1e-6)


def test_odds_exclude_1_exactly_when_the_test_rejects() -> None:
    for b, c in itertools.product(range(9), repeat=2):
        for alternative in ("two-sided", "less", "greater"):
            if b + c == 0:
                continue
            u, v = np.repeat([1, 0], [b, c]), np.repeat([0, 1], [b, c])
            pvalue = difference_test(u, v, alternative=alternative).pvalue
            for alpha in (0.05, 0.0625, 0.125, 0.5, 0.9, min(math.nextafter(pvalue, 1.0), 0.9)):
                found = odds_interval(b, c, alpha=alpha, alternative=alternative)
                assert (1.0 in found) == (not pvalue < alpha)


def test_accuracy() -> None:
    observed = np.array([[1, 1, 0, 1], [0, 1, 1, 1], [1, 1, 1, 1]])
    found = effect_sizes(
        observed,
        observed[:, [2, 3, 0, 1]],
        score_difference(),
        multiplicities=np.array([12, 4, 84]),
        difference=0.08,
        baseline_score=0.88,
    )
    assert found.relative_change == pytest.approx(0.08 / 0.88)
    assert (found.n_better, found.n_worse, found.odds) == (12, 4, 3.0)
    assert found.cohens_dz is None
    assert found.odds_interval is not None
    assert found.odds_interval.relation == "agrees"


@pytest.mark.parametrize(("n_better", "n_worse", "odds"), [(0, 6, 0.0), (6, 0, math.inf)])
def test_odds_of_changes_in_one_direction(n_better: int, n_worse: int, odds: float) -> None:
    observed = np.array([[1, 1, 0, 1], [0, 1, 1, 1]])
    found = effect_sizes(
        observed,
        observed[:, [2, 3, 0, 1]],
        score_difference(),
        multiplicities=np.array([n_better, n_worse]),
        difference=float(np.sign(n_better - n_worse)),
    )
    assert (found.n_better, found.n_worse, found.odds) == (n_better, n_worse, odds)
    assert found.odds_interval == odds_interval(n_better, n_worse)


def test_cohens_dz_is_the_t_statistic_over_root_n() -> None:
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, 10, (2, 40))
    n = np.ones(40, dtype=np.int64)
    found = effect_sizes(
        np.stack([u, n, v, n], axis=1),
        np.stack([v, n, u, n], axis=1),
        score_difference(),
        multiplicities=n,
        difference=float((u - v).mean()),
    )
    assert found.cohens_dz == pytest.approx((u - v).mean() / (u - v).std(ddof=1))
    assert found.relative_change is None
    assert found.odds_interval is not None
    assert found.odds_interval.relation == "may disagree"


def test_undefined_effect_sizes_are_none() -> None:
    assert cohens_dz(mean_scores([3], [7])) is None
    assert cohens_dz(mean_scores([3], [1])) is None
    tp, wrong, tp_v, wrong_v = (RationalStatistic.variable(i, 4) for i in range(4))
    f1 = tp.divide(tp + wrong / 2, undefined=0) - tp_v.divide(tp_v + wrong_v / 2, undefined=0)
    rows = np.array([[1, 0, 0, 1], [0, 1, 1, 0], [1, 0, 0, 1]])
    found = effect_sizes(
        rows, rows[:, [2, 3, 0, 1]], f1, multiplicities=np.ones(3, int), difference=0.1, baseline_score=0.0
    )
    assert (found.relative_change, found.cohens_dz, found.odds, found.n_better) == (None, None, None, None)
    identical = effect_sizes(
        rows * 0 + 1, rows * 0 + 1, score_difference(), multiplicities=np.ones(3, int), difference=0.0
    )
    assert (identical.odds, identical.odds_interval, identical.n_better) == (None, None, 0)
