"""The script for transformers' Trainer, run as its README says: a baseline, a candidate, two processes."""

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
    recipe = Recipe("huggingface-trainer", tmp_path, {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"})
    said = {
        command: recipe.succeeds(command).stderr
        for command in recipe.commands()
        if not command.startswith("export ")
    }
    assert len(said) == 3
    store = MlflowStore(f"sqlite:///{recipe.folder / 'mlflow.db'}")
    runs = {run.info.run_name: run for run in store.client.search_runs([store.experiment("fine-tuning")])}
    for name in ("baseline", "candidate", "candidate-of-two"):
        logged = pl.read_parquet(io.BytesIO(store.artifacts(runs[name].info.run_id)["predictions.parquet"]))
        assert logged["id"].to_list() == [f"s{i}" for i in range(201)], said
        assert runs[name].info.status == "FINISHED"
    candidates = {f"mlflow:{runs[name].info.run_id}" for name in ("candidate", "candidate-of-two")}
    queued = Queue(tmp_path / "state").entries()
    assert {entry.candidate for entry in queued if entry.source == "on-exit"} >= candidates, said
    recipe.succeeds("trackperm watch --policy trackperm.yaml --once")  # where 20 seconds were not enough
    compared = {run.data.tags["trackperm.candidate"] for run in store.comparisons("fine-tuning")}
    assert compared == candidates, said
