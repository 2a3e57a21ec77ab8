"""Which intervals are shown, and by simulation that these cover what they say."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from exact.intervals.coverages_of_numbers import rmse, simulated
from exact.intervals.populations import Simulation, populations
from scipy.stats import binom, poisson
from support.budget import Measured, cases
from support.cases import F1, mean_scores

import trackperm
from trackperm.errors import UndefinedStatisticError
from trackperm.exact.intervals import (
    AdditiveScores,
    bootstrap_interval,
    why_not_resampled,
    why_not_scored,
    why_not_shifted,
)
from trackperm.exact.intervals.bootstrap import bca_levels
from trackperm.exact.intervals.coverage import effective_number, skewness, swap_effects

TP, FN, TN = (1, 0), (0, 1), (0, 0)


def f1_rows(**counts: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows by what both runs count: tp_fn=3 are 3 examples where the candidate alone is right."""
    kinds = {"tp": TP, "fn": FN, "tn": TN, "fp": FN}
    pairs = [tuple(kinds[part] for part in name.split("_")) for name in counts]
    observed, swapped = (np.array([a + b for a, b in order]) for order in (pairs, [(b, a) for a, b in pairs]))
    return observed, swapped, np.array(list(counts.values()), dtype=np.int64)


def means(*differences: float, counts: list[int] | None = None) -> AdditiveScores:
    return mean_scores([int(d) for d in differences], counts or [1] * len(differences))


def test_effective_number_is_less_if_effects_differ() -> None:
    assert effective_number(np.array([0.3, -0.3]), np.array([7, 5])) == pytest.approx(12.0)
    assert effective_number(np.array([1.0, 10.0]), np.array([100, 1])) == pytest.approx(200**2 / 10_100)
    assert effective_number(np.array([]), np.array([], dtype=int)) == 0.0
    assert effective_number(np.array([1.0, math.inf]), np.array([30, 1])) == 0.0, (
        "a change that is not defined"
    )


def test_effects_of_swaps_against_the_statistic() -> None:
    observed, swapped, counts = f1_rows(tp_tp=20, tp_fn=3, fn_tp=2, tn_fp=4, tn_tn=50, fn_fn=6)
    effects, numbers = swap_effects(observed, swapped, F1, counts)
    assert numbers.tolist() == [3, 2, 4]
    one_by_one, exchanged = np.repeat(observed, counts, axis=0), np.repeat(swapped, counts, axis=0)
    before = float(F1(tuple(one_by_one.sum(axis=0).tolist())))
    for effect, place in zip(effects, (20, 23, 25), strict=True):
        rows = one_by_one.copy()
        rows[place] = exchanged[place]
        assert effect == pytest.approx(float(F1(tuple(rows.sum(axis=0).tolist()))) - before, abs=1e-12)


@pytest.mark.parametrize(("better", "worse", "shown"), [(0, 19, False), (9, 10, False), (11, 11, True)])
def test_resampling_needs_twenty_examples_that_differ(better: int, worse: int, shown: bool) -> None:
    observed, swapped, counts = f1_rows(tp_tp=60, tp_fn=better, fn_tp=worse, tn_tn=200)
    there = counts > 0
    why = why_not_resampled(observed[there], swapped[there], F1, counts[there])
    if shown:
        assert why is None
    else:
        assert why == "only 19 examples differ between the runs; a resampled interval needs 20"


def test_reasons_in_words() -> None:
    def why(unit: str = "example", alpha: float = 0.05, **counts: int) -> str | None:
        observed, swapped, numbers = f1_rows(tp_tp=60, tn_tn=200, **counts)
        return why_not_resampled(observed, swapped, F1, numbers, unit=unit, alpha=alpha)

    assert why() == "no example differs between the runs, so the size of a difference is unknown"
    assert why(tp_fn=1) == "only 1 example differs between the runs; a resampled interval needs 20"
    assert (why("cluster", tp_fn=2) or "").startswith("only 2 clusters differ between the runs; a resampled")
    assert why(tp_fn=20, fn_tp=20) is None
    # 1 - 1e-5 takes z^4 / 1.6 with z = 4.42
    assert (why(tp_fn=20, fn_tp=20, alpha=1e-5) or "").endswith("needs 238")
    # 30 examples of one count, and a cluster of ten each way
    observed, swapped, counts = f1_rows(tp_tp=60, tp_fn=15, fn_tp=15)
    large = np.array([[10, 0, 0, 10], [0, 10, 10, 0]])
    observed, swapped = np.vstack([observed, large]), np.vstack([swapped, large[::-1]])
    uneven = why_not_resampled(observed, swapped, F1, np.array([*counts, 1, 1]))
    assert uneven is not None
    assert uneven.startswith("the 32 examples that differ between the runs weigh as much as 2.6 equal ones; ")


def test_shifts_take_fewer_examples_and_no_skewness() -> None:
    assert why_not_shifted(means(*[1, -1] * 6)) is None
    few = "only 10 examples differ between the runs; an interval by shifts needs 12"
    assert why_not_shifted(means(*[1, -1] * 5, 0, 0, 0)) == few
    waits = np.round(1000 * np.random.default_rng(0).exponential(1.0, 100)).tolist()
    assert (why_not_shifted(means(*waits)) or "").startswith("the differences of 100 examples are skewed")
    both_ways = [*waits, *(-wait for wait in waits)]
    assert why_not_shifted(means(*both_ways)) is None
    # beyond 95 % skewness matters more: (2 z^3 + z) / 6
    some = means(*np.round(1000 * np.random.default_rng(1).gamma(4.0, 1.0, 400)).tolist())
    assert 0.02 < skewness(some) < 0.1
    assert why_not_shifted(some) is None
    assert "skewed" in (why_not_shifted(some, alpha=1e-4) or "")


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.9])
def test_levels_above_a_half_have_the_limit_of_95_percent(alpha: float) -> None:
    """Regression: the normal quantile of a one-sided level of 0.5 is 0, by which the limit was divided."""
    skewed, even = means(*[1] * 80, *[5] * 20), means(*[1, -1] * 6)
    assert "the limit is 0.1" in (why_not_shifted(skewed, alpha=alpha, alternative="greater") or "")
    assert why_not_shifted(even, alpha=alpha, alternative="greater") is None


def squares_table(errors: np.ndarray) -> tuple[np.ndarray, np.ndarray, Any, np.ndarray]:
    """Return the squared errors of two runs, in hundredths, and the difference of their RMSE."""
    observed = np.rint(100.0 * errors).astype(np.int64).T ** 2
    return observed, observed[:, ::-1], rmse(len(observed)), np.ones(len(observed), dtype=np.int64)


def test_score_intervals_of_different_counts_take_light_tails() -> None:
    """Regression: with 5 % failures of size 5, the 5 % bound for RMSE missed in 20 % of the data sets."""
    rng = np.random.default_rng(4)
    errors = 0.8 * rng.standard_normal((2, 200))
    assert why_not_scored(*squares_table(errors)) is None
    errors[0, :10] *= 5.0
    heavy = why_not_scored(*squares_table(errors))
    assert heavy is not None
    assert heavy.startswith("the 200 examples that differ between the runs weigh as much as ")
    assert heavy.endswith(" equal ones; a score interval of many different counts needs 20")
    # The number grows with the square of the quantile: 20 (2.576 / 1.960)^2.
    assert (why_not_scored(*squares_table(errors), alpha=0.01) or "").endswith("needs 35")


def test_influences_count_as_much_as_swaps() -> None:
    """An example on which both runs fail alike has most of the variance; swapping it changes nothing."""
    errors = np.random.default_rng(0).uniform(0.5, 1.0, (2, 200)) * [[1.0], [1.3]]
    assert why_not_scored(*squares_table(errors)) is None
    errors[:, 0] = 6.0
    table = squares_table(errors)
    assert effective_number(*swap_effects(*table)) > 60.0
    assert "weigh as much as" in (why_not_scored(*table) or "")


def test_skewness_is_that_of_the_differences() -> None:
    from scipy.stats import skew

    values = [1, 2, 2, 3, 9, 40]
    assert skewness(means(*values)) == pytest.approx(float(skew(values)) / math.sqrt(6))
    # rows of two examples that differ by their mean twice have no part in it
    weighted = AdditiveScores(np.array([4, 1]), np.array([2, 1]), np.array([5, 5]), Fraction(1))
    assert skewness(weighted) == pytest.approx(0.0, abs=1e-12)


def poisson_ends(x: int, y: int, levels: np.ndarray) -> np.ndarray:
    """BCa's ends for x - y where x examples speak for one run and y for the other, of very many."""
    reach = int(x + y + 12 * math.sqrt(x + y) + 20)
    laws = [poisson.pmf(np.arange(reach), n) if n else np.eye(1, reach)[0] for n in (x, y)]
    mass = np.convolve(laws[0], laws[1][::-1])
    values = np.arange(1 - reach, reach)
    cumulated = np.cumsum(mass)
    # A sample whose bias correction and acceleration are those of the law.
    resampled = np.repeat(values, np.rint(4000 * mass).astype(int)).astype(np.float64)
    without = np.array([x - y - 1.0, x - y + 1.0, float(x - y)])
    kinds = np.array([x, y, 10**6])
    ends = []
    for level in levels:
        low, high = bca_levels(resampled, float(x - y), without[kinds > 0], kinds[kinds > 0], float(level))
        places = [min(int(np.searchsorted(cumulated, q)), values.size - 1) for q in (low, high)]
        ends.append([int(values[place]) for place in places])
    return np.array(ends)


@pytest.mark.parametrize(("level", "least"), [(0.025, 20), (0.0005, 74)])
def test_far_ends_take_more_examples(level: float, least: int) -> None:
    """Probability that an end is missed, over its level, where x and y are Poisson with equal means."""
    ratios = {}
    for mean in (least / 3.0, 1.25 * least):
        missed = 0.0
        reach = np.arange(int(mean / 2 + 6 * math.sqrt(mean) + 8))
        weights = np.outer(*[poisson.pmf(reach, mean / 2.0)] * 2)
        for x, y in itertools.product(reach.tolist(), repeat=2):
            if weights[x, y] > 1e-3 * level and x + y > 0:
                missed += weights[x, y] * (poisson_ends(x, y, np.array([level]))[0, 0] > 0)
        ratios[mean] = missed / level
    assert ratios[1.25 * least] < 1.3, ratios


# By simulation.


@pytest.mark.slow
@pytest.mark.generated
@pytest.mark.parametrize(
    "name",  # with every change one rational function of the sums, and one with a root
    [
        name if name in ("f1", "mcc") else pytest.param(name, marks=pytest.mark.nightly)
        for name in ("f1", "precision", "recall", "mcc", "jaccard", "balanced_accuracy")
    ],
)
def test_coverage_of_shown_intervals_of_ratios(name: str, measured: Measured) -> None:
    """And one-sided errors, which equivalence at the margin has, are near their level."""
    simulation, rng, n_sets = Simulation(name), np.random.default_rng(1), cases(40)
    ruled, raw, n_shown = np.zeros(2), [], 0
    for population in [each for each in populations(2) if each.n >= 200][::3]:
        truth, covered, shown = simulation.truth(population), 0, 0
        missed, unruled = np.zeros(2), np.zeros(2)
        for drawn in rng.multinomial(population.n, population.law, n_sets):
            there = drawn > 0
            observed, swapped = (side[there] for side in simulation.rows(drawn))
            h, counts = simulation.statistic.h, drawn[there]
            try:
                ends = [
                    bootstrap_interval(observed, h, multiplicities=counts, alpha=alpha, n_resamples=1000)
                    for alpha in (0.05, 0.1)
                ]
            except UndefinedStatisticError:  # resamples without a positive
                continue
            misses = [ends[1].low > truth + 1e-12, ends[1].high < truth - 1e-12]
            unruled += misses
            if why_not_resampled(observed, swapped, h, counts) is None:
                missed, shown, covered = missed + misses, shown + 1, covered + (truth in ends[0])
        about = f"{name}, {population.title}: 95 % covers {covered} of {shown}, 5 % bounds miss {missed}"
        measured(f"{about}, without the rule {unruled} of {n_sets}")
        if shown >= 0.2 * n_sets:
            assert covered >= binom.ppf(1e-4, shown, 0.92), about
        # 8 % at the most of a law, by these few sets
        assert missed.max() <= binom.ppf(1.0 - 1e-4, n_sets, 0.08), about
        raw.append(unruled.max() / n_sets)
        ruled, n_shown = ruled + missed, n_shown + shown
    assert n_shown > 3 * n_sets
    assert max(raw) > 0.2, "without the rule some bounds miss far more often"
    assert ruled.max() <= binom.ppf(1.0 - 1e-3, n_shown, 0.06)


@pytest.mark.slow
@pytest.mark.generated
@pytest.mark.parametrize(
    ("name", "law", "n"),
    [
        ("RMSE", "5 % failures of size 5", 50),
        ("RMSE", "sizes of errors lognormal", 200),
        ("RMSE", "normal errors, .7 and .8", 200),
        ("Pearson", "values t of 3 degrees of freedom", 200),
        ("Pearson", "5 % failures of size 5", 50),
        ("pooled F1", "different sizes, 5 % failures", 50),
    ],
)
def test_coverage_of_shown_score_intervals_of_numbers(
    name: str, law: str, n: int, measured: Measured
) -> None:
    n_sets = cases(300)
    ruled, unruled, shown = simulated(name, law, n, n_sets, 3)
    measured(
        f"{name}, {law}, N = {n}: shown {shown:.2f}, a 5 % bound misses {ruled.one_sided:.3f}, 95 % misses"
        f" {ruled.missed:.3f}, without the rule {unruled.one_sided:.3f}"
    )
    assert ruled.one_sided <= binom.ppf(1.0 - 1e-3, n_sets, 0.065) / n_sets
    assert ruled.missed <= binom.ppf(1.0 - 1e-3, n_sets, 0.06) / n_sets
    if law.startswith("normal"):
        assert shown > 0.5
    elif n == 50:
        assert unruled.one_sided > 0.08, "without the rule bounds miss more often"


def mean_laws(rng: np.random.Generator) -> Iterator[tuple[str, float, Any]]:
    def rarely(share: float, draw: Any) -> Any:
        return lambda shape: draw(shape) * (rng.random(shape) < share)

    yield "normal", 0.0, lambda shape: rng.normal(0.0, 1.0, shape)
    yield "exponential", 1.0, lambda shape: rng.exponential(1.0, shape)
    yield "lognormal", math.exp(0.5), lambda shape: rng.lognormal(0.0, 1.0, shape)
    yield (
        "one in five, most of them up",
        0.12,
        rarely(0.2, lambda s: np.where(rng.random(s) < 0.8, 1.0, -1.0)),
    )
    yield (
        "one in ten, of one to five",
        0.06,
        rarely(0.1, lambda s: np.where(rng.random(s) < 0.6, 1.0, -1.0) * rng.integers(1, 6, s)),
    )
    yield "one in twenty, normal", 0.0, rarely(0.05, lambda s: rng.normal(0.0, 1.0, s))


@pytest.mark.slow
@pytest.mark.generated
def test_coverage_of_shown_shift_intervals_of_skewed_means(
    measured: Measured,
) -> None:
    """A bound misses the mean where the sign-flip test of the differences without it rejects.

    The test is taken by its normal approximation with the fourth cumulant, which is close from 12 on.
    """
    rng, n_sets, lines = np.random.default_rng(2), cases(2000), []
    raw, ruled = [], []
    for (name, mean, draw), n in itertools.product(mean_laws(rng), (20, 50, 200, 1000)):
        differences = np.round(1000.0 * draw((n_sets, n)))
        rest = differences - 1000.0 * mean
        squares = np.maximum((rest**2).sum(axis=1), 1e-9)
        z = 1.6449
        critical = z - (z**3 - 3.0 * z) * (rest**4).sum(axis=1) / squares**2 / 12.0
        score = rest.sum(axis=1) / np.sqrt(squares)
        shown = np.array(
            [why_not_shifted(means(*row), alpha=0.1) is None for row in differences[: cases(400)]]
        )
        missed = [(side * score > critical)[: shown.size] for side in (1.0, -1.0)]
        raw.append(max(float((side * score > critical).mean()) for side in (1.0, -1.0)))
        ruled.append(max(int((shown & each).sum()) for each in missed))
        lines.append(
            f"{name}, N = {n}: shown {shown.mean():.2f}, a 5 % bound misses {ruled[-1] / shown.size:.3f},"
            f" without the rule {raw[-1]:.3f}"
        )
        assert ruled[-1] <= binom.ppf(1.0 - 1e-3, shown.size, 0.07), lines[-1]
    measured(*lines)
    assert max(raw) > 0.15, "without the rule some bounds miss far more often"


def test_the_rule_decides_which_intervals_are_shown() -> None:
    """The rule is about the same statistic that the interval is."""
    observed, swapped, counts = f1_rows(tp_tp=60, tp_fn=12, fn_tp=12, tn_tn=200)
    assert why_not_resampled(observed, swapped, F1, counts) is None
    interval = bootstrap_interval(observed, F1, multiplicities=counts)
    assert interval.method == "bootstrap BCa"
    assert 0.0 in interval


def _calibration(seed: int, gaps: tuple[float, float], n: int = 300) -> list[pl.DataFrame]:
    """Two runs whose probability of being right is less than their confidence by these gaps."""
    rng = np.random.default_rng(seed)
    label, confidence = rng.integers(0, 2, n), rng.uniform(0.5, 1.0, n).round(3)
    return [
        pl.DataFrame(
            {
                "id": range(n),
                "label": label,
                "prediction": np.where(rng.random(n) < confidence - gap, label, 1 - label),
                "confidence": confidence,
            }
        )
        for gap in gaps
    ]


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(6))
def test_no_interval_near_a_bend_of_the_statistic(seed: int) -> None:
    """Regression: +0.027 to +0.95 for a difference of 0.055 in calibration error denied equivalence."""
    found = trackperm.compare(*_calibration(seed, (0.0, 0.02)), "ece", margin=0.2)
    assert found.interval is None
    assert "an absolute value in the statistic is near 0" in str(found.interval_unavailable)
    assert all(
        trackperm.compare(*_calibration(seed, (0.0, 0.02)), "ece", interval=choice).interval is None
        for choice in ("score", "bootstrap")
    )


@pytest.mark.nightly
def test_intervals_away_from_bends_have_their_coverage() -> None:
    """With gaps of 0.2 and 0.3 in every bin, the difference in calibration error is 0.1."""
    found = [trackperm.compare(*_calibration(seed, (0.2, 0.3)), "ece").interval for seed in range(100)]
    shown = [each for each in found if each is not None]
    assert len(shown) >= 80
    assert sum(0.1 not in each for each in shown) <= 12
