"""Tables as W&B stores them in artifacts: JSON with a stated number of rows."""

from __future__ import annotations

from dataclasses import replace

from trackperm.errors import SourceError
from trackperm.messages import kind
from trackperm.tables.formats.log_table import read_split
from trackperm.tables.json_values import has_members, whole_number
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable

_LARGEST = 200_000
_HINT = (
    "W&B stores 200,000 rows of a table in an artifact and 10,000 in the run's files, without an error: log"
    " the predictions as a Parquet file in an artifact."
)


def read_wandb_table(file: SourceFile) -> ExampleTable:
    """Read a table of W&B; one with fewer rows than it declares is an error.

    Raise SourceError if it was truncated, or is not in W&B's format.
    """
    table, claimed = read_split(file), file.document.get("nrows", None)
    if claimed is not None and claimed != len(table):
        number = whole_number(claimed)
        if number is None:
            raise SourceError(f"`nrows` of `{file.origin}` is {kind(claimed)}; expected a number of rows")
        raise SourceError(f"`{file.origin}` claims {number:,} rows, but has {len(table):,}", hint=_HINT)
    if len(table) == _LARGEST:
        note = f"it has {_LARGEST:,} rows, the most that W&B stores: the logged table may have had more"
        table = replace(table, notes=(*table.notes, note))
    return table


def _recognises(file: SourceFile) -> bool:
    document = file.document
    if not has_members(document, "columns", "data"):
        return False
    return document.get("_type") == "table" or not document.keys().isdisjoint(
        {"nrows", "ncols", "column_types"}
    )


WANDB_TABLE = Source("wandb-table", "W&B tables", _recognises, read_wandb_table)
