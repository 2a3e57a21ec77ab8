"""The watcher on real stores: what it compares, what it leaves alone, and how it shows that it lives."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from datetime import datetime, timedelta, timezone
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import Mock

import pytest
import requests
from support.hooked_runs import Heard, HookedStore, once

import trackperm
from trackperm.automation.policy.edits import EditedPolicies
from trackperm.automation.queue.health import Health, endpoint
from trackperm.automation.queue.queue import Queue, Task
from trackperm.automation.queue.watch import Watcher
from trackperm.automation.queue.worker import Worker
from trackperm.errors import InputError, MissingDependencyError, QueueError, TrackerError

pytestmark = pytest.mark.tracker


def test_every_wanted_run_is_compared_once(runs: HookedStore, queue: Queue, heard: Heard):
    baseline = runs.baseline()
    first, second = runs.finished(seed=2, rate=0.5), runs.finished(seed=3)
    runs.finished("other", tags={"role": "something else"})
    runs.begun("still going")
    assert once(runs, queue, heard) is None
    assert runs.compared() == sorted([f"mlflow:{first}", f"mlflow:{second}"])
    [one, other] = heard.events("compared")
    assert (one["candidate"], one["baseline"]) == (f"mlflow:{first}", f"mlflow:{baseline}")
    assert (one["outcome"], other["outcome"]) == ("fail", "pass")
    assert one["policy"] == "nightly"
    assert "baseline" in one["why"]
    assert once(runs, queue, heard) is None
    assert len(heard.events("compared")) == 2
    assert queue.counts()["done"] == 2


def test_a_watcher_that_lost_its_state_compares_nothing_again(
    runs: HookedStore, tmp_path: Path, heard: Heard
):
    runs.baseline()
    candidate = runs.finished()
    once(runs, Queue(tmp_path / "one"), heard)
    before = runs.store.comparisons(runs.experiment)
    another = Queue(tmp_path / "two")
    assert once(runs, another, heard) is None
    [known] = heard.events("known")
    assert known["candidate"] == f"mlflow:{candidate}"
    assert known["comparisons"] == [f"mlflow:{run.info.run_id}" for run in before]
    assert [run.info.end_time for run in runs.store.comparisons(runs.experiment)] == [
        run.info.end_time for run in before
    ]
    assert another.entries()[0].outcome == "known"


def test_what_cannot_be_compared_is_refused_until_the_run_changes(
    runs: HookedStore, queue: Queue, heard: Heard
):
    runs.baseline()
    candidate = runs.begun()
    runs.store.client.set_terminated(candidate)
    assert once(runs, queue, heard) is None
    assert once(runs, queue, heard) is None
    [refused] = heard.events("refused")
    assert refused["candidate"] == f"mlflow:{candidate}"
    assert "no" in refused["reason"]
    assert refused["hint"]
    assert queue.entries()[0].state == "refused"
    runs.log(candidate)
    runs.store.client.set_tag(candidate, "note", "predictions were added")
    assert once(runs, queue, heard) is None
    assert runs.compared() == [f"mlflow:{candidate}"]


@pytest.mark.parametrize("source", ["receive", "app"])
def test_what_was_announced_and_refused_is_not_queued_again(
    runs: HookedStore, queue: Queue, heard: Heard, source: str
):
    """By a webhook, or by the server: nobody had looked at the run when it was queued."""
    runs.baseline()
    candidate = runs.begun()
    runs.store.client.set_terminated(candidate)
    policy = runs.policy()
    announced = Task(policy.queue_key, f"mlflow:{candidate}", policy.name)
    assert queue.add([announced], source) == [announced]
    assert once(runs, queue, heard) is None
    assert once(runs, queue, heard) is None
    assert [line["event"] for line in heard.lines] == ["refused"]
    assert queue.add([announced], source) == []
    runs.log(candidate)
    runs.store.client.set_tag(candidate, "note", "predictions were added")
    assert once(runs, queue, heard) is None
    assert [line["event"] for line in heard.lines] == ["refused", "queued", "compared"]


def test_a_run_that_changed_before_it_was_refused_is_not_queued_again(
    runs: HookedStore, queue: Queue, heard: Heard
):
    runs.baseline()
    candidate = runs.begun()
    runs.store.client.set_terminated(candidate)
    policy = runs.policy()
    queue.add([Task(policy.queue_key, f"mlflow:{candidate}", policy.name, "as it was listed")], "watch")
    assert Worker([policy], queue, heard.log).step() is not None
    assert once(runs, queue, heard) is None
    assert [line["event"] for line in heard.lines] == ["refused"]


def test_the_first_run_has_no_baseline(runs: HookedStore, queue: Queue, heard: Heard):
    candidate = runs.finished()
    assert once(runs, queue, heard) is None
    runs.baseline()
    assert once(runs, queue, heard) is None
    assert heard.events("compared", "known") == []
    assert queue.retry_refused([queue.entries()[0].queue_key]) == 1
    once(runs, queue, heard)
    assert [line["candidate"] for line in heard.events("refused")] == [f"mlflow:{candidate}"] * 2


def test_the_first_run_passes_where_the_policy_says_so(runs: HookedStore, queue: Queue, heard: Heard):
    candidate = runs.finished()
    policy = runs.policy(if_no_baseline="pass")
    for _ in range(2):
        assert Watcher([policy], queue, heard.log).once(threading.Event()) is None
    [passed] = heard.events("passed")
    assert (passed["candidate"], passed["outcome"]) == (f"mlflow:{candidate}", "no baseline")
    assert "no baseline for" in passed["reason"]
    assert [(entry.state, entry.outcome) for entry in queue.entries()] == [("done", "no baseline")]
    unreadable = runs.begun()
    runs.store.client.set_terminated(unreadable)
    Watcher([policy], queue, heard.log).once(threading.Event())
    assert [line["candidate"] for line in heard.events("refused")] == [f"mlflow:{unreadable}"]


def test_a_rule_that_was_changed_judges_what_was_compared(runs: HookedStore, queue: Queue, heard: Heard):
    runs.baseline()
    candidate = runs.finished()
    for rule in ("regression", "not-shown-non-inferior"):
        assert once(runs, queue, heard, margin=0.116, fail_on=rule) is None
    assert runs.compared() == [f"mlflow:{candidate}"]
    assert [line["outcome"] for line in heard.events("compared", "known")] == ["pass", "fail"]


def test_what_was_refused_for_want_of_a_baseline_passes_once_the_policy_says_so(
    runs: HookedStore, queue: Queue, heard: Heard
):
    runs.finished()
    once(runs, queue, heard)
    once(runs, queue, heard, if_no_baseline="pass")
    assert [line["event"] for line in heard.events("refused", "passed")] == ["refused", "passed"]


def test_since(runs: HookedStore, queue: Queue, heard: Heard):
    runs.baseline()
    runs.finished()
    later = datetime.now(timezone.utc) + timedelta(hours=1)
    Watcher([runs.policy()], queue, heard.log, since=later).once(threading.Event())
    assert [line["event"] for line in heard.lines] == ["nothing-yet"]


def test_a_run_without_an_end_time_is_not_left_out(runs: HookedStore, queue: Queue, heard: Heard):
    runs.baseline()
    candidate = runs.begun()
    runs.log(candidate)
    runs.store.client.update_run(candidate, status="FINISHED")
    since = datetime.now(timezone.utc) - timedelta(days=1)
    Watcher([runs.policy()], queue, heard.log, since=since).once(threading.Event())
    assert runs.compared() == [f"mlflow:{candidate}"]


def test_a_sweep_that_was_not_queued_is_made_again(
    runs: HookedStore, queue: Queue, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    runs.baseline()
    candidate = runs.finished()
    runs.store.client.set_terminated(candidate, end_time=int((time.time() - 7200) * 1000))
    watcher = Watcher([runs.policy()], queue, heard.log)
    with monkeypatch.context() as broken:
        broken.setattr(queue, "add", Mock(side_effect=QueueError("the file is locked")))
        assert isinstance(watcher.once(threading.Event()), QueueError)
    assert watcher.once(threading.Event()) is None
    assert runs.compared() == [f"mlflow:{candidate}"]


def test_an_experiment_that_is_not_there(runs: HookedStore, queue: Queue, heard: Heard):
    runs.baseline()
    error = once(runs, queue, heard, runs="mlflow:no-such-experiment")
    assert isinstance(error, InputError)
    [line] = heard.events("list-failed")
    assert "no-such-experiment" in line["reason"]


def test_a_place_to_log_to_that_is_not_there_yet_refuses_no_run(
    runs: HookedStore, queue: Queue, heard: Heard
):
    runs.baseline()
    candidate = runs.finished()
    verdicts = f"{runs.experiment}-verdicts"
    error = once(runs, queue, heard, log_to=f"mlflow:{verdicts}")
    assert isinstance(error, TrackerError)
    [retry] = heard.events("retry")
    assert f"no experiment called `{verdicts}`" in retry["reason"]
    runs.store.experiment(verdicts)
    later = Queue(queue.folder, clock=lambda: time.time() + 900.0)
    assert once(runs, later, heard, log_to=f"mlflow:{verdicts}") is None
    assert [line["candidate"] for line in heard.events("compared")] == [f"mlflow:{candidate}"]


def test_a_tracker_that_is_down(runs: HookedStore, queue: Queue, heard: Heard):
    began = time.monotonic()
    error = once(runs, queue, heard, tracking_uri="http://127.0.0.1:9")
    assert isinstance(error, TrackerError)
    assert time.monotonic() - began < 30
    [line] = heard.events("list-failed")
    assert "does not answer" in line["reason"]
    assert "is `tracking_uri` right?" in line["hint"]


def test_runs_until_it_is_told_to_stop(runs: HookedStore, queue: Queue, heard: Heard, tmp_path: Path):
    runs.baseline()
    stop, file = threading.Event(), tmp_path / "health.json"
    watcher = Watcher([runs.policy()], queue, heard.log, interval=0.2, health=Health(30, file))
    thread = threading.Thread(target=watcher.run, args=(stop,))
    thread.start()
    try:
        candidate = runs.finished()
        deadline = time.monotonic() + 30
        while not heard.events("compared") and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        stop.set()
        thread.join(30)
    assert not thread.is_alive()
    assert runs.compared() == [f"mlflow:{candidate}"]
    assert json.loads(file.read_text())["state"] == "ok"


def test_a_health_file_that_cannot_be_written_ends_nothing(runs: HookedStore, queue: Queue, heard: Heard):
    runs.baseline()
    folder = runs.folder / "gone"
    watcher = Watcher([runs.policy()], queue, heard.log, health=Health(30, folder / "health.json"))
    assert watcher.once(threading.Event()) is None
    assert "health.json` cannot be written" in heard.events("health-failed")[0]["reason"]


def test_health(tmp_path: Path):
    health = Health(2.0, tmp_path / "health.json")
    with endpoint(health, 0) as port:
        url = f"http://127.0.0.1:{port}"
        health.beat(is_good=True, queue={"waiting": 1})
        assert requests.get(f"{url}/health", timeout=5).json()["queue"] == {"waiting": 1}
        assert requests.get(f"{url}/other", timeout=5).status_code == 404
        time.sleep(2.1)
        assert requests.get(f"{url}/health", timeout=5).json()["state"] == "stalled"
        health.beat(is_good=False)
        answer = requests.get(f"{url}/healthz", timeout=5)
        assert (answer.status_code, answer.json()["state"]) == (503, "failing")
        with pytest.raises(InputError, match=f"port {port} cannot be listened on"), endpoint(health, port):
            pass
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{url}/health", timeout=2)
    with pytest.raises(InputError, match="health file"):
        Health(1, tmp_path / "no" / "folder").beat(is_good=True)


def test_the_baseline_of_a_policy_is_not_refused(runs: HookedStore, queue: Queue, heard: Heard):
    """Regression: `--status` showed it as refused, for there is nothing to compare it with."""
    baseline = runs.baseline()
    assert once(runs, queue, heard, only={}, baseline={"run": f"mlflow:{baseline}"}) is None
    [entry] = queue.entries()
    assert (entry.state, entry.outcome) == ("done", "baseline")
    assert not heard.events("refused")
    [passed] = heard.events("passed")
    assert "is itself the run" in passed["reason"]


def test_an_edited_policy_is_taken_up_or_refused_without_a_restart(
    runs: HookedStore, queue: Queue, heard: Heard
):
    runs.baseline()
    runs.finished()
    path = runs.policy_file()
    edits = EditedPolicies(path)
    watcher = Watcher(edits.load(), queue, heard.log, interval=0.05, edits=edits)
    stop = threading.Event()
    thread = threading.Thread(target=watcher.run, args=[stop])
    thread.start()
    try:
        heard.wait_for("compared")
        path.write_text(path.read_text().replace("newest", "oldest"))
        [refused] = heard.wait_for("policy-refused")
        assert "unknown key `oldest`" in refused["reason"]
        runs.policy_file(alpha=0.0123)
        heard.wait_for("policy-taken-up")
        heard.wait_for("compared", 2)
    finally:
        stop.set()
        thread.join(60)
    [taken] = heard.events("policy-taken-up")
    first, second = heard.events("compared")
    assert taken["policies"] == ["nightly"]
    assert taken["digests"] == [second["digest"]] != [first["digest"]]
    assert len(heard.events("policy-refused")) == 1


def test_an_empty_experiment_is_said_once(runs: HookedStore, queue: Queue, heard: Heard):
    runs.store.experiment(runs.experiment)
    watcher = Watcher([runs.policy()], queue, heard.log)
    assert watcher.once(threading.Event()) is None
    assert watcher.once(threading.Event()) is None
    [said] = heard.events("nothing-yet")
    assert said["runs"] == f"mlflow:{runs.experiment}"
    assert said["reason"] == "no run that the policy selects has finished yet"


@pytest.mark.skipif(find_spec("boto3") is not None, reason="boto3 is installed")
def test_a_library_that_is_missing_is_named_and_not_waited_for(runs: HookedStore, queue: Queue, heard: Heard):
    """Regression: without boto3, artifacts in S3 were a failure of the tracker, and tried for ever."""
    client = runs.store.client
    place = client.create_experiment(runs.experiment, artifact_location="s3://bucket/there")
    base = client.create_run(place, tags={"role": "baseline"}).info.run_id
    candidate = client.create_run(place, tags={"role": "candidate"}).info.run_id
    for run in (base, candidate):
        client.set_terminated(run)
    assert once(runs, queue, heard) is None
    [refused] = heard.events("refused")
    assert refused["reason"].startswith(
        "`boto3`, which is not installed, is needed for listing the artifacts of run"
    )
    assert refused["hint"].startswith("pip install 'trackperm[s3]'; then `trackperm watch --retry-refused`")
    assert not heard.events("retry")
    with pytest.raises(MissingDependencyError, match=r"pip install 'trackperm\[s3\]'"):
        trackperm.compare(f"mlflow:{base}", f"mlflow:{candidate}", tracking_uri=runs.store.uri)
