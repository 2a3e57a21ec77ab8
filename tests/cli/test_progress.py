"""Progress bar on standard error: delayed, only on terminals, and erased at the end."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console
from rich.progress import Progress

from trackperm.cli.progress import Steps


def shown(*, terminal: bool, delay: float, seconds: float) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=80)
    with Steps(2, delay=delay, console=console) as steps:
        steps.begin("reading")
        steps.begin("testing")
        time.sleep(seconds)
    return file.getvalue()


def bar_of(steps: Steps) -> Progress:
    for _ in range(1_000):
        if steps._bar is not None:
            return steps._bar
        time.sleep(0.01)
    raise AssertionError("no bar appeared in ten seconds")


def test_a_bar_of_long_work_is_shown_and_erased() -> None:
    text = shown(terminal=True, delay=0.01, seconds=0.4)
    assert "testing" in text
    assert text.endswith("\x1b[2K")


@pytest.mark.parametrize(("terminal", "delay"), [(True, 60.0), (False, 0.01)])
def test_no_bar_without_a_terminal_or_of_short_work(terminal: bool, delay: float) -> None:
    assert shown(terminal=terminal, delay=delay, seconds=0.1) == ""


def test_steps_are_counted() -> None:
    console = Console(file=io.StringIO(), force_terminal=True)
    with Steps(2, delay=0.01, console=console) as steps:
        steps.expect(3)
        steps.begin("reading")
        bar = bar_of(steps)
        steps.begin("testing")
        (task,) = bar.tasks
        assert (task.total, task.description, task.completed) == (3, "testing", 1)


def test_time_is_that_since_the_steps_began() -> None:
    with Steps(1, delay=0.3, console=Console(file=io.StringIO(), force_terminal=True)) as steps:
        elapsed = bar_of(steps).tasks[0].elapsed
        assert elapsed is not None
        assert elapsed >= 0.3
