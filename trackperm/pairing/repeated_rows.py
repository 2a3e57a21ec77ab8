"""Columns of ids or inputs with several rows of each value, such as attempts at an example, for hints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import polars as pl

from trackperm.errors import InputTypeError
from trackperm.tables.column_names import INPUTS, names_examples
from trackperm.tables.lazy_table import COUNT
from trackperm.tables.table import ExampleTable

FEWEST = 5
"""Fewest values of such a column: one with fewer is rather a template or a category."""

MOST = 100_000
"""Most values that are counted: a bound on the time of an error message."""


class RepeatedRows(NamedTuple):
    """A column with several rows of each value in every run, and the rule that takes them together."""

    column: str
    rule: Literal["sum", "mean"]
    n_rows: tuple[int, int]

    @property
    def hint(self) -> str:
        """The way to take the rows of one value together, in a sentence without a full stop."""
        least, most = self.n_rows
        rows = f"{least:,} rows" if least == most else f"{least:,} to {most:,} rows"
        return (
            f"`{self.column}` has {rows} of each value: `--id {self.column}` with `--repeats {self.rule}`"
            " takes them together as one example"
        )


def repeated_rows(tables: Sequence[ExampleTable], *first: str) -> RepeatedRows | None:
    """Find a column with at least two rows of each value in every run; None if no column has.

    The columns `first` are tried before those with the name of an id or an input. Values may have different
    numbers of rows in the runs; then the rule is their mean.
    """
    shared = [name for name in tables[0].columns if all(name in table.columns for table in tables)]
    known = [name for name in shared if names_examples(name)] + [name for name in INPUTS if name in shared]
    for name in dict.fromkeys((*(name for name in first if name in shared), *known)):
        counts = [_counted(table, name) for table in tables]
        rows = [each for each in counts if each is not None]
        if len(rows) < len(tables) or any(each.keys() != rows[0].keys() for each in rows):
            continue
        numbers = {n for each in rows for n in each.values()}
        if len(rows[0]) < FEWEST or min(numbers) < 2:
            continue
        is_equal = all(each == rows[0] for each in rows)
        return RepeatedRows(name, "sum" if is_equal else "mean", (min(numbers), max(numbers)))
    return None


def share_values(tables: Sequence[ExampleTable], name: str) -> bool:
    """Whether any value of a column is in all runs; true where that is not known."""
    counts = [_counted(table, name) for table in tables]
    values = [set(each) for each in counts if each is not None]
    return len(values) < len(tables) or bool(set.intersection(*values))


def _counted(table: ExampleTable, name: str) -> dict[str, int] | None:
    """Count the rows of each value as text; None if there are too many values, or they cannot be read."""
    try:
        counts = table.value_counts(name, MOST)
    except InputTypeError:
        return None
    if counts is None or len(counts) > MOST:
        return None
    texts = counts[name].cast(pl.String)
    return {value: n for value, n in zip(texts, counts[COUNT], strict=True) if value is not None}
