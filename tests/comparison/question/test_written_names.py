"""Usual names of columns in other letters, as in `Id`, `Prediction`, `Label` of a spreadsheet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import trackperm
from trackperm.errors import InputError

ANSWERS = {"id": list("abcdefgh"), "prediction": list("xyxyxyxy"), "label": list("xxxxyyyy")}
SCORES = {"task_id": list("aabbccdd"), "epoch": [0, 1] * 4, "score": [1, 0, 0, 0, 1, 1, 0, 1]}
OLD = pl.DataFrame(ANSWERS)
NEW = OLD.with_columns(prediction=pl.Series(list("xxxxyyxx")))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "names",
    [
        {"id": "Id", "prediction": "Prediction", "label": "Label"},
        {"prediction": "PREDICTION", "label": "LABEL"},
        {"prediction": "Output", "label": " target "},
        {"label": "Label"},
        {"id": "exampleId", "prediction": "modelOutput", "label": "groundTruth"},
        {"id": "Question ID", "prediction": "Predicted Label", "label": "Gold  Label"},
        {"id": "questionID", "prediction": "yPred", "label": "yTrue"},
    ],
)
@pytest.mark.parametrize("statistic", [None, "macro_f1"])
def test_answers(names: dict[str, str], statistic: str | None) -> None:
    expected = trackperm.compare(OLD, NEW, statistic)
    runs = OLD.rename(names), NEW.rename(names)
    found = trackperm.compare(*runs, statistic)
    assert (found.pvalue, found.difference) == (expected.pvalue, expected.difference)
    assert found.pairing.labels_checked
    for role, name in names.items():
        assert f"{role}: column `{name}`" in found.statistic.found
        assert found.statistic.columns[role] == name
    with_named = trackperm.compare(*runs, statistic, columns=names)
    assert with_named.pvalue == expected.pvalue
    assert trackperm.leaderboard(dict(zip("ab", runs, strict=True)), statistic).rows[0].name == "b"


@pytest.mark.parametrize(
    "options", [{}, {"metric": "Score"}, {"metric": "score"}, {"statistic": "mean"}, {"unit": "row"}]
)
def test_scores(options: dict[str, Any]) -> None:
    old = pl.DataFrame(SCORES)
    new = old.with_columns(score=pl.lit(1))
    names = {"task_id": "Task_ID", "epoch": "Epoch", "score": "Score"}
    plain = {**options, **({"metric": "score"} if "metric" in options else {})}
    expected = trackperm.compare(old, new, **plain)
    found = trackperm.compare(old.rename(names), new.rename(names), **options)
    assert (found.pvalue, found.difference) == (expected.pvalue, expected.difference)
    assert found.statistic.columns["score"] == "Score"


@pytest.mark.parametrize("id_", ["questionId", "Example ID", "taskID", "ID"])
@pytest.mark.parametrize("score", ["isCorrect", "Is Correct", "exactMatch", "correct"])
def test_words_that_are_written_in_other_ways(id_: str, score: str) -> None:
    old = pl.DataFrame({id_: list("abcdef"), score: [1, 0, 0, 0, 1, 0]})
    new = pl.DataFrame({id_: list("fedcba"), score: [1, 1, 1, 0, 1, 1]})
    found = trackperm.compare(old, new)
    assert (found.statistic.columns["id"], found.statistic.columns["score"]) == (id_, score)
    names = {id_: "question_id", score: "is_correct"}
    assert found.pvalue == trackperm.compare(old.rename(names), new.rename(names)).pvalue


def test_ids_of_attempts_in_camel_case() -> None:
    old = pl.DataFrame({"taskId": list("aabbccdd"), "sampleId": [0, 1] * 4, "isCorrect": [1, 0] * 4})
    found = trackperm.compare(old, old.with_columns(isCorrect=pl.lit(1)))
    assert (found.statistic.columns["id"], found.n_examples) == ("taskId", 4)


def test_an_exact_name_wins() -> None:
    runs = [frame.with_columns(Label=pl.lit("x"), Score=pl.lit(1)) for frame in (OLD, NEW)]
    assert trackperm.compare(*runs).statistic.columns["label"] == "label"


def test_two_alike() -> None:
    runs = [frame.with_columns(Label=pl.col("label")).rename({"label": "LABEL"}) for frame in (OLD, NEW)]
    with pytest.raises(InputError, match="each of `LABEL`, `Label` could be the column `label`"):
        trackperm.compare(*runs)


def test_other_columns_are_looked_at_too() -> None:
    """A score is refused for the same reasons as one in small letters."""
    old = pl.DataFrame({"Id": [1, 2, 3], "Jailbreak_Prompt": ["a", "b", "c"], "Success": [1, 0, 1]})
    with pytest.raises(InputError, match="may say how well an attack succeeds"):
        trackperm.compare(old, old.with_columns(Success=pl.lit(1)))


@pytest.mark.parametrize(
    ("columns", "message", "hint"),
    [
        (
            {"Kind": list("xyxyxyxy"), "Label": list("xxxxyyyy")},
            "their columns are `Id`, `Kind`, `Label`",
            "`--prediction Kind`",
        ),
        (
            {"Survived": [0, 1] * 4, "Label": [0, 0, 1, 1] * 2},
            "`Survived`, `Label`",
            "`--prediction Survived`",
        ),
        ({"Score": [" 1", "2"] * 4}, "`Score` of `baseline` holds text, such as ' 1'", "`--metric COLUMN`"),
        ({"My Verdict": ["right", "wrong"] * 4, "LABEL": [0, 1] * 4}, "`My Verdict`", "'My Verdict=right'`"),
        (
            {"Score": [0.1, 0.7] * 4, "Ok_A": [1, 0] * 4},
            "`Score` of",
            "`--metric Score` compares means of `Score`",
        ),
    ],
)
def test_errors_name_the_columns_of_the_runs(columns: dict[str, Any], message: str, hint: str) -> None:
    old = pl.DataFrame({"Id": list("abcdefgh"), **columns})
    new = old.with_columns(pl.nth(1).reverse())
    with pytest.raises(InputError) as raised:
        trackperm.compare(old, new)
    assert message in raised.value.message
    assert raised.value.hint is not None
    assert hint in raised.value.hint


@pytest.mark.parametrize("name", ["my name", "my key"])
def test_hints_quote_names_with_spaces(name: str) -> None:
    runs = [frame.rename({"id": name}) for frame in (OLD, NEW)]
    with pytest.raises(InputError) as raised:
        trackperm.compare(*runs)
    assert raised.value.hint is not None
    assert raised.value.hint.startswith(f"`--id '{name}'` names the column")
    assert f'`columns={{"id": "{name}"}}`' in str(raised.value)
    assert trackperm.compare(*runs, columns={"id": name}).n_examples == len(OLD)


def test_the_hint_on_texts_reads_the_column_of_the_file(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.jsonl" for name in ("old", "new")]
    for path in paths:
        pl.DataFrame({"Id": ["a", "b"], "Score": [" 1", " 2"]}).write_ndjson(path)
    with pytest.raises(InputError, match=r'pl\.col\("Score"\)'):
        trackperm.compare(*paths, metric="Score")


def test_reference_answers() -> None:
    gold = OLD.select(Id="id", Label="label")
    runs = [frame.select(Id="id", Prediction="prediction") for frame in (OLD, NEW)]
    assert trackperm.compare(*runs, labels=gold).pvalue == trackperm.compare(OLD, NEW).pvalue


def test_a_space_behind_each_separator(tmp_path: Path) -> None:
    for name, answers in (("old", "xyxy"), ("new", "xxxx")):
        rows = "".join(f'{i}, {x}, "x", {int(x == "x")}\n' for i, x in enumerate(answers))
        (tmp_path / f"{name}.csv").write_text(f"id, prediction, label, correct\n{rows}")
    runs = tmp_path / "old.csv", tmp_path / "new.csv"
    assert trackperm.compare(*runs, "accuracy").difference == 0.5
    assert trackperm.compare(*runs, metric="correct").difference == 0.5


def test_one_run_spells_its_columns_differently() -> None:
    old = pl.DataFrame({"question_id": list("abcdef"), "correct": [1, 0, 0, 0, 1, 0]})
    new = pl.DataFrame({"question_id": list("fedcba"), "correct": [1, 1, 1, 0, 1, 1]})
    names = {"question_id": "Question ID", "correct": "Correct"}
    expected = trackperm.compare(old, new).pvalue
    found = trackperm.compare(old, new.rename(names))
    assert found.pvalue == expected
    assert (
        "`candidate`: its columns `Question ID`, `Correct` are read as `question_id`, `correct`"
        in found.pairing.notes
    )
    assert found.candidate_data.columns == names
    assert trackperm.compare(old.rename(names), new).statistic.columns["id"] == "Question ID"
    own = trackperm.compare(
        old, new.rename({"question_id": "q", "correct": "Correct"}), candidate_columns={"question_id": "q"}
    )
    assert own.candidate_data.columns == {"question_id": "q", "correct": "Correct"}
    for other in ("Correct", "CORRECT"):
        twice = new.rename({"correct": "correct "}).with_columns(pl.col("correct ").alias(other))
        with pytest.raises(InputError, match=r"lacks `correct`|no score|is unclear"):
            trackperm.compare(old, twice)
