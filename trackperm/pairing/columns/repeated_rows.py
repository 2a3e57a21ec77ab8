"""Columns of ids for hints: one with several rows of each value, or two that identify the rows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import polars as pl

from trackperm.errors import InputTypeError
from trackperm.tables.columns.names import (
    INPUTS,
    LABELS,
    PERHAPS_ATTEMPT,
    PREDICTIONS,
    names_examples,
    names_parts,
)
from trackperm.tables.columns.types import is_number
from trackperm.tables.lazy.table import COUNT
from trackperm.tables.named_frame import named_frame
from trackperm.tables.table import ExampleTable, have, shared_columns

FEWEST = 5
"""Fewest distinct values of an id; a column with fewer is a template or a category."""

MOST = 100_000
"""Most values that are counted, and rows that are compared: a bound on the time of an error message."""

_MOST_CONDITIONS = 20
"""Most values of a column that names the conditions of an example, such as languages."""

_LEVEL = re.compile(r"level_[0-9]+")
"""Names that `DataFrame.reset_index` gives to levels of an index that have none."""

_SAME_IN_EXAMPLE = (*INPUTS, *LABELS, "answer")
"""Columns that have one value in all attempts at an example."""


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
        options = f"`--id {shlex.quote(self.column)}` with `--repeats {self.rule}`"
        return f"`{self.column}` has {rows} of each value: {options} takes them together as one example"


def repeated_rows(tables: Sequence[ExampleTable], *first: str) -> RepeatedRows | None:
    """Find a column with at least two rows of each value in every run, as of attempts at an example.

    None if no column has them, or the rows of one value are no attempts: their labels or inputs differ, or a
    column of text names what each of them is, such as a language. The columns `first` are tried before those
    with the name of an id or an input. Values may have different numbers of rows in the runs; then the rule
    is their mean.
    """
    return next((each for each in _repeated(tables, first) if _are_attempts(tables, each.column)), None)


def joint_id(tables: Sequence[ExampleTable], *first: str) -> tuple[str, str] | None:
    """Find two columns that identify the rows of each run together, as where ids restart in every subject.

    The second is one of which :func:`repeated_rows` reads several rows, and the first names the part of the
    data set. None without such columns, and if the rows of one id have one label or input in all parts.
    """
    for repeated in _repeated(tables, first):
        id_ = repeated.column
        if _same_in_example(tables, id_):
            continue
        for part in shared_columns(tables):
            if part != id_ and names_parts(part) and _identify(tables, (part, id_)):
                return part, id_
    return None


def unnamed_id(tables: Sequence[ExampleTable]) -> str | None:
    """Find the first column of files without a name for it, such as an index of pandas, if it has ids."""
    name = tables[0].columns[0] if tables[0].columns else None
    if name not in ("column_1", "Unnamed: 0") or not have(tables, [name]):
        return None
    counts = [_counted(table, name) for table in tables]
    values = [{*each} for each in counts if each is not None]
    are_ids = len(values) == len(tables) and all(
        len(each) == len(table) for each, table in zip(values, tables, strict=True)
    )
    are_shared = are_ids and 2 * len(set.intersection(*values)) > min(map(len, values))
    return name if are_shared else None


def index_levels(tables: Sequence[ExampleTable]) -> tuple[str, ...]:
    """Find the levels of an index of pandas, if they identify the rows of each run; empty for none."""
    levels = tuple(name for name in shared_columns(tables) if _LEVEL.fullmatch(name))
    return levels if levels and _identify(tables, levels) else ()


def _repeated(tables: Sequence[ExampleTable], first: Sequence[str]) -> Iterator[RepeatedRows]:
    shared = shared_columns(tables)
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
        yield RepeatedRows(name, "sum" if is_equal else "mean", (min(numbers), max(numbers)))


def _are_attempts(tables: Sequence[ExampleTable], id_: str) -> bool:
    """Whether the rows of one id may be attempts at one example: no column contradicts it."""
    is_same = _same_in_example(tables, id_)
    others = (name for name in shared_columns(tables) if name != id_ and not (is_same and names_parts(name)))
    return is_same is not False and not any(_names_conditions(tables, id_, name) for name in others)


def _same_in_example(tables: Sequence[ExampleTable], id_: str) -> bool | None:
    """Whether labels and inputs are the same in all rows of an id; None if no run has such columns."""
    names = [name for name in _SAME_IN_EXAMPLE if name != id_ and have(tables, [name])]
    frames = [
        frame for name in names for table in tables if (frame := _values(table, (id_, name))) is not None
    ]
    return all(frame.unique().height == frame[id_].n_unique() for frame in frames) if frames else None


def _names_conditions(tables: Sequence[ExampleTable], id_: str, name: str) -> bool:
    """Whether a column of text has the same few values in the rows of every id, each in one row."""
    if (
        name in (*PREDICTIONS, *_SAME_IN_EXAMPLE)
        or PERHAPS_ATTEMPT.fullmatch(name)
        or is_number(name, tables)
    ):
        return False
    for table in tables:
        frame = _values(table, (id_, name))
        if frame is None or frame.is_duplicated().any():
            return False
        n_values = frame[name].n_unique()
        if not 2 <= n_values <= _MOST_CONDITIONS or frame.height != n_values * frame[id_].n_unique():
            return False
    return True


def _identify(tables: Sequence[ExampleTable], names: Sequence[str]) -> bool:
    """Whether columns together identify the rows of each run, and the runs share these ids."""
    frames = [_values(table, names) for table in tables]
    found = [frame for frame in frames if frame is not None and not frame.is_duplicated().any()]
    return len(found) == len(tables) and all(
        2 * found[0].join(other, on=list(names), how="semi").height > found[0].height for other in found[1:]
    )


def _values(table: ExampleTable, names: Sequence[str]) -> pl.DataFrame | None:
    """Return columns of the first rows as text; None if they cannot be read."""
    head = table.head(MOST)
    try:
        columns = [head.polars_column(name) for name in names]
    except InputTypeError:
        return None
    if any(column.dtype.is_nested() or column.dtype == pl.Object for column in columns):
        return None
    return named_frame([column.cast(pl.String) for column in columns])


def rows_of_value(table: ExampleTable, name: str) -> int | None:
    """Return the number of rows that each value of a column has; None if values have different numbers."""
    numbers = {*(_counted(table, name) or {}).values()}
    return numbers.pop() if len(numbers) == 1 else None


def _counted(table: ExampleTable, name: str) -> dict[str, int] | None:
    """Count the rows of each value as text; None if there are too many values, or they cannot be read."""
    counts = table.counts_of_few(name, MOST)
    if counts is None:
        return None
    texts = counts[name].cast(pl.String)
    return {value: n for value, n in zip(texts, counts[COUNT], strict=True) if value is not None}
