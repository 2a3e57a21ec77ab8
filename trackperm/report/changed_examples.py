"""Changed examples of a comparison, with the direction of each change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from trackperm.comparison import Comparison
from trackperm.exact import RationalStatistic
from trackperm.report import phrases
from trackperm.report.discordant_examples import Cell, cell, uninformative_columns

BETTER, WORSE, CHANGED = "better", "worse", "changed"
DIRECTION = "change"
"""Name of the column with the directions."""


@dataclass(frozen=True)
class ChangedExamples:
    """Table of changed examples, with one column for what both runs have.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns.
    rows : sequence of tuple
        JSON values; a cell is a pair, baseline and candidate, where the two runs differ.
    directed : bool
        Whether the first column is :data:`DIRECTION`.
    """

    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell | tuple[Cell, Cell], ...]]
    directed: bool


def changed_examples(comparison: Comparison, most: int | None = None) -> ChangedExamples:
    """Return all discordant examples by id, or the first `most`, without counts that never change.

    Counts that repeat a metric are left out as well.

    A single count of 0 or 1, such as ``correct``, is left out beside directions, which say the same.
    The first column is :data:`DIRECTION` if single examples have a direction. Clusters are in a column with
    the name of that which holds them in the log.
    """
    words = directions(comparison)
    frame = comparison.discordant.drop(uninformative_columns(comparison))
    cluster = comparison.statistic.cluster
    if cluster is not None and row_noun(comparison) == "cluster":
        name = comparison.statistic.columns[cluster]
        frame = frame.rename({"id": name} if name not in frame.columns else {})
    if words is not None:
        frame = frame.drop(_implied_columns(comparison, frame.columns))
    frame = frame if most is None else frame.head(most)
    names: list[str] = []
    columns: list[Sequence[Cell | tuple[Cell, Cell]]] = []
    for name in frame.columns:
        run, _, rest = name.partition(".")
        other = f"candidate.{rest}"
        if run == "baseline" and rest and other in frame.columns:
            is_taken = rest in frame.columns
            names.append(f"{rest} of the runs" if is_taken else rest)
            both = zip(frame[name].to_list(), frame[other].to_list(), strict=True)
            columns.append([_pair(*values) for values in both])
        elif not (run == "candidate" and rest and f"baseline.{rest}" in frame.columns):
            names.append(name)
            columns.append([cell(value) for value in frame[name].to_list()])
    if words is not None:
        names, columns = [DIRECTION, *names], [words[: len(frame)], *columns]
    return ChangedExamples(tuple(names), list(zip(*columns, strict=True)), words is not None)


def row_noun(comparison: Comparison) -> str:
    """Return the noun of a row; where ranks of clusters are exchanged, each of their examples has a row."""
    noun = phrases.unit(comparison)
    return "example" if noun == "cluster" and comparison.statistic.rank_score is not None else noun


def n_changed(comparison: Comparison) -> int:
    """Return the number of all rows."""
    is_by_unit = row_noun(comparison) == phrases.unit(comparison)
    return comparison.n_discordant if is_by_unit else len(comparison.discordant)


def _implied_columns(comparison: Comparison, columns: Sequence[str]) -> list[str]:
    """Return the columns of a count of 0 or 1 if it alone changes, so that its changes are directions."""
    found = [
        f"{run}.{name}" for name in comparison.statistic.count_names for run in ("baseline", "candidate")
    ]
    found = [name for name in found if name in columns]
    values = {value for name in found for value in comparison.discordant[name].unique()}
    return found if len(found) == 2 and values <= {0, 1} else []


def _pair(baseline: object, candidate: object) -> Cell | tuple[Cell, Cell]:
    first, second = cell(baseline), cell(candidate)
    if isinstance(baseline, float) and isinstance(candidate, float) and first == second:
        first, second = baseline, candidate  # they differ in the last digits, if at all
    return first if first == second else (first, second)


def directions(comparison: Comparison) -> list[str] | None:
    """Whether the candidate is better or worse on each example of `comparison.discordant`.

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
