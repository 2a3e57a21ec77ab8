"""Choice of the engine that pairs two runs."""

from __future__ import annotations

from collections.abc import Collection

from trackperm.choices import EngineName
from trackperm.pairing.engines.base import Engine
from trackperm.pairing.engines.duckdb import DuckDB
from trackperm.pairing.engines.in_memory import InMemory
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
    if name == "polars" or (name == "auto" and max(map(len, tables)) < MANY_ROWS):
        return InMemory()
    return DuckDB() if all(table.has_witnesses(columns) for table in tables) else InMemory()
