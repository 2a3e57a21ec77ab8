"""Scores of rankings: lists of items, the best first, and the items that are relevant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import UncountableError
from trackperm.statistic.counters.base import Integers, Items, numbered

Floats = npt.NDArray[np.float64]


def reciprocal_rank(prediction: pl.Series, label: pl.Series, k: int) -> Floats:
    """Return 1 / rank of the first relevant item among the first `k`, of all if `k` is 0; else 0."""
    hits = _Hits.of(prediction, label, k)
    best = np.full(len(prediction), np.inf)
    np.minimum.at(best, hits.rows, hits.ranks)
    found: Floats = np.where(np.isfinite(best), 1.0 / best, 0.0)
    return found


def ndcg(prediction: pl.Series, label: pl.Series, k: int) -> Floats:
    """Return the discounted gain of relevant items among the first `k`, over that of the best ranking.

    An item at rank r gains 1 / log2(1 + r), at its first place alone; 0 if no item is relevant: Järvelin and
    Kekäläinen (2002).
    """
    hits = _Hits.of(prediction, label, k)
    most = int(hits.n_relevant.max(initial=0))
    discounts = 1.0 / np.log2(np.arange(2, most + 2))
    ideals = np.concatenate([[0.0], np.cumsum(discounts)])
    ideal = ideals[np.minimum(hits.n_relevant, k) if k else hits.n_relevant]
    gains = np.bincount(hits.rows, 1.0 / np.log2(1.0 + hits.ranks), minlength=len(prediction))
    found: Floats = np.divide(gains, ideal, out=np.zeros(len(prediction)), where=ideal > 0)
    return found


@dataclass(frozen=True)
class _Hits:
    """Relevant items in rankings.

    Attributes
    ----------
    rows, ranks : ndarray of int64, shape (n,)
        Row of every relevant item that is ranked, and its first rank, from 1.
    n_relevant : ndarray of int64, shape (N,)
        Number of distinct relevant items of each row.
    """

    rows: Integers
    ranks: Integers
    n_relevant: Integers

    @classmethod
    def of(cls, prediction: pl.Series, label: pl.Series, k: int) -> _Hits:
        if k < 0:
            raise UncountableError(0, f"the cutoff `k` is {k}; expected at least 1, or 0 for all")
        ranked, relevant = Items.read(prediction), Items.read(label)
        numbers, n_numbers = numbered(ranked, relevant)
        wanted = np.unique(relevant.rows * n_numbers + numbers[1])
        keys, places = np.unique(ranked.rows * n_numbers + numbers[0], return_index=True)
        places = np.sort(places[np.isin(keys, wanted)])
        rows = ranked.rows[places]
        ranks = places - ranked.offsets[rows] + 1
        kept = ranks <= k if k else np.ones(len(ranks), dtype=np.bool_)
        n_relevant = np.bincount(wanted // max(1, n_numbers), minlength=len(label)).astype(np.int64)
        return cls(rows[kept], ranks[kept], n_relevant)
