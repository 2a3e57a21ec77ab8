"""Empty cells in columns of sets, which may be empty sets and not missing values."""

from __future__ import annotations

from collections.abc import Sequence

from trackperm.messages import listed
from trackperm.pairing.checks.differences import Differences
from trackperm.statistic import Statistic
from trackperm.tables.columns.decimal_commas import separator_of
from trackperm.tables.polars_code import as_json_lines, text_of
from trackperm.tables.table import ExampleTable


def empty_sets_hint(tables: Sequence[ExampleTable], found: Differences, statistic: Statistic) -> str | None:
    """Return the hint that says how empty sets are written, where columns of sets lack values; else None."""
    for table, run in zip(tables, found.runs, strict=True):
        names = [name for name in statistic.set_columns if name in run.lacking_in]
        if run.lacking.n and names:
            own = [name for name in statistic.set_columns if name in table.columns]
            if not any(map(table.is_untyped, own)):
                return f"If the empty values of {listed(names)} are empty sets, write `[]` in their place."
            code = as_json_lines(
                table.origin,
                f'with_columns(pl.col({", ".join(map(text_of, own))}).fill_null(""))',
                separator_of(table.origin),
            )
            return (
                f"An empty cell of a CSV file is a missing value: if those of {listed(names)} are empty sets,"
                f" `{code}` of polars writes a file in which they are."
            )
    return None
