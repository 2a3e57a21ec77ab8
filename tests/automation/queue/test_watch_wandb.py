"""The watcher on projects of W&B: runs that it lists, and artifacts that a webhook announced."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from support.hooked_runs import Heard, HookedStore
from support.server_client import predictions
from support.wandb_projects import WandbProjects, log_columns, logged_run
from support.wandb_standin import Standin

from trackperm.automation.policy.policy import Policy
from trackperm.automation.queue.queue import Queue, Task
from trackperm.automation.queue.watch import Watcher
from trackperm.automation.queue.worker import Worker

pytestmark = pytest.mark.tracker


def logged(standin: Standin, project: str, role: str, seed: int) -> str:
    """Log a finished run with predictions, and return its id."""
    with logged_run(project, f"{role}-{seed}", standin=standin) as run:
        run.config.update({"role": role})
        log_columns(run, predictions(seed), "predictions.parquet")
    time.sleep(1.1)  # W&B knows the seconds that runs were started in
    return str(run.id)


def policy_of(standin: Standin, folder: Path, project: str) -> Policy:
    store = HookedStore(standin.url, folder)
    return store.policy(runs=f"wandb:team/{project}")


@pytest.mark.slow
def test_finished_runs_and_announced_artifacts(standin: Standin, tmp_path: Path):
    project = "watched"
    baseline = logged(standin, project, "baseline", 1)
    announced, listed = logged(standin, project, "candidate", 2), logged(standin, project, "candidate", 3)
    policy, queue, heard = policy_of(standin, tmp_path, project), Queue(tmp_path / "state"), Heard()
    artifact = f"wandb:team/{project}/predictions-{announced}:v0"
    queue.add([Task(policy.queue_key, artifact, policy.name)], "receive")
    worker = Worker([policy], queue, heard.log)
    steps = [worker.step(), worker.step(), worker.step()]
    assert [step and step.event for step in steps] == ["resolved", "compared", None], heard.text
    [compared] = heard.events("compared")
    assert compared["candidate"] == f"wandb:team/{project}/{announced}"
    assert compared["baseline"] == f"wandb:team/{project}/{baseline}"
    assert Watcher([policy], queue, heard.log).once(threading.Event()) is None
    assert Watcher([policy], queue, heard.log).once(threading.Event()) is None
    candidates = sorted(line["candidate"] for line in heard.events("compared"))
    assert candidates == sorted(f"wandb:team/{project}/{run}" for run in (announced, listed))
    assert len(WandbProjects(standin).comparisons(f"team/{project}")) == 2
    assert queue.counts() == {"waiting": 0, "claimed": 0, "done": 2, "refused": 0}


@pytest.mark.extended
def test_an_artifact_that_is_not_there(standin: Standin, tmp_path: Path):
    project = "watched-too"
    logged(standin, project, "baseline", 1)
    policy, queue, heard = policy_of(standin, tmp_path, project), Queue(tmp_path / "state"), Heard()
    queue.add([Task(policy.queue_key, f"wandb:team/{project}/no-such:v0", policy.name)], "receive")
    step = Worker([policy], queue, heard.log).step()
    assert step.event == "refused"
    assert "no artifact" in heard.events("refused")[0]["reason"]
