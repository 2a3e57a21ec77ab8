"""Items that two lists share, in any order."""

from __future__ import annotations

import numpy as np
import polars as pl

from trackperm.errors import UncountableError
from trackperm.statistic.counters.base import Integers, Items, numbered, require_same_items, require_spaces

_LABELS = "write both columns as lists of the same items."


def set_size(column: pl.Series) -> Integers:
    """Count the distinct items."""
    items = _labels(column)
    (numbers,), n_numbers = numbered(items)
    keys = np.sort(items.rows * n_numbers + numbers)
    is_first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
    return np.bincount(keys[is_first] // max(1, n_numbers), minlength=len(column)).astype(np.int64)


def _labels(column: pl.Series) -> Items:
    """Read sets of items; refuse lists of 0 and 1 by position, which would be the items 0 and 1."""
    items = Items.read(column)
    if set(items.values.unique().cast(pl.String)) <= {"0", "1"}:
        is_one = (items.values.cast(pl.String) == "1").to_numpy()
        n_ones = items.sums(is_one)
        repeats = (n_ones > 1) | (items.lengths - n_ones > 1)
        if repeats.any() and len(np.unique(items.lengths)) == 1:
            raise UncountableError(
                int(repeats.argmax()),
                f"`{column.name}` holds lists of 0 and 1, one for each label; expected the labels that apply",
                "write the names or numbers of the labels, such as [2, 5] for the third and sixth one.",
            )
    return items


def set_overlap(prediction: pl.Series, label: pl.Series) -> Integers:
    """Count the distinct items that both lists have."""
    require_spaces(prediction, label)
    require_same_items(prediction, label, _LABELS)
    return shared(_labels(prediction), _labels(label), repeated=False)


def token_overlap(prediction: pl.Series, label: pl.Series) -> Integers:
    """Count the items that both lists have, with repetitions that both have."""
    require_same_items(prediction, label)
    return shared(Items.read(prediction), Items.read(label), repeated=True)


def shared(first: Items, second: Items, *, repeated: bool) -> Integers:
    """Count the items that both rows have; with `repeated`, as often as both have them."""
    sides, n_numbers = numbered(first, second)
    (keys, counts), (others, other_counts) = (
        np.unique(items.rows * n_numbers + numbers, return_counts=True)
        for items, numbers in zip((first, second), sides, strict=True)
    )
    common, here, there = np.intersect1d(keys, others, assume_unique=True, return_indices=True)
    times = np.minimum(counts[here], other_counts[there]) if repeated else np.ones(len(common))
    rows = common // max(1, n_numbers)
    return np.bincount(rows, times, minlength=len(first.offsets) - 1).astype(np.int64)
