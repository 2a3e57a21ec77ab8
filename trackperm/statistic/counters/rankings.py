"""Scores of rankings: lists of items, the best first, and the items that are relevant."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import UncountableError
from trackperm.statistic.counters.base import Integers, Items, numbered, require_same_items, require_spaces

GAINS = ("linear", "exponential")
"""Gains of a relevance grade: the grade itself, or 2^grade - 1."""

MOST_EXPONENTIAL = 60
"""Largest grade with an exponential gain: its gain is an integer below 2^62."""

SHARE = 2.0**-45
"""Unit of an item's share of the discounted gain: sums below 2^8 are exact."""

_LISTS = "write both columns as lists, also where one item is relevant."

Floats = npt.NDArray[np.float64]


def reciprocal_rank(prediction: pl.Series, label: pl.Series, k: int) -> Floats:
    """Return 1 / rank of the first relevant item among the first `k`, of all if `k` is 0; else 0."""
    hits = _Hits.of(prediction, label, k)
    best = np.full(len(prediction), np.inf)
    np.minimum.at(best, hits.rows, hits.ranks)
    found: Floats = np.where(np.isfinite(best), 1.0 / best, 0.0)
    return found


def ndcg(prediction: pl.Series, label: pl.Series, k: int, gain: str) -> Floats:
    """Return the discounted gain of relevant items among the first `k`, over that of the best ranking.

    An item at rank r gains its grade, or 2^grade - 1, over log2(1 + r), at its first place alone; 0 if no
    item is relevant: Järvelin and Kekäläinen (2002), Burges et al. (2005).

    The share of each item is rounded to a multiple of :data:`SHARE`, and those of the best ranking add up to
    1. Sums of shares are exact then, so that equal differences of rankings are equal numbers, and ties.
    """
    hits, n = _Hits.of(prediction, label, k), len(prediction)
    gains = hits.relevant.gains(gain)
    order = np.lexsort((-gains, hits.relevant.rows))
    rows = hits.relevant.rows[order]
    firsts = np.searchsorted(rows, np.arange(n))
    places = np.arange(rows.size) - firsts[rows] + 1
    kept = places <= k if k else np.ones(rows.size, dtype=np.bool_)
    rows, places, best = rows[kept], places[kept], gains[order][kept]
    discounts = _discounts(int(max(places.max(initial=0), hits.ranks.max(initial=0))))
    ideal = np.bincount(rows, best * discounts[places], minlength=n)
    shares = np.rint(best * discounts[places] / ideal[rows] / SHARE)
    is_last = np.append(rows[1:] != rows[:-1], True)[: rows.size]
    rest, last_place, last_gain = np.full(n, 1.0 / SHARE), np.zeros(n, dtype=np.int64), np.zeros(n)
    rest -= np.bincount(rows[~is_last], shares[~is_last], minlength=n)
    last_place[rows[is_last]], last_gain[rows[is_last]] = places[is_last], best[is_last]
    won = gains[hits.items]
    own = np.rint(won * discounts[hits.ranks] / ideal[hits.rows] / SHARE)
    completes = (hits.ranks == last_place[hits.rows]) & (won == last_gain[hits.rows])
    own[completes] = rest[hits.rows[completes]]
    total = np.bincount(hits.rows, own, minlength=n)
    return np.asarray(total * SHARE, dtype=np.float64)


def _discounts(most: int) -> Floats:
    """Return 1 / log2(1 + r) for the ranks r from 1 to `most`, after 0."""
    return np.array([0.0, *(1.0 / math.log2(1 + rank) for rank in range(1, most + 1))])


@dataclass(frozen=True)
class _Relevant:
    """Relevant items of all rows.

    Attributes
    ----------
    items : Items
        The items.
    grades : ndarray of float64
        Their grades, above 0.
    rows : ndarray of int64
        Row of each.
    """

    items: Items
    grades: Floats
    rows: Integers

    @classmethod
    def of(cls, label: pl.Series) -> _Relevant:
        """Read lists and words, whose items have the grade 1, or JSON objects of items and grades."""
        if label.dtype != pl.String or not label.str.starts_with("{").any():
            items = Items.read(label)
            return cls(items, np.ones(len(items.values)), items.rows)
        names: list[list[str]] = []
        grades: list[float] = []
        for row, text in enumerate(label.to_list()):
            found = _grades(text)
            if found is None:
                raise UncountableError(
                    row,
                    f"`{label.name}` is {text!r}; expected relevant items and their grades",
                    'write an object such as `{"d1": 3, "d7": 1}` on every example.',
                )
            names.append([name for name, grade in found.items() if grade > 0])
            grades += [grade for grade in found.values() if grade > 0]
        items = Items.read(pl.Series(label.name, names, dtype=pl.List(pl.String)))
        return cls(items, np.array(grades, dtype=np.float64), items.rows)

    def gains(self, gain: str) -> Floats:
        """Return the gains of the grades."""
        if gain == "linear":
            return self.grades
        if (self.grades > MOST_EXPONENTIAL).any():
            row = int(self.rows[(self.grades > MOST_EXPONENTIAL).argmax()])
            problem = f"`{self.items.name}` has a grade above {MOST_EXPONENTIAL}, whose gain is exponential"
            raise UncountableError(row, problem)
        return np.exp2(self.grades) - 1.0


def _grades(text: str) -> dict[str, float] | None:
    """Parse the grades of items by name; None if the text is not such an object."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, dict) or any(type(each) not in (int, float) for each in found.values()):
        return None
    return found if all(map(math.isfinite, found.values())) else None


@dataclass(frozen=True)
class _Hits:
    """Relevant items in rankings.

    Attributes
    ----------
    rows, ranks : ndarray of int64, shape (n,)
        Row of every relevant item that is ranked, and its first rank, from 1.
    items : ndarray of int64, shape (n,)
        Index of each in `relevant`.
    relevant : _Relevant
        The distinct relevant items of all rows.
    """

    rows: Integers
    ranks: Integers
    items: Integers
    relevant: _Relevant

    @classmethod
    def of(cls, prediction: pl.Series, label: pl.Series, k: int) -> _Hits:
        if k < 0:
            raise UncountableError(0, f"the cutoff `k` is {k}; expected at least 1, or 0 for all")
        require_spaces(prediction, label)
        require_same_items(prediction, label, _LISTS)
        ranked, relevant = Items.read(prediction), _Relevant.of(label)
        numbers, n_numbers = numbered(ranked, relevant.items)
        wanted, distinct = np.unique(relevant.rows * n_numbers + numbers[1], return_index=True)
        keys, places = np.unique(ranked.rows * n_numbers + numbers[0], return_index=True)
        is_hit = np.isin(keys, wanted)
        items, places = np.searchsorted(wanted, keys[is_hit]), places[is_hit]
        rows = ranked.rows[places]
        ranks = places - ranked.offsets[rows] + 1
        kept = ranks <= k if k else np.ones(len(ranks), dtype=np.bool_)
        of_rows = _Relevant(relevant.items, relevant.grades[distinct], relevant.rows[distinct])
        return cls(rows[kept], ranks[kept], items[kept], of_rows)
