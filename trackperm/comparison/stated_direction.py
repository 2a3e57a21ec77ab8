"""Direction of a score that a log states in every row: its metric, or whether higher is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trackperm.errors import InputError, InputTypeError
from trackperm.statistic.direction import direction_word, lower_is_better_by_name
from trackperm.tables.table import ExampleTable

_STATEMENTS = {"higher_is_better": False, "greater_is_better": False, "lower_is_better": True}
"""Columns of true and false, and whether true means that lower is better."""

_METRICS = ("metric", "metric_name")
"""Columns of the name of the metric whose values a column such as `score` holds."""

_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")


class StatedDirection(NamedTuple):
    """Column with one value in all rows of the runs, and the direction that follows from it.

    `is_lower` is whether lower is better; None if the value leaves it open. `run` is the run that states it,
    if another one has no such column.
    """

    column: str
    value: str
    is_lower: bool | None
    run: str | None = None

    @property
    def reason(self) -> str:
        """The column and its value, in words."""
        of_run = "" if self.run is None else f" of `{self.run}`"
        return f"`{self.column}` is `{self.value}` in every row{of_run}"


def stated_direction(tables: Sequence[ExampleTable], score: str) -> StatedDirection | None:
    """Return the direction that the runs state for their column `score`; None if they state none.

    Raises
    ------
    InputError
        If two runs state different metrics or directions.
    """
    for column in (*_STATEMENTS, *_METRICS):
        stated = {
            table.origin: value for table in tables if (value := _only_value(table, column)) is not None
        }
        if len({value.casefold() for value in stated.values()}) > 1:
            first, second = list({value.casefold(): run for run, value in stated.items()}.values())[:2]
            raise InputError(
                f"`{column}` is `{stated[first]}` in every row of `{first}` and `{stated[second]}` in every"
                f" row of `{second}`, so their `{score}` may be values of different metrics",
                hint=f"compare runs with the same metric; `--metric {score}` compares `{score}` as it is.",
            )
        for run, value in stated.items():
            if (direction := _direction(column, value)) is not None:
                is_shared = all(column in table.columns for table in tables)
                return direction if is_shared else direction._replace(run=run)
    return None


def lower_is_stated(tables: Sequence[ExampleTable], score: str) -> StatedDirection | None:
    """Return what the runs state if lower values of `score` are better; None if greater ones are.

    Raises
    ------
    InputError
        If what they state leaves the direction open, or differs between two runs.
    """
    stated = stated_direction(tables, score)
    if stated is not None and stated.is_lower is None:
        raise InputError(
            f"{stated.reason}, which does not show whether greater values of `{score}` are better",
            hint=f"`--metric {score}` takes greater values as better; for lower ones write a spec:"
            f" `counts: {{total: score, n: 1}}`, `columns: {{score: {score}}}`, `score: total / n` and"
            " `greater_is_better: false`.",
        )
    return stated if stated is not None and stated.is_lower else None


def _direction(column: str, value: str) -> StatedDirection | None:
    """Return the direction that a value states; None if a column of true and false holds something else."""
    if column in _METRICS:
        is_open = direction_word(value) is not None
        return StatedDirection(column, value, lower_is_better_by_name(value) or (None if is_open else False))
    if value.casefold() not in (*_TRUE, *_FALSE):
        return None
    return StatedDirection(column, value, (value.casefold() in _TRUE) == _STATEMENTS[column])


def _only_value(table: ExampleTable, column: str) -> str | None:
    """Return the only value of a column; None if its rows have several values, or it is missing."""
    if column not in table.columns:
        return None
    try:
        counts = table.value_counts(column, 1)
    except InputTypeError:
        return None
    if counts is None or len(counts) != 1 or counts[column][0] is None:
        return None
    return str(counts[column][0])
