"""Tasks for tests of the queue, and a clock that they set."""

from __future__ import annotations

from trackperm.automation.queue.queue import Entry, Queue, Task

KEY = "d" * 64


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def task(number: int = 0, queue_key: str = KEY, stamp: str | None = None) -> Task:
    return Task(queue_key, f"mlflow:run{number}", "nightly", stamp)


def claimed(queue: Queue, owner: str = "a") -> Entry:
    claim = queue.claim([KEY], owner)
    assert claim is not None
    return claim
