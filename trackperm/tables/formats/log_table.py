"""Tables as MLflow's ``log_table`` writes them: ``{"columns": [...], "data": [[...], ...]}``."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from trackperm.errors import SourceError
from trackperm.tables.expansion import require_columns
from trackperm.tables.json_values import table
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable

_CUT_BY_WANDB = 10_000


def read_split(file: SourceFile) -> ExampleTable:
    """Read a table in pandas' ``split`` layout; every value stays what JSON says it is.

    Raises
    ------
    SourceError
        If the file is not of that shape.
    """
    names, rows = _shape(file.document, file.origin)
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return table(dict(zip(names, columns, strict=True)), lambda index: f"row {index}", file.origin)


def read_log_table(file: SourceFile) -> ExampleTable:
    """Read a table that does not say how many rows it has.

    Raises
    ------
    SourceError
        If the file is not of that shape.
    """
    table = read_split(file)
    if len(table) == _CUT_BY_WANDB and file.path.name.endswith(".table.json"):
        note = f"it has {_CUT_BY_WANDB:,} rows, at which W&B cuts the copy of a table in a run's files"
        table = replace(table, notes=(*table.notes, note))
    return table


def _recognises(file: SourceFile) -> bool:
    return isinstance(file.document, dict) and {"columns", "data"} <= file.document.keys()


def _shape(document: Any, origin: str) -> tuple[list[str], list[list[Any]]]:
    hint = 'MLflow\'s `log_table` writes {"columns": [...], "data": [[...], ...]}.'
    if not all(isinstance(document[key], list) for key in ("columns", "data")):
        raise SourceError(f"`{origin}` has `columns` and `data`, but they are no lists", hint=hint)
    names, rows = document["columns"], document["data"]
    require_columns(len(names), origin)
    for name in names:
        if not isinstance(name, str):
            raise SourceError(f"`{origin}` has a column named {name!r}, which is not text", hint=hint)
    for name, times in Counter(names).items():
        if times > 1:
            raise SourceError(f"`{origin}` has more than one column `{name}`", hint="rename all but one.")
    for index, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(names):
            found = f"{len(row)} values" if isinstance(row, list) else "no list"
            raise SourceError(f"`{origin}`, row {index}: {found} for {len(names)} columns", hint=hint)
    return names, rows


LOG_TABLE = Source("log-table", "MLflow `log_table` JSON", _recognises, read_log_table)
