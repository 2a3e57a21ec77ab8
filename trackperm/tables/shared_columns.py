"""Columns that several runs have."""

from __future__ import annotations

from collections.abc import Sequence

from trackperm.errors import InputTypeError
from trackperm.tables.column_types import ColumnType, typed_columns
from trackperm.tables.table import ExampleTable


def have(tables: Sequence[ExampleTable], names: Sequence[str]) -> bool:
    """Whether all runs have all the columns."""
    return all(name in table.columns for table in tables for name in names)


def shared_columns(tables: Sequence[ExampleTable]) -> list[str]:
    """Return the columns that all runs have, in the order of the first."""
    return [name for name in tables[0].columns if have(tables[1:], [name])]


def is_number(name: str, tables: Sequence[ExampleTable]) -> bool:
    """Whether a column has numbers or booleans in the first rows of all runs."""
    if not have(tables, [name]):
        return False
    numbers = (ColumnType.INTEGER, ColumnType.DECIMAL, ColumnType.BOOLEAN)
    try:
        return all(
            typed_columns(table.head(1000), table.head(1000), [name])[2][name] in numbers for table in tables
        )
    except InputTypeError:
        return False
