"""Shares of examples in a score, and the range of their scores, for differences that no example showed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.exact import CountTable, RationalStatistic
from trackperm.exact.functions.slopes import values_and_slopes
from trackperm.exact.intervals import AdditiveScores, HeaviestPart, UnseenDifferences, additive_scores
from trackperm.exact.pairwise import Influences
from trackperm.exact.types import IntArray
from trackperm.statistic import Statistic
from trackperm.statistic.score_ranges import range_width

_Floats = npt.NDArray[np.float64]
_Booleans = npt.NDArray[np.bool_]

ROUNDING = 1e-9
"""Accepted relative difference of two ranges."""

MOST_COUNTS = 10
"""Most counts whose least and greatest values are combined: 2^10 rows."""


def unit_scores(statistic: Statistic, table: CountTable) -> AdditiveScores | None:
    """Return the contributions of units to a linear statistic; None if it is not linear.

    `gap` is None unless the score of a unit has no values between or beyond those that were seen, as far as
    is known: a task of several attempts may fail completely where all that were seen fail once.
    """
    observed, swapped = statistic.pairs(table.candidate, table.baseline)
    scores = additive_scores(observed, swapped, statistic.h, table.multiplicities)
    if scores is None or scores.gap is None or _has_two_values(statistic, table, scores):
        return scores
    return replace(scores, gap=None)


def _has_two_values(statistic: Statistic, table: CountTable, scores: AdditiveScores) -> bool:
    """Return whether the two scores are as far apart as the scores of units can be."""
    width, gap = _possible(statistic, statistic.part_score), float(scores.gap or 0)
    if width is not None and width.is_known:
        return gap >= width.width * (1.0 - ROUNDING)
    if statistic.adds_rows:
        return False
    if not scores.equally_weighted:
        return True  # which no interval for paired proportions has
    sides = np.vstack([table.candidate, table.baseline])
    differ = (table.candidate != table.baseline).any(axis=0)
    return all(np.unique(column[column != 0]).size <= 1 for column in sides[:, differ].T)


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


def unseen_in_pairs(influences: Influences) -> UnseenDifferences | None:
    """Return the shares of examples in a mean over pairs; None without strata and classes."""
    parts = influences.parts
    if parts is None:
        return None
    return UnseenDifferences(
        np.array(parts.shares),
        np.array(parts.counts, dtype=np.int64),
        np.array([parts.n_moved]),
        parts.widest,
        HeaviestPart(*parts.heaviest, verb="differ much"),
        np.sqrt([parts.squares / max(parts.n_moved, 1)]),
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
    The scores of units can be further apart than those that were seen (:func:`_possible`), and a unit of more
    rows than the others counts as much more.
    """
    score = statistic.part_score if has_parts(statistic) else statistic.score
    if score is None:
        return math.inf
    observed, swapped = statistic.pairs(table.candidate, table.baseline)
    linear = additive_scores(observed, swapped, statistic.h, table.multiplicities) is not None
    moved, found, largest = differ.any(axis=(0, 1)), [np.zeros(1)], 1.0
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
            largest = max(largest, _largest_size(score, rows, counts))
    scores = np.concatenate(found)
    length = float(scores.max() - scores.min()) if scores.size > 1 else math.inf
    possible = _possible(statistic, score)
    if possible is not None:
        length = max(length, possible.width * (largest if linear else 1.0))
    if statistic.contrast == "difference":
        return length
    # A score that changes from S by x changes in its logarithm by about x / S.
    least = float(scores_of(statistic.score, np.array(table.totals(), dtype=np.float64)).min())
    return length / least if least > 0.0 else math.inf


@dataclass(frozen=True)
class _Width:
    """Width of the range of a unit's score; if it is not known, no smaller one is possible."""

    width: float
    is_known: bool


def _possible(statistic: Statistic, score: Any) -> _Width | None:
    """Return how far apart the scores of a unit can be, whatever was seen; None if nothing says it.

    Built-in statistics have known ranges. Else it is the width of the scores of single rows, by the ranges of
    their counts: the score of several rows is the quotient of two means, which lies between those of the
    rows. A whole number without a range is at least 0 or 1 on a row.
    """
    if (width := range_width(statistic)) is not None:
        return _Width(float(width), True)
    if score is None or not (statistic.ranges or statistic.adds_rows) or statistic.depends_on_both:
        return None
    if len(statistic.count_names) > MOST_COUNTS:
        return None
    rows = np.array([*itertools.product(*map(set, _row_ends(statistic)))])
    one, two = (scores_of(score, scale * rows) for scale in (1.0, 2.0))
    is_defined = np.isfinite(one)
    if not is_defined.any() or not np.allclose(one[is_defined], two[is_defined], equal_nan=True):
        return None  # such as sums, which grow with the number of rows
    return _Width(float(np.ptp(one[is_defined])), None not in statistic.count_ranges.values())


def _row_ends(statistic: Statistic) -> list[tuple[float, float]]:
    """Return the least and the greatest value of each count on one row, in its units; 0 and 1 if unknown."""
    units = statistic.resolution if isinstance(statistic.resolution, Mapping) else {}
    found = []
    for name, ends in statistic.count_ranges.items():
        low, high = (0.0, 1.0) if ends is None else (float(end / units.get(name, 1)) for end in ends)
        found.append((low, high))
    return found


def ends_of_counts(statistic: Statistic, rows: _Floats) -> tuple[_Floats, _Floats]:
    """Return the least and the greatest value of each total of a unit, seen or possible, and 0.

    `rows` are the counts of units. The largest unit has as many rows as a constant count says, or else at
    least as many as a condition holds on.
    """
    ends = np.array(_row_ends(statistic))
    ends = np.tile(ends, (rows.shape[1] // len(ends), 1))
    low, high = np.minimum(ends[:, 0], 0.0), ends[:, 1]
    is_constant = (ends[:, 0] == high) & (high > 0.0)
    sized = is_constant if is_constant.any() else high == 1.0
    n_rows = max(float((rows[:, sized] / high[sized]).max(initial=1.0)), 1.0) if statistic.adds_rows else 1.0
    return np.minimum(rows.min(axis=0), low * n_rows), np.maximum(rows.max(axis=0), high * n_rows)


def _largest_size(score: Any, rows: _Floats, counts: IntArray) -> float:
    """Return the largest divisor of a unit over their mean; 1 if the score divides by no counts."""
    if not isinstance(score, RationalStatistic):
        return 1.0
    varying = [operand for operand in score.operands if operand.variables]
    if score.operation == "/" and score.operands[1].variables:
        sizes = scores_of(score.operands[1], rows)
        mean = float(np.average(sizes, weights=counts)) if counts.sum() else 0.0
        return float(sizes.max()) / mean if mean > 0.0 else 1.0
    return _largest_size(varying[0], rows, counts) if len(varying) == 1 else 1.0
