"""Tables of changed examples of a metric."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import trackperm
from trackperm.comparison import Comparison
from trackperm.report.changed_examples import changed_examples
from trackperm.report.discordant_examples import viewable
from trackperm.report.page import html
from trackperm.report.view import changed_rows


@pytest.fixture(params=["frames", "files"])
def comparison(request: pytest.FixtureRequest, tmp_path: Path) -> Comparison:
    runs = [
        pl.DataFrame({"id": range(40), "loss": [round((i * shift) % 7 / 9, 4) for i in range(40)]})
        for shift in (3, 5)
    ]
    if request.param == "frames":
        return trackperm.compare(*runs, metric="loss")
    for run, name in zip(runs, "ab", strict=True):
        run.write_csv(tmp_path / f"{name}.csv")
    return trackperm.compare(tmp_path / "a.csv", tmp_path / "b.csv", metric="loss")


def test_a_count_that_is_a_metric_is_left_out(comparison: Comparison) -> None:
    """Regression: a column `total` repeated the metric."""
    assert changed_examples(comparison).columns == ("change", "id", "loss")
    assert "baseline.total" not in viewable(comparison).columns
    assert "baseline.loss" in viewable(comparison).columns


def test_its_note_names_the_metric_once(comparison: Comparison) -> None:
    """Regression: `total`, which no log has, was noted twice."""
    assert html(comparison).count("`loss`: 4 decimals, without rounding") == 1
    assert "total" not in html(comparison)


def test_lists_are_whole_and_show_what_changed() -> None:
    """Regression: lists of more than eight values were `shape: (12,)` and a part, alike in both runs."""
    gold, silent = ["O"] * 10 + ["B-PER", "O"], ["O"] * 12
    runs = [
        pl.DataFrame({"id": range(4), "label": [gold] * 4, "prediction": [said, gold, gold, gold]})
        for said in (silent, gold)
    ]
    found = changed_examples(trackperm.compare(*runs, "span_f1"))
    shown = dict(zip(found.columns, found.rows[0], strict=True))
    assert shown["label"] == str(gold)
    assert shown["prediction"] == (str(silent), str(gold))


def test_long_texts_are_shown_where_they_differ() -> None:
    """Regression: answers with the same first 500 characters were shown as the same."""
    answer = "x " * 400
    runs = [
        pl.DataFrame({"id": range(3), "label": [f"{answer}yes", "a", "b"], "prediction": [said, "a", "b"]})
        for said in (f"{answer}no", f"{answer}yes")
    ]
    (row,) = changed_rows(trackperm.compare(*runs, "accuracy"), 10_000).rows
    assert row[-1] == (f"…{answer[-60:]}no", f"…{answer[-60:]}yes")
