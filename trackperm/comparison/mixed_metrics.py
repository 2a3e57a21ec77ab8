"""Refuse a score whose rows are values of different metrics, which a column names in each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trackperm.comparison.own_scores import names_metric
from trackperm.errors import InputError, InputTypeError
from trackperm.messages import listed
from trackperm.tables.column_names import EVALUATORS, METRICS, SCORES
from trackperm.tables.column_types import is_number
from trackperm.tables.lazy_table import COUNT
from trackperm.tables.row_meaning import why_several_metrics
from trackperm.tables.table import ExampleTable

_PERHAPS = ("name", "key")
"""Names of columns that may hold the names of metrics."""

_MOST = 50
"""Most different values: more of them are no metrics."""


def require_one_metric(tables: Sequence[ExampleTable], score: str) -> None:
    """Refuse runs in which a column such as `metric` has several values.

    Raises
    ------
    InputError
        If a run has them; the hint says how to keep the rows of one.
    """
    for table, name, metrics in _mixed(tables):
        raise InputError(
            f"`{score}` of `{table.origin}` holds values of different metrics: `{name}` is {listed(metrics)}",
            hint=f"{why_several_metrics(table.origin, name, metrics)}.",
        )


def note_on_mixed_metrics(tables: Sequence[ExampleTable], score: str) -> tuple[str, ...]:
    """Return a note if a score that the user named holds values of different metrics."""
    if score not in SCORES:
        return ()
    return tuple(
        f"look: `{score}` of `{table.origin}` holds values of different metrics, which are averaged:"
        f" `{name}` is {listed(metrics)}"
        for table, name, metrics in list(_mixed(tables))[:1]
    )


def _mixed(tables: Sequence[ExampleTable]) -> Iterator[tuple[ExampleTable, str, list[str]]]:
    """Yield each run and column of several metrics, and these."""
    for table in tables:
        for name in table.columns:
            if name.lower() in (*METRICS, *EVALUATORS, *_PERHAPS) and not is_number(name, [table]):
                metrics = _metrics(table, name)
                if len(metrics) > 1:
                    yield table, name, metrics


def _metrics(table: ExampleTable, name: str) -> list[str]:
    """Return the metrics that a column names; none if its values are something else."""
    try:
        counts = table.value_counts(name, _MOST)
    except InputTypeError:
        return []
    if counts is None:
        return []
    found = counts.drop_nulls()
    values = sorted(map(str, found[name].to_list()))
    column = name.lower()
    if column in METRICS:
        return values[: _MOST + 1]
    if len(values) > _MOST or 2 * len(values) > int(found[COUNT].sum()):
        return []
    return values if column in EVALUATORS or any(map(names_metric, values)) else []
