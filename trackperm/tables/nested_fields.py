"""Columns of objects, whose fields cannot be compared before they are columns, for messages."""

from __future__ import annotations

import json
from collections.abc import Iterable

import narwhals as nw

from trackperm.messages import listed
from trackperm.tables.column_names import IDS, LABELS, PREDICTIONS, SCORES
from trackperm.tables.table import ExampleTable

_KNOWN = {*IDS, *LABELS, *PREDICTIONS, *SCORES}

_READERS = {
    ".jsonl": ("read_ndjson", "write_ndjson"),
    ".ndjson": ("read_ndjson", "write_ndjson"),
    ".json": ("read_json", "write_json"),
    ".parquet": ("read_parquet", "write_parquet"),
}
"""Functions of polars that read and write a file, by its ending."""


def fields_of(table: ExampleTable, column: str) -> tuple[str, ...]:
    """Return the names of the fields of a column of objects; none for other columns."""
    if column not in table.columns:
        return ()
    dtype = table.schema[column]
    if isinstance(dtype, nw.Struct):
        return tuple(field.name for field in dtype.fields)
    if column not in table.unusable or not isinstance(table.data, nw.DataFrame):
        return ()
    first = next((value for value in table.data.get_column(column).to_list() if value is not None), None)
    return tuple(map(str, first)) if isinstance(first, dict) else ()


def known_fields(table: ExampleTable) -> str | None:
    """Say how a field that is called like a score, an answer or an id becomes a column; None without one."""
    for column in table.columns:
        if _KNOWN & {*fields_of(table, column)}:
            return _flattened(table, column)
    return None


def named_fields(table: ExampleTable, names: Iterable[str]) -> str | None:
    """Say how the fields of objects become columns if one of `names` is a field or a column of objects."""
    for name in names:
        column = name if name in table.columns else name.partition(".")[0]
        if fields_of(table, column):
            return _flattened(table, column)
    return None


def _flattened(table: ExampleTable, column: str) -> str:
    """Return the fields of a column and the code that flattens it, without a full stop."""
    fields = fields_of(table, column)
    is_clear = not {*fields} & {*table.columns} - {column}
    unnest = f"unnest({_text(column)})" if is_clear else f'unnest({_text(column)}, separator=".")'
    for ending, (read, write) in _READERS.items():
        if table.origin.endswith(ending):
            code = f"pl.{read}({_text(table.origin)}).{unnest}.{write}({_text(f'flat{ending}')})"
            break
    else:
        code = f"frame.{unnest}"
    return f"`{column}` holds the fields {listed(fields)}: `{code}` of polars makes columns of them"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
