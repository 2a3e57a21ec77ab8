"""The examples that tell two runs apart, cut to what a page or a tracker's table view can show."""

from __future__ import annotations

import math
from dataclasses import dataclass

import narwhals as nw

from trackperm.comparison import Comparison
from trackperm.report.text import shorten

MAX_ROWS = 1_000
_MAX_CHARACTERS = 1_000
_MAX_SAFE_INTEGER = 2**53  # JavaScript rounds larger ones

Cell = str | int | float | bool | None


@dataclass(frozen=True)
class DiscordantTable:
    """Column names and at most :data:`MAX_ROWS` rows of text, finite numbers or None."""

    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]


def viewable(comparison: Comparison) -> DiscordantTable:
    """Cut the discordant examples of `comparison` to :data:`MAX_ROWS` rows, and long texts as well.

    A count that is the same number throughout, in both runs, is left out.
    """
    frame = comparison.discordant.drop(constant_columns(comparison)).head(MAX_ROWS)
    return DiscordantTable(tuple(frame.columns), [tuple(map(_short, row)) for row in frame.rows()])


def constant_columns(comparison: Comparison) -> list[str]:
    """Name the columns of counts that no discordant example differs in, such as a count of examples."""
    found: list[str] = []
    for name in comparison.statistic.count_names:
        columns = [f"{run}.{name}" for run in ("baseline", "candidate")]
        both = nw.concat([comparison.discordant.select(nw.col(column).alias(name)) for column in columns])
        if both.get_column(name).n_unique() == 1:
            found += columns
    return found


def _short(value: object) -> Cell:
    found = cell(value)
    return shorten(found, _MAX_CHARACTERS) if isinstance(found, str) else found


def cell(value: object) -> Cell:
    """Return `value` as pages can hold it: other numbers than they know, and all else, as text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) <= _MAX_SAFE_INTEGER:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return str(value)
