"""Pairs of a leaderboard agree with `trackperm.compare`, for any order of runs."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

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
DECIMALS = st.sampled_from(["tenths", "thirds", "floats", "integers", "mixed"])


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
    for i in range(k):
        right = rng.random(n) < rng.choice([0.5, 0.8, 0.95])
        columns = shared | {"prediction": np.where(right, label, 1 - label)}
        columns |= {"score": scores(rng, draw(DECIMALS), n), "other": scores(rng, "integers", n)}
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
