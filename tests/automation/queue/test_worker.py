"""A worker on real stores: retries, errors, leases, and what another worker did meanwhile."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest
import requests
from support.hooked_runs import Heard, HookedStore, WatchedStore

from trackperm.automation.judging import compare_candidate as work_module
from trackperm.automation.queue import watch as watch_module
from trackperm.automation.queue import worker as worker_module
from trackperm.automation.queue.queue import Queue
from trackperm.automation.queue.worker import Worker
from trackperm.errors import InputError, QueueError, TrackerError

pytestmark = pytest.mark.tracker
comparing = partial(patch.object, worker_module, "compare_and_log")
"""Replace what compares a run, for a while."""


def test_a_retry_keeps_the_baseline_of_the_first_attempt(runs: WatchedStore):
    baseline = runs.baseline()
    candidate = runs.finished()
    policy, client = runs.policy(baseline={"champion": "m"}), runs.store.client
    client.create_registered_model("m")
    client.create_model_version("m", runs.folder.as_uri(), run_id=baseline)
    client.set_registered_model_alias("m", "champion", "1")
    runs.announce(candidate, policy=policy)
    with comparing(side_effect=TrackerError("no answer")):
        assert runs.step(policy) == "retry"
    client.create_model_version("m", runs.folder.as_uri(), run_id=runs.finished("new champion"))
    client.set_registered_model_alias("m", "champion", "2")
    runs.later = 3000.0
    assert runs.step(policy) == "compared"
    assert runs.entry().baseline == f"mlflow:{baseline}"


def test_what_a_worker_left_double_is_withdrawn_by_the_next(
    runs: WatchedStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """On another machine a worker saw nothing of the comparison, and died before it looked again."""
    runs.baseline()
    candidate = runs.finished()
    runs.once()
    [first] = runs.store.comparisons(runs.experiment)
    other = runs.baseline(seed=5)
    runs.queue = Queue(tmp_path / "another machine")
    runs.announce(candidate)
    runs.queue.release(runs.queue.fix_baseline(runs.claim(), f"mlflow:{other}", "newer"))
    with monkeypatch.context() as blind:
        blind.setattr(worker_module, "withdraw_duplicates", lambda *_: ())
        blind.setattr(work_module, "logged_before", lambda *_: ())
        blind.setattr(work_module, "withdraw_duplicates", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            runs.step()
    assert len(runs.compared()) == 2
    assert runs.step() == "known"
    assert [run.info.run_id for run in runs.store.comparisons(runs.experiment)] == [first.info.run_id]


def test_a_worse_candidate_does_not_pass_by_its_tag(runs: WatchedStore, tmp_path: Path):
    """Regression: the outcome was taken from the tag, which somebody had changed."""
    runs.baseline()
    candidate = runs.finished(rate=0.95)
    runs.once()
    [logged] = runs.store.comparisons(runs.experiment)
    assert logged.data.tags["trackperm.verdict"] == "▼ worse"
    runs.store.client.set_tag(logged.info.run_id, "trackperm.policy_outcome", "pass")
    runs.queue = Queue(tmp_path / "another machine")
    runs.announce(candidate)
    assert runs.step() == "known"
    [known] = runs.heard.events("known")
    assert known["outcome"] == "fail"


def test_a_queue_that_fails_refuses_nothing(runs: WatchedStore):
    """What was logged while the queue could not be written to is found by the next worker."""
    runs.baseline()
    candidate = runs.finished()
    with patch.object(runs.queue, "complete", side_effect=QueueError("the disk is full")):
        assert isinstance(runs.once(), TrackerError)
    assert runs.entry().state == "claimed"
    runs.later = 120.0
    assert runs.once() is None
    assert runs.heard.names == ["queued", "queue-failed", "known"]
    assert runs.compared() == [f"mlflow:{candidate}"]


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (TrackerError("down"), "retry"),
        (ConnectionError("reset"), "retry"),
        (MemoryError(), "retry"),
        (InputError("cannot be paired"), "refused"),
        (ZeroDivisionError("oops"), "refused"),
    ],
)
def test_what_becomes_of_errors(
    runs: WatchedStore, monkeypatch: pytest.MonkeyPatch, error: Exception, event: str
):
    runs.baseline()
    runs.finished()
    now = time.time()
    monkeypatch.setattr(runs.queue, "_clock", lambda: now)  # or a retry may be due in the same turn
    with comparing(side_effect=error):
        assert isinstance(runs.once(), TrackerError) == (event == "retry")
    assert runs.heard.names == ["queued", event]
    assert runs.entry().state == ("waiting" if event == "retry" else "refused")


def test_an_interrupted_worker_gives_its_row_back(runs: WatchedStore):
    runs.baseline()
    runs.finished()
    with comparing(side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        runs.once()
    assert (runs.entry().state, runs.entry().attempts) == ("waiting", 0)


@pytest.fixture
def unleased(runs: WatchedStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WatchedStore:
    """Leases end at once, and are not renewed, as of a worker that stands still."""
    runs.queue = Queue(tmp_path / "state", lease=0.0)
    monkeypatch.setattr(Worker, "_renewed", lambda worker, claim: nullcontext())
    return runs


def test_a_worker_that_stood_still_notices(unleased: WatchedStore, monkeypatch: pytest.MonkeyPatch):
    """Another worker takes the row over while this one looks for the baseline, and settles it."""
    unleased.baseline()
    unleased.finished()
    find, policy = worker_module.find_baseline, unleased.policy()
    judged = threading.Event()

    def slow(*arguments: Any, **options: Any) -> Any:
        if not judged.is_set():
            judged.set()
            other = Worker([policy], unleased.queue, Heard().log).step()
            assert other.event == "compared"
        return find(*arguments)

    monkeypatch.setattr(worker_module, "find_baseline", slow)
    assert unleased.once() is None
    assert unleased.heard.names == ["queued", "lease-lost"]
    assert len(unleased.compared()) == 1


def test_a_row_that_was_taken_over_is_not_compared_again(
    unleased: WatchedStore, monkeypatch: pytest.MonkeyPatch
):
    """Its baseline is fixed, so that nothing is written to the row between the claim and the comparison."""
    baseline = unleased.baseline()
    unleased.announce(unleased.finished())
    queue = unleased.queue
    queue.release(queue.fix_baseline(unleased.claim("earlier"), f"mlflow:{baseline}", "the newest"))
    owners: list[str] = []
    logged_before = worker_module._logged_before

    def slow(*arguments: Any, **options: Any) -> Any:
        found = logged_before(*arguments)
        if not owners:
            unleased.claim()
            owners.append("another")
        return found

    monkeypatch.setattr(worker_module, "_logged_before", slow)
    with comparing() as compared:
        unleased.step()
    assert unleased.heard.names == ["lease-lost"]
    assert (owners, compared.called) == (["another"], False)


@pytest.mark.slow
def test_a_lease_is_renewed_while_a_comparison_takes_long(runs: WatchedStore, tmp_path: Path):
    runs.queue, compare_and_log = Queue(tmp_path / "state", lease=3.0), worker_module.compare_and_log
    runs.baseline()
    runs.finished()
    taken = []

    def slow(policy: Any, *arguments: Any, **options: Any) -> Any:
        time.sleep(4.0)
        taken.append(runs.queue.claim([policy.queue_key], "another"))
        return compare_and_log(policy, *arguments, **options)

    with comparing(slow):
        runs.once()
    assert taken == [None]
    assert runs.entry().attempts == 1


def test_runs_that_were_announced_while_they_are_going(runs: WatchedStore):
    runs.baseline()
    going, failed, other = runs.begun(), runs.begun(), runs.finished(tags={"role": "x"})
    runs.store.client.set_terminated(failed, "FAILED")
    resumed, failed_too = runs.finished(), runs.begun()
    runs.store.client.update_run(resumed, status="RUNNING")  # MLflow keeps its end time
    runs.store.client.update_run(failed_too, status="FAILED")  # and notes none here
    elsewhere = HookedStore(runs.store.uri, runs.folder, runs.folder / "else", "elsewhere").finished()
    ended = runs.begun()
    runs.log(ended)
    runs.store.client.set_terminated(ended, "FAILED")
    runs.announce(going, failed, resumed, failed_too, other, elsewhere, "no-such-run")
    runs.announce(ended, source="on-exit")  # whose script says that it ended
    runs.steps()
    events = {line["candidate"].removeprefix("mlflow:"): line["event"] for line in runs.heard.lines}
    assert events == {
        **dict.fromkeys((going, resumed), "waiting"),
        **dict.fromkeys((failed, failed_too, ended, other, elsewhere), "skipped"),
        "no-such-run": "refused",
    }
    reasons = {line["candidate"]: line["reason"] for line in runs.heard.events("skipped")}
    assert reasons[f"mlflow:{ended}"] == "the run has failed"
    waiting = {entry.candidate: entry.attempts for entry in runs.queue.entries()}
    assert waiting == {f"mlflow:{going}": 0, f"mlflow:{resumed}": 0, "mlflow:no-such-run": 1}


def test_a_policy_that_is_about_other_runs_leaves_rows_alone(runs: WatchedStore):
    """Policies of two files that share a queue may be equal but for the runs that they are about."""
    runs.baseline()
    candidate = runs.finished()
    runs.store.experiment("elsewhere")
    own, other = runs.policy(), runs.policy(runs="mlflow:elsewhere")
    of_prod, elsewhere = runs.policy(only={"tags": {"role": "x"}}), runs.policy(tracking_uri="sqlite:///x.db")
    assert len({each.digest for each in (own, other, of_prod, elsewhere)}) == 1
    runs.announce(candidate, policy=own)
    for each in (other, of_prod, elsewhere):
        assert runs.step(each) is None
        runs.announce(candidate, policy=each)
    assert sorted(runs.steps(other, of_prod, own)) == ["compared", "skipped", "skipped"]
    assert runs.compared() == [f"mlflow:{candidate}"]
    left = [entry.state for entry in runs.queue.entries() if entry.queue_key == elsewhere.queue_key]
    assert left == ["waiting"]


def test_what_is_logged_for_another_policy_is_judged_by_the_rule_of_this_one(runs: WatchedStore):
    runs.baseline()
    candidate = runs.finished()  # p = 0.24, and the 90 % interval begins at -0.117
    loose = runs.policy(name="loose", margin=0.116)
    strict = runs.policy(name="strict", margin=0.116, fail_on="not-shown-non-inferior")
    assert loose.digest == strict.digest
    for each in (loose, strict):
        runs.announce(candidate, policy=each)
    runs.steps(loose, strict)
    [first], [second] = runs.heard.events("compared"), runs.heard.events("known")
    assert {first["policy"], second["policy"]} == {"loose", "strict"}
    assert first["comparisons"] == second["comparisons"]
    outcomes = {line["policy"]: line["outcome"] for line in (first, second)}
    assert outcomes == {"loose": "pass", "strict": "fail"}
    assert {entry.policy: entry.outcome for entry in runs.queue.entries()} == outcomes


def test_one_run_that_cannot_be_read_does_not_keep_others_waiting(runs: WatchedStore):
    runs.baseline()
    broken, *others = [f"mlflow:{runs.finished(seed=seed)}" for seed in (2, 3, 4)]
    compare_and_log = worker_module.compare_and_log

    def judged(policy: Any, run: Any, baseline: Any, **options: Any) -> Any:
        if str(run.reference) == broken:
            raise TrackerError("its artifacts are out of reach")
        return compare_and_log(policy, run, baseline, **options)

    with comparing(judged):
        assert isinstance(runs.once(), TrackerError)
    assert runs.compared() == sorted(others)
    assert {line["candidate"] for line in runs.heard.events("retry")} == {broken}


def test_several_failures_in_a_row_are_the_trackers(runs: WatchedStore, monkeypatch: pytest.MonkeyPatch):
    runs.baseline()
    for seed in range(2, 7):
        runs.finished(seed=seed)
    monkeypatch.setattr(watch_module, "delay", lambda failures, most=600.0: 5.0)
    with comparing(side_effect=TrackerError("no answer")):
        assert isinstance(runs.once(), TrackerError)
    assert len(runs.heard.events("retry")) == 3


def test_a_rate_limit_is_kept(runs: WatchedStore):
    response, limited = requests.Response(), TrackerError("too many requests")
    response.status_code, response.headers["Retry-After"] = 429, "77"
    limited.__cause__ = requests.HTTPError(response=response)
    runs.baseline()
    for _ in range(2):
        runs.finished()
    with comparing(side_effect=limited):
        assert isinstance(runs.once(), TrackerError)
    [retry] = runs.heard.events("retry")  # the tracker is left alone after the first
    assert retry["told_to_wait"] == 77
    assert max(entry.due for entry in runs.queue.entries()) - time.time() == pytest.approx(77, abs=10)
