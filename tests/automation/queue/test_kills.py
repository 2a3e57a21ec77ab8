"""What is left of the queue where a process is killed, at each step of each call."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support.queue_tasks import KEY, claimed, task

from trackperm.automation.queue.queue import Entry, Queue
from trackperm.errors import ReplayError

State = tuple[object, ...]
WAITING, CLAIMED = ("waiting", None, None), ("claimed", None, None)

CALLS: dict[str, tuple[Callable[[Queue, Entry | None], object], set[State]]] = {
    "add": (
        lambda queue, _: queue.add([task(8), task(9)], "receive", delivery="x", window=300),
        {WAITING},
    ),
    "claim": (lambda queue, _: queue.claim([KEY], "child"), {WAITING, CLAIMED}),
    "renew": (lambda queue, claim: queue.renew(claim), {CLAIMED}),
    "fix_baseline": (
        lambda queue, claim: queue.fix_baseline(claim, "mlflow:b", "why"),
        {CLAIMED, ("claimed", "mlflow:b", "why")},
    ),
    "complete": (
        lambda queue, claim: queue.complete(claim, "pass", ["mlflow:c"]),
        {CLAIMED, ("done", None, None)},
    ),
    "refuse": (lambda queue, claim: queue.refuse(claim, "no"), {CLAIMED, ("refused", None, None)}),
    "retry": (lambda queue, claim: queue.retry(claim, "down", 0.0), {CLAIMED, WAITING}),
    "postpone": (lambda queue, claim: queue.postpone(claim, "still going", 0.0), {CLAIMED, WAITING}),
    "drop": (lambda queue, claim: queue.drop(claim), {CLAIMED, ()}),
}
"""Each call, and the states in which it may leave a row."""


def call_and_die(folder: Path, call: str, step: int, moment: str) -> None:
    """Kill this process just before, or just after, the n-th statement of a call."""
    queue = Queue(folder, lease=0.0)
    claim = None if call in ("add", "claim") else queue.claim([KEY], "child")
    counted = count(1)

    class Deadly(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            is_last = next(counted) == step
            if is_last and moment == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            found = super().execute(*arguments)
            if is_last:
                os.kill(os.getpid(), signal.SIGKILL)
            return found

    sqlite3.connect = partial(sqlite3.connect, factory=Deadly)
    CALLS[call][0](queue, claim)


def code_of_child(*arguments: Any) -> int:
    """Return what a process that makes a call ends with: a signal, 9 if it has made it, or 1 for a fault."""
    child = os.fork()
    if child == 0:
        try:
            call_and_die(*arguments)
            os._exit(9)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* use of fork:DeprecationWarning")
@pytest.mark.parametrize("call", CALLS)
def test_killed_at_every_statement(tmp_path: Path, call: str):
    """Each call has happened or has not, nothing between, and the queue goes on."""
    steps, seen = 0, set()
    for step in range(1, 12):
        for moment in ("before", "after"):
            folder = tmp_path / f"{step}-{moment}"
            Queue(folder).add([task()], "watch")
            code = code_of_child(folder, call, step, moment)
            if code == 9:  # it has no such step
                continue
            assert code == -signal.SIGKILL
            steps += 1
            seen.add(_state_after(folder, call))
    assert steps >= 6
    assert len(seen) == (1 if call == "renew" else 2), "some are killed before the commit, others after"


def _state_after(folder: Path, call: str) -> State:
    queue = Queue(folder, lease=0.0)
    before = queue.entries()
    if call == "add":
        assert len(before) in (1, 3)  # both or none
        try:
            added = queue.add([task(7)], "receive", delivery="x", window=300)
        except ReplayError:
            assert len(before) == 3  # remembered only with what it asked for
        else:
            assert len(before) == 1
            assert added == [task(7)]
    old = [entry for entry in before if entry.candidate == "mlflow:run0"]
    state: State = (old[0].state, old[0].baseline, old[0].why) if old else ()
    assert state in CALLS[call][1]
    if state and state[0] in ("waiting", "claimed"):
        again = claimed(queue, "next")
        assert again.candidate == "mlflow:run0"
        queue.complete(again, "pass", [])
        assert queue.entries()[0].state == "done"
    return (*state, len(before))
