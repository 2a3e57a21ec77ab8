"""Probabilities in one column for each class, against the lists that they replace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.command_line import invoke
from support.engines import each_with_engines

import trackperm
from trackperm.errors import InputError, PairingError
from trackperm.statistic.class_columns import classes_of
from trackperm.statistic.count_expressions import with_counters_of
from trackperm.statistic.problems import problems
from trackperm.tables.columns.names import CLASS_PROBABILITIES

CLASSES = ["bird", "cat", "dog"]
STATISTICS = ["multiclass_log_loss", "multiclass_brier"]
LABELS = {"labels": ",".join(CLASSES)}


def chances(seed: int, n: int = 40) -> np.ndarray:
    cuts = np.sort(np.random.default_rng(seed).integers(0, 101, size=(n, 2)), axis=1)
    return np.diff(cuts, axis=1, prepend=0, append=100) / 100


LABEL = [CLASSES[i] for i in np.random.default_rng(0).integers(3, size=40)]


def lists(seed: int) -> pl.DataFrame:
    return pl.DataFrame({"id": range(40), "label": LABEL, "probabilities": chances(seed).tolist()})


def columns(seed: int, pattern: str = "probability_*", order: list[int] | None = None) -> pl.DataFrame:
    values = chances(seed)
    own = {pattern.replace("*", CLASSES[i]): values[:, i] for i in order or range(3)}
    return pl.DataFrame({"id": range(40), "label": LABEL, **own})


@pytest.mark.extended
@each_with_engines(STATISTICS, "duckdb")
def test_columns_have_the_numbers_of_lists(name: str, engine: Any, tmp_path: Path) -> None:
    expected = trackperm.compare(lists(1), lists(2), name, parameters=LABELS)
    paths = [str(tmp_path / f"{seed}.parquet") for seed in (1, 2)]
    for seed, path in zip((1, 2), paths, strict=True):
        columns(seed, order=[2, 0, 1] if seed == 1 else None).write_parquet(path)
    found = [trackperm.compare(*paths, name, engine=each) for each in (engine, "polars")]
    for each in found:
        assert (each.pvalue, each.baseline_score, each.candidate_score) == pytest.approx(
            (expected.pvalue, expected.baseline_score, expected.candidate_score), rel=1e-13
        )
    assert found[0].pairing.candidate_digest == found[1].pairing.candidate_digest


@pytest.mark.parametrize("pattern", CLASS_PROBABILITIES)
def test_usual_names(pattern: str) -> None:
    found = trackperm.compare(columns(1, pattern), columns(2, pattern), "multiclass_brier")
    assert found.statistic.class_columns == {
        "probabilities": {name: pattern.replace("*", name) for name in CLASSES}
    }
    assert f"probabilities: columns `{pattern}`, one for each class" in found.pairing.notes


def test_listed_classes_choose_among_several_patterns() -> None:
    others = pl.DataFrame({"probability_x": [0.5] * 40, "probability_y": [0.5] * 40})
    runs = [pl.concat([columns(seed, "proba_*"), others], how="horizontal") for seed in (1, 2)]
    found = trackperm.compare(*runs, "multiclass_brier", parameters=LABELS)
    assert found.pvalue == trackperm.compare(columns(1), columns(2), "multiclass_brier").pvalue


def test_other_names() -> None:
    options: dict[str, Any] = {"columns": {"probabilities": "*:softmax"}}
    expected = trackperm.compare(columns(1), columns(2), "multiclass_brier")
    found = trackperm.compare(columns(1, "*:softmax"), columns(2, "*:softmax"), "multiclass_brier", **options)
    assert found.pvalue == expected.pvalue
    bare = trackperm.compare(columns(1, "*"), columns(2, "*"), "multiclass_brier", parameters=LABELS)
    assert bare.pvalue == expected.pvalue


def test_a_column_of_lists_has_precedence() -> None:
    runs = [lists(seed).with_columns(probability_cat=0.5, probability_dog=0.5) for seed in (1, 2)]
    found = trackperm.compare(*runs, "multiclass_brier", parameters=LABELS)
    assert not found.statistic.class_columns
    assert found.pvalue == trackperm.compare(lists(1), lists(2), "multiclass_brier", parameters=LABELS).pvalue


def test_listed_classes_leave_other_columns_out() -> None:
    runs = [columns(seed).with_columns(probability_threshold=0.5) for seed in (1, 2)]
    expected = trackperm.compare(columns(1), columns(2), "multiclass_brier")
    assert trackperm.compare(*runs, "multiclass_brier", parameters=LABELS).pvalue == expected.pvalue
    with pytest.raises(InputError, match=r"add up to 1.5, not to 1") as caught:
        trackperm.compare(*runs, "multiclass_brier")
    assert "`--set labels=cat,dog` names other classes" in str(caught.value.hint)


def test_boolean_labels_of_pandas_names() -> None:
    runs = [
        pl.DataFrame({"id": [1, 2], "label": [True, False], "p_True": [p, 0.2], "p_False": [1 - p, 0.8]})
        for p in (0.25, 0.75)
    ]
    found = trackperm.compare(*runs, "multiclass_brier")
    assert found.candidate_score == pytest.approx((2 * 0.25**2 + 2 * 0.2**2) / 2)


def test_classes_are_ordered_by_value() -> None:
    names = ["p_10", "p_9", "p_b", "p_", "p_a", "other"]
    assert list(classes_of("p_*", names)) == ["a", "b", "9", "10"]


def test_missing_probabilities() -> None:
    part = columns(1).with_columns(probability_cat=pl.when(pl.col("id") > 1).then("probability_cat"))
    with pytest.raises(
        PairingError, match="2 of 40 examples of `baseline` have no value in `probability_cat`"
    ):
        trackperm.compare(part, columns(2), "multiclass_brier")
    dropped = trackperm.compare(part, columns(2), "multiclass_brier", missing="drop")
    rest = [columns(seed).filter(pl.col("id") > 1) for seed in (1, 2)]
    assert dropped.pvalue == trackperm.compare(*rest, "multiclass_brier").pvalue
    worst = trackperm.compare(part, columns(2), "multiclass_brier", missing="wrong")
    assert worst.baseline_score == pytest.approx((38 * dropped.baseline_score + 2 * 2) / 40)


def test_a_count_is_null_where_a_class_is() -> None:
    statistic = trackperm.compare(columns(1), columns(2), "multiclass_brier").statistic
    frame = columns(1).with_columns(probability_cat=pl.when(pl.col("id") != 3).then("probability_cat"))
    counted = with_counters_of(frame, statistic)[:, -1]
    assert counted.is_null().arg_true().to_list() == [3]


REFUSED: dict[str, tuple[pl.DataFrame, pl.DataFrame, dict[str, Any], str]] = {
    "a class that one run lacks": (
        columns(1),
        columns(2).drop("probability_dog"),
        {},
        "`candidate` has no column `probability_dog`, although the classes of `probability_.` are `bird`",
    ),
    "a class that one run adds": (
        columns(1).drop("probability_dog"),
        columns(2),
        {},
        "`baseline` has no column `probability_dog`, which `candidate` has",
    ),
    "a listed class without a column": (
        columns(1),
        columns(2),
        {"parameters": {"labels": "bird,cat,dog,fish"}},
        "`baseline` has no column `probability_fish`",
    ),
    "a label without a column": (
        columns(1).with_columns(label=pl.lit("fish")),
        columns(2).with_columns(label=pl.lit("fish")),
        {},
        "`label` is 'fish', and the classes of `probability_.` are `bird`, `cat`, `dog`",
    ),
    "no distribution": (
        columns(1).drop("probability_dog"),
        columns(2).drop("probability_dog"),
        {},
        "the probabilities in `probability_.` add up to",
    ),
    "text": (
        columns(1).with_columns(probability_cat=pl.lit("high")),
        columns(2),
        {},
        "`probability_cat` is text in `baseline`",
    ),
    "text in both runs": (
        columns(1).with_columns(probability_cat=pl.lit("high")),
        columns(2).with_columns(probability_cat=pl.lit("low")),
        {},
        "`probability_cat` is text; expected the probability of the class `cat`",
    ),
    "a pattern without columns": (
        columns(1),
        columns(2),
        {"columns": {"probabilities": "softmax_*"}},
        "`baseline` has no column for the pattern `softmax_.`",
    ),
    "a pattern of all columns": (
        columns(1),
        columns(2),
        {"columns": {"probabilities": "*"}},
        "matches every column, so that the classes are unknown",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refused_columns(case: tuple[pl.DataFrame, pl.DataFrame, dict[str, Any], str]) -> None:
    baseline, candidate, options, said = case
    with pytest.raises((InputError, TypeError), match=said):
        trackperm.compare(baseline, candidate, "multiclass_brier", **options)


def test_the_hint_says_what_the_column_holds() -> None:
    with pytest.raises(InputError, match="`baseline` lacks `probabilities`") as caught:
        trackperm.compare(columns(1, "softmax_*"), columns(2, "softmax_*"), "multiclass_log_loss")
    assert "a list with the probability of every class" in str(caught.value.hint)
    assert "such as `probability_cat`" in str(caught.value.hint)


def test_arrays_of_predict_proba() -> None:
    expected = trackperm.compare(lists(1), lists(2), "multiclass_log_loss", parameters=LABELS)
    found = trackperm.compare(
        LABEL, chances(1), chances(2), statistic="multiclass_log_loss", parameters=LABELS
    )
    assert found.pvalue == expected.pvalue
    with pytest.raises(InputError, match=r"`y_baseline` has the shape \(40, 3\)"):
        trackperm.compare(LABEL, chances(1), chances(2), statistic="accuracy")


def test_leaderboards_read_them(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{seed}.csv") for seed in (1, 2, 3)]
    for seed, path in zip((1, 2, 3), paths, strict=True):
        columns(seed).write_csv(path)
    found = trackperm.leaderboard(paths, "multiclass_brier")
    scores = [
        trackperm.compare(lists(1), lists(seed), "multiclass_brier", parameters=LABELS) for seed in (2, 3)
    ]
    expected = sorted([scores[0].baseline_score, *(each.candidate_score for each in scores)])
    assert sorted(row.score for row in found.rows) == pytest.approx(expected)


def test_a_spec_is_checked_against_them(tmp_path: Path) -> None:
    spec = tmp_path / "loss.yaml"
    spec.write_text(
        "counts: {l: 'class_log_loss(probabilities, label)', n: 1}\nscore: l / n\ngreater_is_better: false\n"
    )
    assert not problems(spec, columns(1).columns)
    assert problems(spec, ["id", "label", "probability_cat"])


@pytest.mark.extended
def test_inspect_finds_them(tmp_path: Path) -> None:
    columns(1).write_csv(tmp_path / "run.csv")
    shown = invoke("inspect", tmp_path / "run.csv")
    assert "could be probabilities of classes: probability_* (bird, cat, dog)" in shown
    assert "-s multiclass_log_loss" in shown
    data = json.loads(invoke("inspect", tmp_path / "run.csv", "--format", "json"))
    assert data["probabilities"] == {"probability_*": CLASSES}
    assert {*STATISTICS} <= {*data["statistics"]}
