"""The task of Airflow's gate, taken from the DAG and run with every outcome; without Airflow."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.airflow_standin import Ended, Task, load_dag
from support.hooked_runs import HookedStore
from support.mlflow_server import free_port
from support.processes import ROOT

from trackperm.errors import TrackerError

pytestmark = pytest.mark.tracker

DAG = ROOT / "integrations" / "airflow" / "dag.py"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> HookedStore:
    store = HookedStore.local(tmp_path_factory.mktemp("store"))
    store.baseline()
    return store


def judged(candidate: str, policy: Path) -> Ended:
    """Run the task of the DAG that judges."""
    task = load_dag(DAG)["gate"]
    assert isinstance(task, Task)
    return task.run(candidate, str(policy))


def test_what_is_trained_is_judged_and_then_deployed():
    names = load_dag(DAG)
    assert names["judged"].name == "gate"
    assert names["judged"].takes == (names["train"],)
    assert names["judged"].followed_by == [names["deploy"]]


def test_a_pass(runs: HookedStore, capsys: pytest.CaptureFixture[str]):
    candidate = runs.finished(seed=1)
    assert judged(f"mlflow:{candidate}", runs.policy_file()) == Ended("success", 1)
    assert "nightly: pass" in capsys.readouterr().out
    assert runs.compared() == [f"mlflow:{candidate}"]


def test_a_regression_fails_and_is_not_retried(runs: HookedStore, capsys: pytest.CaptureFixture[str]):
    candidate = runs.finished(seed=2, rate=0.5)
    ended = judged(f"mlflow:{candidate}", runs.policy_file())
    assert (ended.state, ended.n_tries, str(ended.error)) == ("failed", 1, "nightly: fail")
    assert "the candidate is significantly worse" in capsys.readouterr().out


def test_too_few_examples_skip(runs: HookedStore):
    ended = judged(f"mlflow:{runs.few()}", runs.policy_file("few"))
    assert (ended.state, ended.n_tries, str(ended.error)) == ("skipped", 1, "few: undecided")


@pytest.mark.extended
@pytest.mark.parametrize("candidate", ["mlflow:no-such-run", "$(touch pwned) `touch pwned`; touch pwned"])
def test_bad_input_is_not_retried_nor_run(
    runs: HookedStore, candidate: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    ended = judged(candidate, runs.policy_file())
    assert (ended.state, ended.n_tries) == ("failed", 1)
    assert "Hint: " in str(ended.error) or "no-such-run" in str(ended.error)
    assert not (tmp_path / "pwned").exists()


def test_a_tracker_that_is_down_is_tried_again(runs: HookedStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "2")
    policy = runs.policy_file("down", tracking_uri=f"http://127.0.0.1:{free_port()}")
    ended = judged("mlflow:" + "a" * 32, policy)
    assert (ended.state, ended.n_tries) == ("failed", 4)
    assert isinstance(ended.error, TrackerError)
