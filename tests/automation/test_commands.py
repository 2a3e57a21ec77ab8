"""``trackperm watch`` and ``trackperm receive`` as people run them: exit codes, lines, status."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import signal
from pathlib import Path

import pytest
import requests
from support.command_line import call_trackperm
from support.hooked_runs import HookedStore
from support.mlflow_stores import MlflowStore
from support.processes import run
from support.watchers import COMMAND, Program

from trackperm.automation.queue.queue import Queue, Task
from trackperm.automation.webhooks.receive import WANDB_SECRET
from trackperm.cli.watch import stopped_by_signals

pytestmark = pytest.mark.tracker


@pytest.fixture
def runs(tmp_path: Path) -> HookedStore:
    MlflowStore.local(tmp_path).experiment("digits")
    return HookedStore(f"sqlite:///{tmp_path / 'mlflow.db'}", tmp_path, tmp_path / "artifacts")


@pytest.mark.slow
def test_once_and_status(runs: HookedStore):
    runs.baseline()
    candidate = runs.finished(rate=0.5)
    state = ["--state", runs.folder / "state"]
    result = run([*COMMAND, "watch", "--policy", runs.policy_file(), "--once", *state], cwd=runs.folder)
    assert result.returncode == 0, result.stderr
    events = [json.loads(line)["event"] for line in result.stdout.splitlines()]
    assert events == ["started", "queued", "compared", "stopped"]
    shown = run([*COMMAND, "watch", "--status", *state], cwd=runs.folder)
    assert f"done     nightly  mlflow:{candidate} against mlflow:" in shown.stdout
    assert "0 waiting, 0 claimed, 1 done, 0 refused" in shown.stdout
    status = [*COMMAND, "watch", "--status", "--format", "json", "-o", "status.txt", *state]
    [entry] = json.loads(run(status, cwd=runs.folder).stdout)
    assert (runs.folder / "status.txt").read_text() == shown.stdout
    assert (entry["candidate"], entry["outcome"]) == (f"mlflow:{candidate}", "fail")


@pytest.mark.slow
def test_exit_codes_of_once(runs: HookedStore):
    state = ["--state", runs.folder / "state"]
    for changes, code, said in (
        ({"tracking_uri": "http://127.0.0.1:9"}, 3, "does not answer"),
        ({"runs": "mlflow:other"}, 2, "no experiment called `other`"),
    ):
        path = runs.policy_file(**changes)
        result = run([*COMMAND, "watch", "--policy", path, "--once", *state], cwd=runs.folder)
        assert result.returncode == code, result.stderr
        assert said in result.stderr
        assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["watch", "--policy", "no-such-file.yaml"], "no-such-file.yaml"),
        (["watch", "--format", "json"], "`--format` needs `--status`"),
        (["watch", "-o", "status.json"], "`--output` needs `--status`"),
        pytest.param(["watch", "--name", "other"], "has no policy `other`", marks=pytest.mark.extended),
        (["receive"], "no secret is set"),
    ],
)
def test_bad_input(tmp_path: Path, arguments: list[str], said: str):
    HookedStore("http://127.0.0.1:9", tmp_path).policy_file().rename(tmp_path / "trackperm.yaml")
    result = call_trackperm(tmp_path, *arguments, "--state", tmp_path / "state")
    assert result.returncode == 2, result.stderr
    assert said in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_receive_queues_and_ends_when_told(tmp_path: Path):
    secret = "a-secret-that-is-long-enough"
    policy = HookedStore("http://127.0.0.1:9", tmp_path).policy_file(
        runs="wandb:team/digits", tracking_uri=None
    )
    arguments = ["receive", "--policy", policy, "--queue-only", "--port", "0", "--state", tmp_path / "state"]
    log = tmp_path / "receiver.log"
    with Program(arguments, log, {WANDB_SECRET: secret}) as receiver:
        started = receiver.wait_for("started")
        url = f"http://127.0.0.1:{started['port']}"
        body = b'{"artifact": "team/digits/predictions:v1"}'
        digest = hmac.new(secret.encode(), body, hashlib.sha256).digest()
        headers = {"X-Wandb-Signature": base64.b64encode(digest).decode()}
        assert requests.post(f"{url}/wandb", body, headers=headers, timeout=10).status_code == 202
        assert requests.post(f"{url}/wandb", body, headers={}, timeout=10).status_code == 401
        assert requests.get(f"{url}/health", timeout=10).status_code == 200
        arguments_of_process = Path(f"/proc/{receiver.process}/cmdline").read_bytes()
        assert receiver.stop() == 0
    assert secret.encode() not in arguments_of_process
    assert secret not in receiver.text
    assert [entry.candidate for entry in Queue(tmp_path / "state").entries()] == [
        "wandb:team/digits/predictions:v1"
    ]


@pytest.mark.timeout(30)
def test_a_signal_that_comes_while_the_event_is_locked():
    with stopped_by_signals() as stop:
        with stop._cond:  # as `wait` holds it for a moment
            os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(10)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.slow
def test_retry_refused(runs: HookedStore):
    policy = runs.policy()
    runs.baseline()
    candidate = runs.finished()
    queue = Queue(runs.folder / "state")
    queue.add([Task(policy.queue_key, f"mlflow:{candidate}", policy.name)], "watch")
    claim = queue.claim([policy.queue_key], "test")
    assert claim is not None
    queue.refuse(claim, "no reason")
    arguments = [
        "watch",
        "--policy",
        runs.policy_file(),
        "--once",
        "--retry-refused",
        "--state",
        runs.folder / "state",
    ]
    assert run([*COMMAND, *arguments], cwd=runs.folder).returncode == 0
    assert runs.compared() == [f"mlflow:{candidate}"]


def test_each_policy_file_has_a_queue_of_its_own(runs: HookedStore):
    """Regression: two policy files of one user shared a queue, and its status showed the rows of both."""
    runs.baseline()
    candidate = runs.finished()
    mine, yours = runs.policy_file("mine"), runs.policy_file("yours", alpha=0.01)
    home = {"XDG_STATE_HOME": str(runs.folder / "home")}
    for path in (mine, yours):
        assert call_trackperm(runs.folder, "watch", "--policy", path, "--once", env=home).returncode == 0
    for path, name in ((mine, "mine"), (yours, "yours")):
        status = ["watch", "--policy", path, "--status", "--format", "json"]
        [row] = json.loads(call_trackperm(runs.folder, *status, env=home).stdout)
        assert (row["policy"], row["candidate"], row["state"]) == (name, f"mlflow:{candidate}", "done")
    assert len(list((runs.folder / "home" / "trackperm").iterdir())) == 2
    ended = call_trackperm(runs.folder, "watch", "--policy", "none.yaml", "--status", env=home)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: the policy file `none.yaml` does not exist")
    assert len(list((runs.folder / "home" / "trackperm").iterdir())) == 2
