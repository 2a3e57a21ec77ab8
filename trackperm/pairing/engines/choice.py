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
"""Rows of a run from which on DuckDB pairs them."""


def engine_for(
    name: EngineName, tables: tuple[ExampleTable, ExampleTable], columns: Collection[str]
) -> Engine:
    """Return the engine of a name, or for "auto" the one that suits the tables.

    Whatever is named, rows are paired in memory if the types of columns are told by all of their values
    alone, as those of objects of Python are.
    """
    if name == "auto":
        name = _suiting(tables)
    if name == "polars" or not all(table.has_witnesses(columns) for table in tables):
        return InMemory()
    return Spark(tables) if name == "spark" else DuckDB()


def _suiting(tables: tuple[ExampleTable, ExampleTable]) -> EngineName:
    if any(isinstance(table.data, Query) and table.data.is_spark for table in tables):
        return "spark"
    return "duckdb" if max(map(len, tables)) >= MANY_ROWS else "polars"
