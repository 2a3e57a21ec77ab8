"""Collects the rows of a benchmark run, prints them as one table, and writes them to `.benchmarks/`."""

from __future__ import annotations

import json

import pytest
from benchmarks.summary import Row, as_document, as_markdown, as_text, scaling

FAR_OFF = 10.0
"""A figure missed by more than this factor is an error, whatever the machine; by less, the table says so."""

ROWS = pytest.StashKey[list[Row]]()


class Table:
    """Where a benchmark puts its rows."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def add(self, row: Row) -> None:
        self._rows.append(row)
        assert row.shortfall is None or row.shortfall < FAR_OFF


def pytest_configure(config):
    config.stash[ROWS] = []


@pytest.fixture
def table(pytestconfig) -> Table:
    return Table(pytestconfig.stash[ROWS])


def pytest_terminal_summary(terminalreporter, config):
    rows = config.stash[ROWS]
    if not rows:
        return
    rows = [*rows, *scaling(rows)]
    folder = config.rootpath / ".benchmarks"
    folder.mkdir(exist_ok=True)
    (folder / "table.json").write_text(json.dumps(as_document(rows), indent=1) + "\n", encoding="utf-8")
    (folder / "table.md").write_text(as_markdown(rows), encoding="utf-8")
    terminalreporter.write_line("")
    terminalreporter.write_line(as_text(rows))
    terminalreporter.write_line(f"written to {folder / 'table.json'} and {folder / 'table.md'}")
