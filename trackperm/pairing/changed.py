"""How many predictions differ between two runs, whatever the statistic makes of them."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from trackperm.errors import InputTypeError
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.joined import JoinedRows
from trackperm.pairing.keyed_run import KEY, keys_of
from trackperm.statistic import Statistic
from trackperm.tables.column_types import typed_columns
from trackperm.tables.lazy_table import LazyTable
from trackperm.tables.query import Query
from trackperm.tables.table import ExampleTable

_FEW = 2**16  # rows of a file of which one more column is read: answers can be long
_CHANGED = "changed_prediction"


def n_changed(rows: JoinedRows, statistic: Statistic, n_different: Mapping[str, int]) -> int | None:
    """Count the rows in the test whose predictions differ; one that only one run has is another one.

    Parameters
    ----------
    rows : JoinedRows
        Baseline and candidate.
    statistic : Statistic
        Says which column has the predictions.
    n_different : mapping of str to int
        In how many rows the columns differ that the statistic reads of each run.

    Returns
    -------
    int or None
        None where a run has no predictions, their types do not go together, they are many or of a query and
        were not read, or an example has several rows, whose predictions have no partners.
    """
    name, columns, engine = statistic.columns.get("prediction", "prediction"), rows.columns, rows.engine
    if columns.repeats:
        return None
    if name in n_different:
        return n_different[name]
    tables = rows.runs[0].table, rows.runs[1].table
    if not engine.is_local or name in columns.names or not all(_is_cheap(table, name) for table in tables):
        return None
    try:
        typed = typed_columns(*tables, [*columns.ids, name], text=columns.ids)[:2]
    except InputTypeError:
        return None
    keys = engine.collected(rows.in_test.select(KEY))
    sides_by_key = [_by_key(table, columns, name) for table in typed]
    both = keys.join(sides_by_key[0], on=KEY, how="left")
    both = both.join(sides_by_key[1], on=KEY, how="left", suffix=" of candidate")
    return int(both[_CHANGED].ne_missing(both[f"{_CHANGED} of candidate"]).sum())


def _is_cheap(table: ExampleTable, name: str) -> bool:
    if name not in table.columns or isinstance(table.data, Query):
        return False
    return not isinstance(table.data, LazyTable) or len(table) <= _FEW


def _by_key(table: ExampleTable, columns: PairedColumns, name: str) -> pl.DataFrame:
    """Read the predictions of a run beside the keys of its rows, which are their numbers without ids."""
    predictions = table.polars_column(name).alias(_CHANGED)
    if columns.id is None:
        keys = pl.Series(KEY, range(len(predictions)), pl.Int64)
    else:
        keys = keys_of(table, columns.ids)
    return pl.DataFrame([keys, predictions])
