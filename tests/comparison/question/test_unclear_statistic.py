"""Columns that the error about an unclear statistic names."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from support.command_line import invoke
from support.questions import asked

from trackperm.errors import InputError

RUN = pl.DataFrame(
    {
        "PassengerId": range(12),
        "time": [3.5, 0.25] * 6,
        "id": [f"q{i}" for i in range(12)],
        "risk": [i / 12 for i in range(12)],
    }
)


def hint(*frames: pl.DataFrame) -> str:
    with pytest.raises(InputError, match="is unclear") as caught:
        asked(*frames)
    return str(caught.value.hint)


def test_columns_that_are_the_same_in_both_runs_are_no_scores() -> None:
    other = RUN.with_columns(risk=pl.col("risk") ** 2)
    assert "`--metric COLUMN` (`risk`), " in hint(RUN, other)
    assert "`--metric COLUMN` (`risk`), " in hint(RUN, other.reverse())
    assert "`--metric COLUMN` (`time`, `risk`), " in hint(RUN, RUN)
    texts = RUN.drop("risk").with_columns(says=pl.col("id"))
    assert "`--metric COLUMN`, " in hint(texts, texts.with_columns(says=pl.lit("no")))


def test_an_index_is_a_score_if_no_other_column_is() -> None:
    run = RUN.select("id", walkability_index=pl.Series([8, 70, 93] * 4))
    other = run.with_columns(walkability_index=pl.Series([9, 70, 90] * 4))
    assert "`--metric COLUMN` (`walkability_index`), " in hint(run, other)
    risk = RUN["risk"]
    assert "`--metric COLUMN` (`risk`), " in hint(run.with_columns(risk), other.with_columns(1 - risk))


def test_a_confidence_called_prediction_beside_the_predicted_class(tmp_path: Path) -> None:
    """Weka writes `actual`, `predicted` and `prediction`, of which the last is a confidence."""
    run = RUN.select("id", actual=pl.lit("1:yes"), predicted=pl.lit("1:yes"), prediction="risk")
    other = run.with_columns(predicted=pl.Series(["1:yes", "2:no"] * 6))
    assert hint(run, other).startswith("`--prediction predicted` compares `predicted` with `actual`")
    other.write_csv(tmp_path / "run.csv")
    command = invoke("inspect", str(tmp_path / "run.csv")).splitlines()[-1]
    assert command.endswith("OTHER -s accuracy --prediction predicted --label actual")
    classes = run.with_columns(prediction="predicted", predicted="prediction")
    assert asked(classes, classes)[0].columns["prediction"] == "prediction"


def test_a_column_beside_decimal_labels_may_be_predictions() -> None:
    run = RUN.select("id", y="time", AutoARIMA="risk")
    other = run.with_columns(AutoARIMA=pl.col("AutoARIMA") ** 2)
    assert hint(run, other).startswith(
        "name the predictions of `y` by `--prediction AutoARIMA`, with a statistic of numbers such as"
        " `--statistic mae`, or "
    )


@pytest.mark.parametrize("said", [[2.25, 7.75] * 6, [3, 8] * 6])
def test_predicted_numbers_have_errors(said: list[float]) -> None:
    run = pl.DataFrame({"id": range(12), "yhat": said, "y": [2.5, 7.5] * 6})
    assert hint(run, run).startswith("compare errors of numbers by `--statistic mae` or")


@pytest.mark.parametrize(
    ("answer", "gold", "options"),
    [
        ("prediction", "answer", "`--label answer`"),
        ("answer", "label", "`--prediction answer`"),
        ("answer", "real verdict", "`--prediction answer` and `--label 'real verdict'`"),
        ("prediction", None, "`--label COLUMN`, or give the labels of both runs by `--labels FILE`"),
    ],
)
def test_yes_and_no_beside_labels_of_another_name(answer: str, gold: str | None, options: str) -> None:
    """Regression: the hint named no column, or `--metric 'real verdict=yes'`, a share of the labels."""
    right = ["yes", "no", "no", "yes"] * 3
    golden = {} if gold is None else {gold: right}
    frames = [
        pl.DataFrame({"id": range(12), answer: [*right[:n], *["no"] * (12 - n)], "n": range(12), **golden})
        for n in (2, 10)
    ]
    assert hint(*frames).startswith(f"name the columns of accuracy by {options}, name a column of scores")
    assert f"`--metric '{gold}" not in hint(*frames)


@pytest.mark.parametrize(
    ("label", "prediction", "options"),
    [
        ("ner_tags", "pred_tags", " --label ner_tags --prediction pred_tags"),
        ("label", "prediction", ""),
        ("labels", "predictions", " --label labels --prediction predictions"),
    ],
)
def test_lists_of_tags_have_spans(label: str, prediction: str, options: str) -> None:
    """Regression: the hint named accuracy, which does not compare lists."""
    gold = [["O", "B-PER", "I-PER"], ["O"], ["B-LOC", "O"]]
    run = pl.DataFrame(
        {"id": range(3), "tokens": [["a"]] * 3, label: gold, prediction: [*gold[:2], ["O", "O"]]}
    )
    assert hint(run, run).startswith(
        f"`--statistic span_f1{options}` compares the entity spans of the tags; "
    )


@pytest.mark.parametrize(
    "columns",
    [
        {"ner_tags": [["O", "B-PER"]], "chunk_tags": [["B-NP", "O"]], "pred_tags": [["O", "O"]]},
        {"first_tags": [["O", "B-PER"]], "second_tags": [["O", "B-PER"]]},
        {"tags": [["news", "B-side"]], "pred_tags": [["news"]]},
        {"tags": [["O", "O"]], "pred_tags": [["O", "O"]]},
    ],
)
def test_other_lists_have_no_spans(columns: dict[str, list[list[str]]]) -> None:
    run = pl.DataFrame({"id": [1], **columns})
    assert "span_f1" not in hint(run, run)
