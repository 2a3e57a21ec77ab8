"""JSON Lines: one object a line."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from trackperm.errors import SourceError
from trackperm.sources.encoding import decoded
from trackperm.sources.json_values import parsed, table
from trackperm.tables import ExampleTable


def read_json_lines(path: Path, origin: str) -> ExampleTable:
    """Read one JSON object a line; a member that an object lacks is null, blank lines are skipped.

    Raises
    ------
    SourceError
        If a line is not a JSON object.
    """
    rows, lines = [], []
    for line, text in enumerate(decoded(path.read_bytes(), origin).split("\n"), start=1):
        if not text or text.isspace():
            continue
        try:
            row = parsed(text.strip())
        except ValueError as error:
            raise SourceError(
                f"`{origin}`, line {line}: not JSON: {error}",
                hint='each line holds one object, such as {"id": 1}.',
            ) from error
        if not isinstance(row, dict):
            raise SourceError(
                f"`{origin}`, line {line}: not an object",
                hint='each line holds one object, such as {"id": 1}.',
            )
        rows.append(row)
        lines.append(line)
    if not rows:
        raise SourceError(f"`{origin}` is empty")
    names = dict.fromkeys(chain.from_iterable(rows))
    columns = {name: [row.get(name) for row in rows] for name in names}
    return table(columns, lambda index: f"line {lines[index]}", origin)
