"""Bootstrap intervals against SciPy's BCa, and their coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from trackperm.errors import InputError, UndefinedStatisticError
from trackperm.exact import RationalStatistic
from trackperm.exact.intervals import bootstrap, bootstrap_interval


def mean_difference() -> RationalStatistic:
    u, v, n = (RationalStatistic.variable(i, 3) for i in range(3))
    return (u - v) / n


def f1_difference(undefined: int | None = 0) -> RationalStatistic:
    def score(i: int) -> RationalStatistic:
        tp, incorrect = (RationalStatistic.variable(j, 4) for j in (i, i + 1))
        return tp.divide(tp + incorrect / 2, undefined=undefined)

    return score(0) - score(2)


def grouped(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.unique(rows, axis=0, return_counts=True)


def test_multinomial_bootstrap_against_scipy() -> None:
    """SciPy resamples examples one by one, by its own random numbers: equal up to Monte Carlo noise."""
    rng = np.random.default_rng(2)
    rows = np.stack([rng.poisson(2.0, 80), rng.poisson(1.2, 80), np.ones(80, dtype=int)], axis=1)
    distinct, counts = grouped(rows)
    ours = bootstrap_interval(
        distinct, mean_difference(), multiplicities=counts, alpha=0.1, n_resamples=40_000
    )
    theirs = stats.bootstrap(
        (rows[:, 0], rows[:, 1]),
        lambda u, v, axis: (u - v).mean(axis=axis),
        paired=True,
        vectorized=True,
        confidence_level=0.9,
        n_resamples=40_000,
        method="BCa",
        rng=np.random.default_rng(3),
    ).confidence_interval
    width = ours.high - ours.low
    assert [ours.low, ours.high] == pytest.approx([theirs.low, theirs.high], abs=0.03 * width)


def test_ratio_statistic_against_scipy() -> None:
    rng = np.random.default_rng(4)
    rows = rng.integers(0, 2, (60, 4))
    distinct, counts = grouped(rows)
    h = f1_difference()
    ours = bootstrap_interval(distinct, h, multiplicities=counts, n_resamples=40_000)
    theirs = stats.bootstrap(
        tuple(rows.T),
        lambda *columns, axis: h.values(np.stack([c.sum(axis=axis) for c in columns], axis=-1)),
        paired=True,
        vectorized=True,
        n_resamples=40_000,
        method="BCa",
        rng=np.random.default_rng(5),
    ).confidence_interval
    width = ours.high - ours.low
    assert [ours.low, ours.high] == pytest.approx([theirs.low, theirs.high], abs=0.03 * width)
    assert ours.approximate


def test_the_acceleration_of_a_mean_is_a_sixth_of_its_skewness() -> None:
    # Efron (1987), section 6: skewness / (6 sqrt n) for a mean.
    values = np.array([0.0, 1.0, 2.0, 9.0])
    counts = np.array([4, 3, 2, 1])
    n = 10
    without = (counts @ values - values) / (n - 1)
    resampled = np.concatenate([np.full(50, 0.0), np.full(50, 3.0)])
    tau = 0.05
    low, high = bootstrap.bca_levels(resampled, 1.5, without, counts, tau)
    a = float(stats.skew(np.repeat(values, counts))) / (6.0 * math.sqrt(n))
    for level, z in ((low, stats.norm.ppf(tau)), (high, -stats.norm.ppf(tau))):
        assert level == pytest.approx(stats.norm.cdf(z / (1.0 - a * z)), rel=1e-12)


def test_the_levels_of_multiples_are_the_same() -> None:
    """Also of those whose third powers are beyond the range of floats."""
    without, resampled = np.array([1.5, 1.25, 2.0]), np.linspace(1.0, 2.0, 100)
    counts = np.array([3, 2, 4])
    levels = [
        bootstrap.bca_levels(resampled * scale, 1.5 * scale, without * scale, counts, 0.05)
        for scale in (1.0, 2.0**400)
    ]
    assert levels[0] == levels[1]


def test_strata_are_resampled_each_by_itself() -> None:
    """The variance of a mean over strata is the sum of their own, as in a stratified sample."""
    rng = np.random.default_rng(10)
    values, strata = rng.normal(0.0, 100.0, 90).astype(int), np.repeat([3, 5], [30, 60])
    values[strata == 5] += 1000
    columns = [np.where(strata == s, x, 0) for s in (3, 5) for x in (values, np.ones(90, dtype=int))]
    a, n, b, k = (RationalStatistic.variable(i, 4) for i in range(4))
    found = bootstrap_interval(
        np.stack(columns, axis=1),
        (a / n + b / k) / 2,
        multiplicities=np.ones(90, dtype=np.int64),
        strata=strata,
        n_resamples=20_000,
    )
    error = math.sqrt(sum(values[strata == s].var() / (strata == s).sum() for s in (3, 5))) / 2
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.04)


def test_seeded_and_independent_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    distinct, counts = grouped(rng.integers(0, 3, (200, 4)))

    def ends(seed: int) -> tuple[float, float]:
        found = bootstrap_interval(
            distinct, f1_difference(), multiplicities=counts, n_resamples=500, seed=seed
        )
        return found.low, found.high

    first = ends(7)
    monkeypatch.setattr(bootstrap, "BLOCK_CELLS", 1000)
    assert ends(7) == first
    assert ends(8) != first


def test_one_sided_intervals_are_ends_of_two_sided_ones() -> None:
    distinct, counts = grouped(np.random.default_rng(8).integers(0, 2, (90, 4)))
    both = bootstrap_interval(distinct, f1_difference(), multiplicities=counts, alpha=0.1)
    above = bootstrap_interval(
        distinct, f1_difference(), multiplicities=counts, alpha=0.05, alternative="greater"
    )
    assert (above.low, above.high) == (both.low, math.inf)
    below = bootstrap_interval(
        distinct, f1_difference(), multiplicities=counts, alpha=0.05, alternative="less"
    )
    assert (below.low, below.high) == (-math.inf, both.high)


@pytest.mark.parametrize("n_resamples", [100, 999])
def test_exchanging_the_runs_negates_the_interval(n_resamples: int) -> None:
    """The same resamples, so both ends are rounded outwards to the same order statistics."""
    for seed in range(5):
        distinct, counts = grouped(np.random.default_rng(seed).integers(0, 9, (60, 4)))
        here, there = (
            bootstrap_interval(
                rows, f1_difference(), multiplicities=counts, n_resamples=n_resamples, seed=seed
            )
            for rows in (distinct, distinct[:, [2, 3, 0, 1]])
        )
        assert (there.low, there.high) == pytest.approx((-here.high, -here.low), rel=1e-12)


def test_refusals() -> None:
    rows, counts = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]), np.array([2, 2, 3])
    with pytest.raises(UndefinedStatisticError, match="resamples"):
        bootstrap_interval(rows, f1_difference(None), multiplicities=counts)
    with pytest.raises(InputError, match="at least 2 examples"):
        bootstrap_interval(rows[:1], f1_difference(), multiplicities=np.array([1]))
    with pytest.raises(InputError, match="`n_resamples` is 10"):
        bootstrap_interval(rows, f1_difference(), multiplicities=counts, n_resamples=10)
