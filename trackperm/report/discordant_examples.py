"""Table of discordant examples, cut to the size that pages and trackers show."""

from __future__ import annotations

import math

import polars as pl

from trackperm.comparison import Comparison
from trackperm.report.text import shorten
from trackperm.trackers.publication import Table

MAX_ROWS = 1_000
"""Rows of the tables on pages of trackers; the whole table is logged as Parquet."""

_MAX_CHARACTERS = 1_000
_MAX_SAFE_INTEGER = 2**53  # JavaScript rounds larger integers

Cell = str | int | float | bool | None


def viewable(comparison: Comparison) -> Table:
    """Return the discordant examples, cut to :data:`MAX_ROWS` rows and to texts of 1,000 characters.

    Counts with the same value in all rows of both runs are left out.
    """
    frame = comparison.discordant.drop(constant_columns(comparison)).head(MAX_ROWS)
    return Table(tuple(frame.columns), [tuple(map(_short, row)) for row in frame.rows()])


def constant_columns(comparison: Comparison) -> list[str]:
    """Return the columns of counts that are equal on all discordant examples, such as a count of examples."""
    found: list[str] = []
    for name in comparison.statistic.count_names:
        columns = [f"{run}.{name}" for run in ("baseline", "candidate")]
        if pl.concat([comparison.discordant[column].alias(name) for column in columns]).n_unique() == 1:
            found += columns
    return found


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
