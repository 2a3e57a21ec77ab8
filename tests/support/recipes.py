"""The commands that the README of an integration shows, run as its reader runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from support.mlflow_stores import MlflowStore
from support.processes import ROOT, run
from trackperm.automation.queue.queue import Queue


class Recipe:
    """A copy of the folder of an integration, in which its commands run."""

    def __init__(self, name: str, folder: Path, env: Mapping[str, str] | None = None) -> None:
        self.folder, self.state = folder / name, folder / "state"
        shutil.copytree(ROOT / "integrations" / name, self.folder)
        self._env = {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "TRACKPERM_STATE": str(self.state),
            "HOME": str(folder),
            **(env or {}),
        }

    def commands(self) -> list[str]:
        """List the lines of shell blocks, in their order; a line that ends in a backslash goes on."""
        text = (self.folder / "README.md").read_text(encoding="utf-8")
        blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
        return [line for block in blocks for line in block.replace("\\\n", " ").splitlines() if line.strip()]

    def run(self, command: str, seconds: float = 180) -> subprocess.CompletedProcess[str]:
        """Run one command, with what earlier ones of ``export`` have set."""
        exports = [line for line in self.commands() if line.startswith("export ")]
        lines = [line for line in exports if line != command] + [command]
        return run(["bash", "-euc", "\n".join(lines)], cwd=self.folder, env=self._env, timeout=seconds)

    def succeeds(self, command: str, seconds: float = 180) -> subprocess.CompletedProcess[str]:
        """Run one command, which has to succeed."""
        result = self.run(command, seconds)
        assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
        return result


CANDIDATES = pytest.mark.parametrize(
    "names",
    [
        pytest.param(["candidate"], id="one process"),
        pytest.param(["candidate", "candidate-of-two"], id="two processes too", marks=pytest.mark.nightly),
    ],
)
"""Runs of the trainings that a README shows after that of the baseline."""


def assert_trained_and_compared(
    recipe: Recipe, experiment: str, ids: Sequence[object], names: Sequence[str]
) -> None:
    """Run the trainings of a README, of those after the baseline `names`, and compare what has not been."""
    trainings = [command for command in recipe.commands() if not command.startswith("export ")]
    assert len(trainings) == 3
    said = {command: recipe.succeeds(command).stderr for command in trainings[: 1 + len(names)]}
    store = MlflowStore(f"sqlite:///{recipe.folder / 'mlflow.db'}")
    runs = {run.info.run_name: run for run in store.client.search_runs([store.experiment(experiment)])}
    for name in ("baseline", *names):
        assert store.frame(runs[name].info.run_id)["id"].to_list() == list(ids), said
        assert runs[name].info.status == "FINISHED"
    candidates = {f"mlflow:{runs[name].info.run_id}" for name in names}
    queued = Queue(recipe.state).entries()
    assert {entry.candidate for entry in queued if entry.source == "on-exit"} >= candidates, said
    recipe.succeeds("trackperm watch --policy trackperm.yaml --once")  # where 20 seconds were not enough
    compared = {run.data.tags["trackperm.candidate"] for run in store.comparisons(experiment)}
    assert compared == candidates, said
