"""Missing predictions that count as wrong: as the statistic says, from the label alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np

from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.counting import counted
from trackperm.pairing.run import KEY, KeyedRun
from trackperm.statistic import Statistic


def with_absent(baseline: KeyedRun, candidate: KeyedRun, columns: PairedColumns) -> tuple[KeyedRun, KeyedRun]:
    """Give each run the rows that only the other has, without a prediction."""
    return _completed(baseline, candidate, columns), _completed(candidate, baseline, columns)


def _completed(run: KeyedRun, other: KeyedRun, columns: PairedColumns) -> KeyedRun:
    absent = other.join(run, "anti").frame.select(KEY, *columns.of_examples)
    frame = nw.concat([run.frame, absent], how="diagonal")
    return replace(run, frame=frame).ordered(columns.tie_breakers)


def counted_with_missing(
    run: KeyedRun,
    statistic: Statistic,
    columns: PairedColumns,
    expressions: Mapping[str, nw.Expr],
    missing: Mapping[str, nw.Expr],
) -> tuple[nw.DataFrame[Any], int]:
    """Count the outcomes of one run by example, and how many have no prediction.

    Parameters
    ----------
    expressions, missing : mapping of str to Expr
        What an example counts with a prediction, and without.

    Raises
    ------
    InputError
        If a count is undefined on an example or out of range.
    """
    is_there = run.is_complete(columns.of_runs)
    found = counted(run.filter(is_there), statistic, expressions)
    lacking = counted(run.filter(~is_there), statistic, missing, missing=True)
    lacking = lacking.select(nw.col(name).cast(dtype) for name, dtype in found.schema.items())
    rows = np.concatenate([np.flatnonzero(is_there.to_numpy()), np.flatnonzero(~is_there.to_numpy())])
    return nw.concat([found, lacking])[np.argsort(rows).tolist()], len(lacking)
