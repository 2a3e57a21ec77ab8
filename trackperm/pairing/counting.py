"""Counts of two runs on the examples that they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw

from trackperm.errors import InputError
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.refusals import shown
from trackperm.pairing.run import KEY, KeyedRun
from trackperm.statistic import OUT_OF_RANGE, Statistic
from trackperm.tables import ColumnType, PairedCounts

_LIMIT = 2**31


def counted(run: KeyedRun, statistic: Statistic, types: Mapping[str, ColumnType]) -> nw.DataFrame[Any]:
    """Count the outcomes of one run by example, as int64.

    Raises
    ------
    InputError
        If a count is undefined on an example or out of range.
    """
    expressions = statistic.counts(types)
    frame = run.frame.select(KEY, *(expressions[name].alias(name) for name in statistic.count_names))
    for name in statistic.count_names:
        values = frame.get_column(name)
        wrong = values.is_null() | (values >= _LIMIT) | (values <= -_LIMIT)
        if wrong.any():
            value, key = (frame.filter(wrong).get_column(column).head(1).item() for column in (name, KEY))
            found = "undefined or beyond 64 bits" if value in (None, OUT_OF_RANGE) else value
            raise InputError(
                f"the count `{name}` of `{statistic.name}` is {found} on example {shown(key)} of"
                f" `{run.origin}`",
                hint="counts are integers below 2^31 in magnitude, on every example.",
            )
    return frame.select(nw.col(name).cast(nw.Int64) for name in statistic.count_names)


def paired_counts(
    keys: nw.Series[Any], baseline: nw.DataFrame[Any], candidate: nw.DataFrame[Any]
) -> PairedCounts:
    """Put the counts of two runs on the same examples side by side."""
    columns = [
        keys.alias("id").to_frame(),
        _prefixed(candidate, "candidate"),
        _prefixed(baseline, "baseline"),
    ]
    return PairedCounts(nw.concat(columns, how="horizontal"), tuple(baseline.columns))


def discordant_examples(
    baseline: KeyedRun, candidate: KeyedRun, counts: PairedCounts, columns: PairedColumns
) -> nw.DataFrame[Any]:
    """Select the examples whose counts differ, with what the statistic read of both runs."""
    shared = ["id"] if columns.label is None else ["id", "label"]
    own = [name for name in columns.used if name not in (columns.id, columns.label, *counts.names)]
    frames = [
        _prefixed(baseline.frame.select(own), "baseline"),
        _prefixed(candidate.frame.select(own), "candidate"),
        counts.frame,
    ]
    if columns.label is not None:
        frames.append(baseline.frame.get_column(columns.label).alias("label").to_frame())
    frame = nw.concat([frame for frame in frames if frame.columns], how="horizontal")
    names = [f"{run}.{name}" for name in (*own, *counts.names) for run in ("baseline", "candidate")]
    return frame.filter(counts.differ()).select(*shared, *names)


def _prefixed(frame: nw.DataFrame[Any], run: str) -> nw.DataFrame[Any]:
    return frame.rename({name: f"{run}.{name}" for name in frame.columns})
