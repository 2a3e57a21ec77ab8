"""A worker on real stores: retries, errors, leases, and what another worker did meanwhile."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import requests
from support.hooked_runs import Heard, HookedStore, once

from trackperm.automation.judging import compare_candidate as work_module
from trackperm.automation.queue import watch as watch_module
from trackperm.automation.queue import worker as worker_module
from trackperm.automation.queue.queue import Queue, Task
from trackperm.automation.queue.worker import Worker
from trackperm.errors import InputError, QueueError, TrackerError

pytestmark = pytest.mark.tracker


def test_a_retry_keeps_the_baseline_of_the_first_attempt(
    runs: HookedStore, queue: Queue, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    baseline = runs.baseline()
    candidate = runs.finished()
    policy, genuine = runs.policy(baseline={"champion": "m"}), worker_module.compare_and_log
    runs.store.client.create_registered_model("m")
    runs.store.client.create_model_version("m", runs.folder.as_uri(), run_id=baseline)
    runs.store.client.set_registered_model_alias("m", "champion", "1")
    queue.add([Task(policy.queue_key, f"mlflow:{candidate}", policy.name)], "watch")
    worker = Worker([policy], queue, heard.log)
    monkeypatch.setattr(worker_module, "compare_and_log", Mock(side_effect=TrackerError("no answer")))
    step = worker.step()
    assert step is not None
    assert step.event == "retry"
    runs.store.client.create_model_version("m", runs.folder.as_uri(), run_id=runs.finished("new champion"))
    runs.store.client.set_registered_model_alias("m", "champion", "2")
    monkeypatch.setattr(worker_module, "compare_and_log", genuine)
    monkeypatch.setattr(queue, "_clock", lambda: time.time() + 3000)
    step = worker.step()
    assert step is not None
    assert step.event == "compared"
    assert queue.entries()[0].baseline == f"mlflow:{baseline}"


def test_what_a_worker_left_double_is_withdrawn_by_the_next(
    runs: HookedStore, tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    """On another machine a worker saw nothing of the comparison, and died before it looked again."""
    runs.baseline()
    candidate = runs.finished()
    once(runs, Queue(tmp_path / "one"), heard)
    [first] = runs.store.comparisons(runs.experiment)
    other = runs.baseline(seed=5)
    policy, queue = runs.policy(), Queue(tmp_path / "two")
    queue.add([Task(policy.queue_key, f"mlflow:{candidate}", policy.name)], "watch")
    claim = queue.claim([policy.queue_key], "dies")
    assert claim is not None
    queue.fix_baseline(claim, f"mlflow:{other}", "newer")
    queue.release(claim)
    with monkeypatch.context() as blind:
        blind.setattr(worker_module, "withdraw_duplicates", lambda *_: ())
        blind.setattr(work_module, "logged_before", lambda *_: ())
        blind.setattr(work_module, "withdraw_duplicates", _killed)
        with pytest.raises(KeyboardInterrupt):
            Worker([policy], queue, heard.log).step()
    assert len(runs.compared()) == 2
    step = Worker([policy], queue, heard.log).step()
    assert step is not None
    assert step.event == "known"
    assert [run.info.run_id for run in runs.store.comparisons(runs.experiment)] == [first.info.run_id]


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_queue_that_fails_refuses_nothing(
    runs: HookedStore, queue: Queue, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    """What was logged while the queue could not be written to is found by the next worker."""
    runs.baseline()
    candidate = runs.finished()
    with monkeypatch.context() as broken:
        broken.setattr(queue, "complete", Mock(side_effect=QueueError("the disk is full")))
        assert isinstance(once(runs, queue, heard), TrackerError)
    assert queue.entries()[0].state == "claimed"
    monkeypatch.setattr(queue, "_clock", lambda: time.time() + 120)
    assert once(runs, queue, heard) is None
    assert [line["event"] for line in heard.lines] == ["queued", "queue-failed", "known"]
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
    runs: HookedStore,
    queue: Queue,
    heard: Heard,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    event: str,
):
    runs.baseline()
    runs.finished()
    monkeypatch.setattr(worker_module, "compare_and_log", Mock(side_effect=error))
    now = time.time()
    monkeypatch.setattr(queue, "_clock", lambda: now)  # or a retry may be due in the same turn
    found = once(runs, queue, heard)
    assert isinstance(found, TrackerError) == (event == "retry")
    assert [line["event"] for line in heard.lines] == ["queued", event]
    assert queue.entries()[0].state == ("waiting" if event == "retry" else "refused")


def test_an_interrupted_worker_gives_its_row_back(
    runs: HookedStore, queue: Queue, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    runs.baseline()
    runs.finished()
    monkeypatch.setattr(worker_module, "compare_and_log", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        once(runs, queue, heard)
    [entry] = queue.entries()
    assert (entry.state, entry.attempts) == ("waiting", 0)


def test_a_worker_that_stood_still_notices(
    runs: HookedStore, tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    """Another worker takes the row over while this one looks for the baseline, and settles it."""
    queue = Queue(tmp_path / "state", lease=0.0)
    runs.baseline()
    runs.finished()
    find = worker_module.find_baseline
    policy = runs.policy()
    judged = threading.Event()

    def slow(*arguments: Any, **options: Any) -> Any:
        if not judged.is_set():
            judged.set()
            other = Worker([policy], queue, Heard().log).step()
            assert other is not None
            assert other.event == "compared"
        return find(*arguments)

    monkeypatch.setattr(worker_module, "find_baseline", slow)
    monkeypatch.setattr(Worker, "_renewed", lambda worker, claim: nullcontext())
    assert once(runs, queue, heard) is None
    assert [line["event"] for line in heard.lines] == ["queued", "lease-lost"]
    assert len(runs.compared()) == 1


def test_a_row_that_was_taken_over_is_not_compared_again(
    runs: HookedStore, tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    """Its baseline is fixed, so that nothing is written to the row between the claim and the comparison."""
    queue, policy, compare_and_log = (
        Queue(tmp_path / "state", lease=0.0),
        runs.policy(),
        worker_module.compare_and_log,
    )
    baseline, candidate = runs.baseline(), runs.finished()
    queue.add([Task(policy.queue_key, f"mlflow:{candidate}", policy.name)], "watch")
    claim = queue.claim([policy.queue_key], "earlier")
    assert claim is not None
    queue.release(queue.fix_baseline(claim, f"mlflow:{baseline}", "the newest"))
    owners: list[str] = []
    logged_before = worker_module._logged_before

    def slow(*arguments: Any, **options: Any) -> Any:
        found = logged_before(*arguments)
        if not owners:
            assert queue.claim([policy.queue_key], "another") is not None
            owners.append("another")
        return found

    def counted(*arguments: Any, **options: Any) -> Any:
        owners.append("this one")
        return compare_and_log(*arguments, **options)

    monkeypatch.setattr(worker_module, "_logged_before", slow)
    monkeypatch.setattr(worker_module, "compare_and_log", counted)
    monkeypatch.setattr(Worker, "_renewed", lambda worker, claim: nullcontext())
    Worker([policy], queue, heard.log).step()
    assert [line["event"] for line in heard.lines] == ["lease-lost"]
    assert owners == ["another"]


@pytest.mark.slow
def test_a_lease_is_renewed_while_a_comparison_takes_long(
    runs: HookedStore, tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    queue, compare_and_log = Queue(tmp_path / "state", lease=3.0), worker_module.compare_and_log
    runs.baseline()
    runs.finished()
    policy = runs.policy()
    taken = []

    def slow(*arguments: Any, **options: Any) -> Any:
        time.sleep(4.0)
        taken.append(queue.claim([policy.queue_key], "another"))
        return compare_and_log(*arguments, **options)

    monkeypatch.setattr(worker_module, "compare_and_log", slow)
    once(runs, queue, heard)
    assert taken == [None]
    assert queue.entries()[0].attempts == 1


def test_runs_that_were_announced_while_they_are_going(runs: HookedStore, queue: Queue, heard: Heard):
    runs.baseline()
    going, failed, other = runs.begun(), runs.begun(), runs.finished(tags={"role": "x"})
    runs.store.client.set_terminated(failed, "FAILED")
    resumed, failed_too = runs.finished(), runs.begun()
    runs.store.client.update_run(resumed, status="RUNNING")  # MLflow keeps its end time
    runs.store.client.update_run(failed_too, status="FAILED")  # and notes none here
    policy = runs.policy()
    elsewhere = HookedStore(runs.store.uri, runs.folder, runs.folder / "else", "elsewhere").finished()
    tasks = [
        Task(policy.queue_key, f"mlflow:{run}", policy.name)
        for run in (going, failed, resumed, failed_too, other, elsewhere)
    ]
    queue.add([*tasks, Task(policy.queue_key, "mlflow:no-such-run", policy.name)], "receive")
    worker = Worker([policy], queue, heard.log)
    while worker.step() is not None:
        pass
    events = {line["candidate"].removeprefix("mlflow:"): line["event"] for line in heard.lines}
    assert events == {
        going: "waiting",
        failed: "skipped",
        resumed: "waiting",
        failed_too: "skipped",
        other: "skipped",
        elsewhere: "skipped",
        "no-such-run": "refused",
    }
    waiting = {entry.candidate: entry.attempts for entry in queue.entries()}
    assert waiting == {f"mlflow:{going}": 0, f"mlflow:{resumed}": 0, "mlflow:no-such-run": 1}


def test_a_policy_that_is_about_other_runs_leaves_rows_alone(runs: HookedStore, queue: Queue, heard: Heard):
    """Policies of two files that share a queue may be equal but for the runs that they are about."""
    runs.baseline()
    candidate = f"mlflow:{runs.finished()}"
    runs.store.experiment("elsewhere")
    own, other = runs.policy(), runs.policy(runs="mlflow:elsewhere")
    of_prod, elsewhere = runs.policy(only={"tags": {"role": "x"}}), runs.policy(tracking_uri="sqlite:///x.db")
    assert len({each.digest for each in (own, other, of_prod, elsewhere)}) == 1
    queue.add([Task(own.queue_key, candidate, own.name)], "app")
    for each in (other, of_prod, elsewhere):
        assert Worker([each], queue, heard.log).step() is None
        queue.add([Task(each.queue_key, candidate, each.name)], "receive")
    worker = Worker([other, of_prod, own], queue, heard.log)
    steps = [worker.step() for _ in range(4)]
    assert sorted(step.event for step in steps if step is not None) == ["compared", "skipped", "skipped"]
    assert runs.compared() == [candidate]
    assert [entry.state for entry in queue.entries() if entry.queue_key == elsewhere.queue_key] == ["waiting"]


def test_what_is_logged_for_another_policy_is_judged_by_the_rule_of_this_one(
    runs: HookedStore, queue: Queue, heard: Heard
):
    runs.baseline()
    candidate = f"mlflow:{runs.finished()}"  # p = 0.24, and the 90 % interval begins at -0.117
    loose = runs.policy(name="loose", margin=0.116)
    strict = runs.policy(name="strict", margin=0.116, fail_on="not-shown-non-inferior")
    assert loose.digest == strict.digest
    queue.add([Task(each.queue_key, candidate, each.name) for each in (loose, strict)], "receive")
    worker = Worker([loose, strict], queue, heard.log)
    while worker.step() is not None:
        pass
    [first], [second] = heard.events("compared"), heard.events("known")
    assert {first["policy"], second["policy"]} == {"loose", "strict"}
    assert first["comparisons"] == second["comparisons"]
    outcomes = {line["policy"]: line["outcome"] for line in (first, second)}
    assert outcomes == {"loose": "pass", "strict": "fail"}
    assert {entry.policy: entry.outcome for entry in queue.entries()} == outcomes


def test_a_failed_run_is_not_compared_though_its_script_says_that_it_ended(
    runs: HookedStore, queue: Queue, heard: Heard
):
    runs.baseline()
    failed = runs.begun()
    runs.log(failed)
    runs.store.client.set_terminated(failed, "FAILED")
    policy = runs.policy()
    queue.add([Task(policy.queue_key, f"mlflow:{failed}", policy.name)], "on-exit")
    Worker([policy], queue, heard.log).step()
    assert [line["reason"] for line in heard.events("skipped")] == ["the run has failed"]


def test_one_run_that_cannot_be_read_does_not_keep_others_waiting(
    runs: HookedStore, queue: Queue, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    runs.baseline()
    broken, *others = [f"mlflow:{runs.finished(seed=seed)}" for seed in (2, 3, 4)]
    compare_and_log = worker_module.compare_and_log

    def judged(policy: Any, run: Any, baseline: Any, **options: Any) -> Any:
        if str(run.reference) == broken:
            raise TrackerError("its artifacts are out of reach")
        return compare_and_log(policy, run, baseline, **options)

    monkeypatch.setattr(worker_module, "compare_and_log", judged)
    assert isinstance(once(runs, queue, heard), TrackerError)
    assert runs.compared() == sorted(others)
    assert {line["candidate"] for line in heard.events("retry")} == {broken}


def test_several_failures_in_a_row_are_the_trackers(
    runs: HookedStore, queue: Queue, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    runs.baseline()
    for seed in range(2, 10):
        runs.finished(seed=seed)
    monkeypatch.setattr(worker_module, "compare_and_log", Mock(side_effect=TrackerError("no answer")))
    monkeypatch.setattr(watch_module, "delay", lambda failures, most=600.0: 5.0)
    assert isinstance(once(runs, queue, heard), TrackerError)
    assert len(heard.events("retry")) == 3


def test_a_rate_limit_is_kept(runs: HookedStore, queue: Queue, heard: Heard, monkeypatch: pytest.MonkeyPatch):
    response = requests.Response()
    response.status_code, response.headers["Retry-After"] = 429, "77"

    def limited(*arguments: Any, **options: Any) -> Any:
        raise TrackerError("too many requests") from requests.HTTPError(response=response)

    runs.baseline()
    for _ in range(3):
        runs.finished()
    monkeypatch.setattr(worker_module, "compare_and_log", limited)
    assert isinstance(once(runs, queue, heard), TrackerError)
    assert len(heard.events("retry")) == 1, "the tracker is left alone after the first"
    assert heard.events("retry")[0]["told_to_wait"] == 77
    assert max(entry.due for entry in queue.entries()) - time.time() == pytest.approx(77, abs=10)
