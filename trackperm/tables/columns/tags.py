"""Columns of tags of entity spans, such as ``B-PER``: one list of tags per sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from trackperm.errors import InputTypeError
from trackperm.tables.columns.names import LABELS, PREDICTIONS
from trackperm.tables.columns.types import FIRST_ROWS
from trackperm.tables.table import ExampleTable


def hold_tags(values: pl.Series) -> bool:
    """Whether lists of text hold tags of entity spans, and the tag of a span at least."""
    if values.dtype != pl.List(pl.String):
        return False
    tags = values.head(FIRST_ROWS).explode().drop_nulls()
    return bool(tags.str.contains("^(O|[BIES]-.+)$").all()) and bool((tags != "O").any())


def columns_of_tags(table: ExampleTable) -> list[str]:
    """Return the columns whose lists hold tags of entity spans."""
    head, found = table.head(FIRST_ROWS), []
    for name in head.columns:
        try:
            if hold_tags(head.polars_column(name)):
                found.append(name)
        except InputTypeError:
            continue
    return found


def roles_of_tags(names: Sequence[str]) -> tuple[str, str] | None:
    """Return the columns of predictions and of labels among two columns of tags; None if it is unclear."""
    predictions = [name for name in names if _is_prediction(name)]
    labels = [name for name in names if name not in predictions]
    return (predictions[0], labels[0]) if len(predictions) == len(labels) == 1 else None


def _is_prediction(name: str) -> bool:
    """Whether a name, or a word in it such as ``pred`` in ``pred_tags``, is a usual one of predictions."""
    words = re.split(r"[\W_]+", name.lower())
    return name.lower() not in LABELS and any(word in PREDICTIONS for word in (name.lower(), *words))
