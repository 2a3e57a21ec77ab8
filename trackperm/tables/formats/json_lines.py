"""JSON Lines: one object per line.

Programs mostly write the same members with values of the same type on every line, which polars reads exactly
and fast. All other files are read line by line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from trackperm.errors import SourceError
from trackperm.tables.expansion import require_columns
from trackperm.tables.json_values import member_names, parsed, table
from trackperm.tables.lazy.text_parts import LARGE, scan_parts
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable

# Values that polars reads exactly: texts without escapes, integers far from the limits of int64, decimals
# whose integers are not rounded and whose exponents do not overflow.
_PATTERNS: dict[type, tuple[str, Any]] = {
    str: (r'"[^"\\\x00-\x1f]*"', pl.String),
    int: (r"-?(?:0|[1-9][0-9]{0,17})", pl.Int64),
    float: (r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,2})?", pl.Float64),
    bool: (r"true|false", pl.Boolean),
}
_UNIT = "\x1f"  # JSON escapes this character, so as a separator it splits no line


def read_json_lines(file: SourceFile) -> ExampleTable:
    """Read one JSON object per line; a missing member is null, and blank lines are skipped.

    Raise SourceError if a line is not a JSON object.
    """
    first = file.first_record or {}
    require_columns(len(first), file.origin)
    if file.path.stat().st_size > LARGE:
        scan = scan_parts(file.path, lambda data, _: read_uniform(data, first), file.origin)
        if scan is not None:
            return ExampleTable.from_scan(scan, file.origin)
    else:
        frame = read_uniform(file.path.read_bytes(), first)
        if frame is not None:
            return ExampleTable.from_native(frame, file.origin)
    rows, lines = json_rows(file)
    columns = {name: [row.get(name) for row in rows] for name in member_names(rows, file.origin)}
    return table(columns, lambda index: f"line {lines[index]}", file.origin)


def read_uniform(data: bytes, first: Mapping[str, Any]) -> pl.DataFrame | None:
    """Read `data` with polars where its result is certain to be exact, else return None.

    Polars turns numbers into text where a column mixes them, uses the last of two members of one name, and
    accepts lines without some members. A pattern from `first`, the first line of the file, excludes these
    cases: every other line has to match it.
    """
    if not first or any(type(value) not in _PATTERNS for value in first.values()):
        return None
    if b"\r" in data or _UNIT.encode() in data or data.startswith(b"\xef\xbb\xbf"):
        return None
    members = (
        f"{re.escape(json.dumps(name, ensure_ascii=False))}: ?(?:{_PATTERNS[type(value)][0]}|null)"
        for name, value in first.items()
    )
    pattern = r"^\{" + ", ?".join(members) + r"\}$"
    try:
        lines = pl.read_csv(
            data, has_header=False, separator=_UNIT, quote_char=None, infer_schema=False, new_columns=["line"]
        )
        if (
            lines.width > 1
            or not lines.select(pl.col("line").str.contains(pattern).fill_null(False).all()).item()
        ):
            return None
        schema = {name: _PATTERNS[type(value)][1] for name, value in first.items()}
        frame = pl.read_ndjson(data, schema=schema)
    except pl.exceptions.PolarsError:
        return None
    return frame if len(frame) == len(lines) else None


def json_rows(file: SourceFile) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the objects of a file of JSON Lines, and the numbers of their lines.

    Raise SourceError if a line is not a JSON object.
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
                hint='each line is one object, such as {"id": 1}.',
            ) from error
        if not isinstance(row, dict):
            raise SourceError(
                f"`{file.origin}`, line {line}: not an object",
                hint='each line is one object, such as {"id": 1}.',
            )
        rows.append(row)
        lines.append(line)
    if not rows:
        raise SourceError(f"`{file.origin}` is empty")
    return rows, lines


JSON_LINES = Source("jsonl", "JSON Lines", lambda file: file.first_record is not None, read_json_lines)
