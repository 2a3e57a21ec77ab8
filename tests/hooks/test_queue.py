"""The queue: what one process does to it, what many do at once, and what a killed one leaves."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from trackperm.errors import InputError
from trackperm.hooks.queue import LONGEST_WAIT, Entry, LeaseLostError, Queue, ReplayError, Unit
from trackperm.hooks.queue_file import default_folder

KEY = "d" * 64


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def unit(number: int = 0, queue_key: str = KEY, stamp: str | None = None) -> Unit:
    return Unit(queue_key, f"mlflow:run{number}", "nightly", stamp)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(tmp_path: Path, clock: Clock) -> Queue:
    return Queue(tmp_path / "state", clock=clock, lease=60)


def claimed(queue: Queue, owner: str = "a") -> Entry:
    claim = queue.claim([KEY], owner)
    assert claim is not None
    return claim


def test_a_unit_is_added_once(queue: Queue):
    assert queue.add([unit(), unit(1)], "watch") == [unit(), unit(1)]
    assert queue.add([unit(), unit(2)], "receive") == [unit(2)]
    assert queue.counts() == {"waiting": 3, "claimed": 0, "done": 0, "refused": 0}
    assert [entry.source for entry in queue.entries()] == ["watch", "watch", "receive"]


def test_the_same_candidate_under_two_policies_is_two_units(queue: Queue):
    assert len(queue.add([unit(), unit(queue_key="e" * 64)], "watch")) == 2
    assert claimed(queue).queue_key == KEY
    assert queue.claim([KEY], "a") is None
    assert queue.claim(["e" * 64], "a") is not None


def test_a_claimed_or_settled_unit_is_nobody_elses(queue: Queue, clock: Clock):
    queue.add([unit()], "watch")
    claim = claimed(queue)
    assert queue.claim([KEY], "b") is None
    queue.settle(claim, "pass", ["mlflow:c1"])
    clock.now += 10 * LONGEST_WAIT
    assert queue.claim([KEY], "b") is None
    assert queue.add([unit(stamp="another")], "watch") == []
    [entry] = queue.entries()
    assert (entry.state, entry.outcome, entry.comparisons) == ("done", "pass", ("mlflow:c1",))


def test_an_expired_lease_goes_to_another_worker_and_fences_off_the_first(queue: Queue, clock: Clock):
    queue.add([unit()], "watch")
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
        lambda: queue.settle(first, "pass", []),
        lambda: queue.refuse(first, "no"),
        lambda: queue.retry(first, "no", 0),
        lambda: queue.release(first),
        lambda: queue.drop(first),
    ):
        with pytest.raises(LeaseLostError, match="claimed by another worker"):
            change()
    queue.settle(second, "fail", [])
    assert queue.entries()[0].outcome == "fail"


def test_an_expired_lease_that_nobody_took_is_still_held(queue: Queue, clock: Clock):
    queue.add([unit()], "watch")
    claim = claimed(queue)
    clock.now += 3600
    queue.settle(claim, "pass", [])
    assert queue.counts()["done"] == 1


def test_the_baseline_of_the_first_attempt_stays(queue: Queue, clock: Clock):
    queue.add([unit()], "watch")
    fixed = queue.fix_baseline(claimed(queue), "mlflow:b1", "first")
    assert (fixed.baseline, fixed.why) == ("mlflow:b1", "first")
    clock.now += 61
    again = claimed(queue, "b")
    assert (again.baseline, again.why) == ("mlflow:b1", "first")
    fixed = queue.fix_baseline(again, "mlflow:b2", "second")
    assert (fixed.baseline, fixed.why) == ("mlflow:b1", "first")


def test_a_failed_attempt_waits(queue: Queue, clock: Clock):
    queue.add([unit()], "watch")
    queue.retry(claimed(queue), "the tracker is down", 30)
    clock.now += 29
    assert queue.claim([KEY], "a") is None
    clock.now += 1
    assert claimed(queue).reason == "the tracker is down"


def test_no_delay_outlives_a_clock_that_was_set_back(queue: Queue, clock: Clock):
    queue.add([unit(), unit(1)], "watch")
    queue.retry(claimed(queue), "down", 10**9)
    claimed(queue)
    assert queue.claim([KEY], "another") is None, "not at once"
    clock.now -= 2 * LONGEST_WAIT
    assert {claimed(queue).candidate, claimed(queue).candidate} == {"mlflow:run0", "mlflow:run1"}


def test_a_row_that_kills_its_workers_keeps_no_other_waiting_and_is_not_given_up(queue: Queue, clock: Clock):
    queue.add([unit()], "watch")
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
    queue.add([unit(stamp="1")], "watch")
    claim = queue.fix_baseline(claimed(queue), "mlflow:b", "why")
    queue.refuse(claim, "no artifact")
    assert queue.add([unit(stamp="1")], "watch") == []
    assert queue.add([unit()], "receive") == []
    assert queue.claim([KEY], "a") is None
    assert queue.add([unit(stamp="2")], "watch") == [unit(stamp="2")]
    again = claimed(queue)
    assert (again.baseline, again.why, again.attempts) == (None, None, 1)


def test_people_can_have_the_refused_ones_tried_again(queue: Queue):
    queue.add([unit(), unit(1), unit(queue_key="e" * 64)], "watch")
    queue.refuse(claimed(queue), "no")
    queue.settle(claimed(queue), "pass", [])
    assert queue.retry_refused(["e" * 64]) == 0
    assert queue.retry_refused([KEY]) == 1
    assert claimed(queue).candidate == "mlflow:run0"


def test_released_ones_count_no_attempt(queue: Queue):
    queue.add([unit()], "watch")
    queue.release(claimed(queue))
    assert claimed(queue, "on-exit-1").attempts == 1
    assert queue.release_of("somebody") == 0
    assert queue.release_of("on-exit-1") == 1
    assert queue.claim([KEY], "b") is not None


def test_only_some_candidates(queue: Queue):
    queue.add([unit(), unit(1)], "watch")
    claim = queue.claim([KEY], "a", candidates=["mlflow:run1"])
    assert claim is not None
    assert claim.candidate == "mlflow:run1"
    assert queue.claim([KEY], "a", candidates=["mlflow:run1"]) is None
    queue.drop(claim)
    assert [entry.candidate for entry in queue.entries()] == ["mlflow:run0"]


def test_a_delivery_is_taken_once_and_with_what_it_asks_for(queue: Queue, clock: Clock):
    assert queue.add([unit()], "receive", delivery="x", window=300) == [unit()]
    with pytest.raises(ReplayError, match="received before"):
        queue.add([unit(1)], "receive", delivery="x", window=300)
    assert len(queue.entries()) == 1
    clock.now += 301
    assert queue.add([unit(1)], "receive", delivery="x", window=300) == [unit(1)]


def test_a_delivery_whose_units_cannot_be_added_is_not_remembered(queue: Queue):
    with pytest.raises(InputError, match="cannot be used"):
        queue.add([unit(), Unit(None, "mlflow:x", "p")], "receive", delivery="x", window=300)
    assert queue.entries() == []
    assert queue.add([unit()], "receive", delivery="x", window=300) == [unit()]


def test_two_queues_on_one_folder_are_one(tmp_path: Path):
    first, second = Queue(tmp_path), Queue(tmp_path)
    first.add([unit()], "watch")
    assert claimed(second).candidate == "mlflow:run0"
    assert first.claim([KEY], "a") is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["queue.sqlite"]


def test_many_threads_claim_everything_once(tmp_path: Path):
    queue = Queue(tmp_path)

    def add(offset: int) -> int:
        return sum(len(queue.add([unit(number)], "watch")) for number in range(offset % 20, 60))

    def work(owner: int) -> list[str]:
        done = []
        while (claim := queue.claim([KEY], str(owner))) is not None:
            queue.settle(claim, "pass", [])
            done.append(claim.candidate)
        return done

    with ThreadPoolExecutor(8) as threads:
        queue.add([unit(number) for number in range(20)], "watch")
        assert sum(threads.map(add, range(8))) == 40
        done = [candidate for found in threads.map(work, range(8)) for candidate in found]
    assert sorted(done) == sorted(f"mlflow:run{number}" for number in range(60))


def test_a_queue_that_many_open_at_once_is_made_once(tmp_path: Path):
    start = threading.Barrier(8)

    def opened(number: int) -> int:
        start.wait(10)
        return len(Queue(tmp_path / "new").add([unit(number)], "watch"))

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(opened, range(8))) == [1] * 8
    assert len(Queue(tmp_path / "new").entries()) == 8


def test_a_folder_that_cannot_be_written_to(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"no queue can be kept in `.*/file`(?s:.*)`--state FOLDER`"):
        Queue(tmp_path / "file")


def test_a_damaged_file_and_one_of_another_version(tmp_path: Path):
    file = tmp_path / "queue.sqlite"
    file.write_bytes(b"not a database, but long enough to be read as one" * 100)
    with pytest.raises(InputError, match="cannot be used: file is not a database"):
        Queue(tmp_path)
    file.unlink()
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(InputError, match="its version is 7, expected 2"):
        Queue(tmp_path)


def test_a_process_that_does_not_let_go(tmp_path: Path):
    queue = Queue(tmp_path, busy=0.05)
    with queue._file.transaction(), pytest.raises(InputError, match="database is locked"):
        queue.add([unit()], "watch")


def test_the_folder_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    Queue(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o077 == 0
    assert (tmp_path / "a" / "b" / "queue.sqlite").stat().st_mode & 0o077 == 0
    monkeypatch.delenv("TRACKPERM_STATE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "trackperm"
    monkeypatch.setenv("TRACKPERM_STATE", str(tmp_path / "own"))
    assert default_folder() == tmp_path / "own"


def test_a_lease_begins_when_the_row_is_claimed(tmp_path: Path):
    """And not when the file was asked for, which another process may hold for long."""
    queue = Queue(tmp_path / "state", lease=1.5)
    queue.add([Unit(KEY, "mlflow:a", "p")], "watch")
    held = sqlite3.connect(tmp_path / "state" / "queue.sqlite", check_same_thread=False)
    held.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(2.0, held.rollback)
    timer.start()
    claim = queue.claim([KEY], "one")
    assert claim is not None
    assert claim.due > time.time()
    timer.join()
    held.close()


# What is left where a process is killed, at each step of each call: the queue's connection is replaced by one
# that kills the process just before, or just after, its n-th statement.

KILLED = """
import os, signal, sqlite3, sys
from pathlib import Path
from trackperm.hooks.queue import Queue, Unit

folder, call, step, moment = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
queue = Queue(Path(folder), lease=0.0)
counted = 0

class Rows:
    def __init__(self, rows):
        object.__setattr__(self, "rows", rows)
    def execute(self, *arguments):
        global counted
        counted += 1
        if counted == step and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        found = self.rows.execute(*arguments)
        if counted == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return found
    def __getattr__(self, name):
        return getattr(self.rows, name)
    def __setattr__(self, name, value):
        setattr(self.rows, name, value)

connect = sqlite3.connect
KEY = "d" * 64
claim = None if call in ("add", "claim") else queue.claim([KEY], "child")
sqlite3.connect = lambda *a, **k: Rows(connect(*a, **k))
{
    "add": lambda: queue.add([Unit(KEY, "mlflow:new", "nightly"), Unit(KEY, "mlflow:newer", "nightly")],
                             "receive", delivery="x", window=300),
    "claim": lambda: queue.claim([KEY], "child"),
    "renew": lambda: queue.renew(claim),
    "fix_baseline": lambda: queue.fix_baseline(claim, "mlflow:b", "why"),
    "settle": lambda: queue.settle(claim, "pass", ["mlflow:c"]),
    "refuse": lambda: queue.refuse(claim, "no"),
    "retry": lambda: queue.retry(claim, "down", 0.0),
    "postpone": lambda: queue.postpone(claim, "still going", 0.0),
    "drop": lambda: queue.drop(claim),
}[call]()
sys.exit(9)
"""

CALLS = ["add", "claim", "renew", "fix_baseline", "settle", "refuse", "retry", "postpone", "drop"]


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_killed_at_every_statement(tmp_path: Path, call: str):
    """Each call has happened or has not, nothing between, and the queue goes on."""
    steps, seen = 0, set()
    for step in range(1, 12):
        for moment in ("before", "after"):
            folder = tmp_path / f"{step}-{moment}"
            Queue(folder).add([unit()], "watch")
            child = subprocess.run(
                [sys.executable, "-c", KILLED, str(folder), call, str(step), moment], timeout=60, check=False
            )
            if child.returncode == 9:  # it has no such step
                continue
            assert child.returncode == -signal.SIGKILL
            steps += 1
            seen.add(_state_after(folder, call))
    assert steps >= 6
    assert len(seen) == (1 if call == "renew" else 2), "some are killed before the commit, others after"


def _state_after(folder: Path, call: str) -> tuple[object, ...]:
    queue = Queue(folder, lease=0.0)
    before = queue.entries()
    if call == "add":
        assert len(before) in (1, 3)  # both or none
        try:
            added = queue.add([unit(7)], "receive", delivery="x", window=300)
        except ReplayError:
            assert len(before) == 3  # remembered only with what it asked for
        else:
            assert len(before) == 1
            assert added == [unit(7)]
    expected: dict[str, set[tuple[object, ...]]] = {
        "add": {("waiting", None, None)},
        "claim": {("waiting", None, None), ("claimed", None, None)},
        "renew": {("claimed", None, None)},
        "fix_baseline": {("claimed", None, None), ("claimed", "mlflow:b", "why")},
        "settle": {("claimed", None, None), ("done", None, None)},
        "refuse": {("claimed", None, None), ("refused", None, None)},
        "retry": {("claimed", None, None), ("waiting", None, None)},
        "postpone": {("claimed", None, None), ("waiting", None, None)},
        "drop": {("claimed", None, None), ()},
    }
    old = [entry for entry in before if entry.candidate == "mlflow:run0"]
    state: tuple[object, ...] = (old[0].state, old[0].baseline, old[0].why) if old else ()
    assert state in expected[call]
    if state and state[0] in ("waiting", "claimed"):
        again = claimed(queue, "next")
        assert again.candidate == "mlflow:run0"
        queue.settle(again, "pass", [])
        assert queue.entries()[0].state == "done"
    return (*state, len(before))


class Model(RuleBasedStateMachine):
    """Any order of calls by two workers, against a model in memory."""

    claims = Bundle("claims")
    candidates = st.integers(0, 3)

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self.clock = Clock()
        self.queue = Queue(Path(self._folder.name), clock=self.clock, lease=10)
        self.state: dict[str, str] = {}
        self.holder: dict[str, str | None] = {}
        self.baseline: dict[str, str | None] = {}
        self.settled: list[str] = []

    def teardown(self) -> None:
        self._folder.cleanup()

    @rule(number=candidates, stamp=st.sampled_from([None, "1", "2"]))
    def add(self, number: int, stamp: str | None) -> None:
        candidate = f"mlflow:run{number}"
        before = {entry.candidate: entry for entry in self.queue.entries()}.get(candidate)
        fresh = before is None or (before.state == "refused" and stamp not in (None, before.stamp))
        assert len(self.queue.add([unit(number, stamp=stamp)], "watch")) == fresh
        if fresh:
            self.state[candidate], self.baseline[candidate] = "waiting", None

    @rule(target=claims, owner=st.sampled_from("ab"))
    def claim(self, owner: str) -> object:
        claim = self.queue.claim([KEY], owner)
        for entry in self.queue.entries():  # expired leases are ended by whoever claims
            if entry.state == "waiting" and self.state[entry.candidate] == "claimed":
                self.state[entry.candidate], self.holder[entry.candidate] = "waiting", None
        if claim is None:
            return multiple()
        assert claim.candidate not in self.settled
        assert claim.baseline == self.baseline[claim.candidate]
        self.state[claim.candidate], self.holder[claim.candidate] = "claimed", claim.token
        return claim

    @rule(seconds=st.sampled_from([1.0, 9.0, 11.0, 4000.0]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    def _holds(self, claim: Entry) -> bool:
        return self.state.get(claim.candidate) == "claimed" and self.holder[claim.candidate] == claim.token

    @rule(claim=claims, baseline=st.sampled_from("xyz"))
    def fix(self, claim: Entry, baseline: str) -> None:
        if not self._holds(claim):
            with pytest.raises(LeaseLostError):
                self.queue.fix_baseline(claim, baseline, "why")
            return
        found = self.queue.fix_baseline(claim, baseline, "why").baseline
        self.baseline[claim.candidate] = self.baseline[claim.candidate] or baseline
        assert found == self.baseline[claim.candidate]

    @rule(claim=claims)
    def renew(self, claim: Entry) -> None:
        if self._holds(claim):
            self.queue.renew(claim)
        else:
            with pytest.raises(LeaseLostError):
                self.queue.renew(claim)

    @rule(claim=consumes(claims), end=st.sampled_from(["settle", "refuse", "retry", "release", "drop"]))
    def end(self, claim: Entry, end: str) -> None:
        arguments = {"settle": ("pass", []), "refuse": ("no",), "retry": ("down", 5.0)}.get(end, ())
        held = self._holds(claim)
        if not held:
            with pytest.raises(LeaseLostError):
                getattr(self.queue, end)(claim, *arguments)
            return
        getattr(self.queue, end)(claim, *arguments)
        self.holder[claim.candidate] = None
        if end == "drop":
            del self.state[claim.candidate]
            return
        self.state[claim.candidate] = {"settle": "done", "refuse": "refused"}.get(end, "waiting")
        if end == "settle":
            self.settled.append(claim.candidate)

    @invariant()
    def is_as_the_model_says(self) -> None:
        assert {entry.candidate: entry.state for entry in self.queue.entries()} == self.state
        assert len(set(self.settled)) == len(self.settled)


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def test_a_file_that_was_moved_away_is_made_anew(tmp_path: Path):
    queue = Queue(tmp_path / "state")
    queue.add([unit()], "watch")
    for file in (tmp_path / "state").iterdir():
        file.unlink()
    assert queue.entries() == []
    assert queue.add([unit()], "watch") == [unit()]
