"""Scores of rankings: lists of items, the best first, and the items that are relevant."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import UncountableError
from trackperm.statistic.counters.base import Integers, Items, numbered, require_spaces

GAINS = ("linear", "exponential")
"""Gains of a relevance grade: the grade itself, or 2^grade - 1."""

MOST_EXPONENTIAL = 60
"""Largest grade with an exponential gain: its gain is an integer below 2^62."""

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
    """
    hits, n = _Hits.of(prediction, label, k), len(prediction)
    gains = hits.relevant.gains(gain)
    order = np.lexsort((-gains, hits.relevant.rows))
    rows = hits.relevant.rows[order]
    firsts = np.searchsorted(rows, np.arange(n))
    places = np.arange(rows.size) - firsts[rows] + 1
    kept = places <= k if k else np.ones(rows.size, dtype=np.bool_)
    ideal = np.bincount(rows[kept], (gains[order] / np.log2(1.0 + places))[kept], minlength=n)
    own = np.bincount(hits.rows, gains[hits.items] / np.log2(1.0 + hits.ranks), minlength=n)
    found: Floats = np.divide(own, ideal, out=np.zeros(n), where=ideal > 0)
    return found


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
            items = Items.read_lists(label)
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
        ranked, relevant = Items.read_lists(prediction), _Relevant.of(label)
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
