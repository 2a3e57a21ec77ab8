"""Errors of numbers and of probabilities, against libraries and all swaps."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn import metrics
from support.engines import each_with_engines
from support.number_scores import Values, mean, r2, root, squared
from support.unit_swaps import example_pvalue

import trackperm
from trackperm.errors import InputError, InputTypeError, SpecError
from trackperm.statistic import read_statistic

NUMBERS = {
    "mse": (mean(squared), metrics.mean_squared_error),
    "mae": (mean(lambda x, y: abs(x - y)), metrics.mean_absolute_error),
    "rmse": (root, metrics.root_mean_squared_error),
    "r2": (r2, metrics.r2_score),
}


def decimals(rng: np.random.Generator, n: int, places: int, *, steps: int) -> np.ndarray:
    """Multiples of 10^-places, of which few are different, so that there are ties."""
    return rng.integers(-steps, steps, size=n, endpoint=True) / 10.0**places


def runs_of(label: Any, *sides: Any, name: str = "prediction") -> list[pl.DataFrame]:
    return [pl.DataFrame({"id": range(len(label)), name: side, "label": label}) for side in sides]


def exact(side: Any, label: Any) -> Values:
    return [(Fraction(repr(float(x))), Fraction(repr(float(y)))) for x, y in zip(side, label, strict=True)]


def expected_pvalue(score: Callable[[Values], Any], label: Any, first: Any, second: Any) -> float:
    slack = Decimal("1e-25") if isinstance(score(exact(first, label)), Decimal) else 0
    found = example_pvalue(
        exact(first, label),
        exact(second, label),
        lambda u, v: score(list(u)) - score(list(v)),
        slack,
    )
    return float(found)


@pytest.mark.sample(4)
@pytest.mark.parametrize("places", [0, 1, 3, 4])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_against_all_swaps_and_scikit_learn(name: str, places: int) -> None:
    score, oracle = NUMBERS[name]
    for seed in range(4):
        rng = np.random.default_rng([seed, places])
        n = int(rng.integers(3, 10))
        label, first, second = (decimals(rng, n, places, steps=3 + 20 * (seed % 2)) for _ in range(3))
        label[:2] = 0.0, 10.0**-places
        found = trackperm.compare(*runs_of(label, first, second), name)
        assert found.baseline_score == pytest.approx(oracle(label, first), rel=1e-12, abs=1e-14)
        assert found.candidate_score == pytest.approx(oracle(label, second), rel=1e-12, abs=1e-14)
        assert found.pvalue == pytest.approx(expected_pvalue(score, label, first, second), rel=1e-12)
        assert found.test.ties == "exact"
        assert not any("rounded" in note for note in found.pairing.notes)


def test_decimals_are_recognised_before_they_are_computed_with() -> None:
    """0.3 - 0.1 is not 0.2 in floats, whose squares differ in the last digits."""
    label = [0.1, 0.3, 1.1, 2.2]
    first, second = [0.3, 0.1, 1.3, 2.0], [0.1, 0.3, 1.1, 2.2]
    assert len({(x - y) ** 2 for x, y in zip(first, label, strict=True)}) > 1
    found = trackperm.compare(*runs_of(label, first, second), "mse")
    assert found.pairing.notes[0] == "`squared_error`: 2 decimals, without rounding"
    assert found.count_table.baseline[:, 0].tolist() == [4]
    assert found.pvalue == 0.125


def test_other_floats_are_computed_in_floats() -> None:
    rng = np.random.default_rng(3)
    label, first, second = rng.normal(size=(3, 9))
    found = trackperm.compare(*runs_of(label, first, second), "mse")
    assert found.pvalue == pytest.approx(expected_pvalue(mean(squared), label, first, second), rel=1e-12)
    assert "multiples of 2**-" in found.pairing.notes[0]


@pytest.mark.extended
@each_with_engines(NUMBERS, "polars", "duckdb")
def test_every_engine_counts_the_same(name: str, engine: Any) -> None:
    rng = np.random.default_rng(4)
    label, first, second = (decimals(rng, 50, 3, steps=2_000) for _ in range(3))
    frames = runs_of(label, first, second)
    found, expected = (trackperm.compare(*frames, name, engine=each) for each in (engine, "polars"))
    assert found.pvalue == expected.pvalue
    assert found.pairing.notes == expected.pairing.notes
    assert (found.count_table.candidate == expected.count_table.candidate).all()


def test_rmse_is_tested_by_the_sum_of_squared_errors() -> None:
    """Its tail is exact where a lattice of the function itself would not fit."""
    rng = np.random.default_rng(5)
    label, first, second = (decimals(rng, 3_000, 3, steps=3_000) for _ in range(3))
    frames = runs_of(label, first, (label + 0.95 * (second - label)).round(3))
    of_root, of_mean = (trackperm.compare(*frames, name) for name in ("rmse", "mse"))
    assert of_root.pvalue == of_mean.pvalue
    assert of_root.method != "monte-carlo"
    assert of_root.difference == pytest.approx(
        math.sqrt(of_mean.candidate_score) - math.sqrt(of_mean.baseline_score)
    )
    law = of_root.test.null_distribution
    assert law.values @ law.mass == pytest.approx(0.0, abs=1e-9)
    assert law.values[law.values >= of_root.difference][0] == pytest.approx(
        of_root.difference, abs=2 * law.value_error_bound + 1e-12
    )


def test_r2_of_equal_labels_is_refused() -> None:
    with pytest.raises(InputError, match=r"undefined|by 0"):
        trackperm.compare(*runs_of([1.0] * 5, [1.0, 2, 3, 4, 5], [2.0, 2, 3, 4, 5]), "r2")


def test_a_missing_number_has_no_error() -> None:
    label, first, second = [1.0, 2.0, 3.0], [1.5, None, 2.0], [1.0, 2.5, 2.5]
    for name in NUMBERS:
        with pytest.raises(InputError, match="does not define the counts of a missing prediction"):
            trackperm.compare(*runs_of(label, first, second), name, missing="wrong")
    found = trackperm.compare(*runs_of(label, first, second), "mae", missing="drop")
    assert (found.baseline_score, found.candidate_score) == (0.75, 0.25)


def probabilities(seed: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    label = rng.integers(2, size=n)
    label[:2] = 0, 1
    first, second = (rng.integers(0, 8, size=n, endpoint=True) / 8 for _ in range(2))
    return label, first, second


@pytest.mark.parametrize("seed", range(4))
def test_brier_against_all_swaps_and_scikit_learn(seed: int) -> None:
    label, first, second = probabilities(seed, 9)
    found = trackperm.compare(*runs_of(label, first, second, name="probability"), "brier")
    assert found.baseline_score == pytest.approx(metrics.brier_score_loss(label, first), abs=1e-15)
    assert found.candidate_score == pytest.approx(metrics.brier_score_loss(label, second), abs=1e-15)
    assert found.pvalue == expected_pvalue(mean(squared), label, first, second)
    missing = runs_of(label, [None, *first[1:]], second, name="probability")
    assert trackperm.compare(*missing, "brier", missing="wrong").baseline_score == pytest.approx(
        (1 + ((first - label)[1:] ** 2).sum()) / 9
    )


@pytest.mark.parametrize("seed", range(4))
def test_log_loss_against_all_swaps_and_scikit_learn(seed: int) -> None:
    label, first, second = probabilities(seed, 9)
    found = trackperm.compare(*runs_of(label, first, second, name="probability"), "log_loss")
    for score, side in ((found.baseline_score, first), (found.candidate_score, second)):
        assert score == pytest.approx(metrics.log_loss(label, side), rel=1e-13)
    losses = [
        -np.log(np.clip(np.where(label == 1, side, 1 - side), 2.0**-52, 1 - 2.0**-52))
        for side in (first, second)
    ]
    unit = found.statistic.resolution["loss"]
    assert unit <= Fraction(1, 2**45)
    rounded = [[round(Fraction(loss) / unit) for loss in side.tolist()] for side in losses]
    expected = example_pvalue(*rounded, lambda u, v: sum(u) - sum(v))
    assert found.pvalue == pytest.approx(float(expected), rel=1e-12)


def test_probabilities_of_a_file_are_numbers(tmp_path: Any) -> None:
    for name, values in (("a", [0.1, 0.9, 0.4]), ("b", [0.2, 0.8, 0.3])):
        lines = [f"{i},{p},{y}" for i, (p, y) in enumerate(zip(values, "nyn", strict=True))]
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,probability,label", *lines]))
    paths = [str(tmp_path / f"{name}.csv") for name in "ab"]
    for name, oracle in (("brier", metrics.brier_score_loss), ("log_loss", metrics.log_loss)):
        found = trackperm.compare(*paths, name, parameters={"positive": "y"})
        assert found.baseline_score == pytest.approx(oracle([0, 1, 0], [0.1, 0.9, 0.4]))


@pytest.mark.parametrize("name", ["brier", "log_loss"])
def test_values_that_are_no_probabilities(name: str) -> None:
    label, first, second = probabilities(0, 9)
    frames = runs_of(label, first, 100 * second, name="probability")
    with pytest.raises(InputError, match=rf"on example \d; `{name}` needs numbers from 0 to 1") as caught:
        trackperm.compare(*frames, name)
    assert "`--column probability=NAME` names another column" in str(caught.value.hint)
    with pytest.raises((InputError, InputTypeError), match="text"):
        trackperm.compare(*runs_of(label, ["a"] * 9, ["b"] * 9, name="probability"), name)


def test_log_loss_counter_refuses_other_numbers() -> None:
    spec = read_statistic("counts: {t: log_loss(p)}\nscore: t\ngreater_is_better: false", "spec", "loss")
    with pytest.raises(InputError, match=r"`p` is 1.5; expected a probability from 0 to 1"):
        trackperm.compare(*runs_of([0, 1], [0.5, 1.5], [0.5, 0.5], name="p"), spec)


@pytest.mark.parametrize(
    ("ranges", "said"),
    [
        ("{b: [0, 1]}", "the counts use no name `b`"),
        ("{a: [0]}", "a range of 1 numbers"),
        ("{a: [1, 0]}", "a range from 1 to 0"),
        ("{a: 1}", "expected two numbers, as in `[0, 1]`"),
        ("{a: [x, 1]}", "`x` is not an exact number"),
    ],
)
def test_refused_ranges(ranges: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_statistic(f"counts: {{a: a}}\nscore: a\nranges: {ranges}", "spec")
    assert said in caught.value.message


def test_leaderboard_of_decimals_agrees_with_comparisons() -> None:
    rng = np.random.default_rng(7)
    label, *sides = (decimals(rng, 30, 2, steps=40) for _ in range(5))
    sides[-1] = rng.normal(size=30)  # no decimals
    runs = dict(zip("abcd", runs_of(label, *sides), strict=True))
    board = trackperm.leaderboard(runs, "rmse")
    for pair in board.pairs:
        sides_of = [runs[board.rows[i].name] for i in (pair.baseline, pair.candidate)]
        assert pair.test.pvalue == pytest.approx(trackperm.compare(*sides_of, "rmse").pvalue, rel=1e-9)


@pytest.mark.parametrize("n", [100, 1000])
def test_correlation_of_numbers_with_all_digits(n: int) -> None:
    """Regression: sums of exact differences passed 2^62, and the test was refused."""
    rng = np.random.default_rng(0)
    label = rng.normal(size=n)
    old, new = label + rng.normal(size=n), label + 0.5 * rng.normal(size=n)
    found = trackperm.compare(label, old, new, statistic="pearson")
    assert found.verdict == "better"
    for score, prediction in ((found.baseline_score, old), (found.candidate_score, new)):
        assert score == pytest.approx(np.corrcoef(label, prediction)[0, 1], abs=1e-9)


NEARLY_EQUAL = pytest.mark.parametrize(
    ("offset", "spread"), [(0.6369616873214543, 0.0), (1e7, 1.0), (1e8, 1.0), (1e9, 1.0)]
)


@NEARLY_EQUAL
def test_nearly_equal_labels_have_no_r2(offset: float, spread: float) -> None:
    """Regression: rounded squares gave R^2 = -1e17 of equal labels, whose deviations are 0."""
    rng = np.random.default_rng(0)
    label = offset + spread * rng.normal(size=100)
    old, new = (label + rng.normal(size=100) for _ in range(2))
    with pytest.raises(InputError, match="leaves fewer than three digits"):
        trackperm.compare(label, old, new, statistic="r2")
    near = label - offset + rng.normal(size=100)
    found = trackperm.compare(near, near + rng.normal(size=100), near, statistic="r2")
    assert found.candidate_score == 1.0


@pytest.mark.sample(3)
@NEARLY_EQUAL
@pytest.mark.parametrize("role", ["label", "prediction"])
def test_nearly_equal_numbers_have_no_correlation(offset: float, spread: float, role: str) -> None:
    """Regression: a correlation of numbers near 1e8 was 0.80, and is 0.77."""
    rng = np.random.default_rng(1)
    label, old, new = (rng.normal(size=100) for _ in range(3))
    narrow = offset + spread * rng.normal(size=100)
    columns = (narrow, old, new) if role == "label" else (label, old, narrow)
    with pytest.raises(InputError, match="leaves fewer than three digits"):
        trackperm.compare(*columns, statistic="pearson")
    scaled = [1e4 + column for column in (label, old, new)]
    found = trackperm.compare(*scaled, statistic="pearson", method="monte-carlo", n_samples=99)
    assert found.candidate_score == pytest.approx(np.corrcoef(label, new)[0, 1], abs=1e-6)


@pytest.mark.parametrize("name", ["r2", "pearson"])
def test_a_leaderboard_leaves_out_runs_that_rounding_decides(name: str) -> None:
    """Regression: a leaderboard printed R^2 = 1.8e20 where `compare` refused."""
    rng = np.random.default_rng(0)
    label = 1.0 + 1e-9 * rng.normal(size=100)
    runs = dict(zip("abc", runs_of(label, *(label + rng.normal(size=(3, 100)))), strict=True))
    with pytest.raises(InputError, match="leaves fewer than three digits") as caught:
        trackperm.leaderboard(runs, name)
    assert len(caught.value.message.split("three digits")) == 4


def test_correlations_of_equal_numbers_are_0() -> None:
    found = trackperm.compare([3, 3, 3, 3], [1, 2, 3, 4], [4, 3, 2, 2], statistic="pearson")
    assert (found.baseline_score, found.candidate_score, found.pvalue) == (0.0, 0.0, 1.0)


@pytest.mark.extended
@pytest.mark.parametrize("name", ["r2", "pearson"])
def test_large_integers_are_exact(name: str) -> None:
    """Times in seconds: squares of integers are exact, those of floats are rounded."""
    rng = np.random.default_rng(0)
    label = 1_700_000_000 + rng.integers(0, 1000, size=40)
    old, new = (label + rng.integers(-500, 500, size=40) for _ in range(2))
    found, moved = (
        trackperm.compare(label - c, old - c, new - c, statistic=name, n_samples=99)
        for c in (0, 1_700_000_000)
    )
    assert found.candidate_score == pytest.approx(moved.candidate_score, rel=1e-12)
    with pytest.raises(InputError, match="leaves fewer than three digits"):
        trackperm.compare(label + 0.5, old + 0.25, new, statistic=name)


@pytest.mark.parametrize("name", ["mse", "r2", "pearson"])
def test_the_hint_about_integers_whose_squares_are_too_large_can_be_followed(name: str) -> None:
    """Regression: it said that counts must be below 2^62, and no option makes them so."""
    rng = np.random.default_rng(0)
    label = rng.integers(10**9, 6 * 10**10, size=30)
    old, new = ((label * rng.normal(1, spread, 30)).astype(np.int64) for spread in (0.1, 0.05))
    with pytest.raises(InputError, match="beyond 64 bits") as caught:
        trackperm.compare(label, old, new, statistic=name)
    assert "Divide `prediction`, `label` by 100,000 in both runs" in str(caught.value.hint)
    found = trackperm.compare(label / 1e5, old / 1e5, new / 1e5, statistic=name, n_samples=99)
    small = trackperm.compare(label // 10**5, old // 10**5, new // 10**5, statistic=name, n_samples=99)
    assert found.candidate_score == pytest.approx(small.candidate_score, rel=1e-3)


@pytest.mark.parametrize("label", [[0, 0, 0], [1.5, 1.5, 1.5]])
def test_r2_of_equal_labels_says_so(label: list[float]) -> None:
    run = pl.DataFrame({"id": range(3), "label": label, "prediction": [0.5, 0.7, 0.2]})
    with pytest.raises(InputError, match="`r2` is undefined: all labels of the examples are equal"):
        trackperm.compare(run, run.with_columns(pl.col("prediction") / 2), "r2")
