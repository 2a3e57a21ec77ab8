"""Column types of tables that stay in an engine, found from a few values, and the casts to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import narwhals as nw

from trackperm.pairing.engines.base import Frame, Types
from trackperm.pairing.internal_names import internal
from trackperm.tables.columns.types import ColumnType, typed_columns
from trackperm.tables.lazy.query import Query
from trackperm.tables.table import ExampleTable

_SIGNED = (nw.Int8, nw.Int16, nw.Int32, nw.Int64)
_FIRST = 1000  # rows that are read to see whether a column has values

_DTYPES: dict[ColumnType, Any] = {
    ColumnType.INTEGER: nw.Int64,
    ColumnType.DECIMAL: nw.Float64,
    ColumnType.BOOLEAN: nw.Boolean,
    ColumnType.TEXT: nw.String,
    ColumnType.TEXT_LIST: nw.List(nw.String),
    ColumnType.INTEGER_LIST: nw.List(nw.Int64),
    ColumnType.DECIMAL_LIST: nw.List(nw.Float64),
}


def stored(table: ExampleTable, columns: Sequence[str], path: Path) -> ExampleTable:
    """Write the columns of a query to a file, so that types are found from the rows that are paired."""
    if not isinstance(table.data, Query):
        return table
    return replace(table, data=table.data.stored(list(dict.fromkeys(columns)), path))


def types_of(tables: Sequence[ExampleTable], columns: Sequence[str], texts: Sequence[str]) -> Types:
    """Find the types of columns of two tables, with the errors of :func:`~.columns.types.typed_columns`."""
    names = list(dict.fromkeys(columns))
    integers = _integers(tables, names)
    others = [name for name in names if name not in integers]
    baseline, candidate = (table.with_rows(table.type_representatives(others)) for table in tables)
    types = typed_columns(baseline, candidate, others, text=texts)[2] | integers
    return {name: types[name] for name in names}


def _integers(tables: Sequence[ExampleTable], names: Sequence[str]) -> Types:
    """Return the columns that are integers whatever their values, as both tables hold signed integers.

    A column that is null in all of the first rows is left out, because the rest of it may be null too.
    """
    if any(isinstance(table.data, Query) for table in tables):
        return {}  # an engine finds the types by aggregates, and no rows of it are read
    integers = [name for name in names if all(table.schema[name] in _SIGNED for table in tables)]
    heads = [table.head(_FIRST).only(integers).frame for table in tables]
    return {
        name: ColumnType.INTEGER
        for name in integers
        if all(len(head[name].drop_nulls()) for head in heads) and not any(name in t.unusable for t in tables)
    }


def cast_frame(frame: Frame, types: Types) -> Frame:
    """Cast the columns of a table, which have internal names, to the types that :func:`types_of` found."""
    schema = frame.collect_schema()
    names = {internal(name): type_ for name, type_ in types.items()}
    return frame.select(_cast(name, schema[name], type_) for name, type_ in names.items())


def _cast(name: str, dtype: nw.dtypes.DType, type_: ColumnType) -> nw.Expr:
    values = nw.col(name)
    if dtype.is_float() or (dtype == nw.String and type_ is ColumnType.DECIMAL):
        numbers = values.cast(nw.Float64)
        values = nw.when(~numbers.is_nan()).then(numbers)
    if type_ is ColumnType.TEXT and dtype.is_numeric():
        values = values.cast(nw.Int64)
    return values.cast(_DTYPES[type_]).alias(name)
