"""The bar on standard error: late, on terminals alone, and gone at the end."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from trackperm.cli.progress import Steps


def shown(*, terminal: bool, delay: float, seconds: float) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=80)
    with Steps(2, delay=delay, console=console) as steps:
        steps.begin("reading")
        steps.begin("testing")
        time.sleep(seconds)
    return file.getvalue()


def test_what_takes_long_is_shown_and_wiped() -> None:
    text = shown(terminal=True, delay=0.01, seconds=0.4)
    assert "testing" in text
    assert text.endswith("\x1b[2K")


@pytest.mark.parametrize(("terminal", "delay"), [(True, 60.0), (False, 0.01)])
def test_nothing_is_shown_else(terminal: bool, delay: float) -> None:
    assert shown(terminal=terminal, delay=delay, seconds=0.1) == ""
