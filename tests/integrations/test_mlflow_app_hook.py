"""The recipe of the hook in the MLflow app: its server and watcher, with the environment of its file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.hooked_runs import HookedStore
from support.mlflow_server import MlflowServer
from support.processes import ROOT
from support.watchers import Program

pytestmark = [pytest.mark.tracker, pytest.mark.slow]

FOLDER = ROOT / "integrations" / "mlflow-app-hook"


def test_a_run_is_compared_when_it_finishes(tmp_path: Path):
    """The watcher lists nothing for a quarter of an hour; the run comes through the queue."""
    lines = (FOLDER / "trackperm.env").read_text().splitlines()
    env = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    env = {name: re.sub(r"^/(etc|var/lib)/trackperm", str(tmp_path), value) for name, value in env.items()}
    HookedStore("", tmp_path).policy_file("trackperm", only={}, tracking_uri=None)
    said = (FOLDER / "README.md").read_text()
    command = re.search(r"^trackperm (watch .*)$", said, re.MULTILINE)
    arguments = command[1].replace('"$TRACKPERM_POLICY"', env["TRACKPERM_POLICY"]).split()
    with MlflowServer(tmp_path, {"TMPDIR": str(tmp_path), **env}, app="trackperm") as server:
        runs = HookedStore(server.uri, tmp_path)
        runs.baseline()
        watcher = Program(arguments, tmp_path / "watch.log", {**env, "MLFLOW_TRACKING_URI": server.uri})
        with watcher:
            watcher.wait_for("refused")  # the baseline, which is a candidate as well and has none itself
            candidate = runs.finished()
            compared = watcher.wait_for("compared", 60)
            assert compared["candidate"] == f"mlflow:{candidate}"
            assert watcher.stop() == 0
        assert runs.compared() == [f"mlflow:{candidate}"]
