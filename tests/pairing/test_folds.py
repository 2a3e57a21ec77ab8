"""Folds of a cross-validation are said to be no independent examples, wherever a result is read."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import trackperm
from trackperm.ledger.comparison_publication import publication
from trackperm.report import description, html, text

WARNING = "folds: the training sets of folds or resamples overlap"


def runs(column: str, values: list[Any]) -> tuple[pl.DataFrame, pl.DataFrame]:
    n = len(values)
    baseline = pl.DataFrame({column: values, "score": [0.5 + i / 100 for i in range(n)]})
    return baseline, baseline.with_columns(score=pl.col("score") + 0.01)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("fold", list(range(10))),
        ("fold", ["a", "b", "c"]),
        ("cv_fold", list(range(5))),
        ("Resamples:", list(range(30))),
        ("split_id", list(range(30))),
        ("outer fold", list(range(5))),
        ("id", ["fold-1", "fold-2", "Fold-3"]),
        ("id", [f"cv_fold_{i}" for i in range(10)]),
    ],
)
def test_folds_are_warned_of(column: str, values: list[Any]) -> None:
    found = trackperm.compare(*runs(column, values), "mean", columns={"id": column})
    (line,) = (line for line in text.lines(found) if line.startswith(WARNING))
    assert line.endswith(f"compare predictions by example rather than scores by `{column}`")


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("id", list(range(10))),
        ("seed", list(range(10))),
        ("question", ["fold the paper", "fold-2"]),
        ("scaffold", list(range(10))),
        ("split", list(range(2000))),
    ],
)
def test_other_examples_are_not(column: str, values: list[Any]) -> None:
    found = trackperm.compare(*runs(column, values), "mean", columns={"id": column})
    assert not any("fold" in line for line in found.pairing.notes)


def test_clusters_can_be_folds() -> None:
    first, second = (run.with_columns(fold=pl.col("id") % 4) for run in runs("id", list(range(20))))
    found = trackperm.compare(first, second, "mean", cluster="fold")
    assert any(line.startswith(WARNING) for line in text.lines(found))


def test_the_warning_is_logged() -> None:
    found = trackperm.compare(*runs("fold", list(range(5))), "mean", columns={"id": "fold"})
    assert WARNING.removeprefix("folds: ") in description.markdown(found)
    assert WARNING.removeprefix("folds: ") in html(found)
    assert WARNING.removeprefix("folds: ") in publication(found).description
    assert "no difference can be shown: with 5 discordant examples, p is at least 0.0625" in text.lines(found)
