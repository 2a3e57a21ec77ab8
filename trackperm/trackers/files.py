"""Runs that are files: a reference without a scheme is a path."""

from __future__ import annotations

from pathlib import Path

from trackperm.sources import read_examples
from trackperm.tables import ExampleTable


def read_file(locator: str) -> ExampleTable:
    """Read the per-example table at a path, where a leading ``~/`` is the home directory.

    Raises
    ------
    SourceError
        If there is no such file, or it does not hold a table.
    """
    path = Path(locator).expanduser() if locator.startswith("~/") else Path(locator)
    return read_examples(path, origin=locator)
