"""Pairs of a leaderboard agree with `trackperm.compare`, for any order of runs."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.budget import cases
from support.comparisons import numbered

import trackperm
from trackperm.leaderboards import Leaderboard

STRATIFIED = """
name: stratified_f1
counts:
  tp: (prediction == 1) & (label == 1)
  wrong: (prediction == 1) != (label == 1)
score: tp / (tp + wrong / 2)
undefined: 0
strata: language
"""
LOG_RATIO = """
name: log_error_ratio
counts: {wrong: prediction != label, n: 1}
score: (wrong + 0.5) / (n + 1)
contrast: log ratio
greater_is_better: false
"""
MEAN_OF_TWO = """
name: two_parts
counts: {a: score, b: other, n: 1}
score: a / n + b / (2 * n)
"""
WRONG = """
name: one_minus_errors
greater_is_better: true
counts: {wrong: prediction != label, n: 1}
score: 1 - wrong / n
"""
CLUSTERED = """
name: clustered
counts: {correct: prediction == label, n: 1}
score: correct / n
cluster: document
"""
MACRO = "macro_f1"
MEAN, F1, ACCURACY = "mean", "f1", "accuracy"
SPECS = [STRATIFIED, LOG_RATIO, MEAN_OF_TWO, WRONG, CLUSTERED, MACRO, MEAN, F1, ACCURACY]
DECIMALS = st.sampled_from(["tenths", "thirds", "floats", "integers", "mixed", "wide"])


def scores(rng: np.random.Generator, kind: str, n: int) -> np.ndarray:
    match kind:
        case "tenths":
            return rng.integers(0, 11, n) / 10
        case "thirds":
            return rng.integers(0, 4, n) / 3
        case "floats":
            return rng.random(n)
        case "integers":
            return rng.integers(-3, 4, n)
        case "wide":
            return np.exp(rng.normal(0, 3, n))
        case _:
            return rng.integers(0, 3, n) * 0.1 + rng.choice([0.0, 0.25], n)


@st.composite
def fields(draw: st.DrawFn) -> dict[str, pl.DataFrame]:
    n, k = draw(st.integers(6, 40)), draw(st.integers(2, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    label = rng.integers(0, 2, n)
    label[:2] = 0, 1
    shared = {
        "id": np.arange(n),
        "label": label,
        "language": rng.choice(["de", "en"], n),
        "document": rng.integers(0, max(2, n // 3), n),
    }
    runs = {}
    same, kind = scores(rng, draw(DECIMALS), n), draw(st.sampled_from([0.0, 0.5, 0.8]))
    for i in range(k):
        right = rng.random(n) < rng.choice([0.5, 0.8, 0.95])
        columns = shared | {"prediction": np.where(right, label, 1 - label)}
        own = scores(rng, draw(DECIMALS), n)
        columns |= {
            "score": np.where(rng.random(n) < kind, same, own),
            "other": scores(rng, "integers", n),
        }
        runs[f"run{i}"] = pl.DataFrame(columns).sample(fraction=1.0, shuffle=True, seed=i)
    if draw(st.booleans()):
        runs["copy"] = runs["run0"]
    return runs


def statistic(tmp: Path, spec: str) -> str:
    if "\n" not in spec:
        return spec
    path = tmp / "spec.yaml"
    path.write_text(spec)
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("specs")


def test_scores_with_many_digits_agree_with_compare():
    """The sums exceed 64 bits."""
    rng = np.random.default_rng(0)
    runs = {name: pl.DataFrame({"id": range(2000), "score": rng.random(2000)}) for name in "ab"}
    (pair,) = trackperm.leaderboard(runs, "mean").pairs
    assert trackperm.compare(runs["a"], runs["b"], "mean").pvalue == pytest.approx(pair.test.pvalue, rel=1e-9)


def test_labels_of_a_single_run_are_not_in_the_test_set():
    rng = np.random.default_rng(0)
    runs = {name: pl.DataFrame({"id": range(100), "score": rng.integers(0, 5, 100)}) for name in "abc"}
    runs["a"] = runs["a"].with_columns(label=pl.col("score"))
    expected = trackperm.compare(runs["a"], runs["b"], "mean").pairing.test_set
    for baseline in (None, "a", "b"):
        assert trackperm.leaderboard(runs, "mean", baseline=baseline).test_set == expected


@pytest.mark.parametrize("column", ["label", "input"])
def test_a_pair_with_all_examples_has_the_test_set_of_its_leaderboard(column: str):
    """Regression: the set was that of the baseline, so that pairs were first looks again."""
    rng = np.random.default_rng(0)
    whole = pl.DataFrame(
        {"id": range(60), "score": rng.integers(0, 5, 60), column: [f"x{i}" for i in range(60)]}
    )
    runs = {"old": whole.head(40), "new": whole, "few": whole.tail(30)}
    columns = {"label": column} if column == "label" else {}
    expected = {
        trackperm.compare(runs[a], runs[b], "mean", missing="drop", columns=columns).pairing.test_set
        for a, b in (("old", "new"), ("new", "few"), ("few", "old"))
    }
    found = {
        trackperm.leaderboard(some, "mean", missing="drop", baseline=baseline, columns=columns).test_set
        for some in (runs, dict(reversed(runs.items())))
        for baseline in (None, *runs)
    }
    assert found == expected
    assert len(found) == 1


@pytest.mark.sample(4)
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.strip().splitlines()[0])
@given(runs=fields())
@settings(max_examples=cases(2), deadline=None)
def test_pairs_agree_with_compare(folder: Path, spec: str, runs: dict[str, pl.DataFrame]):
    name = statistic(folder, spec)
    board = trackperm.leaderboard(runs, name, intervals=False)
    assert len(board.pairs) == len(runs) * (len(runs) - 1) // 2
    for first, second in combinations(runs, 2):
        pair = board.pair(first, second)
        names = board.rows[pair.baseline].name, board.rows[pair.candidate].name
        comparison = trackperm.compare(runs[names[0]], runs[names[1]], name)
        test = comparison.test
        assert pair.test.log10_pvalue == pytest.approx(test.log10_pvalue, abs=1e-9)
        assert pair.test.pvalue == pytest.approx(test.pvalue, rel=1e-9)
        assert pair.test.interval == pytest.approx(test.interval, rel=1e-9)
        assert pair.difference == pytest.approx(comparison.difference, rel=1e-12, abs=1e-15)
        assert pair.test.n_examples == test.n_examples
        assert (pair.test.n_discordant == 0) == (comparison.n_discordant == 0)
        for place, score in (
            (pair.baseline, comparison.baseline_score),
            (pair.candidate, comparison.candidate_score),
        ):
            assert board.rows[place].score == pytest.approx(score, rel=1e-12)


def agree(runs: dict[str, pl.DataFrame], name: str, **options: Any) -> Leaderboard:
    """Require that the pairs of a leaderboard have the p-values, differences and scores of comparisons."""
    board = trackperm.leaderboard(runs, name, **options)
    for pair in board.pairs:
        baseline, candidate = (board.rows[i] for i in (pair.baseline, pair.candidate))
        found = trackperm.compare(runs[baseline.name], runs[candidate.name], name, **options)
        assert pair.test.pvalue == pytest.approx(found.pvalue, rel=1e-9)
        assert pair.test.n_discordant == found.n_discordant
        assert pair.difference == pytest.approx(found.difference, rel=1e-9)
        assert (baseline.score, candidate.score) == pytest.approx(
            (found.baseline_score, found.candidate_score), rel=1e-9
        )
        assert board.n_examples == found.n_examples
    return board


@pytest.mark.extended
def test_numbers_of_other_sizes_tie_as_in_a_comparison():
    """Regression: numbers that are equal in two runs were rounded to units of their pairs with a third one.

    A leaderboard found 38 discordant examples and p = 0.00075 where a comparison finds 5, and 0.0625.
    """
    rng, n = np.random.default_rng(79), 40
    base = np.exp(-5 * rng.random(n))
    old, new = base.copy(), base.copy()
    old[0], new[0] = 40.3, 0.1 + rng.random()
    new[1:5] = old[1:5]
    old[1:5] += rng.random(4)
    scores = {"0": np.exp(-5 * rng.random(n)), "a": old, "b": new}
    runs = {name: pl.DataFrame({"id": range(n), "score": each}) for name, each in scores.items()}
    assert agree(runs, "mean").pair("a", "b").test.n_discordant == 5
    losses = {name: np.exp(-each) for name, each in scores.items()}
    runs = {
        name: pl.DataFrame({"id": range(n), "label": [1, 0] * (n // 2), "probability": each})
        for name, each in losses.items()
    }
    assert agree(runs, "log_loss").pair("a", "b").test.n_discordant == 5
    clusters = {name: run.with_columns(document=pl.arange(n) // 2) for name, run in runs.items()}
    agree(clusters, "log_loss", cluster="document")


def test_averages_of_rounded_scores_are_not_rounded_again():
    """Regression: with a resolution, averages of rows were rounded to it once more."""
    rng = np.random.default_rng(0)
    runs = {name: pl.DataFrame({"id": np.arange(60) // 3, "score": rng.random(60)}) for name in "abc"}
    agree(runs, "mean", resolution=0.25, repeats="mean")


@pytest.mark.extended
def test_units_of_classes_are_those_of_each_pair():
    """Regression: confidences of a third run were rounded to the unit of the first pair."""
    rng, n = np.random.default_rng(5), 80
    label = rng.integers(0, 2, n)
    confidences = {
        "a": rng.choice([0.5, 1.0], n),
        "b": rng.choice([0.5, 1.0], n),
        "c": 0.5 + rng.random(n) / 2,
    }
    runs = {
        name: numbered(
            label=label, prediction=np.where(rng.random(n) < 0.3, 1 - label, label), confidence=each
        )
        for name, each in confidences.items()
    }
    agree(runs, "ece")


@pytest.mark.extended
def test_positions_pair_classes_too():
    """Regression: classes were paired by ids where `by_position` was asked for."""
    rng, n = np.random.default_rng(3), 60
    label = np.sort(rng.integers(0, 3, n))
    runs = {
        name: pl.DataFrame(
            {
                "id": np.concatenate([rng.permutation(np.flatnonzero(label == c)) for c in range(3)]),
                "label": label,
                "prediction": np.where(rng.random(n) < rate, rng.integers(0, 3, n), label),
            }
        )
        for name, rate in (("a", 0.2), ("b", 0.4), ("c", 0.7))
    }
    agree(runs, "multiclass_mcc", by_position=True)


def test_strata_that_only_dropped_examples_have_do_not_count():
    """Regression: such a stratum made all scores undefined, or wrong."""
    rng, label = np.random.default_rng(0), np.array(["x", "y"] * 19 + ["rare", "rare"])
    runs = {
        name: numbered(label=label, prediction=np.where(rng.random(40) < rate, "x", label)).head(n)
        for name, rate, n in (("a", 0.2, 40), ("b", 0.6, 38))
    }
    agree(runs, "balanced_accuracy", missing="drop")


def test_clusters_of_rank_statistics_are_what_is_counted():
    """Regression: a leaderboard said 24 examples, where a comparison says 6 clusters."""
    rng, label = np.random.default_rng(0), np.random.default_rng(1).random(24)
    runs = {
        name: numbered(doc=np.arange(24) // 4, label=label, score=label + rng.normal(0, 0.3, 24))
        for name in "ab"
    }
    assert agree(runs, "spearman", cluster="doc").n_examples == 6


@pytest.mark.sample(2)
@pytest.mark.parametrize("spec", [ACCURACY, MEAN, F1, STRATIFIED], ids=["accuracy", "mean", "f1", "strata"])
@given(runs=fields(), data=st.data())
@settings(max_examples=cases(2), deadline=None)
def test_the_order_of_runs_changes_nothing(folder: Path, spec: str, runs: dict[str, pl.DataFrame], data):
    name = statistic(folder, spec)
    order = data.draw(st.permutations(list(runs)))
    shuffled = {key: runs[key].reverse() for key in order}
    first, second = (trackperm.leaderboard(each, name, intervals=False) for each in (runs, shuffled))
    assert without_notes(first) == without_notes(second)
    assert first.key == second.key


def without_notes(board: Leaderboard) -> dict:
    return {name: value for name, value in board.to_dict().items() if name != "notes"}


@pytest.mark.sample(3)
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("spec", [ACCURACY, WRONG, LOG_RATIO], ids=["sum", "negative slope", "ratio"])
def test_a_family_of_one_is_a_comparison(tmp_path: Path, spec: str, alternative: str):
    rng = np.random.default_rng(3)
    label = rng.integers(0, 2, 60)
    runs = {
        name: numbered(label=label, prediction=np.where(rng.random(60) < p, label, 1 - label))
        for name, p in (("old", 0.6), ("new", 0.9))
    }
    name = statistic(tmp_path, spec)
    for baseline, candidate in (("old", "new"), ("new", "old")):
        board = trackperm.leaderboard(runs, name, baseline=baseline, alternative=alternative)
        comparison = trackperm.compare(runs[baseline], runs[candidate], name, alternative=alternative)
        (pair,) = board.pairs
        assert pair.verdict == comparison.verdict
        assert pair.adjusted == pytest.approx(comparison.pvalue, rel=1e-9)
        assert board.rows[pair.candidate].name == candidate
        assert (pair.test.n_better, pair.test.n_worse) == (
            comparison.test.n_better,
            comparison.test.n_worse,
        )
