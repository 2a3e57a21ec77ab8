"""Counts by classes in lists, and by the labels of all examples in the test."""

from __future__ import annotations

import numpy as np
import polars as pl

from trackperm.errors import UncountableError
from trackperm.messages import listed
from trackperm.statistic.counters.base import Integers, LabelCounts


def label_count(column: pl.Series, labels: LabelCounts) -> Integers:
    """Count the examples in the test whose label is this value."""
    found = column.replace_strict(labels.values, pl.Series(labels.sizes), default=0, return_dtype=pl.Int64)
    return found.to_numpy().astype(np.int64)


def is_among(column: pl.Series, classes: str) -> Integers:
    """Return 1 where a class is in a list of classes, separated by commas, else 0."""
    names = [name.strip() for name in classes.split(",")] if classes else []
    return column.cast(pl.String).is_in(names).to_numpy().astype(np.int64)


def place(column: pl.Series, order: str) -> Integers:
    """Return the place of a class in an order, classes separated by commas; without one, integers alone."""
    if not order:
        if column.dtype == pl.String:
            raise UncountableError(
                0,
                f"`{column.name}` is text, whose classes have no order",
                "list the classes in ascending order, as in `--set order=low,medium,high`.",
            )
        return column.to_numpy().astype(np.int64)
    names = [name.strip() for name in order.split(",")]
    texts = column.cast(pl.String)
    outside = ~texts.is_in(names)
    if outside.any():
        row = int(outside.arg_true()[0])
        raise UncountableError(
            row,
            f"`{column.name}` is {column[row]!r}, which is not in the order {listed(names)}",
            "the order lists every class of labels and predictions, separated by commas.",
        )
    if len(set(names)) < len(names):
        raise UncountableError(0, f"the order {listed(names)} has a class twice")
    return texts.replace_strict(names, list(range(len(names))), return_dtype=pl.Int64).to_numpy()


def label_distance(column: pl.Series, labels: LabelCounts, order: str) -> Integers:
    """Sum the distances of a class from the labels of all examples in the test."""
    return _distances(column, labels, order, 1)


def label_distance_squares(column: pl.Series, labels: LabelCounts, order: str) -> Integers:
    """Sum the squares of the distances of a class from the labels of all examples in the test."""
    return _distances(column, labels, order, 2)


def _distances(column: pl.Series, labels: LabelCounts, order: str, power: int) -> Integers:
    places, own = np.unique(place(column, order), return_inverse=True)
    others = place(labels.values.alias(labels.name), order)
    sums = [
        int((np.abs(others - one).astype(object) ** power) @ labels.sizes.astype(object)) for one in places
    ]
    if max(sums, default=0) >= 2**62:
        raise UncountableError(0, f"the sum of distances of `{column.name}` from all labels exceeds 2^62")
    return np.array(sums, dtype=np.int64)[own]
