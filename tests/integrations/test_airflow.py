"""The command of Airflow's gate, taken from the DAG and run in a shell; without Airflow."""

from __future__ import annotations

import ast
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hooked_runs import HookedStore
from mlflow_stores import MlflowStore
from processes import ROOT, run

pytestmark = pytest.mark.tracker

DAG = ROOT / "integrations" / "airflow" / "dag.py"
PASS, FAIL, BAD_INPUT, TRACKER_FAILED, UNDECIDED = range(5)


def gate() -> dict[str, Any]:
    """Arguments of the operator called `gate`, with names of constants in their place."""
    tree = ast.parse(DAG.read_text(encoding="utf-8"))
    constants = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "BashOperator":
            given = {
                each.arg: constants[each.value.id]
                if isinstance(each.value, ast.Name)
                else ast.literal_eval(each.value)
                for each in node.keywords
            }
            if given["task_id"] == "gate":
                return given
    raise LookupError("gate")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> HookedStore:
    folder = tmp_path_factory.mktemp("store")
    MlflowStore.local(folder).experiment("digits")
    store = HookedStore(f"sqlite:///{folder / 'mlflow.db'}", folder, folder / "artifacts")
    store.baseline()
    return store


def judged(runs: HookedStore, candidate: str, policy: Path) -> subprocess.CompletedProcess[str]:
    """Run the command of the gate, on what Airflow puts into its environment."""
    given = gate()
    assert given["env"].keys() == {"CANDIDATE", "POLICY"}
    assert given["append_env"], "with the PATH and the credentials of the worker"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {"CANDIDATE": candidate, "POLICY": str(policy), "PATH": path, "WAITS": "1"}
    tries = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", "MLFLOW_HTTP_REQUEST_TIMEOUT": "2"}
    return run(["bash", "-c", given["bash_command"]], cwd=runs.folder, env={**env, **tries}, timeout=180)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "code", "said"), [(0.2, PASS, "pass"), (0.5, FAIL, "the candidate is significantly worse")]
)
def test_pass_and_regression(runs: HookedStore, rate: float, code: int, said: str):
    candidate = runs.finished(seed=1 if code == PASS else 2, rate=rate)
    result = judged(runs, f"mlflow:{candidate}", runs.policy_file())
    assert result.returncode == code, result.stdout + result.stderr
    assert said in result.stdout


@pytest.mark.slow
def test_too_few_examples(runs: HookedStore):
    candidate = runs.begun()
    few = {"id": ["a", "b"], "prediction": [1, 0], "label": [1, 1]}
    runs.store.log_columns(candidate, few, "predictions.parquet")
    baseline = runs.begun()
    runs.store.log_columns(baseline, {**few, "prediction": [0, 1]}, "predictions.parquet")
    policy = runs.policy_file("few", baseline={"run": f"mlflow:{baseline}"})
    result = judged(runs, f"mlflow:{candidate}", policy)
    assert result.returncode == UNDECIDED == gate()["skip_on_exit_code"], result.stdout + result.stderr


@pytest.mark.parametrize("candidate", ["mlflow:no-such-run", "$(touch pwned) `touch pwned`; touch pwned"])
def test_bad_input_is_not_asked_again_nor_run(runs: HookedStore, candidate: str):
    result = judged(runs, candidate, runs.policy_file())
    assert result.returncode == BAD_INPUT
    assert result.stderr.count("error: ") == 1
    assert not (runs.folder / "pwned").exists()


@pytest.mark.slow
def test_a_tracker_that_is_down_is_asked_again(runs: HookedStore):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    began = time.monotonic()
    result = judged(
        runs, "mlflow:" + "a" * 32, runs.policy_file("down", tracking_uri=f"http://127.0.0.1:{port}")
    )
    assert result.returncode == TRACKER_FAILED, result.stdout + result.stderr
    assert result.stderr.count("error: ") == 2
    assert time.monotonic() - began > 1
