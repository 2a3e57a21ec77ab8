"""Whether greater values of a metric are better: as logs declare or state, or else as its name implies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trackperm.comparison.question.signed_errors import is_signed, require_sizes
from trackperm.comparison.question.stated_direction import spec_of_lower, stated_direction
from trackperm.errors import InputError
from trackperm.statistic.direction import direction_word, greater_is_better_by_name, lower_is_better_by_name
from trackperm.tables.columns.names import SCORE
from trackperm.tables.columns.types import is_number
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
    """Whether greater values of a column are better, or None if no log declares it.

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
    """Whether neither a log nor the name and values of a metric say if greater values are better."""
    if declared_direction(column, tables) is not None:
        return False
    return _is_open_by_name(name) or is_signed(name, column, tables)


def known_direction(
    name: str, column: str, tables: Sequence[ExampleTable], *, is_named: bool = True
) -> tuple[bool | None, tuple[str, ...]]:
    """Whether greater values of a metric are better, by what logs say, with notes; None if open.

    A log declares it for the metric, or else states it in every row; see
    :func:`~trackperm.comparison.question.stated_direction.stated_direction`, also for `is_named`.

    Raises
    ------
    InputError
        If logs contradict each other, or it is unclear what they state.
    """
    declared = declared_direction(column, tables)
    if declared is not None:
        is_unlike = declared is lower_is_better_by_name(name) or _is_open_by_name(name)
        which = "greater" if declared else "lower"
        note = f"direction: {which} values of `{name}` are better, by the log"
        return declared, (note,) if is_unlike else ()
    stated = stated_direction(tables, column, is_named=is_named)
    if stated is None:
        return None, ()
    if stated.is_lower is None:
        return None, (
            f"look: {stated.reason}, which does not show whether greater values of `{column}` are better",
        )
    if stated.is_lower:
        return False, (f"lower is better: {stated.reason}",)
    return True, (f"greater is better: {stated.reason}",) if _is_open_by_name(name) else ()


def direction_of(
    name: str, column: str, tables: Sequence[ExampleTable], *, is_named: bool
) -> tuple[bool, tuple[str, ...]]:
    """Whether greater values of a metric are better, with a note where its name does not show it.

    Greater values are better where no log and no name says otherwise. `is_named` is whether the user has
    named the metric.

    Raises
    ------
    InputError
        If it is unclear, logs contradict each other, or errors have a sign.
    """
    known, notes = known_direction(name, column, tables, is_named=is_named)
    if known is not None:
        return known, notes
    names = (name, *_metrics_in(column, tables))
    if unclear := next(filter(_is_open_by_name, names), None):
        raise InputError(
            f"the name of the metric `{unclear}` does not show whether greater values are better",
            hint=f"{spec_of_lower(column)}, or `true`; `trackperm statistic new` writes a template.",
        )
    lower = next(filter(lower_is_better_by_name, names), None)
    if lower is None:
        return True, notes or note_on_presumed_direction(column, tables, names)
    require_sizes(lower, column, tables)
    if lower_is_better_by_name(name):
        return False, ()
    return False, (f"direction: lower values of `{name}` are better, which has those of `{lower}`",)


def note_on_presumed_direction(
    column: str, tables: Sequence[ExampleTable], names: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return a note that greater values of a column are taken as better, unless a log or a name says it.

    `names` are those of its metric, besides those that logs declare. A column that a format calls a score
    with its prefix has no note.
    """
    if column.startswith(_PREFIX):
        return ()
    names = (*names, *_metrics_in(column, tables), column)
    if any(map(greater_is_better_by_name, names)) or known_direction(column, column, tables)[0] is not None:
        return ()
    return (
        f"look: greater values of `{column}` are taken as better; if lower ones are, {spec_of_lower(column)}",
    )


def why_lower_is_better(column: str, tables: Sequence[ExampleTable]) -> str | None:
    """Return why lower values of a column are better: logs say so, or a name implies it; else None.

    Raises
    ------
    InputError
        If logs contradict each other.
    """
    declared = declared_direction(column, tables)
    if declared is not None:
        return None if declared else f"the log declares that lower values of `{column}` are better"
    stated = stated_direction(tables, column, is_named=True)
    if stated is not None and stated.is_lower is not None:
        return stated.reason if stated.is_lower else None
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
