"""Kappa, weighted kappa and the correlation of several classes, against scikit-learn and all swaps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn import metrics
from support.builtin_definitions import class_correlation, kappa, of_classes
from support.comparisons import compared_as_they_are, numbered
from support.engines import each_with_engines
from support.unit_swaps import score_pvalue

import trackperm
from trackperm.errors import InputError, SpecError
from trackperm.statistic import read_statistic

Rows = Sequence[dict[str, Any]]
NAMES = ["low", "medium", "high"]


def of(metric: Callable[..., float], **options: Any) -> Callable[[Rows], float]:
    ask = of_classes(metric, **options)
    return lambda rows: float(np.nan_to_num(ask(rows)))


STATISTICS = {
    "cohen_kappa": (kappa(lambda p, label: int(p != label)), of(metrics.cohen_kappa_score)),
    "linear_weighted_kappa": (
        kappa(lambda p, label: abs(p - label)),
        of(metrics.cohen_kappa_score, weights="linear", labels=range(4)),
    ),
    "quadratic_weighted_kappa": (
        kappa(lambda p, label: (p - label) ** 2),
        of(metrics.cohen_kappa_score, weights="quadratic", labels=range(4)),
    ),
    "multiclass_mcc": (class_correlation, of(metrics.matthews_corrcoef)),
}


def random_rows(rng: np.random.Generator, n: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Some classes do not occur, or only in predictions of one run."""
    present = [rng.choice(4, size=rng.integers(1, 5), replace=False) for _ in range(3)]
    label, *sides = (rng.choice(values, size=n).tolist() for values in present)
    first, second = (
        [{"id": i, "prediction": p, "label": y} for i, (p, y) in enumerate(zip(side, label, strict=True))]
        for side in sides
    )
    return first, second


@pytest.mark.sample(4)
@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
@pytest.mark.parametrize("name", STATISTICS)
def test_against_all_swaps_and_scikit_learn(name: str, alternative: str) -> None:
    score, oracle = STATISTICS[name]
    tested = 0
    for seed in range(14):
        rng = np.random.default_rng([seed, len(name)])
        baseline, candidate = random_rows(rng, int(rng.integers(2, 9)))
        frames = [pl.DataFrame(rows) for rows in (baseline, candidate)]
        if name != "multiclass_mcc" and score(baseline) is score(candidate) is None:
            with pytest.raises(InputError, match="is 0/0 in both runs"):
                compared_as_they_are(*frames, name, alternative=alternative)
            continue
        found = compared_as_they_are(*frames, name, alternative=alternative)
        assert found.baseline_score == pytest.approx(oracle(baseline), abs=1e-14)
        assert found.candidate_score == pytest.approx(oracle(candidate), abs=1e-14)
        assert found.test.ties == "exact"
        expected = score_pvalue(baseline, candidate, score, alternative)
        assert found.pvalue == pytest.approx(float(expected), rel=1e-12)
        tested += 1
    assert tested >= 8


@pytest.mark.extended
@each_with_engines(STATISTICS, "polars", "duckdb")
def test_every_engine_counts_the_same(name: str, engine: Any) -> None:
    baseline, candidate = random_rows(np.random.default_rng(5), 60)
    frames = [pl.DataFrame(rows) for rows in (baseline, candidate)]
    found = trackperm.compare(
        *frames, name, engine=engine, method="monte-carlo", n_samples=1, allow_unseen=True
    )
    oracle = STATISTICS[name][1]
    assert found.baseline_score == pytest.approx(oracle(baseline), abs=1e-14)
    assert found.candidate_score == pytest.approx(oracle(candidate), abs=1e-14)


@pytest.mark.parametrize("name", ["cohen_kappa", "multiclass_mcc"])
def test_a_missing_prediction_is_a_class_of_its_own(name: str) -> None:
    score, _ = STATISTICS[name]
    baseline, candidate = random_rows(np.random.default_rng(8), 9)
    holes = [pl.DataFrame(rows) for rows in (baseline, candidate)]
    holes[0] = holes[0].filter(pl.col("id") != 2)
    holes[1] = holes[1].with_columns(prediction=pl.when(pl.col("id") < 2).then(None).otherwise("prediction"))
    found = compared_as_they_are(*holes, name, missing="wrong")
    baseline[2]["prediction"] = candidate[0]["prediction"] = candidate[1]["prediction"] = 9
    assert found.baseline_score == pytest.approx(float(score(baseline) or 0), abs=1e-14)
    assert found.candidate_score == pytest.approx(float(score(candidate) or 0), abs=1e-14)
    assert found.pvalue == pytest.approx(float(score_pvalue(baseline, candidate, score)), rel=1e-12)


@pytest.mark.parametrize("name", ["linear_weighted_kappa", "quadratic_weighted_kappa"])
def test_weighted_kappa_refuses_a_missing_prediction(name: str) -> None:
    baseline, candidate = random_rows(np.random.default_rng(8), 9)
    frames = [pl.DataFrame(baseline), pl.DataFrame(candidate[1:])]
    with pytest.raises(InputError, match="does not define the counts of a missing prediction"):
        compared_as_they_are(*frames, name, missing="wrong")
    dropped = compared_as_they_are(*frames, name, missing="drop")
    assert dropped.baseline_score == pytest.approx(STATISTICS[name][1](baseline[1:]), abs=1e-14)


def texts(rows: Rows) -> pl.DataFrame:
    named = [
        {**row, "prediction": NAMES[row["prediction"] % 3], "label": NAMES[row["label"] % 3]} for row in rows
    ]
    return pl.DataFrame(named)


def test_text_needs_an_order() -> None:
    baseline, candidate = random_rows(np.random.default_rng(3), 20)
    name, order = "quadratic_weighted_kappa", {"order": "low, medium, high"}
    found = compared_as_they_are(texts(baseline), texts(candidate), name, parameters=order)
    labels, predictions = (texts(baseline)[column].to_list() for column in ("label", "prediction"))
    oracle = metrics.cohen_kappa_score(labels, predictions, weights="quadratic", labels=NAMES)
    assert found.baseline_score == pytest.approx(oracle, abs=1e-14)
    with pytest.raises(InputError, match="is text, whose classes have no order") as caught:
        compared_as_they_are(texts(baseline), texts(candidate), name)
    assert "--set order=low,medium,high" in str(caught.value.hint)
    with pytest.raises(InputError, match="'high', which is not in the order"):
        compared_as_they_are(texts(baseline), texts(candidate), name, parameters={"order": "low,medium"})
    with pytest.raises(InputError, match="has a class twice"):
        compared_as_they_are(
            texts(baseline), texts(candidate), name, parameters={"order": "low,low,medium,high"}
        )


def test_kappa_of_two_classes_as_of_one_against_the_other() -> None:
    rng = np.random.default_rng(4)
    label = rng.integers(2, size=200)
    frames = [
        numbered(prediction=np.where(rng.random(200) < rate, label, 1 - label), label=label)
        for rate in (0.7, 0.8)
    ]
    binary = read_statistic(
        """
        counts: {tp: (prediction == 1) & (label == 1), predicted: prediction == 1, actual: label == 1, n: 1}
        score: 2 * (n * tp - predicted * actual) / (n * (predicted + actual) - 2 * predicted * actual)
        """,
        "binary",
    )
    found, expected = trackperm.compare(*frames, "cohen_kappa"), trackperm.compare(*frames, binary)
    assert found.test.rank == expected.test.rank == 2
    assert found.pvalue == pytest.approx(expected.pvalue, rel=1e-9)
    assert found.difference == pytest.approx(expected.difference, abs=1e-14)
    mcc = trackperm.compare(*frames, "multiclass_mcc"), trackperm.compare(*frames, "mcc")
    assert mcc[0].pvalue == pytest.approx(mcc[1].pvalue, rel=1e-9)


@pytest.mark.extended
@pytest.mark.parametrize("name", ["cohen_kappa", "quadratic_weighted_kappa", "multiclass_mcc"])
def test_leaderboards_agree_with_comparisons(name: str) -> None:
    rng = np.random.default_rng(6)
    label = rng.integers(3, size=40)
    runs = {
        f"run{i}": numbered(
            prediction=np.where(rng.random(40) < 0.5, label, rng.integers(i + 2, size=40)), label=label
        )
        for i in range(3)
    }
    board = trackperm.leaderboard(runs, name, n_samples=200)
    for pair in board.pairs:
        found = trackperm.compare(
            *(runs[board.rows[i].name] for i in (pair.baseline, pair.candidate)), name, n_samples=200
        )
        assert pair.test.pvalue == pytest.approx(found.pvalue, rel=1e-9)
    with pytest.raises(InputError, match=r"counts of all labels|has classes"):
        trackperm.leaderboard(runs, name, missing="drop")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("counts: {a: 'label_count(prediction, prediction)'}\nscore: a", "looks up values in `label` alone"),
        ("counts: {a: 'label_count(prediction)'}\nscore: a", "`label_count` takes 2 arguments, not 1"),
        ("counts: {a: 'place(prediction, 3)'}\nscore: a", "`place` takes text here, not integer `3`"),
        (
            "counts: {a: 'label_count(prediction, label)'}\nscore: a\nstrata: label",
            "`strata` cannot be used with counts that look up the labels",
        ),
        ("counts: {a: a}\nscore: total(a)", "`total` can only be used in `score`, with `classes`"),
        (
            "classes: label\ncounts: {a: label == class}\nscore: total(1 + total(a))",
            "`total` cannot be used within `total`",
        ),
        ("classes: label\ncounts: {a: label == class}\nscore: total(a) / a", "`a` is the count of one class"),
        (
            "classes: label\ncounts: {a: label == class}\nscore: total(a)\nweights: {x: 1}",
            "`weights` cannot be used with `total`",
        ),
        ("classes: label\ncounts: {a: 'total(label == class)'}\nscore: a", "`total` can only be used in"),
    ],
)
def test_refused_specs(spec: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_statistic(spec, "spec")
    assert said in caught.value.message


def test_types_that_cannot_be_looked_up() -> None:
    frames = [pl.DataFrame({"id": [1, 2], "prediction": ["a", "b"], "label": [1, 2]})] * 2
    spec = read_statistic(
        "counts: {a: 'label_count(prediction, label)', n: 1}\nscore: a / n", "spec", "looked_up"
    )
    with pytest.raises(InputError, match="is counted with"):
        compared_as_they_are(*frames, spec)


def test_micro_average_of_some_classes() -> None:
    """Sums over classes that leave one out: F1 without the class 0, as in relation extraction."""
    baseline, candidate = random_rows(np.random.default_rng(12), 8)
    spec = """
    classes: [1, 2, 3]
    counts:
      tp: (prediction == class) & (label == class)
      predicted: prediction == class
      actual: label == class
      n: 1
    score: 2 * total(tp) / (total(predicted) + total(actual))
    undefined: 0
    """

    def score(rows: Rows) -> Fraction:
        tp = sum(row["prediction"] == row["label"] != 0 for row in rows)
        both = sum((row["prediction"] != 0) + (row["label"] != 0) for row in rows)
        return Fraction(2 * tp, both) if both else Fraction(0)

    frames = [pl.DataFrame(rows) for rows in (baseline, candidate)]
    found = compared_as_they_are(*frames, read_statistic(spec, "spec", "micro"))
    columns = ([row[name] for row in candidate] for name in ("label", "prediction"))
    oracle = metrics.f1_score(*columns, average="micro", labels=[1, 2, 3], zero_division=0)
    assert found.candidate_score == pytest.approx(oracle, abs=1e-14)
    assert found.pvalue == pytest.approx(float(score_pvalue(baseline, candidate, score)), rel=1e-12)
