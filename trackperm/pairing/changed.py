"""How many predictions differ between two runs, whatever the statistic makes of them."""

from __future__ import annotations

import polars as pl

from trackperm.errors import InputTypeError
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.keyed_run import KEY, KeyedRun, with_key
from trackperm.statistic import Statistic
from trackperm.tables.column_types import typed_columns
from trackperm.tables.scan import Scan
from trackperm.tables.table import ExampleTable

_FEW = 2**16  # rows of a file of which one more column is read: answers can be long
_CHANGED = "trackperm.changed"


def n_changed(
    paired: tuple[KeyedRun, KeyedRun],
    columns: PairedColumns,
    statistic: Statistic,
    tables: tuple[ExampleTable, ExampleTable] | None = None,
) -> int | None:
    """Count the paired rows whose predictions differ; one that only one run has is another one.

    Parameters
    ----------
    paired : (KeyedRun, KeyedRun)
        The rows in the test, in the same order.
    columns : PairedColumns
        What was read of the runs.
    statistic : Statistic
        Says which column has the predictions.
    tables : (ExampleTable, ExampleTable), optional
        The whole runs, to read the predictions of where the statistic does without them.

    Returns
    -------
    int or None
        None where a run has no predictions, their types do not go together, they are many and were not read,
        or an example has several rows, whose predictions have no partners.
    """
    name = statistic.columns.get("prediction", "prediction")
    if columns.repeats:
        return None
    if name in columns.of_runs:
        baseline, candidate = (run.frame.get_column(name).to_polars() for run in paired)
        return int(baseline.ne_missing(candidate).sum())
    if tables is None or name in columns.names or not all(_is_cheap(table, name) for table in tables):
        return None
    try:
        typed = typed_columns(*tables, [*columns.ids, name], text=columns.ids)[:2]
    except InputTypeError:
        return None
    keys = paired[0].frame.select(KEY).to_polars()
    sides = [_by_key(table, columns, name) for table in typed]
    rows = keys.join(sides[0], on=KEY, how="left").join(sides[1], on=KEY, how="left", suffix=" of candidate")
    return int(rows[_CHANGED].ne_missing(rows[f"{_CHANGED} of candidate"]).sum())


def _is_cheap(table: ExampleTable, name: str) -> bool:
    return name in table.columns and (not isinstance(table.data, Scan) or len(table) <= _FEW)


def _by_key(table: ExampleTable, columns: PairedColumns, name: str) -> pl.DataFrame:
    """Read the predictions of a run beside the keys of its rows, which are their numbers without ids."""
    predictions = table.polars_column(name).alias(_CHANGED)
    if columns.id is None:
        keys = pl.Series(KEY, range(len(predictions)), pl.Int64)
    else:
        keys = with_key(table.frame, columns.ids).get_column(KEY).to_polars()
    return pl.DataFrame([keys, predictions])
