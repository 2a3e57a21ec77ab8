"""Ids that pandas writes as ``1.0`` into CSV files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import trackperm
from trackperm.errors import DisjointError
from trackperm.tables.formats import delimited

CORRECT = ([1, 0, 1, 0, 0, 1, 0, 0], [1, 1, 1, 1, 0, 1, 1, 0])
FLOATS = [f"{i}.0" for i in range(8)]
FORMS: dict[str, list[Any]] = {
    "floats in CSV": FLOATS,
    "integers in CSV": [str(i) for i in range(8)],
    "integers": [*range(8)],
    "floats": [float(i) for i in range(8)],
}


def run(folder: Path, form: str, ids: list[Any], i: int) -> Path:
    table = pl.DataFrame({"id": ids, "correct": CORRECT[i]})
    if form.endswith("CSV"):
        table.write_csv(path := folder / f"{form}-{i}.csv")
    else:
        table.write_parquet(path := folder / f"{form}-{i}.parquet")
    return path


@pytest.mark.parametrize("size", [0, 10**9])
def test_ids_are_paired(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory, and as a scan of a large file."""
    monkeypatch.setattr(delimited, "LARGE", size)
    old = run(tmp_path, "floats in CSV", FLOATS, 0)
    for form, ids in FORMS.items():
        other = run(tmp_path, form, ids, 1)
        for pair in ((old, other), (other, old)):
            found = trackperm.compare(*pair)
            assert abs(found.difference) == 0.375
            is_said = any("which were compared as integers" in note for note in found.pairing.notes)
            assert is_said is (form != "floats in CSV")
    board = trackperm.leaderboard({"a": old, "b": run(tmp_path, "integers", FORMS["integers"], 1)})
    assert board.rows[0].score == 0.75


def test_reference_answers(tmp_path: Path) -> None:
    gold = tmp_path / "gold.csv"
    pl.DataFrame({"id": range(8), "label": list("abababab")}).write_csv(gold)
    runs = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path, answers in zip(runs, ("aaaaaaaa", "abababbb"), strict=True):
        pl.DataFrame({"id": FLOATS, "prediction": list(answers)}).write_csv(path)
    assert trackperm.compare(*runs, labels=gold).difference == 0.375


def test_text_stays_text(tmp_path: Path) -> None:
    """Typed text is what it is, and other numbers may be versions."""
    old = run(tmp_path, "floats in CSV", [*FLOATS[:7], "7.5"], 0)
    with pytest.raises(DisjointError):
        trackperm.compare(old, run(tmp_path, "integers", FORMS["integers"], 1))
    text = pl.DataFrame({"id": FLOATS, "correct": CORRECT[1]})
    assert trackperm.compare(run(tmp_path, "floats in CSV", FLOATS, 0), text).difference == 0.375
