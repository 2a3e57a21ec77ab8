"""Number of changed predictions in columns that the statistic does not read."""

from __future__ import annotations

import polars as pl

from trackperm.errors import InputTypeError
from trackperm.pairing.columns.roles import PairedColumns
from trackperm.pairing.joined import KEY, JoinedRows, keys_of
from trackperm.tables.columns.types import typed_columns
from trackperm.tables.lazy.query import Query
from trackperm.tables.lazy.table import LazyTable
from trackperm.tables.table import ExampleTable

_FEW = 2**16  # rows of a file up to which its predictions are read only to count changes: they can be long
_CHANGED = "changed_prediction"


def unread_changes(rows: JoinedRows, name: str) -> int | None:
    """Count the rows in the test whose predictions, in the column `name`, differ between the runs.

    A prediction of only one run differs. None if a run has no predictions, their types are not compatible, or
    they are many and were not read.
    """
    columns, engine = rows.columns, rows.engine
    tables = rows.runs[0].table, rows.runs[1].table
    if not engine.is_local or name in columns.names or not all(_is_cheap(table, name) for table in tables):
        return None
    try:
        typed = typed_columns(*tables, [*columns.ids, name], text=columns.ids)[:2]
    except InputTypeError:
        return None
    keys = engine.collected(rows.rows_in_test.select(KEY))
    sides_by_key = [_by_key(table, columns, name) for table in typed]
    both = keys.join(sides_by_key[0], on=KEY, how="left")
    both = both.join(sides_by_key[1], on=KEY, how="left", suffix=" of candidate")
    return int(both[_CHANGED].ne_missing(both[f"{_CHANGED} of candidate"]).sum())


def _is_cheap(table: ExampleTable, name: str) -> bool:
    if name not in table.columns or isinstance(table.data, Query):
        return False
    return not isinstance(table.data, LazyTable) or len(table) <= _FEW


def _by_key(table: ExampleTable, columns: PairedColumns, name: str) -> pl.DataFrame:
    """Read the predictions of a run with the keys of its rows; without ids, the keys are row numbers."""
    predictions = table.polars_column(name).alias(_CHANGED)
    if columns.id is None:
        keys = pl.Series(KEY, range(len(predictions)), pl.Int64)
    else:
        keys = keys_of(table, columns.ids)
    return pl.DataFrame([keys, predictions])
