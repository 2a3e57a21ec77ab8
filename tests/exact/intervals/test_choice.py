"""Choice of the interval of a statistic, and agreement of intervals with the test."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.budget import cases

from trackperm.choices import Alternative
from trackperm.errors import InputError
from trackperm.exact import CountTable, RationalStatistic, RealStatistic, structured_test
from trackperm.exact.engines.lattice.statistic import Statistic
from trackperm.exact.intervals import (
    Interval,
    additive_scores,
    binary_interval,
    bootstrap_interval,
    shift_interval,
    strata_of_rows,
)


def joint(table: CountTable) -> tuple[np.ndarray, np.ndarray]:
    return np.hstack([table.candidate, table.baseline]), np.hstack([table.baseline, table.candidate])


def mean_difference(n_strata: int = 1, factor: int | Fraction = 1) -> RationalStatistic:
    """Mean over strata of total / n in the candidate minus that in the baseline."""
    p = 2 * n_strata
    variables = [RationalStatistic.variable(i, 2 * p) for i in range(2 * p)]

    def score(first: int) -> RationalStatistic:
        parts = [variables[first + 2 * i] / variables[first + 2 * i + 1] for i in range(n_strata)]
        return sum(parts[1:], parts[0]) * factor / n_strata

    return score(0) - score(p)


def table_of(u: np.ndarray, v: np.ndarray, sizes: np.ndarray | None = None) -> CountTable:
    n = np.ones_like(u) if sizes is None else sizes
    return CountTable.from_counts(("total", "n"), np.stack([u, n], axis=1), np.stack([v, n], axis=1))


def interval_of(
    table: CountTable, h: Statistic, *, alpha: float = 0.05, alternative: Alternative = "two-sided"
) -> Interval:
    """The interval that agrees with the test if there is one, else resampled rows."""
    observed, swapped = joint(table)
    scores = additive_scores(observed, swapped, h, table.multiplicities)
    if scores is not None and scores.gap is None:
        return shift_interval(scores, alpha=alpha, alternative=alternative)
    if scores is not None and scores.equally_weighted:
        return binary_interval(scores, alpha=alpha, alternative=alternative)
    strata, counts = strata_of_rows(h, observed), table.multiplicities
    return bootstrap_interval(observed, h, multiplicities=counts, strata=strata, n_resamples=500)


def check_agreement(table: CountTable, h: Statistic, alpha: float, alternative: Alternative) -> Interval:
    observed, swapped = joint(table)
    test = structured_test(observed, swapped, h, multiplicities=table.multiplicities, alternative=alternative)
    interval = interval_of(table, h, alpha=alpha, alternative=alternative)
    assert interval.relation == "agrees"
    assert (0.0 in interval) == (not test.pvalue < alpha)
    if alpha < 0.5:
        assert interval.low <= test.observed <= interval.high
    return interval


ALPHA = st.sampled_from([0.01, 0.05, 0.125, 0.25, 0.6])
ALTERNATIVE = st.sampled_from(["two-sided", "less", "greater"])


@settings(max_examples=cases(40), deadline=None)
@given(st.integers(1, 60), st.integers(0, 10**9), ALPHA, ALTERNATIVE)
def test_accuracy_agrees_with_the_test(n: int, seed: int, alpha: float, alternative: Alternative) -> None:
    rng = np.random.default_rng(seed)
    table = table_of(*(rng.random((2, n)) < np.array([[0.7], [0.4]])).astype(np.int64))
    interval = check_agreement(table, mean_difference(), alpha, alternative)
    assert interval.method == "paired proportions"


@settings(max_examples=cases(30), deadline=None)
@given(st.integers(2, 25), st.integers(0, 10**9), ALPHA, ALTERNATIVE)
def test_means_and_clusters_agree_with_the_test(
    n: int, seed: int, alpha: float, alternative: Alternative
) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, n) if seed % 2 else None
    u, v = rng.integers(0, 8, (2, n))
    u[:2], v[:2] = (7, 0), (1, 3)
    table = table_of(u, v, sizes)
    assert check_agreement(table, mean_difference(), alpha, alternative).method == "shift"


def test_scaled_and_negated_scores_scale_and_negate_the_interval() -> None:
    rng = np.random.default_rng(1)
    table = table_of(*rng.integers(0, 2, (2, 50)))
    plain = interval_of(table, mean_difference())
    percent = interval_of(table, mean_difference(factor=100))
    assert (percent.low, percent.high) == pytest.approx((100 * plain.low, 100 * plain.high))
    # 0 or 7 points an example.
    points = interval_of(table_of(7 * table.candidate[:, 0], 7 * table.baseline[:, 0]), mean_difference())
    assert points.method == "paired proportions"
    swapped = CountTable(table.names, table.baseline, table.candidate, table.multiplicities)
    negated = interval_of(swapped, mean_difference())
    assert (negated.low, negated.high) == (-plain.high, -plain.low)
    # Counts in units of 1/1000, as decimals come.
    milli = table_of(1000 * table.candidate[:, 0], 1000 * table.baseline[:, 0])
    assert additive_scores(*joint(milli), mean_difference(factor=Fraction(1, 1000)), milli.multiplicities)


def test_two_values_above_0_are_not_binary_scores() -> None:
    """Examples at 0.6 in place of 0.5, however many, do not show that no score is 0."""
    few, many = np.full(3, 5), np.full(30, 5)
    interval = interval_of(table_of(few + 1, few), mean_difference(factor=Fraction(1, 10)), alpha=0.1)
    assert (interval.method, interval.low) == ("shift", -math.inf)
    assert interval_of(table_of(many + 1, many), mean_difference()).method == "shift"
    assert interval_of(table_of(few, 0 * few), mean_difference()).method == "paired proportions"


def test_intervals_of_identical_runs_have_a_width() -> None:
    same = np.array([0, 1, 1, 1, 0, 1] * 20)
    binary = interval_of(table_of(same, same), mean_difference())
    assert binary.high == pytest.approx(-math.expm1(math.log(0.025) / 120))
    percent = interval_of(table_of(same, same), mean_difference(factor=100))
    assert percent.high == pytest.approx(100 * binary.high)
    graded = np.arange(30)
    assert not interval_of(table_of(graded, graded), mean_difference()).bounded


def test_clusters_of_binary_scores_are_not_paired_proportions() -> None:
    """Their sums over clusters are weighted by cluster size: each score shifts by the same delta."""
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 9, 40)
    table = table_of(rng.binomial(sizes, 0.7), rng.binomial(sizes, 0.5), sizes)
    interval = check_agreement(table, mean_difference(), 0.05, "two-sided")
    assert interval.method == "shift"
    scores = additive_scores(*joint(table), mean_difference(), table.multiplicities)
    assert scores is not None
    assert Counter(np.repeat(scores.weights, scores.multiplicities).tolist()) == Counter(sizes.tolist())
    with pytest.raises(InputError, match="one example a row"):
        binary_interval(scores, alpha=0.05, alternative="two-sided")
    # Whole clusters right or wrong: no shift leaves that, so clusters are resampled.
    right = rng.integers(0, 2, (2, 40)) * sizes
    assert interval_of(table_of(*right, sizes), mean_difference()).method == "bootstrap BCa"


def test_strata_weigh_examples_by_their_inverse_size() -> None:
    rng = np.random.default_rng(3)
    stratum = np.repeat([0, 1], [10, 30])
    u, v = rng.integers(0, 9, (2, 40))
    columns = [np.where(stratum == s, x, 0) for s in (0, 1) for x in (u, np.ones(40, dtype=int))]
    other = [np.where(stratum == s, x, 0) for s in (0, 1) for x in (v, np.ones(40, dtype=int))]
    names = ("total_0", "n_0", "total_1", "n_1")
    table = CountTable.from_counts(names, np.stack(columns, axis=1), np.stack(other, axis=1))
    h = mean_difference(n_strata=2)
    scores = additive_scores(*joint(table), h, table.multiplicities)
    assert scores is not None
    assert Counter(np.repeat(scores.weights, scores.multiplicities).tolist()) == {3: 10, 1: 30}
    expected = ((u - v)[:10].mean() + (u - v)[10:].mean()) / 2
    assert float(scores.value) == pytest.approx(expected)
    assert check_agreement(table, h, 0.05, "two-sided").method == "shift"
    binary = CountTable(
        names, np.minimum(table.candidate, 1), np.minimum(table.baseline, 1), table.multiplicities
    )
    assert interval_of(binary, h).method == "bootstrap BCa"


def test_small_strata_of_binary_scores_are_never_empty() -> None:
    """In unequal strata, one of a single example: resampled within each, that one stays as it is."""
    rng = np.random.default_rng(6)
    stratum = np.repeat([0, 1, 2], [1, 4, 60])
    ones = np.ones(65, dtype=int)
    u, v = rng.integers(0, 2, (2, 65))
    u[0], v[0] = 1, 0
    sides = [
        np.stack([np.where(stratum == s, x, 0) for s in range(3) for x in (run, ones)], axis=1)
        for run in (u, v)
    ]
    table = CountTable.from_counts(tuple("abcdef"), *sides)
    found = interval_of(table, mean_difference(n_strata=3))
    assert found.method == "bootstrap BCa"
    # A third of it comes from the stratum of one.
    assert -2 / 3 + 1 / 3 <= found.low <= found.high <= 1.0


def test_ratios_are_resampled() -> None:
    rng = np.random.default_rng(4)
    counts = rng.integers(0, 2, (80, 4))
    tp, wrong, tp_v, wrong_v = (RationalStatistic.variable(i, 4) for i in range(4))
    h = tp.divide(tp + wrong / 2, undefined=0) - tp_v.divide(tp_v + wrong_v / 2, undefined=0)
    table = CountTable.from_counts(("tp", "incorrect"), counts[:, :2], counts[:, 2:])
    for statistic in (h, RealStatistic.from_rational(h), lambda x: x[..., 0] - x[..., 2]):
        found = interval_of(table, statistic)
        assert (found.method, found.relation) == ("bootstrap BCa", "may disagree")


def test_binary_scores_have_no_shift() -> None:
    binary = joint(table_of(*np.random.default_rng(5).integers(0, 2, (2, 60))))
    scores = additive_scores(*binary, mean_difference(), np.ones(len(binary[0]), dtype=np.int64))
    assert scores is not None
    with pytest.raises(InputError, match="0 or 1"):
        shift_interval(scores)
    with pytest.raises(InputError, match="`alpha` is 0"):
        binary_interval(scores, alpha=0.0, alternative="two-sided")


def test_properties_of_intervals() -> None:
    interval = Interval(-0.01, 0.02, 0.07, "two-sided", "bootstrap BCa", "may disagree", "")
    assert interval.confidence == 0.93
    assert 0.0 in interval
    assert 0.03 not in interval
    assert interval.within(0.03)
    assert not interval.within(0.02)
    assert interval.approximate
    assert interval.bounded


@pytest.mark.parametrize("kind", ["scores", "clusters"])
def test_paired_proportions_need_0_or_1_and_equal_weights(kind: str) -> None:
    u, v, sizes = np.array([3, 0, 2, 1]), np.array([1, 1, 2, 0]), np.array([1, 1, 1, 1])
    if kind == "clusters":
        u, v, sizes = np.array([2, 0, 1, 1]), np.array([0, 0, 1, 0]), np.array([2, 1, 1, 1])
    table = table_of(u, v, sizes)
    scores = additive_scores(*joint(table), mean_difference(), table.multiplicities)
    assert scores is not None
    with pytest.raises(InputError, match="requires 0/1 scores and one example a row"):
        binary_interval(scores, alpha=0.05, alternative="two-sided")


@pytest.mark.parametrize(("sizes", "gap"), [((1, 1), 100), ((3, 3), 300), ((1, 2), None)])
def test_differences_of_one_size_are_binary_scores(sizes: tuple[int, int], gap: int | None) -> None:
    """A sum without a divisor is n times a mean, so its gap is n times the size of a difference."""
    up, down = sizes
    observed = np.array([[up, 0], [0, down], [0, 0]])
    h = RationalStatistic.variable(0, 2) - RationalStatistic.variable(1, 2)
    scores = additive_scores(observed, observed[:, ::-1], h, np.array([12, 4, 84]))
    assert scores is not None
    assert scores.gap == gap
