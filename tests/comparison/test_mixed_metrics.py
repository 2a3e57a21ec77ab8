"""Rows of different metrics are not averaged into one score."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from support.questions import asked, the_one

from trackperm.errors import InputError


def long(column: str, first: str = "wer", second: str = "chrf") -> pl.DataFrame:
    n = 20
    return pl.DataFrame(
        {
            "id": [f"a{i}" for i in range(2 * n)],
            column: [first] * n + [second] * n,
            "score": [0.2 + i / 100 for i in range(n)] + [0.5 + i / 100 for i in range(n)],
        }
    )


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("metric", ("wer", "chrf")),
        ("Metric_Name", ("a", "b")),
        ("measure", ("AP", "RR")),
        ("evaluator", ("correctness", "latency_s")),
        ("scorer", ("match", "judge")),
        ("criterion", ("fluency", "toxicity")),
        ("name", ("faithfulness", "answer_correctness")),
    ],
)
def test_several_metrics_in_one_column(column: str, values: tuple[str, str]) -> None:
    """Regression: word error rates and chrF were averaged: better, p = 1.8e-12."""
    run = long(column, *values)
    plain = run.filter(pl.col(column) == values[0])
    for frames in ([run, run], [plain, run]):
        with pytest.raises(InputError, match=f"different metrics: `{column}` is `") as caught:
            asked(*frames)
        first = sorted(values)[0]
        said = f'`frame.filter(pl.col("{column}") == "{first}")` of polars keeps those of `{first}`'
        assert said in str(caught.value.hint)
    notes = the_one(run, run, metrics=("score",)).found
    assert notes[-1].startswith("look: `score` of `run 0` holds values of different metrics")


@pytest.mark.parametrize(
    ("column", "values"),
    [("metric", ("bleu", "bleu")), ("name", ("Ann", "Bob")), ("task", ("asr", "mt")), ("key", ("a", "b"))],
)
def test_one_metric_and_columns_of_other_names(column: str, values: tuple[str, str]) -> None:
    run = long(column, *values)
    assert the_one(run, run).chosen == "the only score, `score`"
    assert not [note for note in the_one(run, run, metrics=("score",)).found if "metrics" in note]


def test_numbers_and_rubrics_are_no_metrics() -> None:
    run = long("metric")
    for name, values in (("measure", range(40)), ("criterion", [f"rubric {i}" for i in range(40)])):
        frame = run.drop("metric").with_columns(pl.Series(name, values))
        assert the_one(frame, frame).chosen == "the only score, `score`"


def test_attempts_of_several_metrics(tmp_path: Path) -> None:
    """Regression: the hint was to add up the rows of an example, which are of two metrics."""
    path = tmp_path / "a.csv"
    rows = "".join(f"{i},{t},em,1.0\n{i},{t},wer,0.2\n" for i in range(20) for t in range(2))
    path.write_text(f"id,trial,metric,score\n{rows}")
    for said in ({}, {"repeats": "sum"}):
        with pytest.raises(InputError, match="`metric` is `em`, `wer`") as caught:
            asked(path, path, **said)
    hint = f'`pl.read_csv("{path}").filter(pl.col("metric") == "em").write_csv("one.csv")`'
    assert hint in str(caught.value.hint)
