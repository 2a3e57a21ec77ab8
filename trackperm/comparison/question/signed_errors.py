"""Detection of errors with a sign: of `predicted - actual`, neither lower nor greater values are better."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from trackperm.comparison.question.stated_direction import spec_of_lower
from trackperm.errors import InputError, TrackpermError
from trackperm.pairing.checks.differences import shown
from trackperm.statistic.direction import names_difference
from trackperm.tables.columns.types import typed_columns
from trackperm.tables.polars_code import rewriting, text_of, without_ending
from trackperm.tables.table import ExampleTable

_BLOCK = 100_000
"""Number of first rows that are read of each run: few signed errors are positive in all of them."""


def require_sizes(name: str, column: str, tables: Sequence[ExampleTable]) -> None:
    """Refuse an error that is negative in some rows: its mean is the bias, and a lower bias is not better.

    Raises
    ------
    InputError
        If `name` is that of a difference, such as `error` or `residual`, and `column` has negative values.
    """
    if (found := _first_negative(name, column, tables)) is None:
        return
    table, value = found
    sizes = f"pl.col({text_of(column)}).cast(pl.Float64).abs()"
    change = rewriting(table.origin, f"with_columns({sizes})", f"{without_ending(table.origin)}-sizes")
    absent = f"leave {shown(value)} empty if it marks a missing value; " if value == round(value) else ""
    raise InputError(
        f"`{column}` of `{table.origin}` has negative values, such as {shown(value)}, and of errors with a"
        " sign lower ones are not better; expected sizes of errors",
        hint=f"`--statistic mae` compares the sizes of errors of predictions and labels; `{change}` of polars"
        f" writes those of `{column}`; {absent}if lower values are better, {spec_of_lower(column)}.",
    )


def is_signed(name: str, column: str, tables: Sequence[ExampleTable]) -> bool:
    """Whether a column with the name of a difference is negative in some rows."""
    return _first_negative(name, column, tables) is not None


def _first_negative(
    name: str, column: str, tables: Sequence[ExampleTable]
) -> tuple[ExampleTable, int | float] | None:
    for table in tables if names_difference(name) else ():
        try:
            head = table.head(_BLOCK).only((column,))
            typed, _, _ = typed_columns(head, head, [column])
            values = typed.frame.get_column(column).to_polars()
            numbers = values.cast(pl.Float64)
        except (TrackpermError, pl.exceptions.PolarsError):
            continue  # the pairing reports the error
        if len(negative := values.filter(numbers < 0.0)):
            return table, negative[0]
    return None
