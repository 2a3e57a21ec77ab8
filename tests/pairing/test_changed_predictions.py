"""Predictions that changed, and are counted whether or not the score tells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import trackperm
from trackperm.pairing import changed_predictions
from trackperm.pairing.many_runs import pair_many
from trackperm.pairing.pair import pair_in_memory as pair
from trackperm.report import description, page, text
from trackperm.report.notes import notes_of
from trackperm.statistic import load_statistic
from trackperm.tables.table import ExampleTable

N = 200
BASELINE = pl.DataFrame({"id": [f"q{i}" for i in range(N)], "prediction": ["x"] * N, "label": ["a"] * N})
CANDIDATE = BASELINE.with_columns(prediction=pl.Series(["y"] * 100 + ["x"] * 100))
SAID = "100 of 200 predictions changed; 0 change the score"


def table(frame: pl.DataFrame, origin: str = "run") -> ExampleTable:
    return ExampleTable.from_native(frame, origin)


def changed_in(
    baseline: pl.DataFrame, candidate: pl.DataFrame, statistic: str = "accuracy", **options: Any
) -> Any:
    found = pair(table(baseline, "a"), table(candidate, "b"), load_statistic(statistic), **options)
    return found.report.n_changed


class TestSaid:
    def test_where_the_counts_are_the_same(self) -> None:
        found = trackperm.compare(BASELINE, CANDIDATE, "accuracy")
        identical, said, *_ = notes_of(found)
        assert identical.startswith("identical: both runs have the same counts")
        assert said == SAID
        assert json.loads(found.to_json())["pairing"]["n_changed"] == 100
        assert SAID in page.html(found)
        assert SAID in description.markdown(found)
        assert "100 of 200 predictions changed" in found.pairing.lines()

    def test_beside_a_score(self) -> None:
        scored = [frame.with_columns(score=pl.lit(1)) for frame in (BASELINE, CANDIDATE)]
        assert SAID in text.lines(trackperm.compare(*scored, "mean"))

    def test_more_changed_than_the_score_shows(self) -> None:
        better = CANDIDATE.with_columns(prediction=pl.Series(["a"] * 20 + ["y"] * 80 + ["x"] * 100))
        found = trackperm.compare(BASELINE, better, "accuracy")
        assert "100 of 200 predictions changed; 20 change the score" in notes_of(found)

    def test_no_note_if_every_change_changes_the_score(self) -> None:
        right = CANDIDATE.with_columns(prediction=pl.Series(["a"] * 100 + ["x"] * 100))
        for candidate, n_changed in ((right, 100), (BASELINE, 0)):
            found = trackperm.compare(BASELINE, candidate, "accuracy")
            assert found.pairing.n_changed == n_changed
            assert not [note for note in notes_of(found) if "predictions changed" in note]

    def test_of_those_that_only_one_run_has(self) -> None:
        """Regression: a missing prediction was said to have changed."""
        fewer = trackperm.compare(BASELINE, CANDIDATE.head(150), "exact_match", missing="wrong")
        said = "150 of 200 predictions changed or are missing in one run"
        assert said in fewer.pairing.lines()
        assert f"{said}; 0 change the score" in notes_of(fewer)

    def test_of_clusters(self) -> None:
        documents = pl.Series([f"d{i // 10}" for i in range(N)])
        runs = [frame.with_columns(document=documents) for frame in (BASELINE, CANDIDATE)]
        notes = notes_of(trackperm.compare(*runs, "accuracy", cluster="document"))
        assert "100 of 200 predictions changed; 0 of 20 clusters differ in score" in notes


class TestCounted:
    def test_only_among_tested_examples(self) -> None:
        fewer = CANDIDATE.slice(90)
        assert changed_in(BASELINE, fewer, missing="drop") == 10
        assert changed_in(BASELINE, fewer, missing="wrong") == 100

    def test_a_missing_prediction_counts_as_changed(self) -> None:
        lacks = BASELINE.with_columns(prediction=pl.Series([None] * 5 + ["x"] * 195, dtype=pl.String))
        assert changed_in(BASELINE, lacks, missing="wrong") == 5
        assert changed_in(lacks, lacks, missing="wrong") == 0

    @pytest.mark.extended
    @pytest.mark.parametrize("by_position", [False, True])
    def test_predictions_that_the_statistic_does_not_read(self, by_position: bool) -> None:
        scored = [frame.with_columns(score=pl.lit(1)) for frame in (BASELINE, CANDIDATE)]
        assert changed_in(*scored, "mean", by_position=by_position) == 100
        if not by_position:
            assert changed_in(scored[0], scored[1].sample(fraction=1.0, shuffle=True, seed=1), "mean") == 100
            assert changed_in(scored[0], scored[1].slice(90), "mean", missing="drop") == 10

    @pytest.mark.parametrize(
        "predictions", [pl.Series([["x", "y"]] * N), pl.Series([0.5] * N), pl.Series([True] * N)]
    )
    def test_of_other_types(self, predictions: pl.Series) -> None:
        scored = BASELINE.with_columns(score=pl.lit(1), prediction=predictions)
        other = scored.with_columns(
            prediction=pl.concat([predictions.head(N - 3), predictions.clear().extend_constant(None, 3)])
        )
        assert changed_in(scored, other, "mean") == 3

    def test_unknown(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        scored = [frame.with_columns(score=pl.lit(1)) for frame in (BASELINE, CANDIDATE)]
        assert changed_in(scored[0].drop("prediction"), scored[1], "mean") is None
        objects = scored[1].with_columns(prediction=pl.struct("prediction"))
        assert changed_in(scored[0], objects, "mean") is None
        files = [tmp_path / f"{i}.parquet" for i in range(2)]
        for frame, file in zip(scored, files, strict=True):
            frame.write_parquet(file)
        assert trackperm.compare(*files, "mean").pairing.n_changed == 100
        monkeypatch.setattr(changed_predictions, "_FEW", 100)
        assert trackperm.compare(*files, "mean").pairing.n_changed is None


@pytest.mark.parametrize("statistic", ["accuracy", "mean"])
def test_of_many_runs_at_once(statistic: str) -> None:
    runs = [table(frame.with_columns(score=pl.lit(1)), "r") for frame in (BASELINE, CANDIDATE, BASELINE)]
    found = pair_many(runs[0], runs[1:], load_statistic(statistic))
    assert [None if each is None else each.report.n_changed for each in found] == [100, 0]
