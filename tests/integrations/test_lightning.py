"""The script for Lightning, run as its README says: a baseline, a candidate, two processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.mlflow_stores import MlflowStore
from support.recipes import CANDIDATES, Recipe, assert_trained_and_compared

pytestmark = [pytest.mark.tracker, pytest.mark.training]


@CANDIDATES
def test_its_commands(tmp_path: Path, names: list[str]):
    recipe = Recipe("lightning", tmp_path, {"OMP_NUM_THREADS": "1"})
    assert_trained_and_compared(recipe, "lightning", range(201), names)


@pytest.mark.nightly
def test_two_processes_without_ids(tmp_path: Path):
    """The sampler repeats an example, which is then known by its digest, and is not taken for two."""
    recipe = Recipe("lightning", tmp_path, {"OMP_NUM_THREADS": "1"})
    script = recipe.folder / "train.py"
    script.write_text(script.read_text().replace('"id": number, ', ""))
    recipe.succeeds("python train.py of-two --epochs 0 --devices 2")
    store = MlflowStore(f"sqlite:///{recipe.folder / 'mlflow.db'}")
    [run] = store.client.search_runs([store.experiment("lightning")])
    logged = store.frame(run.info.run_id)
    assert len(logged) == 201
    assert logged["id"].str.len_bytes().unique().to_list() == [16], "no second one of any"
