"""Missing predictions that count as wrong or as right: as the statistic says, from the label alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np

from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.counting import ScaledCounts, counted, scaled
from trackperm.pairing.keyed_run import KEY, KeyedRun
from trackperm.statistic import Outcome, Statistic
from trackperm.tables.column_types import ColumnType


def with_absent(baseline: KeyedRun, candidate: KeyedRun, columns: PairedColumns) -> tuple[KeyedRun, KeyedRun]:
    """Give each run the rows that only the other has, without a prediction."""
    return _completed(baseline, candidate, columns), _completed(candidate, baseline, columns)


def _completed(run: KeyedRun, other: KeyedRun, columns: PairedColumns) -> KeyedRun:
    absent = other.join(run, "anti").frame.select(KEY, *columns.of_examples)
    frame = nw.concat([run.frame, absent], how="diagonal")
    return replace(run, frame=frame).ordered(columns.tie_breakers)


def counted_runs(
    runs: tuple[KeyedRun, KeyedRun],
    statistic: Statistic,
    columns: PairedColumns,
    types: Mapping[str, ColumnType],
    outcomes: tuple[Outcome, Outcome] | None,
) -> ScaledCounts:
    """Count the outcomes of both runs, by row.

    Parameters
    ----------
    runs : (KeyedRun, KeyedRun)
        Baseline and candidate.
    types : mapping of str to ColumnType
        Types of the columns.
    outcomes : (Outcome, Outcome), optional
        What missing predictions of baseline and candidate are taken for, where they are counted.

    Raises
    ------
    InputError
        If a count is undefined on an example or out of range, or it is not known what a missing prediction
        counts.
    """
    expressions = statistic.counts(types)
    if outcomes is None:
        baseline, candidate = (counted(run, statistic, expressions) for run in runs)
    else:
        baseline, candidate = (
            _with_missing(
                run, statistic, columns, expressions, statistic.missing_counts(types, outcome), outcome
            )
            for run, outcome in zip(runs, outcomes, strict=True)
        )
    return scaled(baseline, candidate, statistic)


def _with_missing(
    run: KeyedRun,
    statistic: Statistic,
    columns: PairedColumns,
    expressions: Mapping[str, nw.Expr],
    missing: Mapping[str, nw.Expr],
    outcome: Outcome,
) -> nw.DataFrame[Any]:
    is_there = run.is_complete(columns.of_runs)
    found = counted(run.filter(is_there), statistic, expressions)
    lacking = counted(run.filter(~is_there), statistic, missing, missing=outcome)
    lacking = lacking.select(nw.col(name).cast(dtype) for name, dtype in found.schema.items())
    rows = np.concatenate([np.flatnonzero(is_there.to_numpy()), np.flatnonzero(~is_there.to_numpy())])
    frame: nw.DataFrame[Any] = nw.concat([found, lacking])[np.argsort(rows).tolist()]
    return frame
