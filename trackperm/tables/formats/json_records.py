"""JSON documents that are one array of objects."""

from __future__ import annotations

from trackperm.errors import SourceError
from trackperm.tables.json_values import member_names, table
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable


def read_json_records(file: SourceFile) -> ExampleTable:
    """Read an array of objects; a missing member is null.

    Raise SourceError if an item is not an object.
    """
    rows = file.document
    for index, row in enumerate(rows):
        if not isinstance(row, dict):
            raise SourceError(
                f"`{file.origin}`, item {index}: not an object",
                hint='the array has one object per example, such as {"id": 1}.',
            )
    columns = {name: [row.get(name) for row in rows] for name in member_names(rows, file.origin)}
    return table(columns, lambda index: f"item {index}", file.origin)


def _recognises(file: SourceFile) -> bool:
    return isinstance(file.document, list) and bool(file.document) and isinstance(file.document[0], dict)


JSON_RECORDS = Source("json", "JSON array of objects", _recognises, read_json_records)
