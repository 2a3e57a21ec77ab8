"""Detection of amounts in whole numbers: accuracy counts only those that are exactly equal."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from trackperm.errors import TrackpermError
from trackperm.tables.columns.types import FIRST_ROWS, ColumnType, typed_columns
from trackperm.tables.table import ExampleTable, have

FEWEST_VALUES = 20
"""Fewest different labels of amounts: ratings, grades and most classes have fewer."""

CLOSE = 0.7
"""Least rank correlation of labels and unequal predictions of amounts.

Wrong classes are mostly unrelated to the right one. Where numbers of classes follow a taxonomy (ImageNet),
they may be this close, too; half of all predictions are then usually right.
"""


def notes_on_amounts(tables: Sequence[ExampleTable], prediction: str, label: str) -> tuple[str, ...]:
    """Return a caution if predictions are near their labels, seldom equal, and both are whole numbers."""
    if not have(tables, [prediction, label]) or not all(
        _are_amounts(table, prediction, label) for table in tables
    ):
        return ()
    return (
        f"look: accuracy counts equal numbers, and `{prediction}` is mostly near `{label}` and not equal;"
        " of amounts, `--statistic mae` compares the errors",
    )


def _are_amounts(table: ExampleTable, prediction: str, label: str) -> bool:
    try:
        head = table.head(FIRST_ROWS).only(dict.fromkeys((prediction, label)))
        typed, _, types = typed_columns(head, head, [prediction, label])
    except TrackpermError:
        return False  # the pairing reports the error
    if any(types[name] is not ColumnType.INTEGER for name in (prediction, label)):
        return False
    said, meant = (typed.frame.get_column(name).to_polars().cast(pl.Float64) for name in (prediction, label))
    pairs = pl.DataFrame({"said": said, "meant": meant}).drop_nulls()
    unequal = pairs.filter(pl.col("said") != pl.col("meant"))
    if pairs["meant"].n_unique() < FEWEST_VALUES or 2 * len(unequal) < len(pairs):
        return False
    near = unequal.select(pl.corr("said", "meant", method="spearman")).item()
    return near is not None and near >= CLOSE
