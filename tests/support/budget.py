"""How many cases tests draw: few with every change, many before a release; and what shows their figures."""

from __future__ import annotations

import os
from collections.abc import Callable

Measured = Callable[..., None]
"""Shows lines of text: the fixture `measured`."""

NIGHTLY = os.environ.get("TRACKPERM_NIGHTLY") == "1"

CASES = 25
"""Of a test that does not say how many it needs."""

MORE = 20
"""How many times as many are drawn at night."""


def cases(number: int) -> int:
    """Return how many cases to draw where `number` are drawn by default."""
    return MORE * number if NIGHTLY else number
