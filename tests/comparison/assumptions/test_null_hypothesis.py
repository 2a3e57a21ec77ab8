"""Null hypotheses in words, and remarks on data where p can be small although scores are equal."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from support.budget import Measured, cases
from support.comparisons import accuracy, numbered
from support.specs import load

import trackperm
from trackperm import report
from trackperm.comparison import Comparison
from trackperm.report import description, phrases, text
from trackperm.report.formatting import escape_markdown

SHARE = "counts: {correct: prediction == label, n: 1}\nscore: correct / n\n"


def predictions(share: float, right: float, seed: int, n: int = 600) -> pl.DataFrame:
    """A run that predicts a share of examples positive; `right` of these are, whatever others predict."""
    label = np.random.default_rng(0).random(n) < 0.5
    rng = np.random.default_rng(seed)
    odds = np.where(label, 2.0 * share * right, 2.0 * share * (1.0 - right))
    flagged = rng.random(n) < odds
    return pl.DataFrame({"id": range(n), "label": label.astype(int), "prediction": flagged.astype(int)})


def mean_of(differences: object) -> Comparison:
    candidate = (10.0 + np.asarray(differences, dtype=float)).round(3)
    return trackperm.compare(numbered(score=[10.0] * candidate.size), numbered(score=candidate), "mean")


# --- the null hypothesis -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "null"),
    [
        ("", "outputs are exchangeable on every example"),
        ("repeats: sum", "outputs are exchangeable on every example, all of its rows together"),
        ("cluster: doc", "outputs are exchangeable on all examples with the same `passage` together"),
    ],
)
def test_every_output_states_it_in_one_sentence(tmp_path: Path, line: str, null: str):
    spec = load(tmp_path, f"{SHARE}{line}\n", columns={"doc": "passage"} if "doc" in line else {})
    rows = {"id": [f"q{i // (2 if 'repeats' in line else 1)}" for i in range(12)]}
    rows |= {"passage": [f"p{i // 3}" for i in range(12)], "label": [1] * 12}
    comparison = trackperm.compare(*(pl.DataFrame({**rows, "prediction": [x] * 12}) for x in (0, 1)), spec)
    assert comparison.null_hypothesis == null
    assert text.lines(comparison)[2] == f"scope: {phrases.SCOPE}; null: {null}"
    assert json.loads(comparison.to_json())["null_hypothesis"] == null
    page = report.html(comparison)
    assert f"Scope: {phrases.SCOPE}; null: {null}." in page
    assert f"The null hypothesis is that {null}: " in page
    assert escape_markdown(f"The null hypothesis is that {null}: ") in description.markdown(comparison)


# --- ratios -------------------------------------------------------------------------------------------


def test_precision_of_runs_that_predict_far_more_positive():
    comparison = trackperm.compare(predictions(0.5, 0.5, 1), predictions(0.1, 0.75, 2), "precision")
    assert comparison.verdict == "better"
    (remark,) = comparison.remarks
    assert remark == (
        "look: p can be small although the scores are equal: the divisor of `precision` is 5.5 times as"
        " large in one run as in the other, and about 14 % of such comparisons with equal scores have p below"
        " 0.05; `--studentized` adds a test of equal scores"
    )
    assert remark in text.lines(comparison)
    assert comparison.to_dict()["remarks"] == [remark]
    assert escape_markdown(remark[1:]) in description.markdown(comparison)
    assert "p can be small although the scores are equal" in report.html(comparison)
    one_sided = trackperm.compare(
        predictions(0.5, 0.5, 1), predictions(0.1, 0.75, 2), "precision", alternative="greater", alpha=0.01
    )
    assert "about 3.9 % of such comparisons with equal scores have p below 0.01" in one_sided.remarks[0]


def test_undecided_comparisons_have_no_remark():
    comparison = trackperm.compare(predictions(0.5, 0.5, 1), predictions(0.1, 0.5, 2), "precision")
    assert (comparison.decision.sign, comparison.remarks) == ("undecided", ())


@pytest.mark.parametrize("statistic", ["f1", "mcc", "cohen_kappa", "jaccard", "recall", "accuracy"])
def test_statistics_with_labels_in_their_divisors_have_no_remark(statistic: str):
    """Their divisors contain the labels, or the difference is far from the variance of a ratio."""
    comparison = trackperm.compare(predictions(0.5, 0.5, 1), predictions(0.1, 0.75, 2), statistic)
    assert comparison.remarks == ()


@pytest.mark.parametrize("statistic", ["precision", "f1", "mcc", "macro_f1", "balanced_accuracy"])
def test_ordinary_comparisons_have_no_remark(statistic: str):
    comparison = trackperm.compare(
        predictions(0.45, 0.7, 1, n=2_000), predictions(0.5, 0.85, 2, n=2_000), statistic, n_samples=1_000
    )
    assert comparison.verdict == "better"
    assert comparison.remarks == ()


def test_a_statistic_without_a_score_of_each_run(tmp_path: Path):
    """Precision written with g and h has no known divisor, so the remark names the counts."""
    spec = load(
        tmp_path,
        "counts: {tp: (prediction == 1) & (label == 1), positive: prediction == 1}\n"
        "g: {a: u.tp, b: u.positive, c: v.tp, d: v.positive}\nh: a / b - c / d\nundefined: 0\n",
    )
    comparison = trackperm.compare(predictions(0.5, 0.5, 1), predictions(0.1, 0.75, 2), spec)
    assert ": the counts of the two runs differ much, and about 14 % of such" in comparison.remarks[0]


# --- means --------------------------------------------------------------------------------------------


def test_many_small_differences_and_few_large_ones():
    down = [-0.3 - 0.01 * i for i in range(16)]
    comparison = mean_of([*down, 0.0, 0.0, 1.6])
    assert comparison.verdict == "worse"
    assert comparison.remarks == (
        "look: p can be small although the scores are equal: the 17 differences that are not 0 are many small"
        " ones down and few large ones up, on which the mean depends",
    )
    mirrored = mean_of([*(-d for d in down), 0.0, 0.0, -1.6])
    assert "are many small ones up and few large ones down" in mirrored.remarks[0]


@pytest.mark.parametrize(
    "differences",
    [
        [0.3, 0.2, 0.1, 0.4, 0.5, 0.3, 0.2, 2.0],
        [0.5, 1.0, 1.0, 1.0, 1.5, 1.0, 2.0, 0.5, -1.0, 1.0],
        [*np.linspace(-0.3, 0.9, 20)],
    ],
    ids=["large ones on the side of the mean", "as large on both sides", "symmetric"],
)
def test_other_differences_have_no_remark(differences: list[float]):
    comparison = mean_of(differences)
    assert comparison.decision.sign == "better"
    assert comparison.remarks == ()


def test_differences_of_one_size_have_no_remark():
    assert accuracy(30, 1, both=5).remarks == ()


@pytest.mark.slow
@pytest.mark.generated
def test_frequency_of_remarks_on_skewness(measured: Measured):
    """Lognormal differences of mean 0 are rejected in 10 % of cases; a third of these have a remark."""
    rng, number = np.random.default_rng(5), cases(150)
    found = {}
    for name, draw in {
        "lognormal of mean 0": lambda: rng.lognormal(size=25) - np.exp(0.5),
        "normal of mean 0.6": lambda: rng.normal(0.6, size=25),
    }.items():
        comparisons = [mean_of(draw()) for _ in range(number)]
        decided = [each for each in comparisons if each.decision.sign != "undecided"]
        found[name] = len(decided) / number, sum(bool(each.remarks) for each in decided) / len(decided)
    measured(f"decided, and remarked among these: {found}")
    assert found["lognormal of mean 0"][0] > 0.07
    assert found["lognormal of mean 0"][1] > 0.15
    assert found["normal of mean 0.6"][0] > 0.5
    assert found["normal of mean 0.6"][1] < 0.05
