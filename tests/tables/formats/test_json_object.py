"""JSON objects with an object for each example or column, against pandas; other objects are one row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import trackperm
from trackperm.errors import SourceError
from trackperm.tables import read_examples

ROWS = [{"id": f"q{i}", "prediction": "ab"[i % 2], "label": "a", "score": i / 8} for i in range(30)]
MEASURES = {f"q{i}": {"map": i / 30, "ndcg_cut_10": (i % 4) / 4} for i in range(30)}


def test_pandas_with_a_schema(tmp_path: Path) -> None:
    path = written(tmp_path, pd.DataFrame(ROWS).to_json(orient="table"))
    assert columns(path) == {"index": [*range(30)], **{name: [row[name] for row in ROWS] for name in ROWS[0]}}


def written(folder: Path, value: object) -> Path:
    path = folder / "run.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def columns(path: Path) -> dict[str, list[Any]]:
    table = read_examples(path)
    return {name: table.frame[name].to_list() for name in table.columns}


@pytest.mark.parametrize("orient", ["index", "columns"])
def test_pandas(orient: Any, tmp_path: Path) -> None:
    path = written(tmp_path, pd.DataFrame(ROWS).to_json(orient=orient))
    numbers = {"index": [str(i) for i in range(30)]}
    assert columns(path) == {**numbers, **{name: [row[name] for row in ROWS] for name in ROWS[0]}}
    without = written(tmp_path, pd.DataFrame(ROWS).drop(columns="id").to_json(orient=orient))
    assert columns(without)["id"] == numbers["index"]


@pytest.mark.parametrize("orient", ["index", "columns"])
@pytest.mark.parametrize(
    ("name", "rows", "expected"),
    [
        ("task_id", range(30), "index"),
        ("image", range(30), "index"),
        ("model_id", range(30), "id"),  # with one value
        ("answer", range(30), "id"),
        ("task_id", range(1, 31), "id"),
        ("task_id", [1, 0, *range(2, 30)], "id"),
        ("id", range(1, 31), "key"),
    ],
)
def test_names_of_rows(name: str, rows: Any, expected: str, orient: Any, tmp_path: Path) -> None:
    values = ["m"] * 30 if name == "model_id" else [f"q{i // 2}" for i in range(30)]
    frame = pd.DataFrame({name: values, "score": 1.0}, index=pd.Index(rows))
    found = columns(written(tmp_path, frame.to_json(orient=orient)))
    assert found == {expected: [*map(str, rows)], name: values, "score": [1.0] * 30}


def test_numbers_of_rows_beside_an_index_of_its_own(tmp_path: Path) -> None:
    path = written(tmp_path, pd.DataFrame({"index": [4, 2], "score": [1.0, 0.5]}).to_json())
    assert columns(path) == {"index": [4, 2], "score": [1.0, 0.5]}


def test_pandas_by_default_with_ids_that_are_text(tmp_path: Path) -> None:
    frame = pd.DataFrame({"y_true": ["a", "b", "a"], "y_pred": ["a", "a", "b"]}, index=["i0", "i2", "i1"])
    path = written(tmp_path, frame.to_json())
    assert columns(path) == {"id": [*frame.index], **{name: [*values] for name, values in frame.items()}}


@pytest.mark.parametrize("name", ["run", "run.json", "run.jsonl"])
def test_lists_are_columns(name: str, tmp_path: Path) -> None:
    """What `json.dump` writes of two arrays; a line of JSON Lines is one example."""
    (path := tmp_path / name).write_text(json.dumps({"y_true": ["a", "b"], "y_pred": ["a", "a"]}))
    assert len(read_examples(path)) == (1 if name.endswith("l") else 2)
    if not name.endswith("l"):
        assert trackperm.compare(path, path, by_position=True).baseline_score == 0.5


def test_measures_of_queries(tmp_path: Path) -> None:
    path = written(tmp_path, MEASURES)
    assert columns(path)["ndcg_cut_10"] == [row["ndcg_cut_10"] for row in MEASURES.values()]
    assert trackperm.compare(path, path, metric="map").n_examples == 30


def test_predictions_by_number(tmp_path: Path) -> None:
    answers = {str(i): {"origin_prompt": f"Q{i}", "prediction": "A", "gold": "AB"[i % 2]} for i in range(12)}
    found = trackperm.compare(path := written(tmp_path, answers), path)
    assert (found.statistic.name, found.n_examples) == ("accuracy", 12)


@pytest.mark.parametrize(
    "value",
    [
        {"q1": {"map": 1}},
        {"q1": {"map": 1}, "q2": {"ndcg": 1}},
        {"q1": {"map": 1}, "q2": 3},
        {"q1": {}, "q2": {}},
        {"train": {"loss": 1}, "test": {"loss": 2}},
        {f"epoch_{i}": {"acc": 0.5} for i in range(10)},
        {f"checkpoint-{i}00": {"acc": 0.5} for i in range(1, 5)},
        {f"model{i}": {"acc": 0.5} for i in range(3)},
        {str(100 * i): {"acc": 0.5} for i in range(10)},
        {"loss": [0.5, 0.25], "accuracy": [0.5, 0.75]},
        {"y_true": [1, 0], "y_pred": [1]},
        {"y_true": [1], "y_pred": [1]},
        {"y_true": [1, 0], "y_pred": [1, 1], "model": "x"},
        {"precision": {"class_0": 1, "class_1": 0}, "recall": {"class_0": 1, "class_1": 0}},
        {"accuracy": {"fold_1": 0.5, "fold_2": 0.7}, "f1": {"fold_1": 0.5, "fold_2": 0.7}},
        {"label": {"model1": "a", "model2": "b"}, "pred": {"model1": "a", "model2": "a"}},
    ],
)
def test_other_objects_are_one_row(value: dict[str, Any], tmp_path: Path) -> None:
    assert len(read_examples(path := written(tmp_path, value))) == 1
    assert read_examples(path).columns == list(value)


def test_ids_that_have_no_column(tmp_path: Path) -> None:
    path = written(tmp_path, {f"q{i}": {"id": i, "key": i} for i in range(3)})
    with pytest.raises(SourceError, match="with members `id` and `key`"):
        read_examples(path)
