"""Data frame of named columns; the name of one may be empty."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl


def named_frame(columns: Iterable[pl.Series]) -> pl.DataFrame:
    """Build a data frame of columns under their own names; one name may be empty.

    Given a list of columns, polars would rename a column with an empty name to ``column_0``, which may be the
    name of another column.
    """
    return pl.DataFrame({column.name: column for column in columns})
