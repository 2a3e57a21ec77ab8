"""Choice of the engine that pairs two runs."""

from __future__ import annotations

from typing import Literal

from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.engines.base import Engine
from trackperm.pairing.engines.duckdb import DuckDB
from trackperm.pairing.engines.in_memory import InMemory
from trackperm.tables.table import ExampleTable

MANY_ROWS = 500_000
"""Rows of a run from which on DuckDB pairs them."""

EngineName = Literal["auto", "polars", "duckdb", "spark"]
"""Where rows are joined and counted; "auto" goes by their number."""


def engine_for(name: EngineName, tables: tuple[ExampleTable, ExampleTable], columns: PairedColumns) -> Engine:
    """Return the engine of a name, or for "auto" the one that suits the tables."""
    if name == "duckdb" or (name == "auto" and _is_large(tables, columns)):
        return DuckDB()
    return InMemory()


def _is_large(tables: tuple[ExampleTable, ExampleTable], columns: PairedColumns) -> bool:
    if columns.id is None or max(map(len, tables)) < MANY_ROWS:
        return False
    return all(table.has_witnesses(columns.names) for table in tables)
