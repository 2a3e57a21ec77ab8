"""Style and types, checked with the tools' settings in `pyproject.toml`."""

from __future__ import annotations

import sys

import pytest
from processes import run


@pytest.mark.parametrize(
    "command", [("ruff", "check"), ("ruff", "format", "--check"), ("mypy",)], ids=" ".join
)
def test_has_nothing_to_say(command: tuple[str, ...]):
    result = run([sys.executable, "-m", *command])
    assert result.returncode == 0, result.stdout + result.stderr
