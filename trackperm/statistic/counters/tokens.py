"""Correct tokens by position: tags, and arcs of dependency trees."""

from __future__ import annotations

import polars as pl

from trackperm.errors import UncountableError
from trackperm.statistic.counters.base import Integers, Items, require_same_items, require_spaces

_HEAD = r"^[0-9]+(?::|$)"
_ARC = r"^[0-9]+:."


def n_tokens(column: pl.Series) -> Integers:
    """Count the items."""
    return Items.read(column).lengths


def token_matches(prediction: pl.Series, label: pl.Series) -> Integers:
    """Count the positions with the same item in both lists, which must have one length."""
    require_spaces(prediction, label)
    require_same_items(prediction, label)
    predicted, actual = Items.read(prediction), Items.read(label)
    predicted.require_same_lengths(actual)
    return actual.sums((predicted.values == actual.values).to_numpy())


def head_matches(prediction: pl.Series, label: pl.Series) -> Integers:
    """Count the tokens with the correct head, which is the number in items such as ``2`` or ``2:nsubj``."""
    predicted, actual = _heads(prediction), _heads(label)
    predicted.require_same_lengths(actual)
    return actual.sums((predicted.values == actual.values).to_numpy())


def arc_matches(prediction: pl.Series, label: pl.Series) -> Integers:
    """Count the tokens with the correct head and relation, in items such as ``2:nsubj``."""
    for column in (prediction, label):
        _require(Items.read(column), _ARC, "is not a head and relation", "write arcs as in `2:nsubj`.")
    return token_matches(prediction, label)


def _heads(column: pl.Series) -> Items:
    items = Items.read(column)
    if items.values.dtype != pl.String:
        return Items(items.name, items.values.cast(pl.String), items.offsets)
    _require(items, _HEAD, "is not a head", "a head is a number, alone or as in `2:nsubj`.")
    return Items(items.name, items.values.str.extract("^([0-9]+)"), items.offsets)


def _require(items: Items, pattern: str, problem: str, hint: str) -> None:
    fits = items.values.str.contains(pattern)
    if not fits.all():
        position = int(fits.arg_min() or 0)
        found = f"{items.values[position]!r} in `{items.name}` {problem}"
        raise UncountableError(items.row_of(position), found, hint)
