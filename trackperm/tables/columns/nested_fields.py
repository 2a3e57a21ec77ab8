"""Columns of objects, whose fields cannot be compared before they are columns, for messages.

Objects may hold objects. The path of an object has the names of its column and of the fields that lead to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import narwhals as nw

from trackperm.messages import listed
from trackperm.tables.columns.names import IDS, LABELS, PREDICTIONS, SCORES
from trackperm.tables.polars_code import rewriting, text_of
from trackperm.tables.table import ExampleTable

_ANSWERS = {*LABELS, *PREDICTIONS, *SCORES}
_KNOWN = {*IDS, *_ANSWERS}

_DEEPEST = 4
"""Most names in the path of an object in which fields are looked for."""

_MOST_FIELDS = 50
"""Most fields of an object in whose objects fields are looked for; more are rather keys than names."""

Path = tuple[str, ...]
"""Names of a column and of fields in it."""


def fields_of(table: ExampleTable, column: str, *path: str) -> tuple[str, ...]:
    """Return the names of the fields of a column of objects, or of objects in it; none for other values."""
    if column not in table.columns:
        return ()
    dtype: Any = table.schema[column]
    if isinstance(dtype, nw.Struct):
        for name in path:
            dtype = {field.name: field.dtype for field in dtype.fields}.get(name)
            if not isinstance(dtype, nw.Struct):
                return ()
        return tuple(field.name for field in dtype.fields)
    names = dict.fromkeys(name for row in _objects(table, (column, *path)) for name in row)
    return tuple(map(str, names))


def known_fields(table: ExampleTable) -> str | None:
    """Say how a field that is called like a score, an answer or an id becomes a column; None without one.

    Of several such columns it is the one that has such a field in the most rows. Objects in objects are
    searched where no outer one has such a field.
    """
    paths: list[Path] = [(column,) for column in table.columns]
    while paths and len(paths[0]) <= _DEEPEST:
        n_rows = {
            path: max(n_known)
            for path in paths
            if (n_known := [_n_rows(table, path, name) for name in _known(table, path)])
        }
        if n_rows:
            return _flattened(table, max(n_rows, key=n_rows.__getitem__))
        inside = [(path, fields_of(table, *path)) for path in paths]
        paths = [(*path, name) for path, names in inside if len(names) <= _MOST_FIELDS for name in names]
    return None


def named_fields(table: ExampleTable, names: Iterable[str]) -> str | None:
    """Say how the fields of objects become columns if one of `names` is a field or holds objects."""
    for name in names:
        column, *fields = [name] if name in table.columns else name.split(".")
        if not fields_of(table, column):
            continue
        path: Path = (column,)
        for field in fields:
            if not fields_of(table, *path, field):
                break
            path = (*path, field)
        return _flattened(table, path)
    return None


def _flattened(table: ExampleTable, path: Path) -> str:
    """Return the fields of objects and the code that flattens them, without a full stop.

    Rows of other kinds, such as events without a result, lack the field of a score or an answer; the code
    drops them.
    """
    known = sorted(_known(table, path), key=lambda name: name not in SCORES)
    lacking = [name for name in known[:1] if _n_rows(table, path, name) < len(table)]
    *changes, last = _unnested(table, path)
    change = ".".join(code for code, _ in (*changes, last))
    if lacking:
        change += f".drop_nulls({text_of(last[1] + lacking[0])})"
    code = rewriting(table.origin, change, "flat", reads_all=bool(lacking))
    fields = listed(fields_of(table, *path))
    return f"`{'.'.join(path)}` holds the fields {fields}: `{code}` of polars makes columns of them"


def _unnested(table: ExampleTable, path: Path) -> Iterator[tuple[str, str]]:
    """Yield for each object on a path the code that unnests it, and what the names of its columns begin with.

    The names are those of the fields if no other column has one of them.
    """
    columns, column = {*table.columns}, path[0]
    for depth in range(len(path)):
        columns.remove(column)
        fields = fields_of(table, *path[: depth + 1])
        is_clear = columns.isdisjoint(fields)
        prefix = "" if is_clear else f"{column}."
        yield f"unnest({text_of(column)}{'' if is_clear else ', separator=' + text_of('.')})", prefix
        columns.update(f"{prefix}{field}" for field in fields)
        column = f"{prefix}{path[min(depth + 1, len(path) - 1)]}"


def _known(table: ExampleTable, path: Path) -> list[str]:
    """Return the fields that are called like scores, answers or, in the column itself, ids."""
    names = _KNOWN if len(path) == 1 else _ANSWERS
    return [name for name in fields_of(table, *path) if name in names]


def _n_rows(table: ExampleTable, path: Path, field: str) -> int:
    """Count the rows with a value of a field; all rows of a file or a query, which is not read for this."""
    if not isinstance(table.data, nw.DataFrame):
        return len(table)
    if isinstance(table.schema[path[0]], nw.Struct):
        values = table.data.get_column(path[0])
        for name in (*path[1:], field):
            values = values.struct.field(name)
        return int(values.count())
    return sum(row.get(field) is not None for row in _objects(table, path))


def _objects(table: ExampleTable, path: Path) -> list[dict[str, Any]]:
    """Return the JSON objects of a column, or in it; none if it has other values there too."""
    column, *names = path
    if column not in table.unusable or not isinstance(table.data, nw.DataFrame):
        return []
    values = [value for value in table.data.get_column(column).to_list() if value is not None]
    for name in names:
        if not all(isinstance(value, dict) for value in values):
            return []
        values = [inner for value in values if (inner := value.get(name)) is not None]
    return values if all(isinstance(value, dict) for value in values) else []
