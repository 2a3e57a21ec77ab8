"""Certified ends of statistics of many counts, against exact p-values and against their own bounds."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from benchmarks.workloads import class_predictions, class_test, f1_by_strata, macro_f1_of
from support.budget import cases
from support.tilted_levels import Null, drawn_pvalues, fixed_ladder

from trackperm.errors import CapacityError
from trackperm.exact import PermutationTest, RationalStatistic, structured_test
from trackperm.exact.counts import DifferenceHistogram
from trackperm.exact.distributions.characteristic import SwapDistribution
from trackperm.exact.engines.axes import Axes
from trackperm.exact.engines.linearised import Linearisation, covariance_root
from trackperm.exact.functions.real import RealStatistic

Counts = npt.NDArray[np.int64]
Statistic = RationalStatistic | RealStatistic
SIDES = ("two-sided", "greater", "less")


def variables(kind: type[Any], n: int) -> list[Any]:
    return [kind.variable(i, n) for i in range(n)]


def geometric_mean(n: int) -> Statistic:
    """BLEU of two orders: pooled precisions, and a penalty of short outputs that applies to some runs."""
    x = variables(RealStatistic, 6)

    def score(one: Any, two: Any, length: Any) -> Any:
        penalty = (1 - Fraction(6 * n) / length).minimum(0).exp()
        return (one / length * (two / length)).sqrt() * penalty

    return score(*x[:3]) - score(*x[3:])


def log_ratio() -> Statistic:
    x = variables(RealStatistic, 4)
    return (x[0] / (x[0] + x[1])).log() - (x[2] / (x[2] + x[3])).log()


def one_score() -> Statistic:
    """F1 of the first run alone, which has a curvature of its own; for one-sided tests."""
    x = variables(RationalStatistic, 4)
    return x[0].divide(x[0] + x[1] / 2, undefined=0)


def with_powers() -> Statistic:
    x = variables(RealStatistic, 4)
    return (x[0] ** 2 + 3) / (x[1] + 1000) ** 2 - (x[2] ** 2 + 3) / (x[3] + 1000) ** 2


def counts(rng: np.random.Generator, n: int, width: int, same: int) -> Counts:
    """Counts of two runs as rows (u, v), where the first n examples differ and `same` others do not."""
    u, v = rng.integers(0, 4, (2, n, width))
    tied = rng.integers(1, 4, (same, width))
    return np.hstack([np.vstack([u, tied]), np.vstack([v, tied])])


def generated(seed: int, n: int, same: int) -> tuple[Counts, Counts, Statistic, str]:
    """Counts as they are and after all swaps, a statistic, and a side of it."""
    rng = np.random.default_rng(seed)
    kind = seed % 6
    side = SIDES[seed // 6 % 3]
    if kind in (0, 1):
        n_strata = 1 + kind
        there = counts(rng, n, 2 * n_strata, same)
        h: Statistic = f1_by_strata(n_strata)
    elif kind == 2:
        there = counts(rng, n, 3, same)
        there[:, [2, 5]] += 5
        h = geometric_mean(n + same)
    else:
        there = counts(rng, n, 2, same)
        h = (log_ratio(), one_score(), with_powers())[kind - 3]
        side = SIDES[1 + seed // 6 % 2] if kind == 4 else side
    half = there.shape[1] // 2
    return there, np.hstack([there[:, half:], there[:, :half]]), h, side


def contains(bracket: PermutationTest, exact: PermutationTest) -> bool:
    assert bracket.method == "bracket"
    assert exact.error_bound < 1e-6
    low, high = bracket.interval
    assert low <= high
    assert high == pytest.approx(bracket.pvalue, rel=1e-9)
    return low * (1.0 - 1e-9) <= exact.pvalue <= bracket.pvalue * (1.0 + 1e-9)


@pytest.mark.generated
def test_the_ends_contain_exact_pvalues() -> None:
    """Few swaps are counted in integers. Most bounds are wide, and some p-values are far from even."""
    n_bounded, widths = 0, []
    for seed in range(cases(72)):
        rng = np.random.default_rng(seed + 10_000)
        observed, swapped, h, side = generated(seed, int(rng.integers(6, 13)), int(rng.integers(20, 400)))
        exact = structured_test(observed, swapped, h, alternative=side, method="enumerate")
        try:
            bracket = structured_test(observed, swapped, h, alternative=side, method="bracket")
        except CapacityError:
            continue
        if exact.pvalue == 1.0 and bracket.method != "bracket":
            continue
        n_bounded += 1
        widths.append(bracket.error_bound)
        assert contains(bracket, exact), seed
    assert n_bounded > 0.7 * cases(72)
    assert np.median(widths) < 1.0


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "lift", [0.0, 0.12, *(pytest.param(lift, marks=pytest.mark.extended) for lift in (0.05, 0.25))]
)
@pytest.mark.parametrize("side", SIDES)
def test_the_ends_contain_pvalues_of_the_lattice(lift: float, side: Any) -> None:
    """Rank two, and p-values down to 1e-600."""
    for seed, n in itertools.product(range(2), (200, 4000)):
        rng = np.random.default_rng(seed)
        u, v = (
            np.stack([rng.binomial(4, q, n), rng.binomial(4, 1 - q, n)], axis=1) for q in (0.6 + lift, 0.6)
        )
        there, back = np.hstack([u, v]), np.hstack([v, u])
        h = f1_by_strata(1)
        exact = structured_test(there, back, h, alternative=side, method="lattice")
        bracket = structured_test(there, back, h, alternative=side, method="bracket")
        low = max(bracket.log10_pvalue - math.log10(1.0 + bracket.error_bound), -1e6)
        assert exact.rank == 2
        assert low - 1e-9 <= exact.log10_pvalue <= bracket.log10_pvalue + 1e-9
        assert bracket.error_bound < 1.0 or n == 200 or exact.log10_pvalue < -30.0


@pytest.mark.extended
@pytest.mark.parametrize(("n", "seed"), [(24, 0), (30, 1), (36, 2)])
def test_the_ends_contain_pvalues_of_rank_four(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    there = counts(rng, n, 4, 300)
    stratum = rng.integers(0, 2, len(there))
    for first in (0, 2):
        there[stratum == first // 2, first : first + 2] = 0
        there[stratum == first // 2, 4 + first : 6 + first] = 0
    back = np.hstack([there[:, 4:], there[:, :4]])
    exact = structured_test(there, back, f1_by_strata(2), method="lattice")
    bracket = structured_test(there, back, f1_by_strata(2), method="bracket")
    assert exact.rank == 4
    assert contains(bracket, exact)
    assert bracket.error_bound < 0.2


def linearisation(problem: tuple[Counts, Counts, Statistic, Any]) -> Linearisation:
    observed, swapped, h, multiplicities = problem
    return Linearisation(DifferenceHistogram.from_pairs(observed, swapped, multiplicities), h)


def draws(
    problem: tuple[Counts, Counts, Statistic, Any], size: int
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Values of the statistic and of its weighted sum, after random swaps."""
    observed, swapped, h, multiplicities = problem
    histogram = DifferenceHistogram.from_pairs(observed, swapped, multiplicities)
    linear = Linearisation(histogram, h)
    rng = np.random.default_rng(5)
    heads = rng.binomial(histogram.multiplicities, 0.5, (size, histogram.multiplicities.size))
    totals = np.array(histogram.origin) + heads @ histogram.differences
    values = h.values(totals) if isinstance(h, RationalStatistic) else h(totals)
    axes = Axes.of(SwapDistribution(histogram.differences, histogram.multiplicities))
    deviations = (heads - histogram.multiplicities / 2) @ axes.law.coordinates
    return values, linear._value + deviations @ linear._coefficients


@pytest.mark.parametrize("n_classes", [3, 8])
def test_random_swaps_stay_within_the_remainder(n_classes: int) -> None:
    problem = macro_f1_of(class_predictions(3000, n_classes, 0.7, 0.71))
    linear = linearisation(problem)
    values, sums = draws(problem, 20_000)
    remainder = linear.remainder(0.0, "two-sided")
    assert math.exp(remainder.log_failure) < 1.1e-3
    largest = np.abs(values - sums).max()
    assert remainder.bound / 40.0 < largest < remainder.bound
    assert np.std(sums) == pytest.approx(linear.deviation, rel=0.03)


def test_the_remainder_grows_with_the_level_and_ends_the_tight_bounds() -> None:
    linear = linearisation(macro_f1_of(class_predictions(4000, 4, 0.7, 0.72)))
    found = [linear.remainder(z * linear.deviation, "greater") for z in np.arange(-1.0, 12.0, 0.2)]
    bounds = [each.bound for each in found]
    tight = [each.is_tight for each in found]
    assert all(low <= high * (1.0 + 1e-9) for low, high in itertools.pairwise(bounds))
    assert all(lower >= upper for lower, upper in itertools.pairwise(tight))
    assert tight[0]
    assert not tight[-1]
    assert all(low.log_failure >= high.log_failure for low, high in itertools.pairwise(found))


def test_the_weighted_sum_is_the_same_for_every_configuration() -> None:
    observed, swapped, h, multiplicities = macro_f1_of(class_predictions(400, 3, 0.7, 0.75))
    observed, swapped = (np.repeat(each, multiplicities, axis=0) for each in (observed, swapped))
    rng = np.random.default_rng(1)
    first = linearisation((observed, swapped, h, None))
    for _ in range(3):
        exchanged = (rng.random(len(observed)) < 0.5)[:, None]
        a, b = np.where(exchanged, swapped, observed), np.where(exchanged, observed, swapped)
        other = linearisation((a, b, h, None))
        assert np.array_equal(other._coefficients, first._coefficients)
        assert np.array_equal(other._line.steps, first._line.steps)
        assert other.remainder(0.01, "two-sided") == first.remainder(0.01, "two-sided")


def test_exchanging_the_runs_changes_nothing() -> None:
    observed, swapped, h, multiplicities = macro_f1_of(class_predictions(2000, 4, 0.7, 0.72))
    there, back = (
        structured_test(*pair, h, multiplicities=multiplicities, method="bracket")
        for pair in ((observed, swapped), (swapped, observed))
    )
    assert there.observed == -back.observed
    assert there.interval == back.interval


def test_auto_takes_certified_ends_where_they_are_tight() -> None:
    near, far = (class_test(class_predictions(20_000, 6, 0.6, right)) for right in (0.605, 0.67))
    assert near.method == "bracket"
    assert near.error_bound < 0.1
    assert "a weighted sum differs from the statistic by at most 0.0" in near.why
    assert "no exact engine fits: lattice: more than 8 counts vary independently" in near.why
    assert near.estimate is None
    assert near.n_samples is None
    drawn = class_test(class_predictions(20_000, 6, 0.6, 0.605), n_samples=200)
    assert (drawn.method, drawn.n_samples) == ("tilted", 200)  # a number of swaps asks for them
    assert far.method == "tilted"
    assert "bracket: the statistic differs from a weighted sum by up to " in far.why
    by_name = class_test(class_predictions(20_000, 6, 0.6, 0.67), method="bracket")
    assert far.estimate is not None
    low = by_name.log10_pvalue - math.log10(1.0 + by_name.error_bound)
    assert low < far.estimate.log10 < by_name.log10_pvalue


@pytest.mark.extended
@pytest.mark.parametrize("candidate", [0.602, pytest.param(0.613, marks=pytest.mark.extended)])
def test_estimates_are_within_the_ends(candidate: float) -> None:
    problem = class_predictions(100_000, 20, 0.6, candidate)
    bracket, drawn = class_test(problem), class_test(problem, method="tilted", n_samples=4000)
    assert bracket.method == "bracket"
    assert drawn.estimate is not None
    low, high = bracket.interval
    errors = 4.5 * drawn.estimate.relative_error
    assert low * (1.0 - errors) < 10.0**drawn.estimate.log10 < high * (1.0 + errors)
    assert high / low < 1.1


def test_covariance_roots_of_dependent_counts() -> None:
    """Also if counts add up to a constant, and are of very different sizes."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 12):
        rows = rng.integers(-3, 4, (60, n)) * 10 ** rng.integers(0, 7, n)
        rows = np.hstack([rows, -rows.sum(axis=1, keepdims=True)])
        law = SwapDistribution(rows, rng.integers(1, 9, 60))
        root = covariance_root(law)
        exact = (rows.T.astype(object) * law.multiplicities.astype(object)) @ rows.astype(object)
        scales = np.sqrt(np.diag(exact).astype(float)) / 2.0
        scaled = root / scales[:, None]
        excess = scaled @ scaled.T - exact.astype(float) / 4.0 / np.outer(scales, scales)
        assert np.linalg.eigvalsh(excess).min() >= 0.0
        assert np.linalg.eigvalsh(excess).max() < 1e-9


def refused(problem: tuple[Any, ...], match: str, **options: Any) -> None:
    with pytest.raises(CapacityError, match=match):
        structured_test(*problem, **{"method": "bracket", "alternative": "greater", **options})


def test_refusals() -> None:
    rng = np.random.default_rng(0)
    there = counts(rng, 40, 2, 0)
    back = np.hstack([there[:, 2:], there[:, :2]])
    x = variables(RationalStatistic, 4)
    refused((there, back, lambda s: s[..., 0] / (1.0 + s[..., 1])), "NumPy function")
    refused((there, back, one_score()), "does not separate ties", mid_p=True)
    # The divisor has the mean 0.
    refused((there, back, x[0].divide(x[1] - x[3], undefined=0)), "no slope")
    # It is near enough to 0, if not 0, at the mean.
    refused((there, back, x[0] / (x[1] - x[3] + 1)), "undefined or not smooth")
    refused((there, back, (x[0] - x[2]) * (x[0] - x[2])), "no slope")
    y = variables(RealStatistic, 4)
    refused((there, back, abs(y[0] - y[2])), "no slope")
    refused((there, back, y[0].maximum(y[2] + 2)), "undefined or not smooth")
    huge = there * 2**50
    refused((huge, huge[:, [2, 3, 0, 1]], one_score()), "exceed 2\\^")
    wide = counts(rng, 500, 401, 0)
    z = variables(RationalStatistic, 802)
    many = sum(z[1:401], z[0]) * z[400]
    refused((wide, np.hstack([wide[:, 401:], wide[:, :401]]), many), "401 counts vary; the limit is 400")


def test_certified_ends_up_to_a_level_and_valid_pvalues_beyond_are_valid_together() -> None:
    """P(p <= a) <= a for every a, where all configurations are known and the draws are simulated."""
    rng = np.random.default_rng(2)
    there = counts(rng, 13, 2, 150)
    back, h = np.hstack([there[:, 2:], there[:, :2]]), f1_by_strata(1)
    histogram = DifferenceHistogram.from_pairs(there, back)
    linear = Linearisation(histogram, h)
    law = SwapDistribution(histogram.differences, histogram.multiplicities)
    origin = np.array(histogram.origin)
    null = Null(law, lambda points: h.values(origin + points.T))
    points, mass = null.points()
    heights = np.round(null.value(points.astype(np.float64)), 12)
    exact = np.array([mass[heights >= height].sum() for height in heights])
    values, place = np.unique(heights, return_inverse=True)
    remainders = [linear.remainder(value, "greater") for value in values]
    tight = np.array([each.is_tight for each in remainders])
    assert 0.9 < float(mass[tight[place]].sum()) < 1.0
    assert all(low >= high for low, high in itertools.pairwise(tight.tolist()))
    ends = [
        linear.bracket(value, "greater", remainder, 2**30) if use else None
        for value, remainder, use in zip(values, remainders, tight, strict=True)
    ]
    upper = np.array([1.0 if end is None else math.exp(end.log) for end in ends])[place]
    assert (upper >= exact * (1.0 - 1e-12)).all()
    mixture = fixed_ladder(null)
    levels = np.unique(np.append(exact, [0.05, 0.01, 1e-3, 1e-4]))
    rates = np.array(
        [
            [float(mass[reported <= level].sum()) for level in levels]
            for drawn in drawn_pvalues(null, points, mixture, 200, cases(40), rng)
            for reported in [np.where(tight[place], np.minimum(upper, 1.0), drawn)]
        ]
    )
    errors = rates.std(axis=0) / math.sqrt(len(rates))
    assert (rates.mean(axis=0) <= levels * (1.0 + 1e-9) + 4.0 * errors).all()
    assert rates.mean(axis=0)[levels == 0.05][0] > 0.03


def test_the_planner_does_not_wait_for_expansions() -> None:
    problem = macro_f1_of(class_predictions(5000, 3, 0.6, 0.61))
    histogram = DifferenceHistogram.from_pairs(problem[0], problem[1], problem[3])
    with pytest.raises(CapacityError, match=r"it would take about 0 s; .* runs it"):
        Linearisation(histogram, problem[2], patience=1e-3)
    assert 0.0 < Linearisation(histogram, problem[2]).seconds(2**30) < 2.0
