"""Rows of different metrics are not averaged into one score."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.questions import asked, the_one

from trackperm.errors import InputError

NO_METRICS = [
    ("F. Smith", "G. Jones"),
    ("F", "M"),
    ("Room F", "Room G"),
    ("edit_file", "get_score"),
    ("login_success", "login_failure"),
    ("Jean ter Horst", "Bob"),
    ("judge", "baker"),
    ("comet", "planet"),
    ("Music Rating", "Movie Rating"),
    ("HalfCheetah", "Match3"),
    ("sentence-similarity", "question-answering"),
    ("gpt-3", "gpt-4 judge"),
    ("f1", "f2"),
    ("café wer", "café ter"),
]


def long(column: str, first: str = "wer", second: str = "chrf") -> pl.DataFrame:
    n = 20
    return pl.DataFrame(
        {
            "id": [f"a{i}" for i in range(2 * n)],
            column: [first] * n + [second] * n,
            "score": [0.2 + i / 100 for i in range(n)] + [0.5 + i / 100 for i in range(n)],
        }
    )


@pytest.mark.sample(4)
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
        ("name", ("mse", "mae")),
        ("Name", ("nDCG@10", "MRR")),
        ("key", ("latency", "cost")),
        ("key", ("f1", "exact_match")),
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
        assert f'`frame.filter(pl.col("{column}") == "{first}")` of polars does' in str(caught.value.hint)
        assert "`--metric score` compares all rows as they are" in str(caught.value.hint)
    notes = the_one(run, run, metrics=("score",)).found
    assert notes[-1].startswith("look: `score` of `run 0` holds values of different metrics")


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("column", "values"),
    [("metric", ("bleu", "bleu")), ("name", ("Ann", "Bob")), ("task", ("asr", "mt")), ("key", ("a", "b"))]
    + [("name", values) for values in NO_METRICS],
)
def test_one_metric_and_columns_of_other_names(column: str, values: tuple[str, str]) -> None:
    run = long(column, *values)
    assert the_one(run, run).chosen == "the only score, `score`"
    assert not [note for note in the_one(run, run, metrics=("score",)).found if "metrics" in note]


@pytest.mark.parametrize("options", [{"by_position": True}, {"columns": {"id": "name"}}, {}])
def test_a_row_for_each_metric(options: dict[str, Any]) -> None:
    """Regression: BLEU, chrF and TER of sacrebleu were averaged, by the id that the hint named."""
    run = pl.DataFrame({"name": ["BLEU", "chrF2", "TER"], "score": [40.3, 58.7, 32.6]})
    with pytest.raises(InputError, match=r"different metrics: `name` is `BLEU`, `TER`, `chrF2`") as caught:
        asked(run, run, **options)
    assert str(caught.value.hint).startswith("each row is the value of a metric of the whole run")
    assert "--metric" not in str(caught.value.hint)
    people = run.with_columns(name=pl.Series(["BLEU", "chrF2", "Ann"]))
    assert the_one(people, people, columns={"id": "name"}).chosen == "the only score, `score`"


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
    hint = f'`pl.read_csv("{path}", infer_schema=False).filter(pl.col("metric") == "em")'
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize("score", ["score", "value", "metric_value", "metric_score"])
def test_a_named_score_of_several_metrics(score: str) -> None:
    """Regression: `--metric value` averaged a BLEU and a WER without a word."""
    run = long("metric").rename({"score": score})
    said = f"look: `{score}` of `run 0` holds values of different metrics, which are averaged"
    assert the_one(run, run, metrics=(score,)).found[-1].startswith(said)


def passing(column: str, first: str, second: str) -> pl.DataFrame:
    return long(column, first, second).with_columns(correct=pl.col("score") > 0.4).drop("score")


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("scorer", ("exact_match", "regex")),
        ("criterion", ("polite", "complete")),
        ("measure", ("cm", "kg")),
        ("metric", ("imperial", "SI")),
        ("metrics", ("acc", "acc,f1")),
        ("metric_id", ("m1", "m2")),
    ],
)
def test_examples_that_pass_by_a_metric_of_their_own(column: str, values: tuple[str, str]) -> None:
    """Regression: an evaluation with a scorer for each task was refused."""
    run = passing(column, *values)
    for frame in (run, run.with_columns(pl.col("correct").cast(pl.Int64))):
        (note,) = the_one(frame, frame).found
        assert note.startswith("look: `correct` of `run 0` holds values of different metrics")


def test_examples_with_several_metrics() -> None:
    run = passing("scorer", "exact_match", "regex")
    for frame in (
        run.with_columns(id=pl.Series([f"q{i // 2}" for i in range(40)])),
        run.with_columns(example_id=pl.Series([f"q{i % 20}" for i in range(40)])),
        run.with_columns(question=pl.Series([f"q{i % 20}" for i in range(40)])),
    ):
        with pytest.raises(InputError, match="different metrics"):
            asked(frame, frame)
