"""Notes of leaderboards speak of their runs, not of a baseline and a candidate."""

from __future__ import annotations

from pathlib import Path

import polars as pl

import trackperm

LABELS = ["yes", "no"] * 20


def run(missing: range, *, label: bool = True, score: int | None = None) -> pl.DataFrame:
    prediction = [None if i in missing else LABELS[i] for i in range(40)]
    frame = pl.DataFrame({"id": range(40), "prediction": prediction, "label": LABELS})
    frame = frame if label else frame.drop("label")
    return frame if score is None else frame.drop("prediction").with_columns(score=pl.lit(score))


def test_missing_predictions_are_noted_once_for_each_run() -> None:
    """Regression: "a: missing predictions counted as wrong: 0 of the baseline, 7 of the candidate"."""
    runs = {"a": run(range(7)), "b": run(range(1)), "c": run(range(0)), "d": run(range(2, 4))}
    for board in (
        trackperm.leaderboard(runs, "accuracy", missing="wrong"),
        trackperm.leaderboard(runs, "accuracy", missing="wrong", baseline="a"),
    ):
        noted = sorted(note for note in board.notes if "missing" in note)
        assert noted == [
            "a: 7 missing predictions counted as wrong",
            "b: 1 missing prediction counted as wrong",
            "d: 2 missing predictions counted as wrong",
        ]


def test_notes_name_the_command_that_has_the_option() -> None:
    """Regression: leaderboards have no option `--slice`."""
    parts = pl.Series("split", ["train"] * 10 + ["test"] * 30)
    board = trackperm.leaderboard(
        {name: run(range(i)).with_columns(parts) for i, name in enumerate("ab")}, "accuracy", missing="wrong"
    )
    notes = [note for note in board.notes if "split" in note]
    assert notes
    assert all(note.endswith("; `trackperm compare --slice split` compares each part") for note in notes)


def test_a_note_on_a_file_names_it_once(tmp_path: Path) -> None:
    """Regression: "b.json: `b.json`: `id` has integers, which were compared as text"."""
    for name in ("a", "b"):
        run(range(0)).write_json(tmp_path / f"{name}.json")
    run(range(0)).write_csv(tmp_path / "c.csv")
    files = {name: tmp_path / name for name in ("a.json", "b.json", "c.csv")}
    board = trackperm.leaderboard(files, "accuracy")
    noted = [note for note in board.notes if "compared as text" in note]
    assert [note.count("json") for note in noted] == [1, 1]


def test_one_note_on_labels() -> None:
    """Regression: a second note said that neither run had any."""
    none = {name: run(range(0), label=False, score=i) for i, name in enumerate("abc")}
    board = trackperm.leaderboard(none, metric="score")
    assert [note for note in board.notes if "label" in note] == [
        "labels were not compared: no run has a column `label`"
    ]
    some = {name: run(range(0), label=name != "b", score=i) for i, name in enumerate("abc")}
    board = trackperm.leaderboard(some, metric="score", baseline="a")
    assert [note for note in board.notes if "label" in note] == [
        "labels were not compared: `b` has no column `label`"
    ]
