"""Columns with which the counts of a statistic only compute: numbers and booleans, which may be text."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from itertools import chain

import narwhals as nw
import polars as pl

from trackperm.errors import InputTypeError
from trackperm.pairing.columns.numbers_as_text import NUMBER
from trackperm.statistic import Statistic
from trackperm.tables.columns.missing_words import MissingWords
from trackperm.tables.columns.truths import TRUTHS, with_truths
from trackperm.tables.columns.types import ColumnType, is_number
from trackperm.tables.columns.written_numbers import with_numbers
from trackperm.tables.table import ExampleTable

_ROWS = 100_000  # rows that are read at once

Tables = tuple[ExampleTable, ExampleTable]


def with_computed_numbers(tables: Tables, statistic: Statistic) -> Tables:
    """Read text as numbers in columns with which the counts only compute, and true and false as booleans.

    Raises
    ------
    InputTypeError
        If one run has booleans in such a column, and the other one another text; the message shows it.
    """
    names = statistic.truth_columns
    first, second = with_numbers([with_truths(table, names) for table in tables], statistic.ordered_columns)
    for name in names:
        dtypes = {table.schema.get(name): table for table in (first, second)}
        other = dtypes.get(nw.String()) if nw.Boolean() in dtypes else None
        if other is not None and not is_number(name, [other]):
            raise _holds_text(other, name, statistic)
    return first, second


def require_numbers(tables: Tables, statistic: Statistic, types: Mapping[str, ColumnType]) -> None:
    """Refuse text in columns with which the counts only compute.

    Raises
    ------
    InputTypeError
        If there is such a column; the message shows its first text that is not a number.
    """
    for name in statistic.number_columns:
        if types.get(name) is ColumnType.TEXT:
            has_others = (table for table in tables if _other_text(table, name) is not None)
            raise _holds_text(next(has_others, tables[0]), name, statistic)


def _holds_text(table: ExampleTable, name: str, statistic: Statistic) -> InputTypeError:
    if (found := MissingWords.of([table], name)) is not None:
        return InputTypeError(found.message, hint=found.hint)
    text = _other_text(table, name)
    shown = "" if text is None else f", such as {text!r}"
    share = shlex.quote(f"{name}={'VALUE' if text is None else text}")
    return InputTypeError(
        f"`{name}` of `{table.origin}` holds text{shown}; `{statistic.name}` computes with numbers or"
        " booleans",
        hint="write numbers, or true and false, in all rows;"
        f" `--metric {share}` compares the shares of one text.",
    )


def _other_text(table: ExampleTable, name: str) -> str | None:
    """Return the first text of a column that is neither a number nor true or false."""
    for part in table.slices([name], _ROWS):
        texts = part[name].cast(pl.String).drop_nulls()
        is_truth = texts.str.to_lowercase().is_in(list(chain(*TRUTHS)))
        if len(others := texts.filter(~is_truth & ~texts.str.contains(NUMBER))):
            return str(others[0])
    return None
