"""Choice of the engine that pairs two runs."""

from __future__ import annotations

from typing import Literal

from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.engines.base import Engine
from trackperm.pairing.engines.duckdb import DuckDB
from trackperm.pairing.engines.in_memory import InMemory
from trackperm.pairing.engines.spark import Spark
from trackperm.tables.query import Query
from trackperm.tables.table import ExampleTable

MANY_ROWS = 500_000
"""Rows of a run from which on DuckDB pairs them."""

EngineName = Literal["auto", "polars", "duckdb", "spark"]
"""Where rows are joined and counted; "auto" goes by their number."""


def engine_for(name: EngineName, tables: tuple[ExampleTable, ExampleTable], columns: PairedColumns) -> Engine:
    """Return the engine of a name, or for "auto" the one that suits the tables.

    Pairs by position are in memory whatever is named: a query has no order.
    """
    if columns.id is None or name == "polars":
        return InMemory()
    if name == "spark" or (name == "auto" and any(map(_is_of_spark, tables))):
        return Spark(tables)
    return DuckDB() if name == "duckdb" or _is_large(tables, columns) else InMemory()


def _is_large(tables: tuple[ExampleTable, ExampleTable], columns: PairedColumns) -> bool:
    if max(map(len, tables)) < MANY_ROWS:
        return False
    return all(table.has_witnesses(columns.names) for table in tables)


def _is_of_spark(table: ExampleTable) -> bool:
    return isinstance(table.data, Query) and table.data.is_spark
