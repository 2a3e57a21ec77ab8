"""The watcher on real stores: what it compares, what it leaves alone, and how it shows that it lives."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import polars as pl
import pytest
import requests
from support.hooked_runs import Heard, WatchedStore
from support.server_client import predictions

import trackperm
from trackperm.automation.policy.edits import EditedPolicies
from trackperm.automation.queue.health import Health, endpoint
from trackperm.automation.queue.queue import Queue, Task
from trackperm.automation.queue.watch import Watcher
from trackperm.errors import InputError, MissingDependencyError, QueueError, TrackerError

pytestmark = pytest.mark.tracker


def test_every_wanted_run_is_compared_once(runs: WatchedStore):
    baseline = runs.baseline()
    first, second = runs.finished(seed=2, rate=0.5), runs.finished(seed=3)
    runs.finished("other", tags={"role": "something else"})
    runs.begun("still going")
    assert runs.once() is None
    assert runs.compared() == sorted([f"mlflow:{first}", f"mlflow:{second}"])
    [one, other] = runs.heard.events("compared")
    assert (one["candidate"], one["baseline"]) == (f"mlflow:{first}", f"mlflow:{baseline}")
    assert (one["outcome"], other["outcome"]) == ("fail", "pass")
    assert one["policy"] == "nightly"
    assert "baseline" in one["why"]
    assert runs.once() is None
    assert len(runs.heard.events("compared")) == 2
    assert runs.queue.counts()["done"] == 2


def test_a_watcher_that_lost_its_state_compares_nothing_again(runs: WatchedStore, tmp_path: Path):
    runs.baseline()
    candidate = runs.finished()
    runs.once()
    before = runs.store.comparisons(runs.experiment)
    runs.queue = Queue(tmp_path / "another")
    assert runs.once() is None
    [known] = runs.heard.events("known")
    assert known["outcome"] == "pass", "a failure is heard though the watcher died before it said so"
    assert known["candidate"] == f"mlflow:{candidate}"
    assert known["comparisons"] == [f"mlflow:{run.info.run_id}" for run in before]
    after = runs.store.comparisons(runs.experiment)
    assert [run.info.end_time for run in after] == [run.info.end_time for run in before]
    assert runs.entry().outcome == "pass"


def test_what_a_gate_compared_before_the_run_had_ended_is_compared_again(runs: WatchedStore):
    """Regression: the run was `known`, though its last predictions were much worse."""
    runs.baseline()
    candidate = runs.begun()
    runs.log(candidate, seed=3)
    report = trackperm.gate(f"mlflow:{candidate}", runs.policy_file())
    assert report.outcome == "pass"
    runs.log(candidate, seed=2, rate=0.5)
    runs.store.client.set_terminated(candidate)
    assert runs.once() is None
    [compared] = runs.heard.events("compared")
    assert compared["outcome"] == "fail"
    assert compared["comparisons"] != [str(each.run.reference) for each in report.published]
    assert "▼" in runs.store.get(candidate).data.tags["sig.accuracy"]
    assert len(runs.compared()) == 2, "what the gate reported stays"


def test_what_was_queued_for_an_earlier_version_of_a_policy_is_named(runs: WatchedStore):
    """Regression: nobody compared it, and nobody said so."""
    before = runs.policy(runs=[])
    runs.queue.add([Task(before.queue_key, "mlflow:1", before.name, "end")], "on-exit")
    for policy, is_left in ((before, False), (runs.policy(runs=[], alpha=0.01), True)):
        heard = Heard()
        Watcher([policy], runs.queue, heard.log)
        assert [each["candidate"] for each in heard.events("left")] == ["mlflow:1"] * is_left


def test_a_refused_run_is_compared_when_its_predictions_are_logged(runs: WatchedStore):
    """Regression: `log_predictions` changed nothing that the watcher looks at."""
    runs.baseline()
    candidate = empty_run(runs)
    assert runs.once() is None
    assert runs.heard.names[-1] == "refused"
    frame = pl.DataFrame(predictions(2, rate=0.5))
    trackperm.log_predictions(f"mlflow:{candidate}", frame, tracking_uri=runs.store.uri)
    assert runs.once() is None
    assert runs.compared() == [f"mlflow:{candidate}"]


def empty_run(runs: WatchedStore) -> str:
    """Log a finished run without predictions."""
    return runs.store.run(runs.experiment, "empty", tags={"role": "candidate"})


@pytest.mark.parametrize("is_announced", [False, True])
def test_what_cannot_be_compared_is_refused_until_the_run_changes(runs: WatchedStore, is_announced: bool):
    """Also if a webhook, or the server, announced it: nobody had looked at the run when it was queued."""
    runs.baseline()
    candidate = empty_run(runs)
    if is_announced:
        assert len(runs.announce(candidate)) == 1
    assert runs.once() is None
    assert runs.once() is None
    assert runs.heard.names == [*([] if is_announced else ["queued"]), "refused"]
    [refused] = runs.heard.events("refused")
    assert refused["candidate"] == f"mlflow:{candidate}"
    assert "no" in refused["reason"]
    assert refused["hint"]
    assert runs.entry().state == "refused"
    assert runs.announce(candidate) == []
    runs.log(candidate)
    runs.store.client.set_tag(candidate, "note", "predictions were added")
    assert runs.once() is None
    assert runs.heard.names[-3:] == ["refused", "queued", "compared"]
    assert runs.compared() == [f"mlflow:{candidate}"]


def test_a_run_that_changed_before_it_was_refused_is_not_queued_again(runs: WatchedStore):
    runs.baseline()
    runs.announce(empty_run(runs), stamp="as it was listed", source="watch")
    assert runs.step() == "refused"
    assert runs.once() is None
    assert runs.heard.names == ["refused"]


def test_the_first_run_has_no_baseline(runs: WatchedStore):
    candidate = runs.finished()
    assert runs.once() is None
    runs.baseline()
    assert runs.once() is None
    assert runs.heard.events("compared", "known") == []
    assert runs.queue.retry_refused([runs.entry().queue_key]) == 1
    runs.once()
    assert [line["candidate"] for line in runs.heard.events("refused")] == [f"mlflow:{candidate}"] * 2
    runs.once(if_no_baseline="pass")
    assert runs.heard.names[-2:] == ["queued", "passed"]


def test_the_first_run_passes_where_the_policy_says_so(runs: WatchedStore):
    candidate = runs.finished()
    for _ in range(2):
        assert runs.once(if_no_baseline="pass") is None
    [passed] = runs.heard.events("passed")
    assert (passed["candidate"], passed["outcome"]) == (f"mlflow:{candidate}", "no baseline")
    assert "no baseline for" in passed["reason"]
    assert (runs.entry().state, runs.entry().outcome) == ("done", "no baseline")
    unreadable = empty_run(runs)
    runs.once(if_no_baseline="pass")
    assert [line["candidate"] for line in runs.heard.events("refused")] == [f"mlflow:{unreadable}"]


@pytest.mark.extended
def test_a_rule_that_was_changed_judges_what_was_compared(runs: WatchedStore):
    runs.baseline()
    candidate = runs.finished()
    for rule in ("regression", "not-shown-non-inferior"):
        assert runs.once(margin=0.116, fail_on=rule) is None
    assert runs.compared() == [f"mlflow:{candidate}"]
    assert [line["outcome"] for line in runs.heard.events("compared", "known")] == ["pass", "fail"]


def test_since(runs: WatchedStore):
    """A run without an end time is not left out."""
    runs.baseline()
    runs.finished()
    later, policies = datetime.now(timezone.utc) + timedelta(hours=1), [runs.policy()]
    Watcher(policies, runs.queue, runs.heard.log, since=later).once(threading.Event())
    assert runs.heard.names == ["nothing-yet"]
    endless = runs.begun()
    runs.log(endless)
    runs.store.client.update_run(endless, status="FINISHED")
    Watcher(policies, runs.queue, runs.heard.log, since=later).once(threading.Event())
    assert runs.compared() == [f"mlflow:{endless}"]


def test_a_sweep_that_was_not_queued_is_made_again(runs: WatchedStore):
    runs.baseline()
    candidate = runs.finished()
    runs.store.client.set_terminated(candidate, end_time=int((time.time() - 7200) * 1000))
    watcher = Watcher([runs.policy()], runs.queue, runs.heard.log)
    with patch.object(runs.queue, "add", side_effect=QueueError("the file is locked")):
        assert isinstance(watcher.once(threading.Event()), QueueError)
    assert watcher.once(threading.Event()) is None
    assert runs.compared() == [f"mlflow:{candidate}"]


def test_an_experiment_that_is_not_there(runs: WatchedStore):
    runs.baseline()
    assert isinstance(runs.once(runs="mlflow:no-such-experiment"), InputError)
    [line] = runs.heard.events("list-failed")
    assert "no-such-experiment" in line["reason"]


def test_a_place_to_log_to_that_is_not_there_yet_refuses_no_run(runs: WatchedStore):
    runs.baseline()
    candidate = runs.finished()
    verdicts = f"{runs.experiment}-verdicts"
    assert isinstance(runs.once(log_to=f"mlflow:{verdicts}"), TrackerError)
    [retry] = runs.heard.events("retry")
    assert f"no experiment called `{verdicts}`" in retry["reason"]
    runs.store.experiment(verdicts)
    runs.later = 900.0
    assert runs.once(log_to=f"mlflow:{verdicts}") is None
    assert [line["candidate"] for line in runs.heard.events("compared")] == [f"mlflow:{candidate}"]


def test_a_tracker_that_is_down(runs: WatchedStore):
    began = time.monotonic()
    assert isinstance(runs.once(tracking_uri="http://127.0.0.1:9"), TrackerError)
    assert time.monotonic() - began < 30
    [line] = runs.heard.events("list-failed")
    assert "does not answer" in line["reason"]
    assert "is `tracking_uri` right?" in line["hint"]


@contextmanager
def running(watcher: Watcher) -> Iterator[None]:
    """Let a watcher run in a thread, until the block ends."""
    stop = threading.Event()
    thread = threading.Thread(target=watcher.run, args=[stop])
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive()


def test_a_health_file_that_cannot_be_written_ends_nothing(runs: WatchedStore):
    runs.baseline()
    health = Health(30, runs.folder / "gone" / "health.json")
    watcher = Watcher([runs.policy()], runs.queue, runs.heard.log, health=health)
    assert watcher.once(threading.Event()) is None
    assert "health.json` cannot be written" in runs.heard.events("health-failed")[0]["reason"]


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


def test_the_baseline_of_a_policy_is_not_refused(runs: WatchedStore):
    """Regression: `--status` showed it as refused, for there is nothing to compare it with."""
    baseline = runs.baseline()
    assert runs.once(only={}, baseline={"run": f"mlflow:{baseline}"}) is None
    assert (runs.entry().state, runs.entry().outcome) == ("done", "baseline")
    assert not runs.heard.events("refused")
    [passed] = runs.heard.events("passed")
    assert "is itself the run" in passed["reason"]


def test_it_runs_until_it_is_told_to_stop_and_takes_up_or_refuses_an_edited_policy(runs: WatchedStore):
    runs.baseline()
    path, heard, file = runs.policy_file(), runs.heard, runs.folder / "health.json"
    edits, health = EditedPolicies(path), Health(30, file)
    health._good -= 60.0  # as if no tracker had answered for long
    with running(Watcher(edits.load(), runs.queue, heard.log, interval=0.05, health=health, edits=edits)):
        candidate = runs.finished()
        heard.wait_for("compared")
        path.write_text(path.read_text().replace("newest", "oldest"))
        [refused] = heard.wait_for("policy-refused")
        assert "unknown key `oldest`" in refused["reason"]
        runs.policy_file(alpha=0.0123)
        heard.wait_for("policy-taken-up")
        heard.wait_for("compared", 2)
    [taken] = heard.events("policy-taken-up")
    first, second = heard.events("compared")
    assert taken["policies"] == ["nightly"]
    assert taken["digests"] == [second["digest"]] != [first["digest"]]
    assert len(heard.events("policy-refused")) == 1
    assert runs.compared() == [f"mlflow:{candidate}"] * 2
    assert json.loads(file.read_text())["state"] == "ok"


def test_an_empty_experiment_is_said_once(runs: WatchedStore):
    runs.store.experiment(runs.experiment)
    watcher = Watcher([runs.policy()], runs.queue, runs.heard.log)
    assert watcher.once(threading.Event()) is None
    assert watcher.once(threading.Event()) is None
    [said] = runs.heard.events("nothing-yet")
    assert said["runs"] == f"mlflow:{runs.experiment}"
    assert said["reason"] == "no run that the policy selects has finished yet"


@pytest.mark.skipif(find_spec("boto3") is not None, reason="boto3 is installed")
def test_a_library_that_is_missing_is_named_and_not_waited_for(runs: WatchedStore):
    """Regression: without boto3, artifacts in S3 were a failure of the tracker, and tried for ever."""
    client = runs.store.client
    place = client.create_experiment(runs.experiment, artifact_location="s3://bucket/there")
    base = client.create_run(place, tags={"role": "baseline"}).info.run_id
    candidate = client.create_run(place, tags={"role": "candidate"}).info.run_id
    for run in (base, candidate):
        client.set_terminated(run)
    assert runs.once() is None
    [refused] = runs.heard.events("refused")
    assert refused["reason"].startswith(
        "`boto3`, which is not installed, is needed for listing the artifacts of run"
    )
    assert refused["hint"].startswith("pip install 'trackperm[s3]'; then `trackperm watch --retry-refused`")
    assert not runs.heard.events("retry")
    with pytest.raises(MissingDependencyError, match=r"pip install 'trackperm\[s3\]'"):
        trackperm.compare(f"mlflow:{base}", f"mlflow:{candidate}", tracking_uri=runs.store.uri)
