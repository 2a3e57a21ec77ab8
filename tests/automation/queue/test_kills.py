"""What is left of the queue where a process is killed, at each step of each call.

The queue's connection is replaced by one that kills the process just before, or just after, its n-th
statement.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.queue_tasks import claimed, task

from trackperm.automation.queue.queue import Queue
from trackperm.errors import ReplayError

KILLED = """
import os, signal, sqlite3, sys
from pathlib import Path
from trackperm.automation.queue.queue import Queue, Task

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
    "add": lambda: queue.add([Task(KEY, "mlflow:new", "nightly"), Task(KEY, "mlflow:newer", "nightly")],
                             "receive", delivery="x", window=300),
    "claim": lambda: queue.claim([KEY], "child"),
    "renew": lambda: queue.renew(claim),
    "fix_baseline": lambda: queue.fix_baseline(claim, "mlflow:b", "why"),
    "complete": lambda: queue.complete(claim, "pass", ["mlflow:c"]),
    "refuse": lambda: queue.refuse(claim, "no"),
    "retry": lambda: queue.retry(claim, "down", 0.0),
    "postpone": lambda: queue.postpone(claim, "still going", 0.0),
    "drop": lambda: queue.drop(claim),
}[call]()
sys.exit(9)
"""

CALLS = ["add", "claim", "renew", "fix_baseline", "complete", "refuse", "retry", "postpone", "drop"]


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_killed_at_every_statement(tmp_path: Path, call: str):
    """Each call has happened or has not, nothing between, and the queue goes on."""
    steps, seen = 0, set()
    for step in range(1, 12):
        for moment in ("before", "after"):
            folder = tmp_path / f"{step}-{moment}"
            Queue(folder).add([task()], "watch")
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
            added = queue.add([task(7)], "receive", delivery="x", window=300)
        except ReplayError:
            assert len(before) == 3  # remembered only with what it asked for
        else:
            assert len(before) == 1
            assert added == [task(7)]
    expected: dict[str, set[tuple[object, ...]]] = {
        "add": {("waiting", None, None)},
        "claim": {("waiting", None, None), ("claimed", None, None)},
        "renew": {("claimed", None, None)},
        "fix_baseline": {("claimed", None, None), ("claimed", "mlflow:b", "why")},
        "complete": {("claimed", None, None), ("done", None, None)},
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
        queue.complete(again, "pass", [])
        assert queue.entries()[0].state == "done"
    return (*state, len(before))
