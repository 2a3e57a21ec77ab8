"""The script for Lightning, run as its README says: a baseline, a candidate, two processes."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
import pytest
from mlflow_stores import MlflowStore
from recipes import Recipe

from trackperm.hooks.queue import Queue

pytestmark = [pytest.mark.tracker, pytest.mark.training]


def test_its_commands(tmp_path: Path):
    recipe = Recipe("lightning", tmp_path, {"OMP_NUM_THREADS": "1"})
    said = {
        command: recipe.succeeds(command).stderr
        for command in recipe.commands()
        if not command.startswith("export ")
    }
    assert len(said) == 3
    store = MlflowStore(f"sqlite:///{recipe.folder / 'mlflow.db'}")
    runs = {run.info.run_name: run for run in store.client.search_runs([store.experiment("lightning")])}
    for name in ("baseline", "candidate", "candidate-of-two"):
        logged = pl.read_parquet(io.BytesIO(store.artifacts(runs[name].info.run_id)["predictions.parquet"]))
        assert logged["id"].to_list() == list(range(201)), said
        assert runs[name].info.status == "FINISHED"
    candidates = {f"mlflow:{runs[name].info.run_id}" for name in ("candidate", "candidate-of-two")}
    queued = Queue(tmp_path / "state").entries()
    assert {entry.candidate for entry in queued if entry.source == "on-exit"} >= candidates, said
    recipe.succeeds("trackperm watch --policy trackperm.yaml --once")  # where 20 seconds were not enough
    compared = {run.data.tags["trackperm.candidate"] for run in store.comparisons("lightning")}
    assert compared == candidates, said


def test_two_processes_without_ids(tmp_path: Path):
    """The sampler repeats an example, which is then known by its digest, and is not taken for two."""
    recipe = Recipe("lightning", tmp_path, {"OMP_NUM_THREADS": "1"})
    script = recipe.folder / "train.py"
    script.write_text(script.read_text().replace('"id": number, ', ""))
    recipe.succeeds("python train.py of-two --epochs 0 --devices 2")
    store = MlflowStore(f"sqlite:///{recipe.folder / 'mlflow.db'}")
    [run] = store.client.search_runs([store.experiment("lightning")])
    logged = pl.read_parquet(io.BytesIO(store.artifacts(run.info.run_id)["predictions.parquet"]))
    assert len(logged) == 201
    assert logged["id"].str.len_bytes().unique().to_list() == [16], "no second one of any"
