"""Scripts that train: their queue, what they are told, and where their runs go."""

from __future__ import annotations

import logging
from pathlib import Path

import mlflow
import pytest
from support.hooked_runs import Script


@pytest.fixture
def runs(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Script:
    caplog.set_level(logging.INFO, "trackperm")
    monkeypatch.setenv("TRACKPERM_STATE", str(tmp_path / "state"))
    uri = f"sqlite:///{database / 'mlflow.db'}"
    return Script(uri, tmp_path, tmp_path / "artifacts", tmp_path.name, log=caplog)


@pytest.fixture
def mlflow_script(runs: Script) -> Script:
    """The script has said to MLflow where its runs go."""
    mlflow.set_tracking_uri(runs.store.uri)
    mlflow.set_experiment(runs.experiment)
    return runs
