"""Table of discordant examples, cut to the size that pages and trackers show."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from trackperm.comparison import Comparison
from trackperm.report.formatting import shorten
from trackperm.trackers.publication import Table

MAX_ROWS = 1_000
"""Rows of the tables on pages of trackers; the whole table is logged as Parquet."""

_MAX_CHARACTERS = 1_000
_MAX_SAFE_INTEGER = 2**53  # JavaScript rounds larger integers

Cell = str | int | float | bool | None


def viewable(comparison: Comparison) -> Table:
    """Return the discordant examples, cut to :data:`MAX_ROWS` rows and to texts of 1,000 characters.

    Counts with the same value in all rows of both runs are left out, and those that repeat a column.
    """
    frame = comparison.discordant.drop(uninformative_columns(comparison)).head(MAX_ROWS)
    return Table(tuple(frame.columns), [tuple(map(_short, row)) for row in frame.rows()])


def uninformative_columns(comparison: Comparison) -> list[str]:
    """Return the columns of counts that are equal on all discordant examples, or are those of a metric."""
    frame, found = comparison.discordant, list[str]()
    for name in comparison.statistic.count_names:
        columns = [f"{run}.{name}" for run in ("baseline", "candidate")]
        metric = comparison.statistic.column_of_count(name)
        is_constant = pl.concat([frame[column].alias(name) for column in columns]).n_unique() == 1
        if is_constant or _repeat(frame, columns, [f"{run}.{metric}" for run in ("baseline", "candidate")]):
            found += columns
    return found


def _repeat(frame: pl.DataFrame, columns: Sequence[str], others: Sequence[str]) -> bool:
    """Whether columns have the values of other ones, up to the rounding of floats."""
    return columns != others and all(
        other in frame.columns
        and frame[other].dtype.is_numeric()
        and frame.select(((pl.col(one) - pl.col(other)).abs() <= 1e-9 * pl.col(other).abs()).all()).item()
        for one, other in zip(columns, others, strict=True)
    )


def _short(value: object) -> Cell:
    found = cell(value)
    return shorten(found, _MAX_CHARACTERS) if isinstance(found, str) else found


def cell(value: object) -> Cell:
    """Return `value` as a JSON value that browsers read exactly; other values as text.

    Differences of floats, such as 3.3 - 1.6, are without the noise of their last digits.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) <= _MAX_SAFE_INTEGER:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.14g}")
    return str(value)
