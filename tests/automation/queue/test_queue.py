"""The queue: what one process does to it, and what many do at once."""

from __future__ import annotations

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.queue_tasks import KEY, Clock, claimed, task

from trackperm.automation.queue.queue import LONGEST_WAIT, Queue, Task
from trackperm.errors import InputError, LeaseLostError, ReplayError


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(tmp_path: Path, clock: Clock) -> Queue:
    return Queue(tmp_path / "state", clock=clock, lease=60)


def test_a_unit_is_added_once(queue: Queue):
    assert queue.add([task(), task(1)], "watch") == [task(), task(1)]
    assert queue.add([task(), task(2)], "receive") == [task(2)]
    assert queue.counts() == {"waiting": 3, "claimed": 0, "done": 0, "refused": 0}
    assert [entry.source for entry in queue.entries()] == ["watch", "watch", "receive"]


def test_the_same_candidate_under_two_policies_is_two_units(queue: Queue):
    assert len(queue.add([task(), task(queue_key="e" * 64)], "watch")) == 2
    assert claimed(queue).queue_key == KEY
    assert queue.claim([KEY], "a") is None
    assert queue.claim(["e" * 64], "a") is not None


def test_a_claimed_or_settled_unit_is_nobody_elses(queue: Queue, clock: Clock):
    queue.add([task()], "watch")
    claim = claimed(queue)
    assert queue.claim([KEY], "b") is None
    queue.complete(claim, "pass", ["mlflow:c1"])
    clock.now += 10 * LONGEST_WAIT
    assert queue.claim([KEY], "b") is None
    assert queue.add([task(stamp="another")], "watch") == []
    [entry] = queue.entries()
    assert (entry.state, entry.outcome, entry.comparisons) == ("done", "pass", ("mlflow:c1",))


def test_an_expired_lease_goes_to_another_worker_and_fences_off_the_first(queue: Queue, clock: Clock):
    queue.add([task()], "watch")
    first = claimed(queue)
    clock.now += 59
    queue.renew(first)
    clock.now += 59
    assert queue.claim([KEY], "b") is None
    clock.now += 2
    second = claimed(queue, "b")
    assert second.attempts == 2
    for change in (
        lambda: queue.renew(first),
        lambda: queue.fix_baseline(first, "mlflow:b", "why"),
        lambda: queue.complete(first, "pass", []),
        lambda: queue.refuse(first, "no"),
        lambda: queue.retry(first, "no", 0),
        lambda: queue.release(first),
        lambda: queue.drop(first),
    ):
        with pytest.raises(LeaseLostError, match="claimed by another worker"):
            change()
    queue.complete(second, "fail", [])
    assert queue.entries()[0].outcome == "fail"


def test_an_expired_lease_that_nobody_took_is_still_held(queue: Queue, clock: Clock):
    queue.add([task()], "watch")
    claim = claimed(queue)
    clock.now += 3600
    queue.complete(claim, "pass", [])
    assert queue.counts()["done"] == 1


def test_the_baseline_of_the_first_attempt_stays(queue: Queue, clock: Clock):
    queue.add([task()], "watch")
    fixed = queue.fix_baseline(claimed(queue), "mlflow:b1", "first")
    assert (fixed.baseline, fixed.why) == ("mlflow:b1", "first")
    clock.now += 61
    again = claimed(queue, "b")
    assert (again.baseline, again.why) == ("mlflow:b1", "first")
    fixed = queue.fix_baseline(again, "mlflow:b2", "second")
    assert (fixed.baseline, fixed.why) == ("mlflow:b1", "first")


def test_a_failed_attempt_waits(queue: Queue, clock: Clock):
    queue.add([task()], "watch")
    queue.retry(claimed(queue), "the tracker is down", 30)
    clock.now += 29
    assert queue.claim([KEY], "a") is None
    clock.now += 1
    assert claimed(queue).reason == "the tracker is down"


def test_no_delay_outlives_a_clock_that_was_set_back(queue: Queue, clock: Clock):
    queue.add([task(), task(1)], "watch")
    queue.retry(claimed(queue), "down", 10**9)
    claimed(queue)
    assert queue.claim([KEY], "another") is None, "not at once"
    clock.now -= 2 * LONGEST_WAIT
    assert {claimed(queue).candidate, claimed(queue).candidate} == {"mlflow:run0", "mlflow:run1"}


def test_a_row_that_kills_its_workers_keeps_no_other_waiting_and_is_not_given_up(queue: Queue, clock: Clock):
    queue.add([task()], "watch")
    claims = 0
    for _ in range(400):
        clock.now += 61
        claims += queue.claim([KEY], "a") is not None
    assert 8 < claims < 200  # at growing intervals, up to an hour
    clock.now += 2 * LONGEST_WAIT + 61
    queue.claim([KEY], "a")
    clock.now += LONGEST_WAIT
    queue.claim([KEY], "a")
    assert queue.entries()[0].attempts > claims


def test_a_refused_unit_waits_for_its_run_to_change(queue: Queue):
    queue.add([task(stamp="1")], "watch")
    claim = queue.fix_baseline(claimed(queue), "mlflow:b", "why")
    queue.refuse(claim, "no artifact")
    assert queue.add([task(stamp="1")], "watch") == []
    assert queue.add([task()], "receive") == []
    assert queue.claim([KEY], "a") is None
    assert queue.add([task(stamp="2")], "watch") == [task(stamp="2")]
    again = claimed(queue)
    assert (again.baseline, again.why, again.attempts) == (None, None, 1)


def test_people_can_have_the_refused_ones_tried_again(queue: Queue):
    queue.add([task(), task(1), task(queue_key="e" * 64)], "watch")
    queue.refuse(claimed(queue), "no")
    queue.complete(claimed(queue), "pass", [])
    assert queue.retry_refused(["e" * 64]) == 0
    assert queue.retry_refused([KEY]) == 1
    assert claimed(queue).candidate == "mlflow:run0"


def test_released_ones_count_no_attempt(queue: Queue):
    queue.add([task()], "watch")
    queue.release(claimed(queue))
    assert claimed(queue, "on-exit-1").attempts == 1
    assert queue.release_of("somebody") == 0
    assert queue.release_of("on-exit-1") == 1
    assert queue.claim([KEY], "b") is not None


def test_only_some_candidates(queue: Queue):
    queue.add([task(), task(1)], "watch")
    claim = queue.claim([KEY], "a", candidates=["mlflow:run1"])
    assert claim.candidate == "mlflow:run1"
    assert queue.claim([KEY], "a", candidates=["mlflow:run1"]) is None
    queue.drop(claim)
    assert [entry.candidate for entry in queue.entries()] == ["mlflow:run0"]


def test_a_delivery_is_taken_once_and_with_what_it_asks_for(queue: Queue, clock: Clock):
    assert queue.add([task()], "receive", delivery="x", window=300) == [task()]
    with pytest.raises(ReplayError, match="received before"):
        queue.add([task(1)], "receive", delivery="x", window=300)
    assert len(queue.entries()) == 1
    clock.now += 301
    assert queue.add([task(1)], "receive", delivery="x", window=300) == [task(1)]


def test_a_delivery_whose_units_cannot_be_added_is_not_remembered(queue: Queue):
    with pytest.raises(InputError, match="cannot be used"):
        queue.add([task(), Task(None, "mlflow:x", "p")], "receive", delivery="x", window=300)
    assert queue.entries() == []
    assert queue.add([task()], "receive", delivery="x", window=300) == [task()]


def test_many_threads_claim_everything_once(tmp_path: Path):
    queue = Queue(tmp_path)

    def add(offset: int) -> int:
        return sum(len(queue.add([task(number)], "watch")) for number in range(offset % 20, 60))

    def work(owner: int) -> list[str]:
        done = []
        while (claim := queue.claim([KEY], str(owner))) is not None:
            queue.complete(claim, "pass", [])
            done.append(claim.candidate)
        return done

    with ThreadPoolExecutor(8) as threads:
        queue.add([task(number) for number in range(20)], "watch")
        assert sum(threads.map(add, range(8))) == 40
        done = [candidate for found in threads.map(work, range(8)) for candidate in found]
    assert sorted(done) == sorted(f"mlflow:run{number}" for number in range(60))


@pytest.mark.extended
def test_a_lease_begins_when_the_row_is_claimed(tmp_path: Path):
    """The time before the file is locked does not count: another process may hold it for long."""
    queue = Queue(tmp_path / "state", lease=1.5)
    queue.add([Task(KEY, "mlflow:a", "p")], "watch")
    held = sqlite3.connect(tmp_path / "state" / "queue.sqlite", check_same_thread=False)
    held.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(2.0, held.rollback)
    timer.start()
    claim = queue.claim([KEY], "one")
    assert claim.due > time.time()
    timer.join()
    held.close()
