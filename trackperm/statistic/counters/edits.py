"""Edit distances: the fewest substitutions, deletions and insertions between two sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import polars as pl
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from trackperm.statistic.counters.base import (
    Integers,
    Items,
    numbered,
    require_same_items,
    require_texts,
    require_tokens,
)

_ROWS = 2**14
"""Rows that are compared at a time, which bounds the number of items that are Python objects at once."""


def edit_operations(prediction: pl.Series, label: pl.Series) -> Integers:
    """Count the edits of items (words of a text) that turn one list into the other."""
    require_same_items(prediction, label)
    require_tokens(prediction, label)
    sides = Items.read(prediction), Items.read(label)

    def rows(first: int, last: int) -> Sequence[Sequence[list[int]]]:
        parts = [side.part(first, last) for side in sides]
        # rapidfuzz compares hashes, and different items may share one; numbers below 2^61 are their own hash.
        numbers, _ = numbered(*parts)
        return [_lists(part, of_part) for part, of_part in zip(parts, numbers, strict=True)]

    return _distances(len(prediction), rows)


def character_edit_operations(prediction: pl.Series, label: pl.Series) -> Integers:
    """Count the edits of characters that turn one text into the other."""
    require_texts(prediction, label)
    return _distances(
        len(prediction), lambda first, last: [side[first:last].to_list() for side in (prediction, label)]
    )


def n_characters(column: pl.Series) -> Integers:
    """Count the characters: code points of the unchanged text, including spaces."""
    return column.str.len_chars().to_numpy().astype(np.int64)


def _lists(items: Items, numbers: Integers) -> list[list[int]]:
    """Return the numbers of the items of each row."""
    flat, offsets = numbers.tolist(), items.offsets.tolist()
    return [flat[start:end] for start, end in pairwise(offsets)]


def _distances(n_rows: int, rows: Callable[[int, int], Sequence[Sequence[Sequence[object]]]]) -> Integers:
    """Compute the Levenshtein distance of each row; `rows` returns both sides of a range of rows."""
    distances = np.zeros(n_rows, dtype=np.int64)
    for first in range(0, n_rows, _ROWS):
        last = min(first + _ROWS, n_rows)
        distances[first:last] = process.cpdist(*rows(first, last), scorer=Levenshtein.distance)
    return distances
