"""Note predictions that count as wrong although only case or spaces around them differ from their label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from trackperm.errors import TrackpermError
from trackperm.statistic import Statistic
from trackperm.tables.column_types import ColumnType, typed_columns
from trackperm.tables.table import ExampleTable, have

_FIRST = 100_000
"""Rows that are read of each run."""


def other_spellings(tables: Sequence[ExampleTable], statistic: Statistic) -> Iterator[str]:
    """Yield a note for each run with such predictions, if the statistic tests predictions for equality."""
    if not statistic.tells_classes:
        return
    prediction, label = statistic.columns["prediction"], statistic.columns["label"]
    if prediction == label or not have(tables, [prediction, label]):
        return
    for table in tables:
        try:
            head = table.head(_FIRST).only([prediction, label])
            typed, _, types = typed_columns(head, head, [prediction, label])
        except TrackpermError:
            continue  # the pairing reports the error
        if {types[prediction], types[label]} != {ColumnType.TEXT}:
            continue
        texts = pl.DataFrame({name: typed.frame[name].to_polars() for name in (prediction, label)})
        plain = [pl.col(name).str.strip_chars().str.to_lowercase() for name in (prediction, label)]
        others = texts.filter((pl.col(prediction) != pl.col(label)) & (plain[0] == plain[1]))
        if len(others):
            said, meant = others.row(0)
            among = f" of the first {_FIRST:,}" if len(texts) == _FIRST else ""
            yield (
                f"look: {len(others):,}{among} predictions of `{table.origin}` count as wrong although only"
                f" case or spaces differ from the label, such as {said!r} and {meant!r}"
            )
