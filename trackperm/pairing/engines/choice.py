"""Choice of the engine that pairs two runs."""

from __future__ import annotations

from collections.abc import Collection

from trackperm.choices import EngineName
from trackperm.pairing.engines.base import Engine
from trackperm.pairing.engines.duckdb import DuckDB
from trackperm.pairing.engines.in_memory import InMemory
from trackperm.pairing.engines.spark import Spark
from trackperm.tables.query import Query
from trackperm.tables.table import ExampleTable

MANY_ROWS = 500_000
"""Fewest rows of a run for which "auto" chooses DuckDB, which needs less memory than polars."""


def engine_for(
    name: EngineName, tables: tuple[ExampleTable, ExampleTable], columns: Collection[str]
) -> Engine:
    """Return the named engine, or for "auto" the engine that suits the tables.

    With any name, rows are paired in memory if the type of a column can only be found from all of its values,
    as that of Python objects.
    """
    if name == "auto":
        name = _suiting(tables)
    if name == "polars" or not all(table.has_representatives(columns) for table in tables):
        return InMemory()
    return Spark(tables) if name == "spark" else DuckDB()


def _suiting(tables: tuple[ExampleTable, ExampleTable]) -> EngineName:
    if any(isinstance(table.data, Query) and table.data.is_spark for table in tables):
        return "spark"
    return "duckdb" if max(map(len, tables)) >= MANY_ROWS else "polars"
