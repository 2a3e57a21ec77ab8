"""`trackperm doctor`: one line for each finding, and an exit code."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import mlflow
import pytest
from support.command_line import call_trackperm
from support.mlflow_stores import MlflowStore
from support.processes import run, script

from trackperm.version import __version__


def findings(result: subprocess.CompletedProcess[str]) -> dict[str, tuple[str, str]]:
    assert "Traceback" not in result.stdout + result.stderr
    return {each["subject"]: (each["state"], each["text"]) for each in json.loads(result.stdout)}


@pytest.fixture
def clean(tmp_path: Path) -> dict[str, str]:
    """Environment without trackers and with a home of its own."""
    return {"HOME": str(tmp_path), "NETRC": str(tmp_path / "none"), "MLFLOW_TRACKING_URI": ""}


def test_a_fresh_machine(tmp_path: Path, clean: dict[str, str]):
    result = call_trackperm(tmp_path, "doctor", "--format", "json", env=clean)
    found = findings(result)
    assert result.returncode == 0
    assert found["trackperm"][1].startswith(f"{__version__}, Python 3.")
    assert found["tracker mlflow"][0] == "absent"
    assert "MLFLOW_TRACKING_URI" in found["tracker mlflow"][1]
    assert found["tracker wandb"][0] == "absent"
    assert "wandb login" in found["tracker wandb"][1]
    assert found["extra mlflow"] == ("ok", found["extra mlflow"][1])
    assert f"mlflow {mlflow.__version__}" in found["extra mlflow"][1]
    assert found["state of watchers"] == ("ok", f"`{tmp_path}/.local/state/trackperm` can be written")


def test_text_has_one_line_for_each_finding(tmp_path: Path, clean: dict[str, str]):
    lines = call_trackperm(tmp_path, "doctor", env=clean).stdout.splitlines()
    assert {line.split()[0] for line in lines} <= {"ok", "absent", "fails"}
    assert len(lines) == 19


@pytest.mark.extended
def test_a_store_that_answers(tmp_path: Path, clean: dict[str, str]):
    store = MlflowStore.local(tmp_path)
    store.experiment("first")
    result = run(
        [script("trackperm"), "doctor", "--format", "json", "--tracking-uri", store.uri], cwd=tmp_path
    )
    assert result.returncode == 0
    assert findings(result)["tracker mlflow"] == (
        "ok",
        f"MLflow {mlflow.__version__} at `{store.uri}` answers; experiments: 2",
    )


def test_a_server_that_is_down_and_a_folder_that_is_a_file(tmp_path: Path, clean: dict[str, str]):
    (tmp_path / "state").write_text("")
    env = {
        **clean,
        "MLFLOW_TRACKING_URI": "http://me:hunter2secret@127.0.0.1:9",
        "TRACKPERM_STATE": str(tmp_path / "state"),
    }
    result = call_trackperm(tmp_path, "doctor", "--format", "json", env=env)
    found = findings(result)
    assert result.returncode == 3
    assert found["tracker mlflow"][0] == found["state of watchers"][0] == "fails"
    assert "http://127.0.0.1:9" in found["tracker mlflow"][1]
    assert "hunter2secret" not in result.stdout + result.stderr
    del env["MLFLOW_TRACKING_URI"]
    assert call_trackperm(tmp_path, "doctor", env=clean | env | {"MLFLOW_TRACKING_URI": ""}).returncode == 2


def test_wandb_that_is_down(tmp_path: Path, clean: dict[str, str]):
    env = {**clean, "WANDB_BASE_URL": "http://127.0.0.1:9", "WANDB_API_KEY": "k" * 40}
    result = call_trackperm(tmp_path, "doctor", "--format", "json", env=env)
    assert result.returncode == 3
    state, text = findings(result)["tracker wandb"]
    assert state == "fails"
    assert "http://127.0.0.1:9" in text
    assert "k" * 40 not in result.stdout
