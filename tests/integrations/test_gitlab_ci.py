"""The job of GitLab CI: its scripts, run as a runner runs them, on files and on an MLflow store."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest
import yaml
from support.hooked_runs import HookedStore
from support.json_api import Answer, Asked, json_api
from support.local_wheel import local_wheel
from support.processes import ROOT, run
from support.server_client import predictions

pytestmark = pytest.mark.tracker

TEMPLATE = ROOT / "integrations" / "gitlab-ci" / "trackperm-gate.yml"
HOSTILE = '"; touch pwned; $(touch pwned) `touch pwned` #'
TOKEN = "token-of-the-project"


class Project:
    """A project that extends the job, and a runner's folder of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.job: dict[str, Any] = yaml.safe_load(TEMPLATE.read_text(encoding="utf-8"))[".trackperm-gate"]
        self._package = str(local_wheel(folder))
        for name, seed, rate in (
            ("base", 1, 0.2),
            ("same", 1, 0.2),
            ("worse", 2, 0.6),
            ("as-bad", 2, 0.6),
            (HOSTILE, 2, 0.6),
        ):
            pl.DataFrame(predictions(seed, rate=rate)).write_parquet(folder / f"{name}.parquet")
        policy = HookedStore("http://127.0.0.1:9", folder).policy_file(
            "trackperm", runs=[], baseline={"run": "base.parquet"}, tracking_uri=None
        )
        assert policy.name == self.job["variables"]["TRACKPERM_POLICY"]
        # pip installs once; whatever a test runs, these are the first lines of the script
        self._install, self._script = self.job["script"][:2], self.job["script"][2:]
        assert "pip install" in self._install[-1]
        installed = self._shell("bash", self._install, self._variables())
        assert installed.returncode == 0, installed.stderr

    def _variables(self, **variables: str) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        package = {"TRACKPERM_PACKAGE": self._package}
        return {**self.job["variables"], **package, **variables, "CI": "true", "PATH": path}

    def run(self, candidate: str, shell: str = "bash", **variables: str) -> subprocess.CompletedProcess[str]:
        """Run `script`, and then, whatever became of it, `after_script`, in a shell of its own."""
        env = self._variables(**{"TRACKPERM_CANDIDATE": candidate, **variables})
        result = self._shell(shell, self._script, env)
        after = self._shell(shell, self.job["after_script"], env)
        assert (after.returncode, after.stderr) == (0, ""), after.stderr
        result.stdout += after.stdout
        return result

    def _shell(
        self, shell: str, lines: list[str], env: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        script = self.folder / "script.sh"
        script.write_text("set -e\n" + "\n".join(lines) + "\n", encoding="utf-8")
        return run([shell, script], cwd=self.folder, env=env)

    @property
    def junit(self) -> ET.Element:
        """The report that the job declares."""
        return ET.parse(self.folder / self.job["artifacts"]["reports"]["junit"]).getroot()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("project"))


@pytest.mark.extended
@pytest.mark.parametrize(
    ("candidate", "code", "failures"), [("same.parquet", 0, 0), (f"{HOSTILE}.parquet", 1, 1)]
)
def test_verdicts(project: Project, candidate: str, code: int, failures: int):
    result = project.run(candidate)
    assert result.returncode == code, result.stderr
    assert len(list(project.junit.iter("failure"))) == failures
    assert (project.folder / "trackperm-gate" / "gate.md").is_file()
    assert not list(project.folder.rglob("pwned*"))


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_options_are_variables(project: Project, shell: str):
    named = {"TRACKPERM_NAME": "trackperm", "TRACKPERM_BASELINE": "as-bad.parquet"}
    result = project.run("worse.parquet", shell, **named)
    assert result.returncode == 0, result.stderr
    for variable in ("TRACKPERM_NAME", "TRACKPERM_BASELINE", "TRACKPERM_POLICY", "TRACKPERM_CANDIDATE"):
        earlier = project.folder / "trackperm-gate" / "of-an-earlier-gate"
        earlier.touch()
        result = project.run("same.parquet", shell, **{**named, variable: HOSTILE})
        assert result.returncode == 2, result.stderr
        assert HOSTILE in result.stderr
        assert not earlier.exists()
    assert not list(project.folder.rglob("pwned*"))


@pytest.mark.slow
def test_on_a_tracker(project: Project, tmp_path: Path):
    runs = HookedStore.local(tmp_path)
    runs.baseline()
    run_id = runs.few("few")
    policy = str(runs.policy_file("pull-request", tracking_uri=None))
    uri = {"MLFLOW_TRACKING_URI": runs.store.uri}
    result = project.run("mlflow:digits/few", TRACKPERM_POLICY=policy, **uri)
    assert result.returncode == 4, result.stderr
    assert len(list(project.junit.iter("error"))) == 1
    assert runs.compared() == [f"mlflow:{run_id}"]
    uri = {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9"}
    result = project.run("mlflow:digits/few", TRACKPERM_POLICY=policy, **uri)
    assert result.returncode == 3, result.stderr


@dataclass
class Notes:
    """A stand-in for GitLab's API of notes, by its documentation."""

    variables: dict[str, str] = field(default_factory=dict)
    found: list[dict[str, Any]] = field(default_factory=list)
    is_refusing: bool = False


@pytest.fixture
def notes() -> Iterator[Notes]:
    state = Notes()
    place = "/api/v4/projects/5/merge_requests/17/notes"

    def answer(asked: Asked) -> Answer:
        if asked.headers["PRIVATE-TOKEN"] != TOKEN or state.is_refusing:
            return 403, {"message": "403 Forbidden"}
        if asked.method == "GET" and asked.path == "/api/v4/user":
            return 200, {"id": 9}
        if asked.method == "GET" and asked.path.startswith(f"{place}?per_page=100&page="):
            page = int(asked.path.rpartition("=")[2])
            following = str(page + 1) if state.found[100 * page :] else ""
            return 200, state.found[100 * (page - 1) : 100 * page], {"X-Next-Page": following}
        if (asked.method, asked.path) == ("POST", place):
            made = {"id": len(state.found) + 1, "author": {"id": 9}, "body": asked.data["body"]}
            state.found.append(made)
            return 201, made
        if asked.method == "PUT" and asked.path.startswith(f"{place}/"):
            note = state.found[int(asked.path.rpartition("/")[2]) - 1]
            note["body"] = asked.data["body"]
            return 200, note
        return 404, {}

    with json_api(answer) as url:
        state.variables = {
            "CI_API_V4_URL": f"{url}/api/v4",
            "CI_PROJECT_ID": "5",
            "CI_MERGE_REQUEST_IID": "17",
            "TRACKPERM_GITLAB_TOKEN": TOKEN,
        }
        yield state


@pytest.mark.slow
def test_the_merge_request_has_one_note_that_is_rewritten(project: Project, notes: Notes):
    marker = "<!-- trackperm gate: trackperm -->"
    # what others wrote is left alone, whatever it begins with; ours is on a later page
    notes.found = [{"id": i + 1, "author": {"id": 3}, "body": f"{marker}\nof another"} for i in range(100)]
    assert project.run("worse.parquet", **notes.variables).returncode == 1
    assert len(notes.found) == 101
    assert notes.found[-1]["body"].startswith(f"{marker}\n### ❌")
    assert project.run("same.parquet", **notes.variables).returncode == 0
    assert len(notes.found) == 101
    assert notes.found[-1]["body"].startswith(f"{marker}\n### ✅")


@pytest.mark.slow
def test_a_note_that_is_refused_decides_nothing(project: Project, notes: Notes):
    notes.is_refusing = True
    result = project.run("same.parquet", **notes.variables)
    assert result.returncode == 0, result.stderr
    assert "the merge request has got no note: HTTP Error 403" in result.stdout
    assert TOKEN not in result.stdout + result.stderr
