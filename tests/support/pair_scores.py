"""Scores over pairs of examples by their definitions, and p-values from every swap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

Rows = Mapping[str, Sequence[Any]]
Score = Callable[[Sequence[Any], Rows], Fraction]


def _sign(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


def _half(a: Any, b: Any) -> Fraction:
    return Fraction(1 + _sign(a, b), 2)


def mean(values: Sequence[Fraction | int]) -> Fraction:
    return Fraction(sum(values)) / len(values)


def roc_auc(scores: Sequence[Any], rows: Rows) -> Fraction:
    label, n = rows["label"], range(len(scores))
    return mean([_half(scores[i], scores[j]) for i in n for j in n if label[i] == 1 and label[j] != 1])


def kendall_tau(scores: Sequence[Any], rows: Rows) -> Fraction:
    label, n = rows["label"], range(len(scores))
    return mean([_sign(scores[i], scores[j]) * _sign(label[i], label[j]) for i in n for j in n if i < j])


def somers_d(scores: Sequence[Any], rows: Rows) -> Fraction:
    label, n = rows["label"], range(len(scores))
    return mean([_sign(scores[i], scores[j]) for i in n for j in n if label[i] > label[j]])


def concordance_index(scores: Sequence[Any], rows: Rows) -> Fraction:
    """Harrell's C: the first of two examples to fail should have the greater risk."""
    found = []
    for i, (time, event) in enumerate(zip(rows["label"], rows["event"], strict=True)):
        for j, (other, other_event) in enumerate(zip(rows["label"], rows["event"], strict=True)):
            if i != j and event == 1 and (other > time or (other == time and other_event == 0)):
                found.append(_half(scores[i], scores[j]))
    return mean(found)


def pairwise_accuracy(tolerance: Fraction) -> Score:
    def score(scores: Sequence[Any], rows: Rows) -> Fraction:
        label, n = rows["label"], range(len(scores))
        found = []
        for i in n:
            for j in range(i):
                is_tied = abs(Fraction(str(scores[i])) - Fraction(str(scores[j]))) <= tolerance
                order = 0 if is_tied else _sign(scores[i], scores[j])
                found.append(int(order == _sign(label[i], label[j])))
        return mean(found)

    return score


def by_stratum(score: Score, weights: Mapping[str, Fraction]) -> Score:
    def mean_of_strata(scores: Sequence[Any], rows: Rows) -> Fraction:
        found = Fraction(0)
        for name, weight in weights.items():
            own = [i for i, value in enumerate(rows["stratum"]) if value == name]
            part = {key: [values[i] for i in own] for key, values in rows.items()}
            found += weight * score([scores[i] for i in own], part)
        return found / sum(weights.values())

    return mean_of_strata


def midranks(scores: Sequence[Any]) -> list[int]:
    """Return twice the mid-ranks."""
    return [2 * sum(x < y for x in scores) + sum(x == y for x in scores) + 1 for y in scores]


def exact_pvalue(
    score: Score,
    candidate: Sequence[Any],
    baseline: Sequence[Any],
    rows: Rows,
    units: Sequence[Any] | None = None,
) -> Fraction:
    """Return the two-sided p-value over all swaps of examples, or of units of examples together."""
    units = list(range(len(candidate))) if units is None else units
    names = sorted(set(units))
    observed = abs(score(candidate, rows) - score(baseline, rows))
    extreme = 0
    for swaps in product((False, True), repeat=len(names)):
        swapped = dict(zip(names, swaps, strict=True))
        sides = [
            [b if swapped[unit] is side else a for a, b, unit in zip(candidate, baseline, units, strict=True)]
            for side in (True, False)
        ]
        extreme += abs(score(sides[0], rows) - score(sides[1], rows)) >= observed
    return Fraction(extreme, 2 ** len(names))
