"""The command line on a real MLflow server: two logged runs in, a comparison in the tracker out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from uuid import uuid4

import pytest
from support.command_line import call_trackperm
from support.comparisons import answers
from support.mlflow_server import MlflowServer
from support.mlflow_stores import MlflowStore
from support.processes import run, script

pytestmark = [pytest.mark.tracker, pytest.mark.newer]

BETTER, WORSE, BOTH, NEITHER = 109, 69, 935, 206


def log_two_runs(store: MlflowStore, experiment: str) -> tuple[str, str]:
    """Log the runs of the README and return their ids."""
    baseline = answers([False] * BETTER + [True] * (WORSE + BOTH) + [False] * NEITHER)
    candidate = answers([True] * BETTER + [False] * WORSE + [True] * BOTH + [False] * NEITHER)
    return (
        store.run_with_predictions(experiment, "logistic", baseline.to_dict(as_series=False)),
        store.run_with_predictions(experiment, "forest", candidate.to_dict(as_series=False)),
    )


@pytest.mark.extended  # the README says the same of a store
def test_compares_logs_and_logs_nothing_twice(mlflow_server: MlflowServer, tmp_path: Path):
    store, experiment = MlflowStore(mlflow_server.uri), f"digits-{uuid4().hex[:8]}"
    baseline_id, candidate_id = log_two_runs(store, experiment)
    command = ["compare", f"mlflow:{experiment}/logistic", f"mlflow:{candidate_id}"]
    env = {"MLFLOW_TRACKING_URI": mlflow_server.uri}

    refused = call_trackperm(tmp_path, *command, "--alert", env=env)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert (
        "the tracker `mlflow` does not support `--alert`\n\nHint: it supports `--tag-runs`." in refused.stderr
    )
    assert not store.comparisons(experiment)

    first = call_trackperm(tmp_path, *command, "--format", "json", env=env)
    assert first.returncode == 0, first.stderr
    (result,) = json.loads(first.stdout)
    (logged,) = store.comparisons(experiment)
    assert f"/runs/{logged.info.run_id}" in first.stderr
    assert logged.data.metrics["accuracy/p_value"] == pytest.approx(result["pvalue"], rel=1e-13)
    assert logged.data.metrics["accuracy/n_discordant"] == BETTER + WORSE
    assert store.get(candidate_id).data.tags["sig.accuracy"] == "accuracy 0.7915 ▲ p=0.0033"
    assert len(store.table(logged.info.run_id, "discordant.json")["data"]) == BETTER + WORSE
    assert store.artifacts(logged.info.run_id)["verdict.png"].startswith(b"\x89PNG")

    second = call_trackperm(tmp_path, *command, "--format", "json", env=env)
    assert second.returncode == 0, second.stderr
    assert second.stdout == first.stdout
    assert "already logged" in second.stderr
    assert [again.to_dictionary() for again in store.comparisons(experiment)] == [logged.to_dictionary()]
    assert not list(tmp_path.iterdir())

    assert "sig.accuracy.baseline_of" not in store.get(baseline_id).data.tags
    tagged = call_trackperm(tmp_path, *command, "--tag-runs", env=env)
    assert tagged.returncode == 0, tagged.stderr
    assert store.get(baseline_id).data.tags["sig.accuracy.baseline_of"] == "forest ▲"
    reports = [store.artifacts(run_id)["trackperm_report.html"] for run_id in (baseline_id, candidate_id)]
    assert reports == [store.artifacts(logged.info.run_id)["trackperm_report.html"]] * 2


def test_a_tracker_out_of_reach_is_exit_code_3(tmp_path: Path):
    command = ["compare", "mlflow:a", "mlflow:b", "--tracking-uri", "http://127.0.0.1:9"]
    result = call_trackperm(tmp_path, *command)
    assert (result.returncode, result.stdout) == (3, "")
    assert "does not answer" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_a_killed_command_is_completed_by_the_next(mlflow_server: MlflowServer, tmp_path: Path):
    store, experiment = MlflowStore(mlflow_server.uri), f"digits-{uuid4().hex[:8]}"
    log_two_runs(store, experiment)
    command = [script("trackperm"), "compare", f"mlflow:{experiment}/logistic", f"mlflow:{experiment}/forest"]
    command += ["--tracking-uri", mlflow_server.uri]

    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not store.comparisons(experiment) and time.monotonic() < deadline:
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    (begun,) = store.comparisons(experiment)
    assert (begun.info.status, begun.data.tags["trackperm.state"]) == ("RUNNING", "writing")

    assert run(command, cwd=tmp_path).returncode == 0
    (completed,) = store.comparisons(experiment)
    assert completed.info.run_id == begun.info.run_id
    assert (completed.info.status, completed.data.tags["trackperm.state"]) == ("FINISHED", "done")


def test_a_database_that_is_read_only_is_one_message(tmp_path: Path):
    """Regression: MLflow's traceback came before it."""
    store = MlflowStore.local(tmp_path)
    ids = log_two_runs(store, "digits")
    read_only = f"sqlite:///file:{store.uri.removeprefix('sqlite:///')}?mode=ro&uri=true"
    command = ["compare", *(f"mlflow:{each}" for each in ids), "--log", "--tracking-uri", read_only]
    refused = call_trackperm(tmp_path, *command)
    assert refused.returncode == 3
    assert "▲ better" in refused.stdout
    assert refused.stderr.startswith("error: MLflow at ")
    assert "attempt to write a readonly database\n\nHint: " in refused.stderr
