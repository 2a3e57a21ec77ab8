"""Against W&B's own service, with a real account: never by default, and never in CI.

``TRACKPERM_LIVE_WANDB=1 WANDB_API_KEY=... pytest tests/trackers/wandb/test_live.py`` makes a project called
``trackperm-live`` in the account's default entity, writes a few small runs there, and deletes them again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import wandb
from support.tracker_stores import PREDICTIONS

import trackperm
from trackperm.trackers.base import open_tracker

pytestmark = [pytest.mark.tracker, pytest.mark.live]

PROJECT = "trackperm-live"
GIVEN = {name: value for name, value in os.environ.items() if name in ("WANDB_API_KEY", "WANDB_BASE_URL")}


@pytest.fixture(autouse=True)
def account(isolated: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """Use the account of the environment that pytest was started in; its default entity."""
    wandb.teardown()
    for name, value in GIVEN.items():
        monkeypatch.setenv(name, value)
    return str(wandb.Api().default_entity)


@pytest.fixture
def pair(account: str) -> Iterator[list[Any]]:
    """Two online runs with tables; everything in their group, comparisons too, is deleted in the end."""
    made = []
    for name, wrong in (("logistic", 2), ("forest", 0)):
        run = wandb.init(project=PROJECT, name=f"{name}-{uuid4().hex[:8]}", reinit="create_new")
        rows = [[str(i), "b" if i < wrong else "a", "a"] for i in range(20)]
        run.log({"predictions": wandb.Table(columns=list(PREDICTIONS), data=rows)})
        run.finish()
        made.append(run)
    yield made
    api = wandb.Api()
    for run in made:
        api.run(run.path).delete(delete_artifacts=True)


def test_from_names_to_a_comparison(account: str, pair: list[Any]):
    references = [f"wandb:{account}/{PROJECT}/{run.name}" for run in pair]
    comparison = trackperm.compare(*references)
    assert comparison.pvalue == 0.5
    assert trackperm.compare(f"wandb:{'/'.join(pair[0].path.split('/'))}", pair[1].url).pvalue == 0.5
    published = trackperm.log(comparison)
    try:
        assert published.created
        assert not trackperm.log(comparison).created
        run = wandb.Api().run(published.run.reference.locator)
        assert run.summary["accuracy/p_value"] == 0.5
        assert "≈ undecided" in run.tags
        assert {used.type for used in run.used_artifacts()} == {"run_table"}
    finally:
        wandb.Api().run(published.run.reference.locator).delete(delete_artifacts=True)


def test_offline_runs_are_synced(account: str, tmp_path: Path):
    folders = []
    for name in ("logistic", "forest"):
        run = wandb.init(
            project=PROJECT, entity=account, name=name, mode="offline", dir=tmp_path, reinit="create_new"
        )
        rows = [[str(i), "a", "a"] for i in range(20)]
        run.log({"predictions": wandb.Table(columns=list(PREDICTIONS), data=rows)})
        run.finish()
        folders.append(Path(run.dir).parent)
    wandb.teardown()  # which waits until the logs are written
    published = trackperm.log(
        trackperm.compare(*(f"wandb:{folder}" for folder in folders)), open_tracker("wandb")
    )
    folders.append(Path(published.run.reference.locator))
    subprocess.run([sys.executable, "-m", "wandb", "sync", *map(str, folders)], check=True, timeout=300)
    api = wandb.Api()
    runs = [api.run(f"{account}/{PROJECT}/{folder.name.split('-', 3)[-1]}") for folder in folders]
    try:
        assert [run.state for run in runs] == ["finished"] * 3
        assert runs[2].summary["accuracy/difference"] == 0
    finally:
        for run in runs:
            run.delete(delete_artifacts=True)
