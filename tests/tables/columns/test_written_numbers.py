"""Numbers that are stored as text, such as the scores of a judge in JSON files."""

from __future__ import annotations

import re
from typing import Any

import polars as pl
import pytest
from support.engines import each_engine, native

import trackperm
from trackperm.errors import InputError, InputTypeError, PairingError
from trackperm.tables.columns.types import typed_columns
from trackperm.tables.columns.written_numbers import with_numbers
from trackperm.tables.table import ExampleTable

COLUMNS: dict[str, list[Any]] = {
    "whole": ["1", None, "-20", "9007199254740993"],
    "decimal": ["0.81", "1", None, "1e-2"],
    "zeros": ["007", "1", "2", "3"],
    "words": ["1", "N/A", "2", "3"],
    "infinite": ["1", "inf", "2", "3"],
    "commas": ["1,5", "2", "3", "4"],
}


@each_engine
def test_read_as_in_csv(engine: str) -> None:
    run = ExampleTable.from_native(native(engine, {"id": [0, 1, 2, 3], **COLUMNS}), "run")
    (found,) = with_numbers([run], [*COLUMNS, "id", "absent"])
    typed, _, _ = typed_columns(found, found, ["id", *COLUMNS])
    read = typed.frame.to_polars().sort("id")
    assert read["whole"].to_list() == [1, None, -20, 2**53 + 1]
    assert read["decimal"].to_list() == [0.81, 1.0, None, 0.01]
    for name in ("zeros", "words", "infinite", "commas"):
        assert read[name].to_list() == COLUMNS[name]
    assert with_numbers([found], COLUMNS)[0] is found


SCORES = ([0.25, 1.0, 0.5, 0.75, 0.0, 0.5, 1.0, 0.5], [0.5, 1.0, 0.75, 0.75, 0.5, 0.75, 1.0, 0.0])
OLD, NEW = (pl.DataFrame({"id": range(8), "score": scores}) for scores in SCORES)
AS_TEXT = pl.col("score").cast(pl.String)


def _first(text: str) -> pl.DataFrame:
    return NEW.with_columns(AS_TEXT).with_columns(score=pl.when(id=0).then(pl.lit(text)).otherwise("score"))


@pytest.mark.parametrize("options", [{}, {"metric": "score"}, {"statistic": "mean"}])
def test_scores(options: dict[str, Any]) -> None:
    expected = trackperm.compare(OLD, NEW, **options)
    for old, new in (
        (OLD.with_columns(AS_TEXT), NEW.with_columns(AS_TEXT)),
        (OLD.with_columns(AS_TEXT), NEW),
    ):
        found = trackperm.compare(old, new, **options)
        assert (found.pvalue, found.difference) == (expected.pvalue, expected.difference)
    board = trackperm.leaderboard({"a": OLD.with_columns(AS_TEXT), "b": NEW, "c": OLD}, **options)
    assert board.rows[0].score == expected.candidate_score


@pytest.mark.parametrize("statistic", ["roc_auc", "spearman"])
def test_ordered_scores(statistic: str) -> None:
    old, new = (frame.with_columns(label=pl.Series([1, 1, 0, 1, 0, 0, 1, 0])) for frame in (OLD, NEW))
    expected = trackperm.compare(old, new, statistic, seed=1)
    found = trackperm.compare(old.with_columns(AS_TEXT), new.with_columns(AS_TEXT), statistic, seed=1)
    assert (found.pvalue, found.difference) == (expected.pvalue, expected.difference)


def test_attempts_beside_booleans() -> None:
    attempts = pl.DataFrame({"id": [0, 0, 1, 1, 2, 2], "attempt": [0, 1] * 3, "passed": [True, False] * 3})
    texts = attempts.with_columns(passed=pl.Series(["0", "1", "1", "1", "1", "0"]))
    assert trackperm.compare(attempts, texts, "pass_at_1").difference == pytest.approx(1 / 6)


@pytest.mark.parametrize(
    ("text", "found", "hint"),
    [
        ("007", "such as '007' in `candidate`", r"\.str\.strip_chars\(\)\.cast\(pl\.Float64\)"),
        (" 1", "such as ' 1' in `candidate`", r"\.str\.strip_chars\(\)\.cast\(pl\.Float64\)"),
        ("good", "such as 'good' in `candidate`", "write numbers, or true and false, in all rows"),
    ],
)
def test_other_texts_are_shown(text: str, found: str, hint: str) -> None:
    runs = (OLD.with_columns(AS_TEXT), _first(text))
    with pytest.raises(InputError, match=found) as caught:
        trackperm.compare(*runs, metric="score")
    assert caught.value.hint is not None
    assert re.search(hint, caught.value.hint)
    with pytest.raises(InputError, match=f"`score` of `candidate` holds text, such as {text!r}"):
        trackperm.compare(*runs)
    with pytest.raises(InputTypeError, match=r"`score` of `.*` holds text"):
        trackperm.compare(*runs, "mean")


def test_not_a_number_is_missing() -> None:
    with pytest.raises(PairingError, match="1 of 8 examples of `candidate` has no value in `score`"):
        trackperm.compare(OLD.with_columns(AS_TEXT), _first("NaN"))


def test_a_value_is_still_text() -> None:
    old, new = (frame.select("id", score=(pl.col("score") > 0.4).cast(int).cast(str)) for frame in (OLD, NEW))
    found = trackperm.compare(old, new, metric="score=1")
    assert (found.baseline_score, found.candidate_score) == (0.75, 0.875)
