"""Whether greater values of a metric are better: as its log declares, or else as its name implies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trackperm.errors import InputError
from trackperm.statistic.direction import direction_word, lower_is_better_by_name
from trackperm.tables.column_names import SCORE
from trackperm.tables.column_types import is_number
from trackperm.tables.table import ExampleTable

_PREFIX = "score."
"""Prefix of score columns, in formats whose other columns may have the same names."""


def metrics_of(table: ExampleTable) -> Mapping[str, str]:
    """Return the columns of the metrics that a log declares, or else those with the prefix of scores."""
    if table.metrics:
        return table.metrics
    names = [name for name in table.columns if name.startswith(_PREFIX) and len(name) > len(_PREFIX)]
    return {name.removeprefix(_PREFIX): name for name in names if is_number(name, [table])}


def declared_direction(column: str, tables: Sequence[ExampleTable]) -> bool | None:
    """Return whether greater values of a column are better, or None if no log declares it.

    Raises
    ------
    InputError
        If logs declare the opposite of each other.
    """
    origins = {table.greater_is_better.get(column): table.origin for table in tables}
    if True in origins and False in origins:
        raise InputError(
            f"greater values of `{column}` are better by the log `{origins[True]}`, and lower ones by"
            f" `{origins[False]}`",
            hint="compare logs of one version of the task, or declare `greater_is_better` in a spec.",
        )
    return next((said for said in origins if said is not None), None)


def is_open(name: str, column: str, tables: Sequence[ExampleTable]) -> bool:
    """Whether neither the name of a metric nor a log says if greater values are better."""
    return declared_direction(column, tables) is None and _is_open_by_name(name)


def direction_of(name: str, column: str, tables: Sequence[ExampleTable]) -> tuple[bool, tuple[str, ...]]:
    """Return whether greater values of a metric are better, with a note where its name does not show it.

    Raises
    ------
    InputError
        If it is unclear, or logs declare the opposite of each other.
    """
    declared = declared_direction(column, tables)
    is_lower = lower_is_better_by_name(name)
    if declared is not None:
        which = "greater" if declared else "lower"
        note = f"direction: {which} values of `{name}` are better, by the log"
        return declared, (note,) if declared is is_lower or _is_open_by_name(name) else ()
    names = (name, *_metrics_in(column, tables))
    if unclear := next(filter(_is_open_by_name, names), None):
        raise InputError(
            f"the name of the metric `{unclear}` does not show whether greater values are better",
            hint=f"declare it in a spec: `counts: {{total: score, n: 1}}`, `columns: {{score: {column}}}`,"
            " `score: total / n` and `greater_is_better: true`; `trackperm statistic new` writes a template.",
        )
    lower = next(filter(lower_is_better_by_name, names), None)
    are_others = lower is not None and not is_lower
    notes = (f"direction: lower values of `{name}` are better, which has those of `{lower}`",)
    return lower is None, notes if are_others else ()


def why_lower_is_better(column: str, tables: Sequence[ExampleTable]) -> str | None:
    """Return why lower values of a column are better: a log declares it, or a name implies it; else None."""
    declared = declared_direction(column, tables)
    if declared is not None:
        return None if declared else f"the log declares that lower values of `{column}` are better"
    names = (column, *_metrics_in(column, tables))
    found = next(filter(lower_is_better_by_name, names), None)
    return None if found is None else f"`{found}` has the name of an error"


def _metrics_in(column: str, tables: Sequence[ExampleTable]) -> list[str]:
    """Return the metrics whose values a column has; the column `score` has those of the only metric."""
    found: dict[str, None] = {}
    for table in tables:
        metrics = metrics_of(table)
        is_only = column == SCORE and len(metrics) == 1
        found |= {name: None for name, own in metrics.items() if own == column or is_only}
    return list(found)


def _is_open_by_name(name: str) -> bool:
    """Whether the name of a metric leaves open whether greater values are better."""
    return direction_word(name) is not None and not lower_is_better_by_name(name)
