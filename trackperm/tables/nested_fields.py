"""Columns of objects, whose fields cannot be compared before they are columns, for messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import narwhals as nw

from trackperm.messages import listed
from trackperm.tables.column_names import IDS, LABELS, PREDICTIONS, SCORES
from trackperm.tables.polars_code import rewriting, text_of
from trackperm.tables.table import ExampleTable

_KNOWN = {*IDS, *LABELS, *PREDICTIONS, *SCORES}


def fields_of(table: ExampleTable, column: str) -> tuple[str, ...]:
    """Return the names of the fields of a column of objects; none for other columns."""
    if column not in table.columns:
        return ()
    dtype = table.schema[column]
    if isinstance(dtype, nw.Struct):
        return tuple(field.name for field in dtype.fields)
    names = dict.fromkeys(name for row in _objects(table, column) for name in row)
    return tuple(map(str, names))


def known_fields(table: ExampleTable) -> str | None:
    """Say how a field that is called like a score, an answer or an id becomes a column; None without one.

    Of several such columns it is the one that has such a field in the most rows.
    """
    n_rows = {
        column: max(n_known)
        for column in table.columns
        if (n_known := [_n_rows(table, column, name) for name in _known(table, column)])
    }
    return _flattened(table, max(n_rows, key=n_rows.__getitem__)) if n_rows else None


def named_fields(table: ExampleTable, names: Iterable[str]) -> str | None:
    """Say how the fields of objects become columns if one of `names` is a field or a column of objects."""
    for name in names:
        column = name if name in table.columns else name.partition(".")[0]
        if fields_of(table, column):
            return _flattened(table, column)
    return None


def _flattened(table: ExampleTable, column: str) -> str:
    """Return the fields of a column and the code that flattens it, without a full stop.

    Rows of other kinds, such as events without a result, lack the field of a score or an answer; the code
    drops them.
    """
    fields = fields_of(table, column)
    is_clear = not {*fields} & {*table.columns} - {column}
    change = f"unnest({text_of(column)})" if is_clear else f'unnest({text_of(column)}, separator=".")'
    known = sorted(_known(table, column), key=lambda name: name not in SCORES)
    lacking = [name for name in known[:1] if _n_rows(table, column, name) < len(table)]
    if lacking:
        dropped = lacking[0] if is_clear else f"{column}.{lacking[0]}"
        change += f".drop_nulls({text_of(dropped)})"
    code = rewriting(table.origin, change, "flat", reads_all=bool(lacking))
    return f"`{column}` holds the fields {listed(fields)}: `{code}` of polars makes columns of them"


def _known(table: ExampleTable, column: str) -> list[str]:
    return [name for name in fields_of(table, column) if name in _KNOWN]


def _n_rows(table: ExampleTable, column: str, field: str) -> int:
    """Count the rows with a value of a field; all rows of a file or a query, which is not read for this."""
    if not isinstance(table.data, nw.DataFrame):
        return len(table)
    if isinstance(table.schema[column], nw.Struct):
        return int(table.data.get_column(column).struct.field(field).count())
    return sum(row.get(field) is not None for row in _objects(table, column))


def _objects(table: ExampleTable, column: str) -> list[dict[str, Any]]:
    """Return the values of a column of JSON objects; none if it has other values too."""
    if column not in table.unusable or not isinstance(table.data, nw.DataFrame):
        return []
    values = [value for value in table.data.get_column(column).to_list() if value is not None]
    return values if all(isinstance(value, dict) for value in values) else []
