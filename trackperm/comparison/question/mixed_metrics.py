"""Check that all rows of a score are values of one metric, where a column names the metric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trackperm.errors import InputError
from trackperm.messages import listed
from trackperm.statistic.direction import is_metric
from trackperm.tables.columns.names import EVALUATORS, METRICS, SCORES, VALUES
from trackperm.tables.row_meaning import (
    have_metrics_of_examples,
    several_metrics,
    why_no_examples,
    why_several_metrics,
)
from trackperm.tables.table import ExampleTable

_PERHAPS = ("name", "key")
"""Names of columns that may hold names of metrics, or other names."""

_MOSTLY = 0.8
"""Least share of names of metrics among the values of such a column, for it to count."""


def require_one_metric(tables: Sequence[ExampleTable], score: str) -> tuple[str, ...]:
    """Raise an error if a column such as `metric` has several values; return a note if that may be meant.

    An example that passes or not may have a metric of its own.

    Raises
    ------
    InputError
        If a run has them; the hint says how to keep the rows of one.
    """
    found = next(_mixed(tables), None)
    if found is None:
        return ()
    if have_metrics_of_examples(tables, [score]):
        return (_note(*found, score),)
    table, name, metrics = found
    reason = why_no_examples(tables) or why_several_metrics(table, name, metrics)
    raise InputError(
        f"`{score}` of `{table.origin}` holds values of different metrics: `{name}` is {listed(metrics)}",
        hint=f"{reason}."
        if len(metrics) == len(table)
        else f"{reason}; `--metric {score}` compares all rows as they are.",
    )


def note_on_mixed_metrics(tables: Sequence[ExampleTable], score: str) -> tuple[str, ...]:
    """Return a note if a score that the user named holds values of different metrics."""
    found = next(_mixed(tables), None) if score in (*SCORES, *VALUES) else None
    return () if found is None else (_note(*found, score),)


def _note(table: ExampleTable, name: str, metrics: Sequence[str], score: str) -> str:
    return (
        f"look: `{score}` of `{table.origin}` holds values of different metrics, which are averaged:"
        f" `{name}` is {listed(metrics)}"
    )


def _mixed(tables: Sequence[ExampleTable]) -> Iterator[tuple[ExampleTable, str, list[str]]]:
    """Yield each run and column of several metrics, and these.

    Names that mostly occur once, each on a row of its own, are metrics if all are.
    """
    found = several_metrics(tables, (*METRICS, *EVALUATORS, *_PERHAPS), unique=(*METRICS, *_PERHAPS))
    for table, name, metrics in found:
        known = sum(map(is_metric, metrics))
        least = _MOSTLY if 2 * len(metrics) <= len(table) else 1
        if name.lower() not in _PERHAPS or known >= least * len(metrics):
            yield table, name, metrics
