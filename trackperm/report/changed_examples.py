"""Changed examples of a comparison, with the direction of each change."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from trackperm.comparison import Comparison
from trackperm.exact import RationalStatistic
from trackperm.report.discordant_examples import cell, constant_columns
from trackperm.trackers.publication import Table

BETTER, WORSE, CHANGED = "better", "worse", "changed"
DIRECTION = "change"
"""Name of the column with the directions."""


def changed_examples(comparison: Comparison) -> Table:
    """Return all discordant examples by id as JSON values, without counts that never change.

    The first column is :data:`DIRECTION` if single examples have a direction.
    """
    frame = comparison.discordant.drop(constant_columns(comparison))
    columns, rows = tuple(frame.columns), [tuple(map(cell, row)) for row in frame.rows()]
    words = directions(comparison)
    if words is None:
        return Table(columns, rows)
    return Table((DIRECTION, *columns), [(word, *row) for word, row in zip(words, rows, strict=True)])


def directions(comparison: Comparison) -> list[str] | None:
    """Return whether the candidate is better or worse on each example of `comparison.discordant`.

    The candidate is better if exchanging this example's outputs alone makes the statistic less favourable to
    it. For a sum, that is the sign of the example's own difference. None if the effect of one exchange
    depends on the others, so that single examples have no direction.
    """
    statistic, table = comparison.statistic, comparison.count_table
    if comparison.n_better is None or statistic.weights or not isinstance(statistic.h, RationalStatistic):
        return None
    candidate, baseline = (_counts(comparison, run) for run in ("candidate", "baseline"))
    pairs, place = np.unique(np.concatenate([candidate, baseline], axis=1), axis=0, return_inverse=True)
    n_counts = len(statistic.count_names)
    observed, swapped = statistic.pairs(pairs[:, :n_counts], pairs[:, n_counts:])
    own, _ = statistic.pairs(table.candidate, table.baseline)
    totals = own.T.astype(np.float64) @ table.multiplicities
    value = float(statistic.h.values(totals[np.newaxis])[0])
    change = value - statistic.h.values(totals + (swapped - observed))
    change[np.abs(change) <= 1e-12 * max(1.0, abs(value))] = 0.0
    better = change > 0 if statistic.greater_is_better else change < 0
    words = np.where(change == 0, CHANGED, np.where(better, BETTER, WORSE))[place.ravel()]
    counted = (int((words == BETTER).sum()), int((words == WORSE).sum()))
    return words.tolist() if counted == (comparison.n_better, comparison.n_worse) else None


def _counts(comparison: Comparison, run: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the counts of one run on the discordant examples, as multiples of their resolution."""
    statistic, frame = comparison.statistic, comparison.discordant
    units: Any = statistic.resolution
    columns = []
    for name in statistic.count_names:
        values = frame.get_column(f"{run}.{name}")
        if isinstance(units, dict) and name in units:
            values = (values.cast(pl.Float64) / float(units[name])).round()
        columns.append(values.cast(pl.Int64).to_numpy())
    return np.column_stack(columns)
