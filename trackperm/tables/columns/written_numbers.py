"""Columns of text in which every value is a number, such as scores of a judge in JSON files: ``"0.81"``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import polars as pl

from trackperm.errors import TrackpermError
from trackperm.tables.columns.types import FIRST_ROWS, ColumnType, is_number, typed_columns
from trackperm.tables.lazy.table import LazyTable
from trackperm.tables.table import ExampleTable

_NUMBERS = (ColumnType.INTEGER, ColumnType.DECIMAL)


def with_numbers(tables: Sequence[ExampleTable], names: Iterable[str]) -> list[ExampleTable]:
    """Read columns of text as numbers if they hold numbers alone in all tables that have them.

    A text is a number if it is one in a CSV file: ``1e5`` is, and ``007`` and ``1,5`` are not.
    """
    found = list(tables)
    for name in dict.fromkeys(names):
        texts = {i: table for i, table in enumerate(found) if _is_text(table, name)}
        others = [table for i, table in enumerate(found) if i not in texts and name in table.columns]
        if not texts or not all(is_number(name, [table]) for table in others):
            continue
        types = {i: _type_of_numbers(table, name) for i, table in texts.items()}
        if all(types.values()):
            for i, type_ in types.items():
                found[i] = _read_as(found[i], name, type_)
    return found


def _is_text(table: ExampleTable, name: str) -> bool:
    is_usable = name in table.columns and name not in table.unusable
    return is_usable and table.schema[name] == nw.String and not table.is_untyped(name)


def _type_of_numbers(table: ExampleTable, name: str) -> Any:
    """Return the type of the numbers in a column of text; None if a text is not a finite number."""
    untyped = replace(table, untyped=frozenset([name]))
    try:
        head = untyped.head(FIRST_ROWS).only([name])
        if typed_columns(head, head, [name])[2][name] not in _NUMBERS:
            return None
        texts = untyped.type_representatives([name])
        whole = untyped.with_rows(texts)
        if typed_columns(whole, whole, [name])[2][name] not in _NUMBERS:
            return None
    except TrackpermError:
        return None  # the pairing reports the error
    integers = texts[name].cast(pl.Int64, strict=False)
    return nw.Int64 if integers.null_count() == texts[name].null_count() else nw.Float64


def _read_as(table: ExampleTable, name: str, dtype: Any) -> ExampleTable:
    if isinstance(table.data, LazyTable):
        return replace(table, data=table.data.replaced([name], lambda each: nw.col(each).cast(dtype)))
    # Not every data frame library casts text with missing values.
    return replace(table, untyped=frozenset([name, *filter(table.is_untyped, table.columns)]))
