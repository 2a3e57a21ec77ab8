"""A worker on real stores: retries, errors, leases, and what another worker did meanwhile."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import requests
from hooked_runs import Heard, HookedStore, once

from trackperm.errors import InputError, TrackerError
from trackperm.hooks import work as work_module
from trackperm.hooks import worker as worker_module
from trackperm.hooks.queue import Queue, Unit
from trackperm.hooks.queue_file import QueueError
from trackperm.hooks.worker import Worker

pytestmark = pytest.mark.tracker


def test_a_retry_keeps_the_baseline_of_the_first_attempt(
    runs: HookedStore, queue: Queue, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    baseline = runs.baseline()
    candidate = runs.finished()
    policy, settle = runs.policy(baseline={"champion": "m"}), worker_module.settle
    runs.store.client.create_registered_model("m")
    runs.store.client.create_model_version("m", runs.folder.as_uri(), run_id=baseline)
    runs.store.client.set_registered_model_alias("m", "champion", "1")

    def broken(*arguments: Any) -> Any:
        raise TrackerError("MLflow at `…` does not answer")

    queue.add([Unit(policy.digest, f"mlflow:{candidate}", policy.name)], "watch")
    worker = Worker([policy], queue, heard.notes)
    monkeypatch.setattr(worker_module, "settle", broken)
    turn = worker.turn()
    assert turn is not None
    assert turn.event == "retry"
    runs.store.client.create_model_version("m", runs.folder.as_uri(), run_id=runs.finished("new champion"))
    runs.store.client.set_registered_model_alias("m", "champion", "2")
    monkeypatch.setattr(worker_module, "settle", settle)
    monkeypatch.setattr(queue, "_clock", lambda: time.time() + 3000)
    turn = worker.turn()
    assert turn is not None
    assert turn.event == "compared"
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
    queue.add([Unit(policy.digest, f"mlflow:{candidate}", policy.name)], "watch")
    claim = queue.claim([policy.digest], "dies")
    assert claim is not None
    queue.fix_baseline(claim, f"mlflow:{other}", "newer")
    queue.release(claim)
    with monkeypatch.context() as blind:
        blind.setattr(worker_module, "withdraw_duplicates", lambda *_: ())
        blind.setattr(work_module, "settled_before", lambda *_: ())
        blind.setattr(work_module, "withdraw_duplicates", _killed)
        with pytest.raises(KeyboardInterrupt):
            Worker([policy], queue, heard.notes).turn()
    assert len(runs.compared()) == 2
    turn = Worker([policy], queue, heard.notes).turn()
    assert turn is not None
    assert turn.event == "known"
    assert [run.info.run_id for run in runs.store.comparisons(runs.experiment)] == [first.info.run_id]


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_queue_that_fails_refuses_nothing(
    runs: HookedStore, queue: Queue, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    """What was logged while the queue could not be written to is found by the next worker."""

    def full(*_: object) -> None:
        raise QueueError("the disk is full")

    runs.baseline()
    candidate = runs.finished()
    with monkeypatch.context() as broken:
        broken.setattr(queue, "settle", full)
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
    def broken(*arguments: Any) -> Any:
        raise error

    runs.baseline()
    runs.finished()
    monkeypatch.setattr(worker_module, "settle", broken)
    found = once(runs, queue, heard)
    assert isinstance(found, TrackerError) == (event == "retry")
    assert [line["event"] for line in heard.lines] == ["queued", event]
    assert queue.entries()[0].state == ("waiting" if event == "retry" else "refused")


def test_an_interrupted_worker_gives_its_row_back(
    runs: HookedStore, queue: Queue, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    def interrupted(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    runs.baseline()
    runs.finished()
    monkeypatch.setattr(worker_module, "settle", interrupted)
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
    settled = threading.Event()

    def slow(*arguments: Any) -> Any:
        if not settled.is_set():
            settled.set()
            other = Worker([policy], queue, Heard().notes).turn()
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
    queue, policy, settle = Queue(tmp_path / "state", lease=0.0), runs.policy(), worker_module.settle
    baseline, candidate = runs.baseline(), runs.finished()
    queue.add([Unit(policy.digest, f"mlflow:{candidate}", policy.name)], "watch")
    claim = queue.claim([policy.digest], "earlier")
    assert claim is not None
    queue.release(queue.fix_baseline(claim, f"mlflow:{baseline}", "the newest"))
    owners: list[str] = []
    logged_before = worker_module._logged_before

    def slow(*arguments: Any) -> Any:
        found = logged_before(*arguments)
        if not owners:
            assert queue.claim([policy.digest], "another") is not None
            owners.append("another")
        return found

    def counted(*arguments: Any) -> Any:
        owners.append("this one")
        return settle(*arguments)

    monkeypatch.setattr(worker_module, "_logged_before", slow)
    monkeypatch.setattr(worker_module, "settle", counted)
    monkeypatch.setattr(Worker, "_renewed", lambda worker, claim: nullcontext())
    Worker([policy], queue, heard.notes).turn()
    assert [line["event"] for line in heard.lines] == ["lease-lost"]
    assert owners == ["another"]


def test_a_lease_is_renewed_while_a_comparison_takes_long(
    runs: HookedStore, tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    queue, settle = Queue(tmp_path / "state", lease=3.0), worker_module.settle
    runs.baseline()
    runs.finished()
    policy = runs.policy()
    taken = []

    def slow(*arguments: Any) -> Any:
        time.sleep(4.0)
        taken.append(queue.claim([policy.digest], "another"))
        return settle(*arguments)

    monkeypatch.setattr(worker_module, "settle", slow)
    once(runs, queue, heard)
    assert taken == [None]
    assert queue.entries()[0].attempts == 1


def test_runs_that_were_announced_while_they_are_going(runs: HookedStore, queue: Queue, heard: Heard):
    runs.baseline()
    going, failed, other = runs.begun(), runs.begun(), runs.finished(tags={"role": "x"})
    runs.store.client.set_terminated(failed, "FAILED")
    policy = runs.policy()
    elsewhere = HookedStore(runs.store.uri, runs.folder, runs.folder / "else", "elsewhere").finished()
    units = [Unit(policy.digest, f"mlflow:{run}", policy.name) for run in (going, failed, other, elsewhere)]
    queue.add([*units, Unit(policy.digest, "mlflow:no-such-run", policy.name)], "receive")
    worker = Worker([policy], queue, heard.notes)
    while worker.turn() is not None:
        pass
    events = {line["candidate"].removeprefix("mlflow:"): line["event"] for line in heard.lines}
    assert events == {
        going: "waiting",
        failed: "skipped",
        other: "skipped",
        elsewhere: "skipped",
        "no-such-run": "refused",
    }
    assert {entry.candidate for entry in queue.entries()} == {f"mlflow:{going}", "mlflow:no-such-run"}


def test_of_equal_policies_the_one_that_is_about_a_run_compares_it(
    runs: HookedStore, queue: Queue, heard: Heard
):
    runs.baseline()
    candidate = f"mlflow:{runs.finished()}"
    runs.store.experiment("elsewhere")
    other, own = runs.policy(name="other", runs="mlflow:elsewhere"), runs.policy(name="own")
    assert other.digest == own.digest
    for policy in (other, own):
        queue.add([Unit(policy.digest, candidate, policy.name)], "app")
    Worker([other, own], queue, heard.notes).turn()
    [compared] = heard.events("compared")
    assert (compared["policy"], compared["candidate"]) == ("own", candidate)
    queue.add([Unit(other.digest, "mlflow:none", other.name)], "app")
    assert Worker([other], queue, heard.notes).turn().event == "refused"


def test_a_rate_limit_is_kept(runs: HookedStore, queue: Queue, heard: Heard, monkeypatch: pytest.MonkeyPatch):
    response = requests.Response()
    response.status_code, response.headers["Retry-After"] = 429, "77"

    def limited(*arguments: Any) -> Any:
        raise TrackerError("too many requests") from requests.HTTPError(response=response)

    runs.baseline()
    for _ in range(3):
        runs.finished()
    monkeypatch.setattr(worker_module, "settle", limited)
    assert isinstance(once(runs, queue, heard), TrackerError)
    assert len(heard.events("retry")) == 1, "the tracker is left alone after the first"
    assert heard.events("retry")[0]["told_to_wait"] == 77
    assert max(entry.due for entry in queue.entries()) - time.time() == pytest.approx(77, abs=10)
