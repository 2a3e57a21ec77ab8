"""Notes for readers of a comparison on how its examples were paired."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import polars as pl

from trackperm.choices import Missing
from trackperm.errors import InputTypeError
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.engines.base import Frame, Types
from trackperm.pairing.joined import IN_TEST, KEY, SIDES, JoinedRows, keys_of
from trackperm.pairing.report import OUTCOMES
from trackperm.statistic import Statistic
from trackperm.tables.column_types import ColumnType, typed_columns
from trackperm.tables.lazy_table import LazyTable
from trackperm.tables.query import Query
from trackperm.tables.table import ExampleTable

_FOLDS = r"(?:k|cv)?[ _.-]?(?:folds?|splits?|resamples?|resampling)"
_NAME = re.compile(
    rf"(?:.*[ _.-])?(?:{_FOLDS}|cv|cross[ _-]?validation)(?:[ _.-]?(?:id|index|idx|no|nr|number))?:?"
)
_VALUE = re.compile(rf"{_FOLDS}[ _.-]?[0-9]+")

MOST_FOLDS = 1000
"""Most units that can be folds: no cross-validation has more of them."""

_LOOKED_AT = 2**16  # rows that usually have more than MOST_FOLDS ids, so that no more have to be read
_FEW = 2**16  # rows of a file up to which its predictions are read only to count changes: they can be long
_CHANGED = "changed_prediction"


def design(rows: JoinedRows, frame: Frame, statistic: Statistic) -> list[str]:
    """Describe clusters, strata, repeats, folds and the contrast of a comparison.

    Parameters
    ----------
    frame : narwhals.LazyFrame
        The exchangeable units, with their names as ``id``.
    """
    columns, notes = rows.columns, []
    if columns.cluster is not None:
        n_clusters = int(rows.engine.collected(frame.select(rows.functions.col("id").n_unique())).item())
        notes.append(
            f"clusters: the examples of one `{columns.cluster}` are exchanged together, so the test has"
            f" {n_clusters} units"
        )
    if statistic.weights:
        noun, column = ("classes", columns.classes) if statistic.has_classes else ("strata", columns.strata)
        equal = len(set(statistic.weights.values())) == 1
        of_column = "" if column is None else f" (`{column}`)"
        if statistic.adds_classes:
            notes.append(f"classes: the score adds up counts of {len(statistic.weights)} classes{of_column}")
        else:
            notes.append(
                f"{noun}: the mean of the scores of {len(statistic.weights)} {noun}{of_column},"
                f" weighted {'equally' if equal else 'as the statistic says'}"
            )
    if statistic.repeats == "rows" and columns.cluster is None:
        notes.append(
            f"look: unit: each row of `{columns.id}` counts as an example, as requested; rows of one"
            " example depend on each other, so p can be far too small"
        )
    unit = columns.id if columns.cluster is None else columns.cluster
    if unit is not None and _are_folds(rows, frame, unit):
        notes.append(fold_warning(unit))
    if statistic.contrast == "log ratio":
        notes.append("contrast: difference of the logarithms of the scores")
    return notes


def _are_folds(rows: JoinedRows, frame: Frame, unit: str) -> bool:
    """Whether the exchangeable units are folds; usually the first unit shows that they are not."""
    name = KEY if rows.columns.cluster is None else "id"
    own = (rows.runs[0].frame if rows.columns.cluster is None else frame).select(
        rows.functions.col(name).alias("id")
    )
    for some in (own.head(1), own.head(_LOOKED_AT), own):
        units = rows.engine.collected(some.unique().head(MOST_FOLDS + 1))["id"].to_list()
        if not are_folds(unit, units):
            return False
    return True


def are_folds(column: str, units: Collection[object]) -> bool:
    """Whether exchangeable units are folds, by the name of their column or by every value.

    Examples
    --------
    >>> are_folds("cv_fold", range(10))
    True
    >>> are_folds("id", ["fold-1", "fold-2"])
    True
    >>> are_folds("question", range(10))
    False
    """
    if len(units) > MOST_FOLDS:
        return False
    return bool(_NAME.fullmatch(column.lower())) or all(
        isinstance(unit, str) and _VALUE.fullmatch(unit.lower()) for unit in units
    )


def fold_warning(column: str) -> str:
    """Warn that a p-value over folds can be far too small.

    References
    ----------
    Dietterich (1998), Approximate Statistical Tests for Comparing Supervised Classification Learning
    Algorithms. Bengio and Grandvalet (2004), No Unbiased Estimator of the Variance of K-Fold
    Cross-Validation.
    """
    return (
        "folds: the training sets of folds or resamples overlap, so their scores are not independent and p"
        f" can be far too small; compare predictions by example rather than scores by `{column}`"
    )


def lacking_predictions(rows: JoinedRows) -> tuple[int, int]:
    """Count the rows in the test that lack a value which the statistic reads, for each run."""
    if not rows.counts_missing:
        return 0, 0
    lacking = {
        side: rows.functions.col(IN_TEST) & ~rows.present(side, rows.columns.of_runs) & ~rows.padding(side)
        for side in SIDES
    }
    n = rows.counted(**lacking)
    return n["baseline"], n["candidate"]


def predictions_missing(n: tuple[int, int], missing: Missing) -> list[str]:
    """Note how many predictions of baseline and candidate are missing, and how they were counted."""
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
    """Note the id columns whose integers in one run were compared with texts in the other."""
    return [
        f"`{name}` of `{table.origin}` has integers, which were compared as text"
        for name in columns.ids
        for table in (baseline, candidate)
        if types[name] is ColumnType.TEXT and table.schema[name].is_numeric()
    ]


def n_changed(rows: JoinedRows, statistic: Statistic, n_different: Mapping[str, int]) -> int | None:
    """Count the rows in the test whose predictions differ; a prediction of only one run differs.

    `n_different` has the number of rows in which the runs differ, by column that the statistic reads from
    each run. None if a run has no predictions, their types are not compatible, they are many and were not
    read, or an example has several rows, whose predictions have no partners.
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
    keys = engine.collected(rows.rows_in_test.select(KEY))
    sides_by_key = [_by_key(table, columns, name) for table in typed]
    both = keys.join(sides_by_key[0], on=KEY, how="left")
    both = both.join(sides_by_key[1], on=KEY, how="left", suffix=" of candidate")
    return int(both[_CHANGED].ne_missing(both[f"{_CHANGED} of candidate"]).sum())


def _is_cheap(table: ExampleTable, name: str) -> bool:
    if name not in table.columns or isinstance(table.data, Query):
        return False
    return not isinstance(table.data, LazyTable) or len(table) <= _FEW


def _by_key(table: ExampleTable, columns: PairedColumns, name: str) -> pl.DataFrame:
    """Read the predictions of a run with the keys of its rows; without ids, the keys are row numbers."""
    predictions = table.polars_column(name).alias(_CHANGED)
    if columns.id is None:
        keys = pl.Series(KEY, range(len(predictions)), pl.Int64)
    else:
        keys = keys_of(table, columns.ids)
    return pl.DataFrame([keys, predictions])
