"""Columns put side by side."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl


def named_frame(columns: Iterable[pl.Series]) -> pl.DataFrame:
    """Put columns side by side under the names that they have, of which one may be empty.

    Of a list of columns polars would call that ``column_0``, which another may be called.
    """
    return pl.DataFrame({column.name: column for column in columns})
