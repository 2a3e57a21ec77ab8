"""Scores whose direction is stated in another column of the log."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from support.comparisons import numbered
from support.questions import the_one

import trackperm
from trackperm.errors import InputError
from trackperm.report import text

OLD, NEW = ([start + i % 7 / 100 for i in range(40)] for start in (0.5, 0.1))


def frames(*values: Any, column: str = "metric", score: str = "score") -> list[pl.DataFrame]:
    """Two runs, the second with lower scores, with a column of one value each."""
    both = values if len(values) == 2 else values * 2
    return [
        numbered(**{score: scores}).with_columns(pl.lit(value).alias(column))
        for scores, value in zip((OLD, NEW), both, strict=True)
    ]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("metric", "wer"),
        ("metric", "val_loss"),
        ("metric_name", "meanSquaredError"),
        ("higher_is_better", False),
        ("higher_is_better", "False"),
        ("greater_is_better", 0),
        ("lower_is_better", True),
    ],
)
@pytest.mark.parametrize("score", ["score", "reward"])
def test_lower_is_better(column: str, value: Any, score: str) -> None:
    found = trackperm.compare(*frames(value, column=column, score=score))
    assert (found.verdict, found.n_better, found.n_worse) == ("better", 40, 0)
    shown = "\n".join(text.lines(found))
    assert f"lower is better: `{column}` is `{value}` in every row\n" in shown
    assert f"{score} (lower is better)" in shown


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("metric", ["accuracy"]),
        ("metric", ["Accuracy", "accuracy"]),
        ("metric_name", ["bleu"]),
        ("higher_is_better", [True]),
        ("lower_is_better", [False]),
        ("higher_is_better", ["by hand"]),
        ("metric", [None]),
        ("note", ["wer"]),
    ],
)
def test_greater_is_better(column: str, values: list[Any]) -> None:
    found = the_one(*frames(*values, column=column))
    assert (found.greater_is_better, found.found) == (True, ())


def test_a_metric_that_is_not_the_same_in_all_rows() -> None:
    both = [
        frame.with_columns(pl.when(pl.col("id") < 3).then(pl.lit("bleu")).otherwise("metric").alias("metric"))
        for frame in frames("wer")
    ]
    assert the_one(*both, metrics=("score",)).greater_is_better


def test_the_column_of_truth_comes_first() -> None:
    both = [frame.with_columns(higher_is_better=True) for frame in frames("wer")]
    assert the_one(*both).greater_is_better


@pytest.mark.parametrize("value", ["toxicity", "neg_log_loss", "time"])
def test_an_open_direction(value: str) -> None:
    with pytest.raises(
        InputError, match=f"`metric` is `{value}` in every row, which does not show"
    ) as caught:
        trackperm.compare(*frames(value))
    assert "`greater_is_better: false`" in str(caught.value.hint)
    assert trackperm.compare(*frames(value), metric="score").verdict == "worse"


def test_two_metrics() -> None:
    with pytest.raises(InputError, match="`wer` in every row of `baseline` and `bleu` in every row of `cand"):
        trackperm.compare(*frames("wer", "bleu"))
    assert trackperm.compare(*frames("wer", "bleu"), metric="score").verdict == "worse"


def test_one_run_states_it() -> None:
    first, second = frames("wer")
    found = trackperm.compare(first, second.drop("metric"))
    assert found.verdict == "better"
    assert "lower is better: `metric` is `wer` in every row of `baseline`" in found.pairing.notes


def test_a_score_that_is_named() -> None:
    assert trackperm.compare(*frames("wer"), metric="score").verdict == "better"
    assert trackperm.compare(*frames("wer"), "mean").verdict == "worse"
    assert trackperm.compare(*frames("wer", score="bleu"), metric="bleu").verdict == "worse"


def test_a_leaderboard() -> None:
    board = trackperm.leaderboard(dict(zip(("old", "new"), frames("wer"), strict=True)))
    assert [row.name for row in board.rows] == ["new", "old"]
