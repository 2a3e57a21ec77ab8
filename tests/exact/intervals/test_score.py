"""Score intervals: against other programs, at limits, and by simulation."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from exact.intervals.coverages import NAMES, Laws, simulated
from exact.intervals.populations import Simulation, n_classes_of, populations
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize
from scipy.stats import binom
from support.budget import Measured, cases
from support.cases import F1

from trackperm.exact import RationalStatistic, RealStatistic
from trackperm.exact.intervals import Interval, score, score_interval, why_not_scored

Z = 1.959963984540054
TP, INCORRECT, TN = (1, 0), (0, 1), (0, 0)


def f1_rows(counts: dict[tuple[tuple[int, int], tuple[int, int]], int]) -> tuple[np.ndarray, ...]:
    observed = np.array([u + v for u, v in counts])
    return observed, np.array([v + u for u, v in counts]), np.array(list(counts.values()))


def interval_of(*table: np.ndarray, **options: Any) -> Interval:
    found = score_interval(table[0], table[1], F1, table[2], **options)
    assert isinstance(found, Interval), found
    return found


def tango_ends(b: int, c: int, n: int) -> list[float]:
    """Tango (1998): the roots of (b - c - n d)^2 = z^2 n (2 q + d (1 - d)), q the restricted estimate."""

    def excess(d: float) -> float:
        first, last = -b - c + (2 * n - b + c) * d, -c * d * (1 - d)
        q = (math.sqrt(first**2 - 8 * n * last) - first) / (4 * n)
        return abs(b - c - n * d) - Z * math.sqrt(n * (2 * q + d * (1 - d)))

    estimate = (b - c) / n
    return [brentq(excess, estimate, end * (1 - 1e-9), xtol=1e-12) for end in (-1.0, 1.0)]


@pytest.mark.parametrize(("b", "c", "n"), [(12, 2, 50), (1, 1, 20), (30, 12, 200), (5, 1, 40)])
def test_of_paired_proportions_it_is_tangos(b: int, c: int, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score, "PSEUDO_COUNT", 1e-10)
    correct_u, correct_v = (RationalStatistic.variable(i, 2) for i in range(2))
    observed = np.array([[1, 0], [0, 1], [1, 1], [0, 0]])
    counts = np.array([b, c, (n - b - c) // 2, n - b - c - (n - b - c) // 2])
    found = score_interval(observed, observed[:, ::-1].copy(), (correct_u - correct_v) / n, counts)
    assert isinstance(found, Interval)
    assert [found.low, found.high] == pytest.approx(tango_ends(b, c, n), abs=2e-6)


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # of older SciPy
def test_the_law_at_an_end_is_the_most_likely_one() -> None:
    """By a general optimiser: the least divergence from the data among laws with that difference of F1."""
    counts = {(TP, TP): 20, (TP, INCORRECT): 9, (INCORRECT, TP): 3, (INCORRECT, INCORRECT): 8}
    counts |= {(TN, TN): 60, (TN, INCORRECT): 6, (INCORRECT, TN): 4}
    found = interval_of(*f1_rows(counts))
    outcomes = np.array([u + v for u in (TP, INCORRECT, TN) for v in (TP, INCORRECT, TN)], dtype=float)
    masses = np.array([counts.get((u, v), 0) for u in (TP, INCORRECT, TN) for v in (TP, INCORRECT, TN)])
    masses = (masses + 1 / 9) / (masses + 1 / 9).sum()
    n = sum(counts.values())

    def f1(law: np.ndarray) -> float:
        a, b, c, d = law @ outcomes
        return a / (a + b / 2) - c / (c + d / 2)

    observed = float(F1.values((np.array(list(counts.values())) @ f1_rows(counts)[0])[None].astype(float))[0])
    for end in (found.low, found.high):
        fit = minimize(
            lambda law: -masses @ np.log(law),
            masses,
            bounds=[(1e-9, 1)] * 9,
            constraints=[
                {"type": "eq", "fun": lambda law: law.sum() - 1},
                {"type": "eq", "fun": lambda law, end=end: f1(law) - end},
            ],
            options={"ftol": 1e-14, "maxiter": 500},
        )
        law, step = fit.x, 1e-6
        influences = [(f1((1 - step) * law + step * np.eye(9)[k]) - f1(law)) / step for k in range(9)]
        spread = math.sqrt(law @ np.square(influences) / n)
        assert abs(observed - end) == pytest.approx(Z * spread, rel=2e-3)


def bent_table(seed: int) -> tuple[np.ndarray, np.ndarray, RationalStatistic, np.ndarray]:
    """Macro-F1 of 20 examples of three classes with 70, 20 and 10 % of the labels."""
    simulation, shares = Simulation("macro_f1"), np.array([0.7, 0.2, 0.1])
    label, *predictions = simulation.cells.T
    law = shares[label]
    for prediction, right in zip(predictions, (0.5, 0.8), strict=True):
        law = law * ((prediction == label) * right + (1.0 - right) * shares[prediction])
    drawn = np.random.default_rng(seed).multinomial(20, law)
    observed, swapped = simulation.rows(drawn)
    h = simulation.statistic.h
    assert isinstance(h, RationalStatistic)
    return observed[drawn > 0], swapped[drawn > 0], h, drawn[drawn > 0]


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # SLSQP of older SciPy
@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", [76, 0, 21, 64, 176, 206, 220])
def test_ends_of_bent_statistics_are_nested_and_those_of_a_general_optimiser(seed: int) -> None:
    """Regression: full steps to the most likely law oscillate, and ends were -1 or 1."""
    table = bent_table(seed)
    found = [score_interval(*table, alpha=alpha) for alpha in (0.05, 0.1, 0.2)]
    ends = [(each.low, each.high) for each in found if isinstance(each, Interval)]
    assert len(ends) == 3
    for (low, high), (nearer, sooner) in itertools.pairwise(ends):
        assert low < nearer < sooner < high
    laws, n = score.ConstrainedLaws(*score.possible_outcomes(*table[:2], table[3]), table[2]), 20.0
    outcomes = score.possible_outcomes(*table[:2], table[3])[0].astype(float)

    def value_and_influences(law: np.ndarray) -> tuple[float, np.ndarray]:
        mean = law @ outcomes / law.sum()
        moved = [mean + sign * 1e-6 * (outcomes - mean) for sign in (1, -1)]
        up, down = (table[2].values(n * each) for each in moved)
        return float(table[2].values(n * mean[None])[0]), (up - down) / 2e-6

    for end in ends[0]:
        fit = minimize(
            lambda law: -laws.masses @ np.log(law),
            laws.masses,
            jac=lambda law: -laws.masses / law,
            method="SLSQP",
            bounds=[(1e-9, 1)] * len(outcomes),
            constraints=[
                {"type": "eq", "fun": lambda law: law.sum() - 1, "jac": np.ones_like},
                {
                    "type": "eq",
                    "fun": lambda law, end=end: value_and_influences(law)[0] - end,
                    "jac": lambda law: value_and_influences(law)[1],
                },
            ],
            options={"ftol": 1e-13, "maxiter": 500},
        )
        spread = math.sqrt(fit.x @ value_and_influences(fit.x)[1] ** 2 / n)
        assert abs(laws.difference - end) == pytest.approx(Z * spread, rel=1e-3)


def test_parts_of_steps_lead_to_the_laws_of_mixed_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    table = f1_rows({(TP, TP): 20, (TP, INCORRECT): 9, (INCORRECT, TP): 3, (TN, TN): 60, (TN, INCORRECT): 6})
    mixed = interval_of(*table)
    monkeypatch.setattr(score, "MIXED_STEPS", 0)
    assert (interval_of(*table).low, interval_of(*table).high) == pytest.approx(
        (mixed.low, mixed.high), abs=1e-5
    )


def test_an_end_without_fitted_laws_is_not_the_largest_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    table = f1_rows({(TP, TP): 20, (TP, INCORRECT): 9, (INCORRECT, TP): 3, (TN, TN): 60, (TN, INCORRECT): 6})
    monkeypatch.setattr(score, "MIXED_STEPS", 0)
    monkeypatch.setattr(score, "MOST_DESCENTS", 0)
    said = "the search for the most likely law did not converge for differences near an end of the interval"
    assert score_interval(*table[:2], F1, table[2]) == said


def test_ends_are_within_the_range_of_the_statistic() -> None:
    """A run that is right on all positives beside one that is right on none: no difference is above 1."""
    found = interval_of(*f1_rows({(TP, INCORRECT): 8, (TN, TN): 20}))
    assert found.high == pytest.approx(1.0, abs=1e-6)
    assert 0.4 < found.low < 0.9


def test_exchanged_runs_have_the_negated_interval() -> None:
    table = f1_rows({(TP, TP): 20, (TP, INCORRECT): 9, (INCORRECT, TP): 3, (TN, TN): 60, (TN, INCORRECT): 6})
    there, back = interval_of(*table), interval_of(table[1], table[0], table[2])
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low), abs=1e-6)


def test_one_sided_intervals_have_the_ends_of_twice_the_level() -> None:
    table = f1_rows({(TP, TP): 20, (TP, INCORRECT): 9, (INCORRECT, TP): 3, (TN, TN): 60, (TN, INCORRECT): 6})
    both = interval_of(*table, alpha=0.1)
    above, below = (interval_of(*table, alpha=0.05, alternative=side) for side in ("greater", "less"))
    assert (above.low, above.high) == (both.low, math.inf)
    assert (below.low, below.high) == (-math.inf, both.high)
    assert (both.method, both.relation, both.approximate) == ("score", "may disagree", True)


def test_the_bound_of_even_odds_is_the_observed_difference() -> None:
    """Regression: the search for a bound with the normal quantile 0 never ended."""
    table = f1_rows({(TP, TP): 20, (TP, INCORRECT): 9, (INCORRECT, TP): 3, (TN, TN): 60, (TN, INCORRECT): 6})
    above, below = (interval_of(*table, alpha=0.5, alternative=side) for side in ("greater", "less"))
    assert (
        above.low
        == below.high
        == pytest.approx(float(F1.values((table[2] @ table[0])[None].astype(float))[0]))
    )


def test_callables_have_the_interval_of_their_formula() -> None:
    table = f1_rows({(TP, TP): 20, (TP, INCORRECT): 9, (INCORRECT, TP): 3, (TN, TN): 60, (TN, INCORRECT): 6})

    def h(x: np.ndarray) -> np.ndarray:
        return x[..., 0] / (x[..., 0] + x[..., 1] / 2) - x[..., 2] / (x[..., 2] + x[..., 3] / 2)

    found, formula = score_interval(table[0], table[1], h, table[2]), interval_of(*table)
    assert isinstance(found, Interval)
    assert (found.low, found.high) == pytest.approx((formula.low, formula.high), abs=1e-6)


def correlation_table(offset: int) -> tuple[np.ndarray, np.ndarray, RealStatistic, np.ndarray]:
    """Counts of two correlations of the same values, to which a constant is added."""
    rng, n = np.random.default_rng(0), 200
    label = rng.integers(0, 100, n)
    y = label + offset

    def counts(spread: int) -> np.ndarray:
        x = y + rng.integers(-spread, spread + 1, n)
        return np.stack([x, x * x, x * y, y, y * y], axis=1)

    u, v = counts(22), counts(20)
    sums = [RealStatistic.variable(i, 10) for i in range(10)]

    def score(first: int) -> RealStatistic:
        x, xx, xy, y, yy = sums[first : first + 5]
        spread = ((n * xx - x * x) * (n * yy - y * y)).sqrt()
        return (n * xy - x * y).divide(spread, undefined=0)

    return np.hstack([u, v]), np.hstack([v, u]), score(0) - score(5), np.ones(n, dtype=np.int64)


def test_a_constant_added_to_all_values_changes_no_interval_of_a_correlation() -> None:
    near, far = (score_interval(*correlation_table(offset)) for offset in (0, 100_000))
    assert isinstance(near, Interval)
    assert isinstance(far, Interval)
    assert (far.low, far.high) == pytest.approx((near.low, near.high), abs=1e-3 * (near.high - near.low))


@pytest.mark.parametrize("offset", [10**7, 10**8])
def test_cancelled_digits_are_named(offset: int) -> None:
    said = score_interval(*correlation_table(offset))
    assert said == (
        "the statistic is a small difference of large sums, and floats have too few digits for it:"
        " subtract a constant, such as the mean, from the columns"
    )


def test_few_or_no_differing_examples_are_refused() -> None:
    two = f1_rows({(TP, TP): 20, (TP, INCORRECT): 2, (TN, TN): 60})
    said = "only 2 examples differ between the runs; a score interval needs 6"
    assert why_not_scored(two[0], two[1], F1, two[2]) == said
    six = f1_rows({(TP, TP): 20, (TP, INCORRECT): 6, (TN, TN): 60})
    assert why_not_scored(six[0], six[1], F1, six[2]) is None
    assert "needs 17" in (why_not_scored(six[0], six[1], F1, six[2], alpha=0.01) or "")


@settings(max_examples=cases(60), deadline=None)
@given(st.lists(st.integers(0, 30), min_size=7, max_size=7))
def test_the_observed_difference_is_inside(numbers: list[int]) -> None:
    kinds = [(TP, TP), (TP, INCORRECT), (INCORRECT, TP), (INCORRECT, INCORRECT), (TN, INCORRECT)]
    kinds += [(INCORRECT, TN), (TN, TN)]
    counts = {kind: number for kind, number in zip(kinds, numbers, strict=True) if number}
    if sum(counts.values()) < 2:
        return
    table = f1_rows(counts)
    observed = float(F1.values((table[2] @ table[0])[None].astype(float))[0])
    found = score_interval(*table[:2], F1, table[2])
    if isinstance(found, Interval):
        assert -1.0 - 1e-6 <= found.low <= observed + 1e-9
        assert observed - 1e-9 <= found.high <= 1.0 + 1e-6


@pytest.mark.slow
@pytest.mark.generated
@pytest.mark.parametrize(
    "name",  # with every change one rational function of the sums, and one with a root
    [
        name if name in ("f1", "mcc") else pytest.param(name, marks=pytest.mark.nightly)
        for name in (*NAMES, "jaccard", "balanced_accuracy")
    ],
)
def test_coverage_and_one_sided_errors(name: str, measured: Measured) -> None:
    """An interval that is not shown counts as one that contains everything."""
    laws, n_sets, found = Laws(Simulation(name)), cases(300), []
    for population in list(populations(n_classes_of(name)))[1::9]:
        found.append(simulated(laws, population, n_sets, 7))
        measured(f"{name}, {population.title}: {found[-1]}")
        assert n_sets * found[-1].missed <= binom.ppf(1.0 - 1e-3, n_sets, 0.07), population.title
        assert n_sets * found[-1].one_sided <= binom.ppf(1.0 - 1e-3, n_sets, 0.065), population.title
    assert np.mean([[each.missed, each.one_sided] for each in found], axis=0).max() < 0.06
