"""The hook before a push, in repositories of Git that push to a bare one."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest
import yaml
from support.hooked_runs import three_changed
from support.processes import ROOT, run, script
from support.server_client import predictions

FOLDER = ROOT / "integrations" / "local-gate"
POLICY = "policies: [{name: local, baseline: {run: base.parquet}}]\n"


class Clone:
    """A repository with the hook, and the bare one that it pushes to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "clone"
        self.bare = folder / "bare.git"
        self._env = {"HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
        for command in (["init", "--bare", self.bare], ["init", "--initial-branch=work", self.folder]):
            assert run(["git", *command], cwd=folder, env=self._env).returncode == 0
        for name, value in {
            "user.name": "Ada",
            "user.email": "ada@example.org",
            "trackperm.command": script("trackperm"),
        }.items():
            self.git("config", name, value)
        shutil.copy(FOLDER / "pre-push", self.folder / ".git" / "hooks" / "pre-push")
        (self.folder / "trackperm.yaml").write_text(POLICY)
        for name, columns in {
            "base": predictions(1),
            "same": predictions(1),
            "worse": predictions(2, rate=0.6),
            "few": three_changed(),
        }.items():
            pl.DataFrame(columns).write_parquet(self.folder / f"{name}.parquet")
        self.git("add", ".")
        self.git("commit", "-m", "a change")

    def git(self, *arguments: str) -> None:
        result = run(["git", *arguments], cwd=self.folder, env=self._env, timeout=60)
        assert result.returncode == 0, result.stderr

    def push(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["git", "push", *arguments, str(self.bare), "work"]
        return run(command, cwd=self.folder, env=self._env, timeout=120)

    @property
    def has_arrived(self) -> bool:
        command = ["git", "--git-dir", self.bare, "rev-parse", "--verify", "--quiet", "work"]
        return run(command, env=self._env).returncode == 0


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


@pytest.mark.parametrize(
    ("candidate", "is_accepted", "said"),
    [
        pytest.param("same.parquet", True, "local: pass", marks=pytest.mark.extended),
        ("worse.parquet", False, "local: fail"),
        pytest.param("few.parquet", True, "local: undecided", marks=pytest.mark.extended),
        ("none.parquet", False, "none.parquet"),
        pytest.param("--help", False, "--help", marks=pytest.mark.extended),
    ],
    ids=["pass", "regression", "undecided", "bad-input", "option"],
)
def test_push(clone: Clone, candidate: str, is_accepted: bool, said: str):
    clone.git("config", "trackperm.candidate", candidate)
    result = clone.push()
    assert (result.returncode == 0, clone.has_arrived) == (is_accepted, is_accepted), result.stderr
    assert said in result.stderr
    assert ("the push is refused" in result.stderr) is not is_accepted


@pytest.mark.extended
def test_a_push_that_was_refused_can_be_forced_and_deleted(clone: Clone):
    clone.git("config", "trackperm.candidate", "worse.parquet")
    clone.git("config", "trackperm.name", "local")
    assert clone.push().returncode != 0
    assert clone.push("--no-verify").returncode == 0
    assert clone.has_arrived
    deleted = clone.push("--delete")
    assert deleted.returncode == 0, deleted.stderr
    assert "local:" not in deleted.stderr, "what deletes a branch is not judged"
    assert not clone.has_arrived


@pytest.mark.extended
def test_settings(clone: Clone):
    nothing = clone.push()
    assert (nothing.returncode, "nothing to judge" in nothing.stderr) == (0, True)
    clone.git("config", "trackperm.candidate", "worse.parquet")
    clone.git("config", "trackperm.policy", "other.yaml")
    clone.git("commit", "--allow-empty", "-m", "another change")
    refused = clone.push()
    assert (refused.returncode == 0, "other.yaml" in refused.stderr) == (False, True)


@pytest.mark.tracker
@pytest.mark.slow
def test_a_tracker_that_fails_stops_nobody(clone: Clone):
    (clone.folder / "trackperm.yaml").write_text(
        "policies: [{name: local, baseline: {champion: digits}, tracking_uri: 'http://127.0.0.1:9'}]\n"
    )
    clone.git("config", "trackperm.candidate", "mlflow:digits/cand-1")
    result = clone.push()
    assert (result.returncode, "not decided (exit code 3)" in result.stderr) == (0, True), result.stderr


@pytest.mark.extended
def test_the_hook_of_pre_commit(clone: Clone):
    document = yaml.safe_load((FOLDER / "pre-commit-config.yaml").read_text(encoding="utf-8"))
    [repository] = document["repos"]
    [hook] = repository["hooks"]
    assert repository["repo"] == "local"
    assert {"id", "name", "entry", "language"} <= set(hook), "what pre-commit wants of a local hook"
    assert (hook["language"], hook["stages"]) == ("system", ["pre-push"])
    assert (hook["always_run"], hook["pass_filenames"]) == (True, False)
    command, *arguments = shlex.split(hook["entry"])
    assert command == "trackperm"
    for candidate, code in (("worse", 1), ("same", 0)):
        shutil.copy(clone.folder / f"{candidate}.parquet", clone.folder / "predictions.parquet")
        result = run([script("trackperm"), *arguments], cwd=clone.folder)
        assert result.returncode == code, result.stderr
