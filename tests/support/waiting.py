"""Waiting for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(
    holds: Callable[[], object], seconds: float = 60.0, said: Callable[[], object] = lambda: None
) -> None:
    """Wait until a condition holds; the test fails after `seconds`, with what `said` returns."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, said()
        time.sleep(0.05)
