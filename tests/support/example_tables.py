"""Small example tables, and their rows."""

from __future__ import annotations

from typing import Any

import polars as pl

from trackperm.tables.table import ExampleTable


def table(origin: str = "base", untyped: bool = False, **columns: list[Any]) -> ExampleTable:
    frame = pl.DataFrame(columns)
    return ExampleTable(ExampleTable.from_native(frame, origin).frame, origin, untyped=untyped)


def rows(frame: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = frame.rows(named=True)
    return found
