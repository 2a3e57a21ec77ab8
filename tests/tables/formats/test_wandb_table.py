"""Tables in W&B's JSON, as wandb 0.26 wrote them, and similar tables of MLflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.cli_comparison import compared

from trackperm.errors import SourceError
from trackperm.tables import read_examples


def union(type_: str) -> dict[str, Any]:
    allowed = [{"wb_type": "none"}, {"wb_type": type_}]
    return {"params": {"allowed_types": allowed}, "wb_type": "union"}


# `artifact.add(wandb.Table(...), "preds")`, offline
WRITTEN = {
    "_type": "table",
    "column_types": {
        "params": {"type_map": {"id": union("number"), "score": union("number")}},
        "wb_type": "typedDict",
    },
    "columns": ["id", "score"],
    "data": [[0, 0.0], [1, 0.5], [2, 1.0]],
    "log_mode": "IMMUTABLE",
    "ncols": 2,
    "nrows": 3,
}


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def test_a_whole_table(tmp_path: Path) -> None:
    table = read_examples(write(tmp_path / "preds.table.json", WRITTEN))
    assert table.frame.to_polars().rows() == [(0, 0.0), (1, 0.5), (2, 1.0)]
    assert not table.notes


def test_a_table_that_was_cut_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a", {**WRITTEN, "nrows": 5})
    with pytest.raises(SourceError, match="claims 5 rows, but has 3\n\nHint: W&B stores 200,000 rows"):
        read_examples(path)


@pytest.mark.parametrize(("nrows", "found"), [("5", "text"), ({"x": 2}, "a mapping"), (2.5, "a decimal")])
def test_a_number_of_rows_of_another_type_is_refused(nrows: Any, found: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a", {**WRITTEN, "nrows": nrows})
    with pytest.raises(SourceError, match=f"`nrows` of `.*` is {found}; expected a number of rows"):
        read_examples(path)


def test_as_many_rows_as_wandb_keeps_are_noted(tmp_path: Path) -> None:
    data = [[i, 1] for i in range(200_000)]
    table = read_examples(write(tmp_path / "a", {**WRITTEN, "data": data, "nrows": len(data)}))
    assert "the most that W&B stores" in table.notes[0]
    plain = {"columns": ["id", "score"], "data": data[:10_000]}
    assert (
        "to which W&B truncates" in read_examples(write(tmp_path / "preds_0_8f.table.json", plain)).notes[0]
    )
    assert not read_examples(write(tmp_path / "predictions.json", plain)).notes


def test_a_table_of_another_shape_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="row 1: 1 values for 2 columns"):
        read_examples(write(tmp_path / "a", {**WRITTEN, "data": [[0, 0.0], [1]]}))


def test_eval_results_of_mlflow(tmp_path: Path) -> None:
    """`eval_results_table.json` of `mlflow.models.evaluate`: no ids, a column `<metric>/score` by metric."""
    columns = ["inputs", "targets", "outputs", "exact_match/v1/score"]
    tables = [
        {"columns": columns, "data": [["q", "a", answer, float(answer == "a")] for answer in answers]}
        for answers in ("abbb", "aaab")
    ]
    paths = [write(tmp_path / f"{i}", table) for i, table in enumerate(tables)]
    options = ("--by-position", "--label", "targets", "--column", "score=exact_match/v1/score")
    found = compared(*paths, "-s", "mean", *options)
    assert (found["n_examples"], found["n_discordant"], found["pvalue"]) == (4, 2, 0.5)
