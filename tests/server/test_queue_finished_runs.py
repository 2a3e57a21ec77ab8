"""The hook in a real MLflow app: what finishes is queued once, and MLflow's answers are as ever."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mlflow
import pytest
import requests
from support.hooked_runs import HookedStore
from support.mlflow_server import ADMIN, MlflowServer, add_user, basic_auth, free_port
from support.processes import run
from support.waiting import wait_until
from support.watchers import COMMAND

from trackperm.automation.queue.queue import Queue

pytestmark = [pytest.mark.tracker, pytest.mark.extended]


class Hooked:
    """A server with the hook, whose policy is about the experiment `digits`."""

    def __init__(self, server: MlflowServer, folder: Path, uri: str | None = None) -> None:
        self.server, self.uri = server, uri or server.uri
        self.runs = HookedStore(self.uri, folder)
        self.elsewhere = HookedStore(self.uri, folder, experiment="elsewhere")
        self.state, self.policy = folder / "state", folder / "trackperm.yaml"

    @property
    def queued(self) -> list[str]:
        return [entry.candidate.removeprefix("mlflow:") for entry in Queue(self.state).entries()]

    def wait_for(self, *run_ids: str, seconds: float = 40.0) -> None:
        """Wait until rows are written, for which no answer waits long."""
        wait_until(lambda: set(run_ids) <= set(self.queued), seconds)

    def update(self, run_id: str, path: str = "/api/2.0", **content: Any) -> requests.Response:
        url = f"{self.uri}{path}/mlflow/runs/update"
        return requests.post(url, json={"run_id": run_id, **content}, timeout=30)

    def watch_once(self) -> subprocess.CompletedProcess[str]:
        arguments = ["watch", "--once", "--policy", self.policy, "--state", self.state]
        return run([*COMMAND, *arguments], env={"MLFLOW_TRACKING_URI": self.uri})


@contextmanager
def hooked(folder: Path, env: dict[str, str] | None = None, **options: Any) -> Iterator[Hooked]:
    path = HookedStore("http://127.0.0.1:9", folder).policy_file("trackperm", tracking_uri=None)
    settings = {"TRACKPERM_POLICY": str(path), "TRACKPERM_STATE": str(folder / "state")}
    with MlflowServer.with_pages(folder, {**settings, **(env or {})}, **options) as server:
        yield Hooked(server, folder)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hooked]:
    with hooked(tmp_path_factory.mktemp("hooked")) as started:
        yield started


@pytest.mark.parametrize("path", ["/api/2.0", "/ajax-api/2.0"])
@pytest.mark.parametrize("status", ["FINISHED", 3, "3"])
def test_every_way_to_say_finished(app: Hooked, path: str, status: object):
    """Whatever MLflow takes for finished is queued, and what it refuses is not."""
    run_id = app.runs.begun()
    answer = app.update(run_id, path, status=status, end_time=1)
    ended = app.runs.store.get(run_id).info.status == "FINISHED"
    assert ended == (answer.status_code == 200)
    if ended:
        app.wait_for(run_id)
    assert (run_id in app.queued) == ended


def test_every_way_of_a_client(app: Hooked, monkeypatch: pytest.MonkeyPatch):
    """`set_terminated`, the end of a `with` block, and an older client's `run_uuid`."""
    terminated = app.runs.begun()
    app.runs.store.client.set_terminated(terminated)
    mlflow.set_tracking_uri(app.uri)
    try:
        mlflow.set_experiment("digits")
        with mlflow.start_run() as block:
            mlflow.log_metrics({"accuracy": 0.5})
            assert block.info.run_id not in app.queued
    finally:
        mlflow.set_tracking_uri(None)
    old = app.runs.begun()
    assert app.update(old, run_uuid=old, status="FINISHED").status_code == 200
    app.wait_for(terminated, block.info.run_id, old)
    assert len(set(app.queued)) == len(app.queued)


def test_what_is_not_the_end_of_a_run(app: Hooked):
    before = app.queued
    client, going = app.runs.store.client, app.runs.begun()
    client.log_batch(going, params=[mlflow.entities.Param("status", "FINISHED")])
    client.set_tag(going, "status", "FINISHED")
    for status in ("FAILED", "KILLED"):
        client.set_terminated(app.runs.begun(), status)
    client.set_terminated(app.elsewhere.begun())
    assert app.update("no-such-run", status="FINISHED").status_code == 404
    assert app.update(going, status="DONE").json()["run_info"]["status"] == "RUNNING"
    assert requests.post(f"{app.uri}/api/2.0/mlflow/runs/update", data=b"{", timeout=30).status_code == 400
    assert app.queued == before


def test_a_renamed_run_has_not_ended(app: Hooked):
    """Regression: runs that were renamed long after they finished would have been compared."""
    run_id, client = app.runs.begun(), app.runs.store.client
    client.set_terminated(run_id, end_time=int(time.time() - 3600) * 1000)
    app.wait_for(run_id)
    with sqlite3.connect(app.state / "queue.sqlite") as rows:
        rows.execute("DELETE FROM work WHERE candidate = ?", (f"mlflow:{run_id}",))
    rows.close()
    client.update_run(run_id, name="renamed")  # which tells the server its status again
    assert app.update(run_id, "/ajax-api/2.0", run_name="renamed again").status_code == 200
    assert run_id not in app.queued
    both = app.runs.begun()
    client.update_run(both, status="FINISHED", name="another name")
    app.wait_for(both)
    assert run_id not in app.queued


@pytest.mark.slow
def test_what_finished_is_compared_and_comparisons_are_not(tmp_path: Path):
    """Regression: comparisons that were logged through the app were queued themselves, and refused."""
    with hooked(tmp_path) as app:
        app.runs.baseline()
        candidate = app.runs.finished()
        done = app.watch_once()
        assert done.returncode == 0, done.stdout + done.stderr
        assert app.runs.compared() == [f"mlflow:{candidate}"]
        [entry] = Queue(app.state).entries()
        assert (entry.candidate, entry.state, entry.source) == (f"mlflow:{candidate}", "done", "app")


@pytest.mark.parametrize("seconds", [0.0, pytest.param(7.0, marks=pytest.mark.slow)])
def test_a_queue_that_is_locked_delays_nobody(app: Hooked, seconds: float):
    """The answer comes as ever, and the rows follow when the lock is gone, be it after several tries."""
    quick = seconds_to_finish(app)
    lock = sqlite3.connect(app.state / "queue.sqlite", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    try:
        late = [app.runs.begun() for _ in range(3)]
        slow = max(seconds_to_finish(app, run_id) for run_id in late)
        time.sleep(seconds)
    finally:
        lock.execute("ROLLBACK")
        lock.close()
    assert slow < quick + 4.0
    app.wait_for(*late)


def seconds_to_finish(app: Hooked, run_id: str | None = None) -> float:
    run_id = run_id or app.runs.begun()
    began = time.monotonic()
    assert app.update(run_id, status="FINISHED").status_code == 200
    return time.monotonic() - began


@pytest.mark.slow
def test_a_queue_that_is_gone_changes_no_answer(tmp_path: Path):
    with hooked(tmp_path) as app:
        for file in app.state.iterdir():
            file.unlink()
        app.state.rmdir()
        app.state.write_text("no folder")
        run_id = app.runs.begun()
        answer = app.update(run_id, status="FINISHED")
        assert answer.status_code == 200
        assert answer.json()["run_info"]["status"] == "FINISHED"
        assert app.runs.store.get(run_id).info.status == "FINISHED"
        said = "trackperm: finished runs wait to be queued: the queue cannot be created"
        wait_until(lambda: said in (tmp_path / "server.log").read_text(), 20.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gunicorn", "workers"),
    [
        pytest.param(False, 1, id="uvicorn-1"),
        pytest.param(True, 3, id="gunicorn-3", marks=pytest.mark.nightly),
    ],
)
def test_a_policy_that_is_not_valid(tmp_path: Path, gunicorn: bool, workers: int):
    """The server ends at once, and a line says why; MLflow's command itself ends with 0 all the same."""
    policy = tmp_path / "trackperm.yaml"
    policy.write_text("policies:\n  - name: nightly\n    baselin: {}\n")
    command = [sys.executable, "-m", "mlflow", "server", "--app-name", "trackperm", "--host", "127.0.0.1"]
    command += ["--port", str(free_port()), "--workers", str(workers)]
    command += ["--backend-store-uri", f"sqlite:///{tmp_path / 'mlflow.db'}"]
    command += ["--gunicorn-opts", "--timeout 60"] if gunicorn else []
    env = {"TRACKPERM_POLICY": str(policy), "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    ended = run(command, cwd=tmp_path, env={**env, "TMPDIR": str(tmp_path)}, timeout=120)
    said = [line for line in ended.stderr.splitlines() if "trackperm:" in line]
    assert 1 <= len(said) <= workers, ended.stderr[-3000:]
    assert f"trackperm: {policy}:3:5: unknown key `baselin`" in said[0], said[0]


@pytest.mark.slow
def test_gunicorn_with_several_processes(tmp_path: Path):
    """They share the queue, below a static prefix too."""
    with hooked(tmp_path, gunicorn=True, workers=3, prefix="/mlf") as app:
        finished = [app.runs.begun() for _ in range(24)]
        for run_id in finished:
            assert app.update(run_id, status="FINISHED").status_code == 200
        app.wait_for(*finished)
        assert sorted(app.queued) == sorted(finished)


@pytest.mark.slow
def test_who_may_not_write_queues_nothing(tmp_path: Path):
    """With basic authentication: neither without a password, nor as a user without permission."""
    with hooked(tmp_path, basic_auth(tmp_path)) as bare:
        app = Hooked(bare.server, tmp_path, bare.uri.replace("://", f"://{':'.join(ADMIN)}@"))
        run_id = app.runs.begun()
        add_user(bare.server, "reader", "the-readers-own-1")
        assert bare.update(run_id, status="FINISHED").status_code == 401
        reader = Hooked(bare.server, tmp_path, bare.uri.replace("://", "://reader:the-readers-own-1@"))
        assert reader.update(run_id, status="FINISHED").status_code == 403
        assert app.queued == []
        assert app.update(run_id, status="FINISHED").status_code == 200
        app.wait_for(run_id)
        assert app.queued == [run_id]


@pytest.mark.nightly
def test_without_the_switch_nothing_is_hooked(tmp_path: Path):
    with hooked(tmp_path, {"TRACKPERM_POLICY": ""}) as app:
        run_id = app.runs.begun()
        assert app.update(run_id, status="FINISHED").status_code == 200
        assert not app.state.exists()
