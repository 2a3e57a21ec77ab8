"""Verdicts where some examples weigh more than others, and where single examples have no score."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from support.comparisons import numbered

import trackperm
from trackperm.comparison import Comparison
from trackperm.comparison.inference.unseen import unseen_differences
from trackperm.comparison.planning.equivalence_plan import plan_equivalence
from trackperm.statistic import Statistic, read_statistic

SIZES = {"common": 150, "second": 46, "rare": 4}


def of_classes(sizes: dict[str, int], wrong: dict[str, int]) -> list[pl.DataFrame]:
    """Two runs that err on as many other examples of each class; a wrong prediction is another class."""
    names = [*sizes]
    labels = [name for name, n in sizes.items() for _ in range(n)]
    places = [i for n in sizes.values() for i in range(n)]
    runs = []
    for first in (0, 1):
        predictions = [
            names[(names.index(label) == 0) * 1]
            if first * wrong[label] <= i < (first + 1) * wrong[label]
            else label
            for label, i in zip(labels, places, strict=True)
        ]
        runs.append(numbered(label=labels, prediction=predictions))
    return runs


def spec(text: str, *, undefined: bool = False) -> Statistic:
    more = "undefined: 0\n" if undefined else ""
    return read_statistic(f"name: own\ngreater_is_better: true\n{text}{more}", "own.yaml", "own")


RECALLS = spec("counts: {correct: prediction == label, n: 1}\nscore: correct / n\nstrata: label\n")


@pytest.mark.parametrize("choice", ["auto", "bootstrap"])
@pytest.mark.parametrize("statistic", ["balanced_accuracy", "macro_f1", RECALLS])
def test_four_examples_that_agree_show_nothing(statistic: str | Statistic, choice: str) -> None:
    """Regression: equivalent within 0.1, although 4 agreeing examples do not exclude 0.5 of their class."""
    runs = of_classes(SIZES, {"common": 12, "second": 8, "rare": 0})
    found = trackperm.compare(*runs, statistic, margin=0.1, interval=choice)
    assert found.decision.equivalent is None
    assert found.interval_unavailable is not None
    assert found.interval_unavailable.startswith("0 of 4 examples of `rare`, which weigh most, differ")


@pytest.mark.parametrize("statistic", ["balanced_accuracy", "macro_f1", "weighted_f1", RECALLS])
@pytest.mark.parametrize(
    ("sizes", "wrong"),
    [
        (dict.fromkeys("abc", 100), dict.fromkeys("abc", 6)),
        (dict.fromkeys("abcdefghij", 50), dict.fromkeys("abcdefghij", 3)),
        ({"a": 900, "b": 100}, {"a": 50, "b": 6}),
    ],
)
def test_ordinary_classes_have_an_interval(
    statistic: str | Statistic, sizes: dict[str, int], wrong: dict[str, int]
) -> None:
    found = trackperm.compare(*of_classes(sizes, wrong), statistic, margin=0.2)
    assert found.interval is not None
    assert found.decision.equivalent


def test_the_margin_guards_against_unseen_examples_of_a_small_class() -> None:
    """Six common examples for each rare one are enough for an interval, but not for any margin."""
    runs = of_classes({"common": 300, "rare": 60}, {"common": 60, "rare": 1})
    found = trackperm.compare(*runs, "balanced_accuracy", margin=0.2)
    unseen = unseen_differences(found.statistic, found.count_table)
    assert (unseen.widest, unseen.heaviest and unseen.heaviest.n_examples) == (1.0, 60)
    assert found.size.least == unseen.largest(0.05)
    assert unseen.largest(0.05) == pytest.approx(0.5 * (1 - 0.05 ** (1 / 60)), rel=1e-3)
    assert found.size.lack(0.02) == (
        "a difference as large as the range of the scores, 1, on an unseen 4.9 % of the examples of the"
        " stratum `rare` would change the score by 0.02435"
    )


def labelled(n: int = 1000) -> list[pl.DataFrame]:
    rng = np.random.default_rng(0)
    labels = rng.normal(0.0, 3.0, n).round(1)
    return [numbered(label=labels, prediction=(labels + rng.uniform(-1, 1, n)).round(1)) for _ in "ab"]


@pytest.mark.parametrize("margin", [0.002, 0.02, 0.5])
def test_r2_has_the_verdict_of_the_squared_error(margin: float) -> None:
    """R^2 is 1 - mse / variance. Regression: one example has no variance, so that no margin sufficed."""
    runs = labelled()
    variance = float(np.var(runs[0]["label"].to_numpy()))
    r2 = trackperm.compare(*runs, "r2", margin=margin)
    mse = trackperm.compare(*runs, "mse", margin=margin * variance)
    assert r2.decision.equivalent == mse.decision.equivalent
    assert r2.size.least * variance == pytest.approx(mse.size.least)
    needed = [plan_equivalence(size, each).needed for size, each in ((0.02, r2), (0.02 * variance, mse))]
    assert needed[0] == pytest.approx(needed[1], rel=0.01)
    assert needed[0] < 10_000


def by_language(rare: int) -> list[pl.DataFrame]:
    """Two runs with grades from 1 to 5, which agree on all `rare` examples of one of two languages."""
    rng = np.random.default_rng(0)
    grades = rng.integers(2, 5, 300)
    return [
        numbered(
            lang=["en"] * 300 + ["fi"] * rare,
            grade=np.append(grades + rng.integers(-1, 2, 300), [5] * rare),
        )
        for _ in "ab"
    ]


@pytest.mark.parametrize(("rare", "equivalent"), [(10, None), (250, True)])
def test_a_declared_value_of_0_by_0_does_not_matter(rare: int, equivalent: bool | None) -> None:
    """Regression: without it no margin sufficed, and with it a small stratum did not count."""

    def compared(undefined: bool) -> Comparison:
        text = "strata: lang\ncounts: {total: grade, n: 1}\nscore: total / n\n"
        return trackperm.compare(*by_language(rare), spec(text, undefined=undefined), margin=0.2)

    without, declared = map(compared, (False, True))
    assert without.decision.equivalent is declared.decision.equivalent is equivalent
    assert without.size.least == declared.size.least
    assert math.isfinite(without.size.least)


def test_power_of_equivalence_knows_small_strata() -> None:
    """The power is 0 where a margin is below what is unseen, and where the rule would show no interval."""
    sizes, wrong = {"common": 400, "rare": 100}, {"common": 20, "rare": 4}
    found = trackperm.compare(*of_classes(sizes, wrong), "balanced_accuracy", margin=0.01)
    assert found.size.least > 0.01
    assert found.equivalence_power is not None
    assert found.equivalence_power.at_zero == 0.0
    assert plan_equivalence(0.1, found).needed > 100


def test_equal_runs_with_a_single_sum_have_no_interval() -> None:
    """Regression: a single column was taken for the counts of both runs, with an error of shapes."""
    one = read_statistic(
        "name: gain\ngreater_is_better: true\nalternative: greater\ncounts: {correct: prediction == label}\n"
        "g: {d: u.correct - v.correct}\nh: exp(d / 100)\n",
        "gain.yaml",
        "gain",
    )
    run = numbered(prediction=["a", "b", "b"], label=["a", "a", "b"])
    found = trackperm.compare(run, run, one)
    assert (
        found.interval_unavailable
        == "no example differs between the runs, so the size of a difference is unknown"
    )


@pytest.mark.parametrize(("statistic", "largest"), [("mcc", 2.0), ("f1", 1.0), ("balanced_accuracy", 1.0)])
def test_ends_are_differences_that_two_scores_can_have(statistic: str, largest: float) -> None:
    """Regression: an end of 2.0000002 for two correlations."""
    labels = np.array([1, 0] * 10)
    for runs, side in (((1 - labels, labels), 1.0), ((labels, 1 - labels), -1.0)):
        found = trackperm.compare(labels, *runs, statistic=statistic)
        assert found.interval is not None
        assert max(side * found.interval.low, side * found.interval.high) == largest == abs(found.difference)
