"""Columns of several runs: which of them all have, hold numbers, or number the attempts at an example."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from trackperm.errors import InputTypeError
from trackperm.tables.column_types import ColumnType, typed_columns
from trackperm.tables.table import ExampleTable

_ATTEMPT = re.compile(
    r"(train_)?(epoch|sample|trial|repeat|repetition|replicate|rollout|seed|attempt)"
    r"([ _.-]?(id|idx|index|number|num|no|nr))?",
    re.IGNORECASE,
)


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


def numbers_attempts(name: str) -> bool:
    """Whether a column has a usual name for the number of an attempt, such as ``epoch``."""
    return _ATTEMPT.fullmatch(name) is not None


def attempt_columns(tables: Collection[ExampleTable], ids: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of all `tables` that number attempts; the columns `ids` identify examples.

    Return no columns if every id has one row, or if the columns do not distinguish the rows of an id.
    """
    first, *others = tables
    names = tuple(
        name
        for name in first.columns
        if numbers_attempts(name) and name not in ids and all(name in table.columns for table in others)
    )
    if not names or not any(repeats(table, ids) for table in tables):
        return ()
    return () if any(repeats(table, (*ids, *names)) for table in tables) else names


def repeats(table: ExampleTable, names: Sequence[str]) -> bool:
    """Whether two rows have the same values in all columns `names`; false if these cannot be read."""
    try:
        return table.repeats(names)
    except InputTypeError:
        return False
