"""Fields of objects: messages name them and the code that makes columns of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.questions import asked, the_one

import trackperm
from trackperm.errors import InputError
from trackperm.tables import read_examples
from trackperm.tables.columns.nested_fields import fields_of, known_fields, named_fields
from trackperm.tables.table import ExampleTable

RESULTS = [{"prediction": "A", "label": "A" if i % 3 else "B", "score": i % 3 / 2} for i in range(12)]
FRAME = pl.DataFrame({"id": range(12), "result": RESULTS})
FIELDS = "`result` holds the fields `prediction`, `label`, `score`: "


def written(frame: pl.DataFrame, path: Path) -> Path:
    write = {".jsonl": "write_ndjson", ".json": "write_json", ".parquet": "write_parquet"}[path.suffix]
    getattr(frame, write)(path)
    return path


def run_code(hint: str, **names: Any) -> Any:
    """Run the code of a hint, in which `names` are defined."""
    code = re.search("`([^`]*unnest[^`]*)`", hint)
    assert code is not None
    return eval(code[1], {"pl": pl, **names})


@pytest.mark.parametrize("name", ["run.jsonl", "run.json", "run.parquet"])
def test_the_line_makes_columns(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(FRAME, tmp_path / name)
    with pytest.raises(InputError, match="is unclear: its columns are `id`, `result`") as caught:
        asked(path, path)
    hint = str(caught.value.hint)
    assert hint.startswith(FIELDS)
    run_code(hint)
    flat = tmp_path / f"flat{path.suffix}"
    assert read_examples(flat).columns == ["id", "prediction", "label", "score"]
    assert trackperm.compare(flat, flat).statistic.name == "accuracy"


def test_a_data_frame() -> None:
    with pytest.raises(InputError) as caught:
        trackperm.compare(FRAME, FRAME)
    flat = run_code(str(caught.value.hint), frame=FRAME)
    assert the_one(flat, flat).name == "accuracy"


def test_a_name_that_is_taken() -> None:
    frame = FRAME.with_columns(score=0.5)
    hint = known_fields(ExampleTable.from_native(frame, "run"))
    assert run_code(str(hint), frame=frame).columns[1:4] == [
        "result.prediction",
        "result.label",
        "result.score",
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"metric": "result.score"},
        {"metric": "result"},
        {"columns": {"prediction": "result.prediction", "label": "result.label"}, "statistic": "accuracy"},
        {"columns": {"id": "result.id"}, "metric": "id"},
    ],
)
@pytest.mark.parametrize("name", ["run.jsonl", "run.parquet"])
def test_a_field_that_is_named(options: dict[str, Any], name: str, tmp_path: Path) -> None:
    path = written(FRAME, tmp_path / name)
    with pytest.raises(InputError) as caught:
        trackperm.compare(path, path, **options)
    assert str(caught.value.hint).startswith(FIELDS)


DEEP = pl.DataFrame(
    {"id": range(12), "eval": [{"scores": {"correct": i % 3 == 0}, "judge": "x"} for i in range(12)]}
)


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", ["run.jsonl", "run.parquet"])
@pytest.mark.parametrize("options", [{}, {"metric": "eval.scores.correct"}, {"metric": "eval.scores"}])
@pytest.mark.parametrize("beside", [{}, {"judge": "y"}, {"correct": "y", "scores": "y"}])
def test_objects_in_objects(
    name: str,
    options: dict[str, Any],
    beside: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(
        DEEP.with_columns(**{key: pl.lit(value) for key, value in beside.items()}), tmp_path / name
    )
    with pytest.raises(InputError) as caught:
        trackperm.compare(path, path, **options)
    hint = str(caught.value.hint)
    assert hint.startswith("`eval.scores` holds the fields `correct`: ")
    run_code(hint)
    flat = tmp_path / f"flat{path.suffix}"
    correct = next(
        each for each in read_examples(flat).columns if each.endswith("correct") and each not in beside
    )
    assert trackperm.compare(flat, flat, metric=correct).baseline_score == pytest.approx(1 / 3)


def test_rows_without_objects_in_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [*DEEP.to_dicts(), {"id": 12, "eval": {"judge": "x"}}, {"id": 13}]
    Path("run.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError) as caught:
        trackperm.compare("run.jsonl", "run.jsonl")
    run_code(str(caught.value.hint))
    assert trackperm.compare("flat.jsonl", "flat.jsonl", metric="correct").n_examples == 12


def test_an_outer_field_comes_first() -> None:
    """An id in an object of an object is not that of the example."""
    rows = [
        {"id": i, "meta": {"model": {"id": "m", "score": 1}}, "result": {"score": i % 2}} for i in range(12)
    ]
    assert str(known_fields(ExampleTable.from_native(pl.DataFrame(rows), "run"))).startswith("`result` holds")
    rows = [{"meta": {"model": {"id": "m"}}}] * 12
    assert known_fields(ExampleTable.from_native(pl.DataFrame(rows), "run")) is None


def events(run: str, right: int) -> str:
    """Events of a log whose first and last lines describe the run, as those of OpenAI's evals."""
    rows: list[dict[str, Any]] = [{"spec": {"run_id": run}}]
    for i in range(12):
        rows.append({"sample_id": f"q{i}", "type": "sampling", "data": {"prompt": "?", "sampled": ["A"]}})
        rows.append({"sample_id": f"q{i}", "type": "match", "data": {"correct": i < right, "picked": "A"}})
    return "".join(json.dumps(row) + "\n" for row in (*rows, {"final_report": {"accuracy": right / 12}}))


def test_the_column_with_results_of_most_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary in the last line is not taken for them, and events without a result are dropped."""
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "run.jsonl"
    run.write_text(events("a", 9))
    with pytest.raises(InputError) as caught:
        trackperm.compare(run, run)
    hint = str(caught.value.hint)
    assert hint.startswith("`data` holds the fields `prompt`, `sampled`, `correct`, `picked`: ")
    run_code(hint)
    found = trackperm.compare(tmp_path / "flat.jsonl", tmp_path / "flat.jsonl")
    assert (found.n_examples, found.baseline_score) == (12, 0.75)
    frame = pl.read_ndjson(run, infer_schema_length=None)
    hint = str(known_fields(ExampleTable.from_native(frame, "run")))
    assert run_code(hint, frame=frame)["correct"].to_list() == [i < 9 for i in range(12)]


def test_columns_without_fields() -> None:
    frame = FRAME.with_columns(usage=pl.struct(tokens="id"), mixed=pl.lit("a"))
    run = ExampleTable.from_native(frame, "run")
    assert fields_of(run, "usage") == ("tokens",)
    assert (fields_of(run, "mixed"), fields_of(run, "nosuch")) == ((), ())
    assert named_fields(run, ["nosuch.score", "mixed"]) is None
    plain = ExampleTable.from_native(frame.drop("result"), "run")
    assert known_fields(plain) is None
