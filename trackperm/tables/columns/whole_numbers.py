"""Ids that a CSV file has as ``0.0``, ``1.0``: pandas writes integers so beside a missing value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw

from trackperm.tables.columns.types import FIRST_ROWS
from trackperm.tables.lazy.table import LazyTable
from trackperm.tables.table import ExampleTable

_WHOLE = r"^-?(?:0|[1-9][0-9]*)\.0$"
_ROWS = 2**18  # rows that are read at once


def with_like_whole_numbers(tables: Sequence[ExampleTable], names: Iterable[str]) -> list[ExampleTable]:
    """Write whole numbers such as ``1.0`` as ``1`` in files without types, if other tables write them so.

    Texts stay as they are unless all values of the column are such numbers.
    """
    found = list(tables)
    for name in names:
        having = {i: table for i, table in enumerate(found) if name in table.columns}
        if not any(table.is_untyped(name) for table in having.values()):
            continue
        are_whole = {i: _are_whole(table, name) for i, table in having.items()}
        if any(are_whole.values()) and not all(are_whole.values()):
            for i, table in having.items():
                if are_whole[i] and table.is_untyped(name):
                    found[i] = _as_integers(table, name)
    return found


def _are_whole(table: ExampleTable, name: str) -> bool:
    """Whether all texts of a column are whole numbers with ``.0`` behind them."""
    if table.schema[name] != nw.String or name in table.unusable:
        return False
    first = table.head(FIRST_ROWS).only([name]).polars_column(name).drop_nulls()
    if not len(first) or not first.str.contains(_WHOLE).all():
        return False
    return all(part[name].drop_nulls().str.contains(_WHOLE).all() for part in table.slices([name], _ROWS))


def _as_integers(table: ExampleTable, name: str) -> ExampleTable:
    if isinstance(table.data, LazyTable):
        data: nw.DataFrame[Any] | LazyTable = table.data.replaced([name], _integer)
    else:
        data = table.data.with_columns(_integer(name))
    note = f"`{name}` has whole numbers with `.0`, which were compared as integers"
    return replace(table, data=data, notes=(*table.notes, note))


def _integer(name: str) -> nw.Expr:
    return nw.col(name).str.replace(r"\.0$", "")
