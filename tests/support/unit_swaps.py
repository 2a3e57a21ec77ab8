"""P-values by exchanging units one by one: rows of plain Python, statistics of plain Python."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

Row = dict[str, Any]


def pvalue(
    baseline: Sequence[Row],
    candidate: Sequence[Row],
    unit: str,
    statistic: Callable[[list[Row], list[Row]], Any],
    at_least_as_extreme: Callable[[Any, Any], bool] = lambda t, observed: abs(t) >= abs(observed),
) -> Fraction:
    """Share of the exchanges of whole units whose statistic of (candidate, baseline) is extreme."""
    units: dict[Hashable, tuple[list[Row], list[Row]]] = {}
    for side, rows in enumerate((candidate, baseline)):
        for row in rows:
            units.setdefault(row[unit], ([], []))[side].append(row)
    pairs = list(units.values())
    values = []
    # What changes nothing is not exchanged.
    choices = [(False,) if own == other else (False, True) for own, other in pairs]
    for exchanged in product(*choices):
        u, v = [], []
        for (own, other), swapped in zip(pairs, exchanged, strict=True):
            u += other if swapped else own
            v += own if swapped else other
        values.append(statistic(u, v))
    return Fraction(sum(at_least_as_extreme(value, values[0]) for value in values), len(values))


def score_pvalue(
    baseline: Sequence[Row],
    candidate: Sequence[Row],
    score: Callable[[list[Row]], Any],
    alternative: str = "two-sided",
    *,
    mid_p: bool = False,
) -> Fraction:
    """P-value of a difference of scores by exchanging the rows of each `id`; None is 0/0 and counts as 0."""
    side = {"two-sided": abs, "greater": lambda t: t, "less": lambda t: -t}[alternative]

    def slack(value: Any) -> Any:
        return Decimal("1e-20") if isinstance(value, Decimal) else 0

    rules = (
        lambda t, observed: t >= observed - slack(t - observed),
        lambda t, observed: t > observed + slack(t - observed),
    )[: 1 + mid_p]
    shares = [
        pvalue(baseline, candidate, "id", lambda u, v: side((score(u) or 0) - (score(v) or 0)), rule)
        for rule in rules
    ]
    return sum(shares, Fraction()) / len(shares)


def example_pvalue(
    baseline: Sequence[Any], candidate: Sequence[Any], difference: Callable[..., Any], slack: Any = 0
) -> Fraction:
    """Two-sided p-value of `difference(candidate, baseline)` by exchanging examples one by one."""
    sides = [[{"id": i, "value": value} for i, value in enumerate(side)] for side in (baseline, candidate)]
    return pvalue(
        *sides,
        "id",
        lambda *both: abs(difference(*([row["value"] for row in rows] for rows in both))),
        lambda t, observed: t >= observed - slack,
    )


def accuracy(rows: list[Row]) -> Fraction:
    return Fraction(sum(row["prediction"] == row["label"] for row in rows), len(rows))


def f1(rows: list[Row]) -> Fraction:
    tp = sum(row["prediction"] == row["label"] == 1 for row in rows)
    incorrect = sum((row["prediction"] == 1) != (row["label"] == 1) for row in rows)
    return Fraction(2 * tp, 2 * tp + incorrect) if tp or incorrect else Fraction(0)
