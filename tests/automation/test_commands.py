"""``trackperm watch`` and ``trackperm receive`` as people run them: exit codes, lines, status."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from support.command_line import call_trackperm
from support.hooked_runs import HookedStore

from trackperm.automation.queue.queue import Queue, Task
from trackperm.cli.watch import stopped_by_signals

pytestmark = pytest.mark.tracker


@pytest.fixture
def runs(tmp_path: Path) -> HookedStore:
    return HookedStore.local(tmp_path)


@pytest.mark.extended
def test_once_and_status(runs: HookedStore):
    runs.baseline()
    candidate = runs.finished(rate=0.5)
    state = ["--state", runs.folder / "state"]
    result = call_trackperm(runs.folder, "watch", "--policy", runs.policy_file(), "--once", *state)
    assert result.returncode == 0, result.stderr
    events = [json.loads(line)["event"] for line in result.stdout.splitlines()]
    assert events == ["started", "queued", "compared", "stopped"]
    shown = call_trackperm(runs.folder, "watch", "--status", *state)
    assert f"done     nightly  mlflow:{candidate} against mlflow:" in shown.stdout
    assert "0 waiting, 0 claimed, 1 done, 0 refused" in shown.stdout
    status = ["watch", "--status", "--format", "json", "-o", "status.txt", *state]
    [entry] = json.loads(call_trackperm(runs.folder, *status).stdout)
    assert (runs.folder / "status.txt").read_text() == shown.stdout
    assert (entry["candidate"], entry["outcome"]) == (f"mlflow:{candidate}", "fail")


@pytest.mark.extended
@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"runs": "mlflow:other"}, 2, "no experiment called `other`"),
        ({"tracking_uri": "http://127.0.0.1:9"}, 3, "does not answer"),
    ],
)
def test_what_once_cannot_do_is_told_by_its_exit_code(
    runs: HookedStore, changes: dict[str, str], code: int, said: str
):
    watch = ["watch", "--policy", runs.policy_file(**changes), "--once"]
    result = call_trackperm(runs.folder, *watch, "--state", runs.folder / "state")
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


@pytest.mark.timeout(30)
def test_a_signal_that_comes_while_the_event_is_locked():
    with stopped_by_signals() as stop:
        with stop._cond:  # as `wait` holds it for a moment
            os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(10)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.extended
def test_retry_refused(runs: HookedStore):
    policy, state = runs.policy(), runs.folder / "state"
    runs.baseline()
    candidate = runs.finished()
    queue = Queue(state)
    queue.add([Task(policy.queue_key, f"mlflow:{candidate}", policy.name)], "watch")
    claim = queue.claim([policy.queue_key], "test")
    assert claim is not None
    queue.refuse(claim, "no reason")
    watch = ["watch", "--policy", runs.policy_file(), "--once", "--retry-refused", "--state", state]
    assert call_trackperm(runs.folder, *watch).returncode == 0
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
