"""N-grams: sequences of n tokens, compared wherever they are in an example."""

from __future__ import annotations

import numpy as np
import polars as pl

from trackperm.statistic.counters.base import (
    Integers,
    Items,
    numbered,
    require_same_items,
    require_texts,
    require_tokens,
)

ORDERS = (1, 2, 3, 4)
"""Allowed values of n; the first is the default."""

CHARACTER_ORDERS = (1, 2, 3, 4, 5, 6)
"""Allowed values of n for characters; the first is the default."""

_CHARACTER = r"[^\s\x1c-\x1f]"  # all that Python's str.split() does not take for space

_ROWS = 2**14
"""Rows that are counted at a time: sorting them stays in the processor's cache."""


def n_ngrams(column: pl.Series, order: int) -> Integers:
    """Count the n-grams."""
    return np.maximum(Items.read(column).lengths - (order - 1), 0)


def ngram_matches(prediction: pl.Series, label: pl.Series, order: int) -> Integers:
    """Count the n-grams that both lists have, with repetitions that both have.

    These are the clipped counts of BLEU with one reference: Papineni et al. (2002), section 2.1.
    """
    require_same_items(prediction, label)
    require_tokens(prediction, label)
    return _common(prediction, label, order)


def _common(prediction: pl.Series, label: pl.Series, order: int) -> Integers:
    """Count the n-grams that both lists have, batch by batch."""
    predicted, actual = Items.read(prediction), Items.read(label)
    n_rows = len(prediction)
    counts = np.zeros(n_rows, dtype=np.int64)
    for first in range(0, n_rows, _ROWS):
        last = min(first + _ROWS, n_rows)
        counts[first:last] = _matches(predicted.part(first, last), actual.part(first, last), order)
    return counts


def n_character_ngrams(column: pl.Series, order: int) -> Integers:
    """Count the n-grams of characters, without spaces."""
    return n_ngrams(_characters(column), order)


def character_ngram_matches(prediction: pl.Series, label: pl.Series, order: int) -> Integers:
    """Count the n-grams of characters, without spaces, that both texts have, with common repetitions.

    These are the counts of chrF with one reference: Popović (2015).
    """
    require_texts(prediction, label)
    return _common(_characters(prediction), _characters(label), order)


def _characters(column: pl.Series) -> pl.Series:
    return column.str.extract_all(_CHARACTER)


def _matches(predicted: Items, actual: Items, order: int) -> Integers:
    sides = predicted, actual
    numbers, n_numbers = numbered(*sides)
    tokens = np.concatenate(numbers)
    rows = np.concatenate([items.rows for items in sides])
    left = np.concatenate([items.offsets[1:][items.rows] - np.arange(len(items.values)) for items in sides])
    # Start and number of every n-gram that both lists may have; n-grams of other rows have other numbers.
    starts, grams, common = np.arange(len(tokens)), rows, np.zeros(0, dtype=np.int64)
    for length in range(order):
        fits = left[starts] > length
        starts, grams = starts[fits], grams[fits]
        grams = np.unique(grams * n_numbers + tokens[starts + length], return_inverse=True)[1]
        n_grams = 1 + int(grams.max(initial=-1))
        n_predicted = np.searchsorted(starts, len(predicted.values))
        here, there = (
            np.bincount(side, minlength=n_grams) for side in (grams[:n_predicted], grams[n_predicted:])
        )
        common = np.minimum(here, there)
        # An n-gram in both lists begins with an (n - 1)-gram in both lists.
        shared = common[grams] > 0
        starts, grams = starts[shared], grams[shared]
    row_of = np.zeros(len(common), dtype=np.int64)
    row_of[grams] = rows[starts]
    return np.bincount(row_of, common, minlength=len(predicted.offsets) - 1).astype(np.int64)
