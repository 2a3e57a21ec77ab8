"""What a reader of a comparison should know of the way its examples were paired."""

from __future__ import annotations

from trackperm.choices import Missing
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.engines import Frame, Types
from trackperm.pairing.folds import MOST_FOLDS, are_folds, fold_warning
from trackperm.pairing.joined import IN_TEST, SIDES, JoinedRows
from trackperm.pairing.keyed_run import KEY
from trackperm.pairing.report import OUTCOMES
from trackperm.statistic import Statistic
from trackperm.tables.column_types import ColumnType
from trackperm.tables.table import ExampleTable

_LOOKED_AT = 2**16  # rows among which there are mostly more ids than folds


def design(rows: JoinedRows, frame: Frame, statistic: Statistic) -> list[str]:
    """Say what is exchanged together, scored apart and contrasted otherwise than by difference.

    Parameters
    ----------
    frame : narwhals.LazyFrame
        What is exchanged, with its name as ``id``.
    """
    columns, notes = rows.columns, []
    if columns.cluster is not None:
        n_clusters = int(rows.engine.collected(frame.select(rows.functions.col("id").n_unique())).item())
        notes.append(
            f"clusters: the examples of one `{columns.cluster}` are exchanged together, so that the"
            f" {n_clusters} clusters count as the examples"
        )
    if statistic.weights:
        noun, column = ("classes", columns.classes) if statistic.has_classes else ("strata", columns.strata)
        equal = len(set(statistic.weights.values())) == 1
        notes.append(
            f"{noun}: the mean of the scores of {len(statistic.weights)} {noun}"
            f"{'' if column is None else f' (`{column}`)'},"
            f" weighted {'equally' if equal else 'as the statistic says'}"
        )
    if statistic.repeats == "rows" and columns.cluster is None:
        notes.append(
            f"look: unit: each row of `{columns.id}` counts as an example, as was asked for; rows of one"
            " example depend on each other, so that p can be far too small"
        )
    unit = columns.id if columns.cluster is None else columns.cluster
    if unit is not None and _are_folds(rows, frame, unit):
        notes.append(fold_warning(unit))
    if statistic.contrast == "log ratio":
        notes.append("contrast: the difference is that of the logarithms of the scores")
    return notes


def _are_folds(rows: JoinedRows, frame: Frame, unit: str) -> bool:
    """Whether what is exchanged is called a fold, of which one that is not mostly suffices to tell."""
    name = KEY if rows.columns.cluster is None else "id"
    own = (rows.runs[0].frame if rows.columns.cluster is None else frame).select(
        rows.functions.col(name).alias("id")
    )
    for some in (own.head(1), own.head(_LOOKED_AT), own):
        units = rows.engine.collected(some.unique().head(MOST_FOLDS + 1))["id"].to_list()
        if not are_folds(unit, units):
            return False
    return True


def lacking_predictions(rows: JoinedRows) -> tuple[int, int]:
    """Count the rows of each run without a value that the statistic reads, where such are in the test."""
    if not rows.counts_missing:
        return 0, 0
    lacking = {
        side: rows.functions.col(IN_TEST) & ~rows.present(side, rows.columns.of_runs) & ~rows.padding(side)
        for side in SIDES
    }
    n = rows.counted(**lacking)
    return n["baseline"], n["candidate"]


def predictions_missing(n: tuple[int, int], missing: Missing) -> list[str]:
    """Say how many predictions of baseline and candidate are missing, and what they were taken for."""
    if not any(n):
        return []
    outcomes = OUTCOMES[missing]
    if outcomes[0] == outcomes[1]:
        return [f"missing predictions counted as wrong: {n[0]} of the baseline, {n[1]} of the candidate"]
    counted = f"{n[0]} of the baseline at their {outcomes[0]}, {n[1]} of the candidate at their"
    return [f"missing predictions: {counted} {outcomes[1]}"]


def rewritten_ids(
    baseline: ExampleTable, candidate: ExampleTable, columns: PairedColumns, types: Types
) -> list[str]:
    """Say where integers of one run were compared with the texts of the other."""
    return [
        f"`{name}` of `{table.origin}` has integers, which were compared as text"
        for name in columns.ids
        for table in (baseline, candidate)
        if types[name] is ColumnType.TEXT and table.schema[name].is_numeric()
    ]
