"""Options with which runs are read again: those given, else those logged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.changed_evidence import failures
from support.command_line import invoke

import trackperm
from trackperm.errors import InputError
from trackperm.ledger.comparison_publication import evidence

N = 14
LABELS = pl.DataFrame({"id": range(N), "label": ["yes", "no"] * (N // 2)})
OWN: dict[str, Any] = {
    "baseline_columns": {"prediction": "answer"},
    "candidate_columns": {"prediction": "said"},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs whose columns of predictions have other names, and their labels."""
    monkeypatch.chdir(tmp_path)
    for name, column, step in (("old", "answer", 2), ("new", "said", 7)):
        others = LABELS["label"].replace_strict({"yes": "no", "no": "yes"})
        said = [
            (meant if i % step else other)
            for i, meant, other in zip(range(N), LABELS["label"], others, strict=True)
        ]
        pl.DataFrame({"id": range(N), column: said}).write_csv(f"{name}.csv")
    LABELS.write_csv("gold.csv")
    return tmp_path


def logged(labels: Any, **options: Any) -> str:
    """Compare the runs, and return the folder with the files of the comparison."""
    comparison = trackperm.compare("old.csv", "new.csv", "accuracy", labels=labels, **OWN, **options)
    Path("trackperm").mkdir()
    for path, content in evidence(comparison).items():
        Path(path).write_bytes(content)
    return "trackperm"


def test_options_are_as_logged(folder: Path):
    """Regression: the labels and the columns of each run had to be given again."""
    said = invoke("verify", logged("gold.csv"), "--from-runs")
    options = (
        "`--labels gold.csv`, `--baseline-column prediction=answer`, `--candidate-column prediction=said`"
    )
    assert f"taken as logged: {options}, with which the runs were read" in said.splitlines()


def test_columns_of_labels_are_as_logged(folder: Path):
    pl.DataFrame({"key": LABELS["id"], "right": LABELS["label"]}).write_csv("gold.csv")
    for name in ("old", "new"):
        pl.read_csv(f"{name}.csv").rename({"id": "key"}).write_csv(f"{name}.csv")
    columns = {"id": "key", "label": "right"}
    assert trackperm.verify(logged("gold.csv", columns=columns), from_runs=True).matches


def test_options_that_are_given_replace_those_logged(folder: Path):
    place = logged("gold.csv")
    pl.read_csv("new.csv").rename({"said": "answered"}).write_csv("new.csv")
    LABELS.with_columns(pl.col("label").reverse()).write_csv("other.csv")
    found = trackperm.verify(place, from_runs=True, candidate_columns={"prediction": "answered"})
    assert found.matches
    assert found.notes[0].startswith(
        "taken as logged: `--labels gold.csv`, `--baseline-column prediction=answer`, with"
    )
    found = trackperm.verify(
        place, from_runs=True, labels="other.csv", candidate_columns={"prediction": "answered"}
    )
    assert "candidate_score, from the runs" in failures(found)
    assert "labels" not in found.notes[0]


def test_a_file_of_labels_that_is_gone_is_named(folder: Path):
    place = logged("gold.csv")
    Path("gold.csv").rename("moved.csv")
    with pytest.raises(InputError) as caught:
        trackperm.verify(place, from_runs=True)
    assert caught.value.message == (
        f"the file `gold.csv` with the labels of the comparison does not exist in `{folder}`"
    )
    assert caught.value.hint == "`--labels FILE` names a file with these labels."
    assert trackperm.verify(place, from_runs=True, labels="moved.csv").matches


def test_labels_in_memory_have_to_be_given(folder: Path):
    place = logged(LABELS)
    with pytest.raises(InputError, match="were a table in memory"):
        trackperm.verify(place, from_runs=True)
    assert trackperm.verify(place, from_runs=True, labels=LABELS).matches


def test_older_logs_have_none(folder: Path):
    place = logged("gold.csv")
    result = Path(place, "comparison.json")
    data = json.loads(result.read_text())
    kept = {name: value for name, value in data.items() if name not in ("artifacts", "run_columns", "labels")}
    result.write_text(json.dumps(kept))
    with pytest.raises(InputError, match="`label`"):
        trackperm.verify(place, from_runs=True)
    found = trackperm.verify(place, from_runs=True, labels="gold.csv", **OWN)
    assert found.matches
    assert not any("were read" in note for note in found.notes)
