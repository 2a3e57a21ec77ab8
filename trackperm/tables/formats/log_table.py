"""Tables as MLflow's ``log_table`` writes them: ``{"columns": [...], "data": [[...], ...]}``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, count, islice
from typing import Any

from trackperm.errors import SourceError
from trackperm.tables.expansion import require_columns
from trackperm.tables.json_values import has_members, member, table
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable

_CUT_BY_WANDB = 10_000  # rows that W&B keeps in the copy of a table for its pages


def read_split(file: SourceFile) -> ExampleTable:
    """Read a table in pandas' ``split`` layout; values keep their JSON types.

    An index other than 0, 1, 2 ... is the column `index`, or ``level_0``, ``level_1`` ... if it has several
    levels, as `DataFrame.reset_index` names them. Raise SourceError if the file is not in that layout.
    """
    names, rows = columns_and_rows(file.document, file.origin)
    levels = _levels(file.document.get("index"), len(rows))
    own = list(islice(_free_names(names, len(levels)), len(levels)))
    indexed = [[*values, *row] for *values, row in zip(*levels, rows, strict=True)]
    return table_of_rows([*own, *names], indexed, file.origin)


def _levels(index: Any, n_rows: int) -> list[list[Any]]:
    """Return the levels of pandas' index of a table; none if it only numbers the rows, or is not an index."""
    if not isinstance(index, list) or len(index) != n_rows or index == [*range(n_rows)]:
        return []
    widths = {len(key) if isinstance(key, list) else 0 for key in index}
    if widths == {0}:
        return [index]
    return [list(level) for level in zip(*index, strict=True)] if len(widths) == 1 else []


def _free_names(names: Sequence[str], n_levels: int) -> Iterable[str]:
    usual = ["index"] if n_levels == 1 else []
    return (name for name in chain(usual, map("level_{}".format, count())) if name not in names)


def table_of_rows(names: Sequence[str], rows: Sequence[Sequence[Any]], origin: str) -> ExampleTable:
    """Build a table of rows, each with a value for every name."""
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return table(dict(zip(names, columns, strict=True)), lambda index: f"row {index}", origin)


def read_log_table(file: SourceFile) -> ExampleTable:
    """Read a table without a stated number of rows.

    Raise SourceError if the file is not in that layout.
    """
    table = read_split(file)
    if len(table) == _CUT_BY_WANDB and file.path.name.endswith(".table.json"):
        note = f"it has {_CUT_BY_WANDB:,} rows, to which W&B truncates the copy of a table in a run's files"
        table = replace(table, notes=(*table.notes, note))
    return table


def _recognises(file: SourceFile) -> bool:
    return has_members(file.document, "columns", "data")


def columns_and_rows(document: Any, origin: str) -> tuple[list[str], list[list[Any]]]:
    """Return the names of columns and the rows of a document in pandas' ``split`` layout.

    Raise SourceError if the document is not of that layout, or two columns have one name.
    """
    hint = 'MLflow\'s `log_table` writes {"columns": [...], "data": [[...], ...]}.'
    names, rows = member(document, "columns"), member(document, "data")
    if not isinstance(names, list) or not isinstance(rows, list):
        raise SourceError(f"`{origin}` does not have the lists `columns` and `data`", hint=hint)
    require_columns(len(names), origin)
    for name in names:
        if not isinstance(name, str):
            raise SourceError(f"`{origin}` has a column named {name!r}, which is not text", hint=hint)
    for name, times in Counter(names).items():
        if times > 1:
            raise SourceError(f"`{origin}` has more than one column `{name}`", hint="rename all but one.")
    for index, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(names):
            found = f": {len(row)} values" if isinstance(row, list) else " is not a list of values"
            raise SourceError(f"`{origin}`, row {index}{found} for {len(names)} columns", hint=hint)
    return names, rows


LOG_TABLE = Source("log-table", "MLflow `log_table` JSON", _recognises, read_log_table)
