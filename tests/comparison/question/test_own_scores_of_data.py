"""Columns beside predictions and labels that are no score of a run, or say no more than another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.questions import PLAIN, asked, the_one

import trackperm
from trackperm.errors import InputError

N = 40
FIRST, SECOND = [i < 30 for i in range(N)], [i < 18 for i in range(N)]


def free(right: list[bool], **columns: Any) -> pl.DataFrame:
    """Return answers of which some equal their reference."""
    answers = [f"a {i}" if each else f"the z {i}" for i, each in enumerate(right)]
    return pl.DataFrame(
        {"id": range(N), "prediction": answers, "reference": [f"a {i}" for i in range(N)], **columns}
    )


def classes(right: list[bool], **columns: Any) -> pl.DataFrame:
    labels = ["A", "B", "C", "D"] * 10
    said = [
        label if each else "ABCD"[i % 4 - 1]
        for i, (label, each) in enumerate(zip(labels, right, strict=True))
    ]
    return pl.DataFrame({"id": range(N), "prediction": said, "label": labels, **columns})


def pair(frame: Any, **columns: Any) -> list[pl.DataFrame]:
    return [frame(FIRST, **columns), frame(SECOND, **columns)]


@pytest.mark.parametrize("frame", [free, classes])
@pytest.mark.parametrize(
    "columns", [{"success": [True] * N}, {"passed": [0] * N}, {"pass": [1] * N}, {"correct": [False] * N}]
)
def test_a_score_with_one_value_says_nothing(frame: Any, columns: dict[str, Any]) -> None:
    """Regression: `success`, that calls went through, replaced accuracy: runs of 75 and 45 % were equal."""
    frames = pair(frame, **columns)
    assert the_one(*frames).name == "accuracy"
    assert trackperm.compare(*frames).baseline_score == 0.75


def test_all_answers_are_correct() -> None:
    assert the_one(*pair(free, correct=[True] * N)).columns["score"] == "correct"


@pytest.mark.parametrize("name", ["success", "pass"])
def test_calls_that_went_through(name: str) -> None:
    most = {name: [i != 35 for i in range(N)]}
    assert the_one(*pair(classes, **most)).name == "accuracy"
    with pytest.raises(InputError, match=f"scores of its own: `{name}`"):
        asked(*pair(free, **most))


def test_scores_that_say_no_more_are_not_counted() -> None:
    """Regression: `exact_match` and `is_correct` beside `correct` were several scores."""
    judged = [i % 8 > 0 for i in range(N)]
    for others in ({"exact_match": None}, {"is_correct": judged}, {"judge": judged}):
        frames = [
            free(right, **{name: own or right for name, own in others.items()}, correct=judged)
            for right in (FIRST, SECOND)
        ]
        statistic = the_one(*frames)
        assert {"correct", "is_correct"} & {*statistic.columns.values()}
        left = [note for note in statistic.found if note.startswith("not compared, because it says no more")]
        assert len(left) == ("judge" not in others)
    worded = [frame.with_columns(pl.col("correct").cast(pl.String).str.to_titlecase()) for frame in frames]
    assert the_one(*worded).columns["value"] == "correct"


@pytest.mark.parametrize("name", ["correct", "score"])
def test_classes_in_another_spelling(name: str) -> None:
    said = [label.lower() if i % 2 else f"{label} " for i, label in enumerate(["A", "B", "C", "D"] * 10)]
    frames = [
        classes(right).with_columns(
            pl.when(pl.Series([i > 19 and each for i, each in enumerate(right)]))
            .then(pl.Series(said))
            .otherwise("prediction")
            .alias("prediction"),
            pl.Series(name, right),
        )
        for right in (FIRST, SECOND)
    ]
    statistic = the_one(*frames)
    assert statistic.columns["score"] == name
    assert "equals `label` but for case and spaces, such as 'A ' for 'A' in `run 0`" in statistic.found[0]
    assert trackperm.compare(*frames).baseline_score == 0.75


def test_answers_that_were_extracted() -> None:
    longer = [
        classes(right, correct=[each or i > 35 for i, each in enumerate(right)]) for right in (FIRST, SECOND)
    ]
    statistic = the_one(*longer)
    assert statistic.columns["score"] == "correct"
    assert statistic.found[0].startswith("look: `correct` is compared and not accuracy: in 8 rows it is true")
    passed = [frame.rename({"correct": "passed"}) for frame in longer]
    with pytest.raises(InputError, match="`passed` of `run 0` is true where"):
        asked(*passed)


@pytest.mark.parametrize("name", ["difficulty_rating", "product_rating", "data_quality", "Rating"])
def test_columns_of_the_data_set(name: str) -> None:
    """Regression: the same values in both runs counted as scores, and the hint named them."""
    values = [i % 5 + 0.5 for i in range(N)]
    first, second = pair(free, **{name: values})
    assert the_one(first, second.reverse()).name == "accuracy"
    with pytest.raises(InputError, match=f"scores of its own: `{name}`"):
        asked(first, second.with_columns(pl.col(name).reverse()))
    objects = pair(free, metadata=[{"source": "web", "quality": value} for value in values])
    assert the_one(*objects).name == "accuracy"


def test_columns_of_the_data_set_in_files(tmp_path: Path) -> None:
    first, second = pair(free, my_rating=[float(i % 5) for i in range(N)])
    first.write_csv(tmp_path / "a.csv")
    second.with_columns(pl.col("my_rating").cast(pl.Int64)).write_ndjson(tmp_path / "b.jsonl")
    assert trackperm.compare(tmp_path / "a.csv", tmp_path / "b.jsonl").baseline_score == 0.75


def test_a_letter_is_no_metric() -> None:
    first, second = pair(free)
    values = pl.Series("f", [i / N for i in range(N)])
    assert the_one(first.with_columns(values), second.with_columns(values.reverse())).name == "accuracy"


@pytest.mark.parametrize("n_labels", [4, 25, 30])
def test_small_logs_of_classifiers(n_labels: int) -> None:
    """Regression: the `score` of a pipeline stopped logs of few rows and many labels, or invalid outputs."""
    labels = [f"species {i % n_labels}" for i in range(N)]
    frames = [
        pl.DataFrame(
            {
                "id": range(N),
                "prediction": [own if each else "unknown" for own, each in zip(labels, right, strict=True)],
                "label": labels,
                "score": [0.5 + (i * 7 % N) / 100 for i in range(N)],
            }
        )
        for right in (FIRST, [i < 24 for i in range(N)])
    ]
    assert the_one(*frames).name == "accuracy"
    named = [frame.rename({"score": "faithfulness"}) for frame in frames]
    named[1] = named[1].with_columns(pl.col("faithfulness").reverse())
    with pytest.raises(InputError, match="scores of its own: `faithfulness`"):
        asked(*named)


def test_names_with_spaces_are_quoted() -> None:
    name = "answer correctness"
    frames = [free(right, **{name: [*map(float, right)]}) for right in ([True] * 9 + [False] * 31, SECOND)]
    frames = [frame.with_columns(pl.col(name) / 2) for frame in frames]
    with pytest.raises(InputError, match="are free text") as caught:
        asked(*frames)
    assert "`--metric 'answer correctness'` compares" in str(caught.value.hint)


def test_plain_classes_keep_accuracy() -> None:
    assert the_one(PLAIN.with_columns(success=True), PLAIN.with_columns(success=False)).name == "accuracy"
