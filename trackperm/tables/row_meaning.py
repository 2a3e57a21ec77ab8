"""Rows that are not examples: folds, epochs, values of several metrics, retrieved documents, boxes.

Their columns tell what they are. Messages say so in place of a column of ids, by which such rows would be
compared like examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trackperm.errors import InputTypeError
from trackperm.messages import listed
from trackperm.tables.column_names import (
    DOCUMENTS,
    EVALUATORS,
    INPUTS,
    LABELS,
    METRICS,
    PREDICTIONS,
    QUERIES,
    names_examples,
)
from trackperm.tables.column_types import is_number
from trackperm.tables.polars_code import rewriting, text_of
from trackperm.tables.table import ExampleTable, shared_columns

MOST_METRICS = 50
"""Most metrics of a file that has their values in rows: a column with more values has no names of metrics."""

_PROGRESS = re.compile(r"_?(global_)?(epochs?|steps?|iterations?|iter)", re.IGNORECASE)
_BOXES = ("bbox", "box", "xmin", "x_min")


def why_no_examples(tables: Sequence[ExampleTable]) -> str | None:
    """Say what the rows of the runs are if they are not examples, and what to compare, without a full stop.

    None if the columns that the runs share do not say so.
    """
    return next(_reasons(tables, {name.lower(): name for name in shared_columns(tables)}), None)


def why_several_metrics(origin: str, name: str, metrics: Sequence[str]) -> str:
    """Say that a column names the metrics of rows, and how to keep the rows of one, without a full stop."""
    keep = rewriting(origin, f"filter(pl.col({text_of(name)}) == {text_of(metrics[0])})", "one_metric")
    return (
        f"rows have values of several metrics, which `{name}` names ({listed(metrics)}): keep the rows of one"
        f" metric in each run, as `{keep}` of polars does"
    )


def _reasons(tables: Sequence[ExampleTable], names: dict[str, str]) -> Iterator[str]:
    if {"fit_time", "score_time"} <= names.keys() and any(name.startswith("test_") for name in names):
        yield (
            "rows with `fit_time` and `score_time` are folds of a cross-validation, whose scores are not"
            " independent: log the prediction of each example, as from `cross_val_predict`, and compare these"
        )
    progress = [name for name in names.values() if _PROGRESS.fullmatch(name)]
    if progress and _are_measurements(tables, names, progress):
        yield (
            f"`{progress[0]}` numbers the rows of a training, which are not examples: log the prediction of"
            " each example of a test set, and compare these"
        )
    for name in (names[each] for each in (*METRICS, *EVALUATORS) if each in names):
        if (metrics := _metrics(tables, name)) is not None:
            yield why_several_metrics(tables[0].origin, name, metrics)
    documents, queries = ([names[each] for each in usual if each in names] for usual in (DOCUMENTS, QUERIES))
    if documents and queries and "score" in names:
        yield (
            f"rows are documents, `{documents[0]}`, that were retrieved for a `{queries[0]}`, and their"
            " scores do not say whether they are relevant: write each run in TREC's format, `QUERY Q0"
            " DOCUMENT RANK SCORE NAME`, and compare these with `--labels QRELS`"
        )
    boxes = [names[each] for each in _BOXES if each in names]
    if boxes and "score" in names:
        yield (
            f"rows are boxes, by `{boxes[0]}`, and their scores are the confidence of a detector: compute a"
            " score of each image, such as its average precision, and compare these"
        )


def _are_measurements(tables: Sequence[ExampleTable], names: dict[str, str], progress: Sequence[str]) -> bool:
    """Whether all columns are numbers of the whole model, one row for each step: none has an id or answer."""
    others = [name for name in names.values() if name not in progress]
    of_examples = {*INPUTS, *LABELS, *PREDICTIONS}
    if not others or any(name.lower() in of_examples or names_examples(name) for name in others):
        return False
    if not all(is_number(name, tables) for name in (*progress, *others)):
        return False
    return any(not any(table.repeats([name]) for table in tables) for name in progress)


def _metrics(tables: Sequence[ExampleTable], name: str) -> list[str] | None:
    """Return the names of the metrics in a column; None if it has one, or anything else than their names."""
    if is_number(name, tables):
        return None
    found = dict[str, None]()
    for table in tables:
        try:
            counts = table.value_counts(name, MOST_METRICS)
        except InputTypeError:
            return None
        if counts is None or len(counts) > MOST_METRICS or 2 * len(counts) > len(table):
            return None
        found |= dict.fromkeys(str(value) for value in counts[name] if value is not None)
    return sorted(found) if len(found) > 1 else None
