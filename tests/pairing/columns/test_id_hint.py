"""Hints about ids that start anew, an index without a name, and rows that are not attempts."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.command_line import invoke
from support.example_tables import table

import trackperm
from trackperm.errors import InputError, PairingError
from trackperm.pairing.columns.id_hint import id_hint
from trackperm.pairing.columns.repeated_rows import joint_id, repeated_rows, unnamed_id

SUBJECTS = [name for name in ("anatomy", "law", "physics") for _ in range(8)]
ANEW = [i % 8 for i in range(24)]
FOLDS = [i // 8 for i in range(24)]
RIGHT = [int(i % 3 > 0) for i in range(24)]
LABELS = ["ABCD"[(i * 7 // 3) % 4] for i in range(24)]
SAME = ["ABCD"[i % 4] for i in ANEW]


@pytest.mark.parametrize("id_", ["question_id", "id"])
def test_ids_that_start_anew_in_each_subject(id_: str, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    pl.DataFrame({"subject": SUBJECTS, id_: ANEW, "correct": RIGHT}).write_csv(path)
    with pytest.raises((InputError, PairingError)) as caught:
        trackperm.compare(path, path)
    assert f"`--id subject,{id_}` identifies the examples by both columns." in str(caught.value.hint)
    assert "--repeats" not in str(caught.value.hint)
    command = invoke("inspect", str(path)).splitlines()[-1].split()
    assert command[-2:] == ["--id", f"subject,{id_}"]
    assert trackperm.compare(path, path, columns={"id": f"subject,{id_}"}).n_examples == 24


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"label": LABELS}, "labels differ within an id"),
        ({"question": LABELS}, "inputs differ within an id"),
        ({"name": SUBJECTS}, "a text says what each row of an id is"),
    ],
)
def test_rows_that_are_no_attempts(columns: Any, why: str) -> None:
    run = table(question_id=ANEW, correct=RIGHT, **columns)
    assert repeated_rows([run, run]) is None, why
    assert joint_id([run, run]) is None


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"label": SAME}, "labels are the same within an id"),
        ({"language": SUBJECTS, "label": SAME}, "the same question in several languages"),
        ({"prediction": SUBJECTS}, "each attempt may have its own answer"),
        ({"run": SUBJECTS}, "attempts may have names"),
        ({"note": [f"{i // 5}" for i in range(24)]}, "a text that is not the same in all ids"),
        ({"note": ["a", "b"] * 12}, "a text that repeats within an id"),
        ({"objects": [{"a": 1}] * 24}, "objects name nothing"),
    ],
)
def test_rows_that_may_be_attempts(columns: Any, why: str) -> None:
    run = table(question_id=ANEW, correct=RIGHT, **columns)
    assert repeated_rows([run, run]) == ("question_id", "sum", (3, 3)), why
    assert joint_id([run, run]) is None


def test_two_columns_whose_values_the_runs_do_not_share() -> None:
    run = table(subject=SUBJECTS, question_id=ANEW, correct=RIGHT)
    other = table(subject=[f"{name} 2" for name in SUBJECTS], question_id=ANEW, correct=RIGHT)
    assert joint_id([run, run]) == ("subject", "question_id")
    assert joint_id([run, other]) is None


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_an_index_without_a_name(name: str, tmp_path: Path) -> None:
    """By position, rows of other examples were compared where the index pairs them."""
    run = pl.DataFrame({name: [104 + 3 * i for i in range(24)], "score": [i / 24 for i in range(24)]})
    paths = [tmp_path / "old.csv", tmp_path / "new.csv"]
    for path, frame in zip(paths, (run, run.reverse()), strict=True):
        frame.write_csv(path)
    with pytest.raises(InputError) as caught:
        trackperm.compare(*paths)
    hint, id_ = str(caught.value.hint), name or "column_1"
    assert hint.startswith(f"`--id {shlex.quote(id_)}` names the first column, which has no name in the file")
    assert "--by-position" not in hint
    assert trackperm.compare(*paths, columns={"id": id_}).n_discordant == 0


def test_an_index_that_is_no_id() -> None:
    index = [*range(24)]
    run = table(column_1=index, score=RIGHT)
    assert unnamed_id([run, run]) == "column_1"
    others = {
        "repeats": table(column_1=ANEW, score=RIGHT),
        "shares few values": table(column_1=[i + 20 for i in index], score=RIGHT),
        "has a name": table(rank=index, score=RIGHT),
        "is not the first": table(score=RIGHT, column_1=index),
    }
    for why, other in others.items():
        assert unnamed_id([other, run]) is None, why
    assert unnamed_id([table()]) is None
    attempts = table(column_1=index, task_id=ANEW, reward=RIGHT)
    assert str(id_hint([attempts, attempts])).startswith("`task_id` has 3 rows of each value")


def hint_of(*runs: pl.DataFrame, **options: Any) -> str:
    with pytest.raises((InputError, PairingError)) as caught:
        trackperm.compare(*runs, **options)
    return str(caught.value.hint)


def test_two_columns_whose_values_repeat() -> None:
    """Days repeat in every series, and have the likest name to `id`."""
    run = pl.DataFrame({"unique_id": SUBJECTS, "ds": [f"day {i}" for i in ANEW], "score": RIGHT})
    said = "`unique_id` and `ds` identify the examples together: `--id unique_id,ds`."
    assert hint_of(run, run) == said
    assert hint_of(run, run, columns={"id": "ds"}) == f"each example has one row. {said}"
    assert trackperm.compare(run, run, columns={"id": "unique_id,ds"}).n_examples == 24


def test_a_column_whose_values_agree() -> None:
    values = [f"v{i}" for i in range(24)]
    run = pl.DataFrame({"ds": [*"abcdefgh"] * 3, "link": values, "score": RIGHT})
    assert hint_of(run, run).startswith("`--id link` names the column;")
    other = run.with_columns(link=pl.col("link") + "x")
    assert hint_of(run, other).startswith("`--id NAME` names the column;")


def test_inputs_that_differ_in_both_runs() -> None:
    """They may be outputs, such as questions that a model wrote."""
    values = [f"v{i}" for i in range(24)]
    run = pl.DataFrame({"question": values, "score": RIGHT})
    other = run.with_columns(question=pl.Series(["other", *values[1:]]))
    hint = hint_of(run, other)
    assert hint.startswith("each run has a `question` that the other lacks: `--id question` pairs those")
    assert "--missing" not in hint
    texts = [each.rename({"question": "text"}) for each in (run, other)]
    assert "text" not in hint_of(*texts, metric="score")
    reworded = run.with_columns(pl.col("question") + "!")
    assert "no `question` is in both runs, so that it identifies no example" in hint_of(run, reworded)


def test_ids_of_which_no_two_agree() -> None:
    """Trackers number the calls of each run anew."""
    columns = {
        "example_id": [*range(24)],
        "inputs.question": SUBJECTS,
        "request": [f"v{i}" for i in range(24)],
    }
    runs = [
        pl.DataFrame({"id": [f"{name}{i}" for i in range(24)], **columns, "score": RIGHT}) for name in "uv"
    ]
    assert hint_of(*runs).endswith(
        "No example is left to test. `--id example_id` or `--id request` names a column whose values agree."
    )
    alone = [run.select("id", "score") for run in runs]
    assert hint_of(*alone) == "No example is left to test. `--id NAME` names another column than `id`."


@pytest.mark.parametrize(
    ("ids", "option"),
    [
        ({"row": [*range(1, 49, 2)]}, "`--id row` names the column"),
        ({"sample_idx": [*range(1, 49, 2)]}, "`--id sample_idx` names the column"),
        ({"rank": [*range(1, 49, 2)]}, "`--id NAME` names the column"),
        (
            {"fold": FOLDS, "idx": ANEW},
            "`--id fold,idx` identifies the examples",
        ),
        (
            {"level_0": FOLDS, "level_1": ANEW},
            "`--id level_0,level_1` names the levels",
        ),
    ],
    ids=lambda each: "+".join(each) if isinstance(each, dict) else "",
)
def test_numbers_of_rows_and_levels_of_an_index(ids: dict[str, list[int]], option: str) -> None:
    """Regression: the option had a placeholder where `trackperm inspect` knew the name."""
    run = pl.DataFrame({**ids, "prediction": SAME, "label": LABELS})
    with pytest.raises(InputError) as caught:
        trackperm.compare(run, run[::-1])
    assert option in str(caught.value.hint)
    if "NAME" not in option:
        assert trackperm.compare(run, run[::-1], columns={"id": ",".join(ids)}).n_examples == 24
