"""Shares of examples in a score, and the range of their scores, for differences that no example showed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.exact import CountTable, RationalStatistic
from trackperm.exact.functions.slopes import values_and_slopes
from trackperm.exact.intervals import HeaviestPart, UnseenDifferences, additive_scores
from trackperm.exact.types import IntArray
from trackperm.statistic import Statistic

_Floats = npt.NDArray[np.float64]
_Booleans = npt.NDArray[np.bool_]


def has_parts(statistic: Statistic) -> bool:
    """Return whether the score is a mean over strata or classes, whose weights no count changes."""
    return len(statistic.weights) > 1 and not statistic.adds_classes and not statistic.depends_on_both


def unseen_differences(statistic: Statistic, table: CountTable) -> UnseenDifferences:
    """Return the shares of examples in a score, and the range of their scores.

    An example belongs to a stratum or class if it has a count there, apart from counts that all examples
    have.
    """
    counts = table.multiplicities
    u, v = (_by_part(statistic, side) for side in (table.candidate, table.baseline))
    differ = u != v
    n_moved = counts * differ.any(axis=(1, 2))
    if not has_parts(statistic):
        total = np.array([counts.sum()])
        belongs = np.ones((len(counts), 1), dtype=np.bool_)
        widest = _range(statistic, table, (u, v), belongs, differ)
        return UnseenDifferences(1.0 / total, total, np.array([n_moved.sum()]), widest)
    varies = ((u != u[0]) | (v != u[0])).any(axis=0)
    belongs = (((u != 0) | (v != 0)) & varies).any(axis=2)
    weights = np.array([float(weight) for weight in statistic.weights.values()])
    of_parts = counts @ belongs
    shares = np.where(of_parts > 0, weights / weights.sum() / np.maximum(of_parts, 1), 0.0)
    distinct, places = np.unique(belongs @ shares, return_inverse=True)
    numbers, moved = (np.bincount(places, each, len(distinct)) for each in (counts, n_moved))
    k, there = int(np.argmax(shares)), distinct > 0.0
    moved_there = int(counts @ differ[:, k].any(axis=1))
    return UnseenDifferences(
        distinct[there],
        numbers[there].astype(np.int64),
        moved[there].astype(np.int64),
        _range(statistic, table, (u, v), belongs, differ),
        HeaviestPart([*statistic.weights][k], int(of_parts[k]), moved_there),
    )


def scores_of(score: Any, totals: _Floats) -> _Floats:
    """Return the scores of runs with these totals; NaN or infinite if the score is undefined."""
    with np.errstate(all="ignore"):
        values = score.values(totals) if isinstance(score, RationalStatistic) else score(totals)
    return np.broadcast_to(np.asarray(values, dtype=np.float64), len(totals))


def _by_part(statistic: Statistic, side: IntArray) -> IntArray:
    """Return the counts of one run by part, shape (K, parts, p)."""
    return side.reshape(len(side), len(statistic.weights) if has_parts(statistic) else 1, -1)


def _range(
    statistic: Statistic,
    table: CountTable,
    sides: tuple[IntArray, IntArray],
    belongs: _Booleans,
    differ: _Booleans,
) -> float:
    """Return the length of the smallest interval with 0 and the scores of all examples, in units of h.

    Where exchanges change the score linearly, the score of an example is its contribution to that of its
    part, by the slopes of the counts that differ anywhere: no single example has a variance of labels, by
    which R^2 divides. Else an example is scored as a run of n such examples, so that sums are comparable.
    """
    score = statistic.part_score if has_parts(statistic) else statistic.score
    if score is None:
        return math.inf
    observed, swapped = statistic.pairs(table.candidate, table.baseline)
    linear = additive_scores(observed, swapped, statistic.h, table.multiplicities) is not None
    moved, found = differ.any(axis=(0, 1)), [np.zeros(1)]
    for k in range(belongs.shape[1]):
        own = belongs[:, k]
        counts = table.multiplicities[own]
        for side in sides:
            rows = side[own, k].astype(np.float64)
            if linear and moved.any() and isinstance(score, RationalStatistic):
                slopes = values_and_slopes(score, counts @ rows)[1]
                values = rows[:, moved] @ slopes[moved] * counts.sum()
            else:
                values = scores_of(score, rows * counts.sum())
            found.append(values[np.isfinite(values)])
    scores = np.concatenate(found)
    if scores.size == 1:
        return math.inf
    length = float(scores.max() - scores.min())
    if statistic.contrast == "difference":
        return length
    # A score that changes from S by x changes in its logarithm by about x / S.
    least = float(scores_of(statistic.score, np.array(table.totals(), dtype=np.float64)).min())
    return length / least if least > 0.0 else math.inf
