"""Columns of objects: statistics that would compare them as text refuse them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import trackperm
from trackperm.choices import EngineName
from trackperm.errors import InputTypeError

each_local_engine = pytest.mark.parametrize("engine", ["polars", "duckdb"])


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(json.dumps({"id": i, **row}) for i, row in enumerate(rows)))
    return path


@pytest.mark.parametrize(
    "name", ["exact_match", "accuracy", "macro_f1", "character_error_rate", "word_error_rate", "squad_em"]
)
@each_local_engine
def test_the_order_of_names_does_not_count(name: str, engine: EngineName, tmp_path: Path) -> None:
    """Regression: the same object in another order of names was a wrong answer."""
    answers = [{"total": 10 + i, "tax": i % 2} for i in range(12)]
    other_order = [{"tax": answer["tax"], "total": answer["total"]} for answer in answers]
    runs = [
        written(
            tmp_path / f"{i}.jsonl",
            [{"prediction": x, "label": y} for x, y in zip(predicted, answers, strict=True)],
        )
        for i, predicted in enumerate((other_order, answers))
    ]
    with pytest.raises(InputTypeError) as caught:
        trackperm.compare(*runs, name, engine=engine)
    said = f"column `prediction` of `{runs[0]}` holds objects: `{name}` does not read objects"
    assert caught.value.message == said
    assert "unnest(" in str(caught.value.hint)


def test_labels_of_objects_beside_text(tmp_path: Path) -> None:
    rows = [{"prediction": '{"a": 1, "b": 2}', "label": {"b": 2, "a": 1}}] * 3
    run = written(tmp_path / "run.jsonl", rows)
    with pytest.raises(InputTypeError, match=r"column `label` of .* holds objects: `exact_match`"):
        trackperm.compare(run, run, "exact_match")


@each_local_engine
def test_objects_of_parquet_files_and_frames(engine: EngineName, tmp_path: Path) -> None:
    """Their fields are columns with the line of code in the hint; JSON files need no such line."""
    rows = [{"label": "cat", "probabilities": {"dog": 0.2, "cat": 0.8}}] * 12
    frame = pl.DataFrame(rows).with_row_index("id")
    path = tmp_path / "run.parquet"
    frame.write_parquet(path)
    for run, code in ((path, f'pl.read_parquet("{path}").unnest("probabilities")'), (frame, "frame.unnest(")):
        with pytest.raises(InputTypeError, match="reads such objects in JSON files alone") as caught:
            trackperm.compare(run, run, "multiclass_log_loss", engine=engine)
        assert code in str(caught.value.hint)
        assert "`--set labels=dog,cat` then names the classes" in str(caught.value.hint)
    flat, labels = frame.unnest("probabilities"), {"labels": "dog,cat"}
    found = trackperm.compare(flat, flat, "multiclass_log_loss", parameters=labels, engine=engine)
    run = written(tmp_path / "run.jsonl", rows)
    as_json = trackperm.compare(run, run, "multiclass_log_loss", engine=engine)
    assert found.baseline_score == as_json.baseline_score


def test_ids_are_no_objects(tmp_path: Path) -> None:
    run = written(tmp_path / "run.jsonl", [{"key": {"a": i}, "score": i} for i in range(3)])
    with pytest.raises(InputTypeError, match=r"column `key` of .* holds objects"):
        trackperm.compare(run, run, "mean", columns={"id": "key"})
