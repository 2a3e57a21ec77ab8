"""Score intervals: against other programs, at limits, and by simulation."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize
from scipy.stats import binom
from support.budget import Measured, cases
from support.cases import F1

import trackperm
from trackperm.comparison.effect import interval_of as difference_interval
from trackperm.exact import RationalStatistic
from trackperm.exact.intervals import Interval, score, score_interval, why_not_scored
from trackperm.pairing.pair import pair
from trackperm.statistic import load_statistic
from trackperm.tables import ExampleTable

Z = 1.959963984540054
TP, INCORRECT, TN = (1, 0), (0, 1), (0, 0)
KINDS = np.array(list(itertools.product((0, 1), repeat=3)))
"""Label, and whether the candidate and the baseline err."""


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


def test_callables_have_the_interval_of_their_formula() -> None:
    table = f1_rows({(TP, TP): 20, (TP, INCORRECT): 9, (INCORRECT, TP): 3, (TN, TN): 60, (TN, INCORRECT): 6})

    def h(x: np.ndarray) -> np.ndarray:
        return x[..., 0] / (x[..., 0] + x[..., 1] / 2) - x[..., 2] / (x[..., 2] + x[..., 3] / 2)

    found, formula = score_interval(table[0], table[1], h, table[2]), interval_of(*table)
    assert isinstance(found, Interval)
    assert (found.low, found.high) == pytest.approx((formula.low, formula.high), abs=1e-6)


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


# By simulation.


def law_of(
    positives: float, rates: tuple[float, float], baseline: tuple[float, float], concordance: float
) -> np.ndarray:
    """Probabilities of `KINDS`; `rates` are how often the candidate errs on negatives and on positives."""
    law = np.zeros((2, 2, 2))
    for label, share in ((1, positives), (0, 1.0 - positives)):
        u, v = min(rates[label], 1.0), min(baseline[label], 1.0)
        both = u * v + concordance * (min(u, v) - u * v)
        law[label] = share * np.array([[1.0 - u - v + both, v - both], [u - both, both]])
    return law.ravel()


def f1_law(positives: float, scores: tuple[float, float], concordance: float) -> np.ndarray:
    """The same for runs with these F1, precision equal to recall."""
    rates = [((1.0 - f) * positives / (1.0 - positives), 1.0 - f) for f in scores]
    return law_of(positives, rates[0], rates[1], concordance)


F1_LAWS = [
    (f"F1 {f[0]} and {f[1]}, {p:.0%} positives, alike {c}, N = {n}", f1_law(p, f, c), n)
    for p, f, c, n in (
        *((0.05, (0.5, 0.5), 0.0, n) for n in (20, 100, 1000)),
        *((0.05, (0.75, 0.65), 0.5, n) for n in (50, 200)),
        *((0.1, (0.6, 0.5), 0.0, n) for n in (50, 200, 1000)),
        *((0.3, (0.95, 0.93), 0.5, n) for n in (20, 50, 200)),
        *((0.3, (0.99, 0.98), 0.9, n) for n in (50, 1000)),
        *((0.3, (0.99, 0.9), 0.5, n) for n in (50, 200)),
    )
]
OTHER_LAWS = [
    (f"errs {r}, {p:.0%} positives, alike {c}, lead {g}, N = {n}", law, n)
    for p, r, c, g, n in (
        (0.3, (0.1, 0.1), 0.0, 0.5, 100),
        (0.3, (0.01, 0.05), 0.7, 0.5, 50),
        (0.3, (0.2, 0.2), 0.7, 0.0, 200),
        (0.05, (0.02, 0.5), 0.0, 0.5, 200),
        (0.05, (0.2, 0.2), 0.7, 0.5, 200),
        (0.05, (0.01, 0.05), 0.0, 0.5, 800),
    )
    for law in [law_of(p, r, (r[0] * (1 + g), r[1] * (1 + g)), c)]
]
LAWS = {
    "f1": F1_LAWS,
    **dict.fromkeys(["precision", "recall", "mcc", "jaccard", "balanced_accuracy"], OTHER_LAWS),
}


@pytest.mark.slow
@pytest.mark.generated
@pytest.mark.parametrize(
    "name",  # with every change one rational function of the sums, and one with a root
    [name if name in ("f1", "mcc") else pytest.param(name, marks=pytest.mark.nightly) for name in LAWS],
)
def test_coverage_and_one_sided_errors(name: str, measured: Measured) -> None:
    """An interval that is not shown counts as one that contains everything."""
    labels = KINDS[:, 0]
    runs = [
        ExampleTable.from_native(
            pl.DataFrame({"id": range(8), "label": labels, "prediction": labels ^ errs}), who
        )
        for who, errs in (("baseline", KINDS[:, 2]), ("candidate", KINDS[:, 1]))
    ]
    found = pair(*runs, load_statistic(name))
    counted = found.by_unit()
    observed, swapped = found.statistic.pairs(counted.candidate, counted.baseline)
    h, rng, n_sets = found.statistic.h, np.random.default_rng(7), cases(75)
    total = np.zeros(3)
    for title, law, n in LAWS[name]:
        sums = (law @ observed)[None]
        truth = float(h.values(sums)[0] if isinstance(h, RationalStatistic) else np.asarray(h(sums)).item())
        missed, shown = np.zeros(3), 0
        for drawn in rng.multinomial(n, law, n_sets):
            there = drawn > 0
            table = observed[there], swapped[there], h, drawn[there]
            if why_not_scored(*table) is not None:
                continue
            ends = [score_interval(*table, alpha=alpha) for alpha in (0.05, 0.1)]
            if not all(isinstance(end, Interval) for end in ends):
                continue
            shown += 1
            wide, narrow = ends
            missed += [truth not in wide, narrow.low > truth + 1e-12, narrow.high < truth - 1e-12]
        shares = missed / n_sets
        measured(f"{name}, {title}: misses {shares[0]:.3f}, a 5 % bound {shares[1]:.3f} and {shares[2]:.3f};"
                 f" shown {shown / n_sets:.2f}")  # fmt: skip
        assert missed[0] <= binom.ppf(1.0 - 1e-3, n_sets, 0.07), title
        assert missed[1:].max() <= binom.ppf(1.0 - 1e-3, n_sets, 0.065), title
        total += shares
    assert (total / len(LAWS[name]) < [0.06, 0.06, 0.06]).all()


@pytest.mark.slow
@pytest.mark.generated
def test_coverage_of_kappa(measured: Measured) -> None:
    """Its counts look up the labels of the data set, so that every data set is counted anew."""
    cells = np.stack([KINDS[:, 0], KINDS[:, 0] ^ KINDS[:, 1], KINDS[:, 0] ^ KINDS[:, 2]])

    def kappa(law: np.ndarray, run: int) -> float:
        agreed = law @ (cells[0] == cells[run])
        by_chance = sum((law @ (cells[0] == c)) * (law @ (cells[run] == c)) for c in (0, 1))
        return float((agreed - by_chance) / (1 - by_chance))

    rng, n_sets = np.random.default_rng(3), cases(50)
    for title, law, n in OTHER_LAWS:
        truth, missed = kappa(law, 1) - kappa(law, 2), np.zeros(3)
        for drawn in rng.multinomial(n, law, n_sets):
            label, candidate, baseline = (np.repeat(row, drawn) for row in cells)
            runs = (
                pl.DataFrame({"id": range(n), "label": label, "prediction": predicted})
                for predicted in (baseline, candidate)
            )
            found = trackperm.compare(*runs, "cohen_kappa")
            ends = [
                difference_interval(found.statistic, found.count_table, alpha=alpha, alternative="two-sided")
                for alpha in (0.05, 0.1)
            ]
            if all(isinstance(end, Interval) for end in ends):
                wide, narrow = ends
                missed += [truth not in wide, narrow.low > truth, narrow.high < truth]
        measured(f"cohen_kappa, {title}: misses {missed / n_sets}")
        assert missed[0] <= binom.ppf(1.0 - 1e-3, n_sets, 0.07), title
        assert missed[1:].max() <= binom.ppf(1.0 - 1e-3, n_sets, 0.065), title
