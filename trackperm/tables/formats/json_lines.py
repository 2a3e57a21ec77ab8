"""JSON Lines: one object a line."""

from __future__ import annotations

from typing import Any

from trackperm.errors import SourceError
from trackperm.tables.expansion import require_columns
from trackperm.tables.formats.uniform_json_lines import read_uniform, scan_uniform
from trackperm.tables.json_values import member_names, parsed, table
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable
from trackperm.tables.text_parts import LARGE


def read_json_lines(file: SourceFile) -> ExampleTable:
    """Read one JSON object a line; a member that an object lacks is null, blank lines are skipped.

    Raises
    ------
    SourceError
        If a line is not a JSON object.
    """
    require_columns(len(file.first_record or {}), file.origin)
    if file.path.stat().st_size > LARGE:
        scan = scan_uniform(file.path, file.first_record or {}, file.origin)
        if scan is not None:
            return ExampleTable.from_scan(scan, file.origin)
    else:
        frame = read_uniform(file.path.read_bytes(), file.first_record or {})
        if frame is not None:
            return ExampleTable.from_native(frame, file.origin)
    rows, lines = json_rows(file)
    columns = {name: [row.get(name) for row in rows] for name in member_names(rows, file.origin)}
    return table(columns, lambda index: f"line {lines[index]}", file.origin)


def json_rows(file: SourceFile) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the objects of a file of JSON Lines, and the numbers of their lines.

    Raises
    ------
    SourceError
        If a line is not a JSON object.
    """
    rows, lines = [], []
    for line, text in enumerate(file.text.split("\n"), start=1):
        if not text or text.isspace():
            continue
        try:
            row = parsed(text.strip())
        except ValueError as error:
            raise SourceError(
                f"`{file.origin}`, line {line}: not JSON: {error}",
                hint='each line holds one object, such as {"id": 1}.',
            ) from error
        if not isinstance(row, dict):
            raise SourceError(
                f"`{file.origin}`, line {line}: not an object",
                hint='each line holds one object, such as {"id": 1}.',
            )
        rows.append(row)
        lines.append(line)
    if not rows:
        raise SourceError(f"`{file.origin}` is empty")
    return rows, lines


JSON_LINES = Source("jsonl", "JSON Lines", lambda file: file.first_record is not None, read_json_lines)
