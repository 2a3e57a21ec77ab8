"""Tables as MLflow's ``log_table`` writes them: ``{"columns": [...], "data": [[...], ...]}``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trackperm.errors import SourceError
from trackperm.sources.encoding import decoded
from trackperm.sources.json_values import parsed, table
from trackperm.tables import ExampleTable


def read_log_table(path: Path, origin: str) -> ExampleTable:
    """Read a table in pandas' ``split`` layout; every value stays what JSON says it is.

    Raises
    ------
    SourceError
        If the file is not JSON or not of that shape.
    """
    text = decoded(path.read_bytes(), origin)
    try:
        document = parsed(text)
    except ValueError as error:
        raise SourceError(f"`{origin}` is not JSON: {error}") from error
    names, rows = _shape(document, origin)
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return table(dict(zip(names, columns, strict=True)), lambda index: f"row {index}", origin)


def _shape(document: Any, origin: str) -> tuple[list[str], list[list[Any]]]:
    hint = (
        'MLflow\'s `log_table` writes {"columns": [...], "data": [[...], ...]};'
        " objects one a line are read from a `.jsonl` file."
    )
    if not isinstance(document, dict) or not all(
        isinstance(document.get(key), list) for key in ("columns", "data")
    ):
        raise SourceError(f"`{origin}` holds JSON, but no table with `columns` and `data`", hint=hint)
    names, rows = document["columns"], document["data"]
    for name in names:
        if not isinstance(name, str):
            raise SourceError(f"`{origin}` has a column named {name!r}, which is not text", hint=hint)
        if names.count(name) > 1:
            raise SourceError(f"`{origin}` has more than one column `{name}`", hint="rename all but one.")
    for index, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(names):
            found = f"{len(row)} values" if isinstance(row, list) else "no list"
            raise SourceError(f"`{origin}`, row {index}: {found} for {len(names)} columns", hint=hint)
    return names, rows
