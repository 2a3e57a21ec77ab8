"""JSON documents that are one array of objects, alone or with its schema.

``DataFrame.to_json`` of pandas writes the schema with ``orient="table"``.
"""

from __future__ import annotations

from typing import Any

from trackperm.errors import SourceError
from trackperm.tables.json_values import member, member_names, table
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable


def read_json_records(file: SourceFile) -> ExampleTable:
    """Read an array of objects; a missing member is null.

    Raise SourceError if an item is not an object.
    """
    rows = _rows(file)
    for index, row in enumerate(rows):
        if not isinstance(row, dict):
            raise SourceError(
                f"`{file.origin}`, item {index}: not an object",
                hint='the array has one object per example, such as {"id": 1}.',
            )
    columns = {name: [row.get(name) for row in rows] for name in member_names(rows, file.origin)}
    return table(columns, lambda index: f"item {index}", file.origin)


def _recognises(file: SourceFile) -> bool:
    rows = _rows(file)
    return isinstance(rows, list) and bool(rows) and isinstance(rows[0], dict)


def _rows(file: SourceFile) -> Any:
    has_schema = isinstance(member(file.document, "schema", "fields"), list)
    return member(file.document, "data") if has_schema else file.document


JSON_RECORDS = Source("json", "JSON array of objects", _recognises, read_json_records)
