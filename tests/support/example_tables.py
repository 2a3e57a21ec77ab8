"""Small example tables, and their columns and rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from trackperm.tables import read_examples
from trackperm.tables.table import ExampleTable


def table(origin: str = "base", untyped: bool = False, **columns: list[Any]) -> ExampleTable:
    frame = pl.DataFrame(columns)
    return ExampleTable(ExampleTable.from_native(frame, origin).frame, origin, untyped=untyped)


def rows(frame: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = frame.rows(named=True)
    return found


def columns(table: ExampleTable) -> dict[str, list[Any]]:
    return {name: table.frame[name].to_list() for name in table.columns}


def columns_of_file(path: Path, part: str | None = None) -> dict[str, list[Any]]:
    return columns(read_examples(path, part=part))
