"""Edit operations: the fewest substitutions, deletions and insertions between two sequences."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.statistic.counters.base import Integers, Items, numbered, same_rows

Cells = npt.NDArray[np.int32]
_CELLS = 2**16  # of one row of the table, for all examples of a batch


def edit_operations(prediction: pl.Series, label: pl.Series) -> Integers:
    """Count the edits of items (words of a text) that turn one list into the other."""
    return _distances(Items.read(prediction), Items.read(label))


def character_edit_operations(prediction: pl.Series, label: pl.Series) -> Integers:
    """Count the edits of characters that turn one text into the other."""
    return _distances(_characters(prediction), _characters(label))


def n_characters(column: pl.Series) -> Integers:
    """Count the characters: code points of the text as it is, spaces too."""
    return column.str.len_chars().to_numpy().astype(np.int64)


def _characters(column: pl.Series) -> Items:
    text = column.str.join("")[0] if len(column) else ""
    points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(n_characters(column))])
    return Items(column.name, pl.Series(points), offsets)


def _distances(first: Items, second: Items) -> Integers:
    """Distances of rows, in batches of rows of similar lengths."""
    (a, b), _ = numbered(first, second)
    distances = np.zeros(len(first.lengths), dtype=np.int64)
    order = np.flatnonzero(~same_rows(first, a, second, b))
    order = order[np.lexsort((first.lengths[order], second.lengths[order]))]
    longer = np.maximum(first.lengths, second.lengths)
    while order.size:
        widest = 1 + np.maximum.accumulate(longer[order[:_CELLS]])
        n_rows = max(1, int(np.searchsorted(widest * np.arange(1, len(widest) + 1), _CELLS, side="right")))
        batch, order = order[:n_rows], order[n_rows:]
        matrices = _padded(first, a, batch), _padded(second, b, batch)
        distances[batch] = _batch(*matrices, first.lengths[batch], second.lengths[batch])
    return distances


def _padded(items: Items, numbers: Integers, rows: Integers) -> Cells:
    """Items of some rows as the rows of a matrix."""
    lengths = items.lengths[rows]
    places = np.arange(lengths.max(initial=0))
    inside = places < lengths[:, np.newaxis]
    matrix = np.zeros(inside.shape, dtype=np.int32)
    matrix[inside] = numbers[(items.offsets[rows, np.newaxis] + places)[inside]]
    return matrix


def _batch(a: Cells, b: Cells, a_lengths: Integers, b_lengths: Integers) -> Integers:
    """Wagner and Fischer (1974), a row of the table at a time, for all examples of a batch at once."""
    # Cells hold the distance less their place in the row: an insertion then costs nothing, and the cheapest
    # way into a cell along the row is a running minimum. In row i they are between -i and i. What lies behind
    # the end of an example changes none before it.
    dtype = np.int16 if b.shape[1] < 2**15 - 1 else np.int32
    row = np.zeros((len(a), a.shape[1] + 1), dtype=dtype)
    result = a_lengths.copy()
    examples = np.arange(len(a))
    for step in range(b.shape[1]):
        substituted = row[:, :-1] - (a == b[:, step, np.newaxis])
        row += 1
        np.minimum(row[:, 1:], substituted, out=row[:, 1:])
        np.minimum.accumulate(row, axis=1, out=row)
        done = examples[b_lengths == step + 1]
        result[done] = row[done, a_lengths[done]] + a_lengths[done]
    return result
