"""Two independent binomial counts, against sums of binomial coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from support.bands import check_band, relative

from trackperm.errors import CapacityError, UndefinedStatisticError
from trackperm.exact import PermutationTest, RationalStatistic, permutation, structured_test
from trackperm.exact.distributions.characteristic import SwapDistribution
from trackperm.exact.engines.lattice import independent
from trackperm.exact.engines.lattice.independent import are_independent
from trackperm.exact.engines.lattice.rows import RowIntervals

TP, FP, TQ, FQ = (RationalStatistic.variable(i, 4) for i in range(4))


def law_of(counts: tuple[int, int], signs: tuple[int, int] = (1, 1)) -> SwapDistribution:
    return SwapDistribution(np.diag(signs), np.array(counts))


def labelled(
    n: int, right: float, better: float, seed: int = 0
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], RationalStatistic]:
    """Counts of two classifiers of n labels, and their difference in F1."""
    rng = np.random.default_rng(seed)
    label = rng.random(n) < 0.4

    def counts(share: float) -> npt.NDArray[Any]:
        said = np.where(rng.random(n) < share, label, ~label)
        return np.stack([said & label, said & ~label], axis=1).astype(np.int64)

    def f1(tp: RationalStatistic, fp: RationalStatistic) -> RationalStatistic:
        return (2 * tp).divide(tp + fp + int(label.sum()), undefined=0)

    u, v = counts(right + better), counts(right)
    return np.hstack([u, v]), np.hstack([v, u]), f1(TP, FP) - f1(TQ, FQ)


@pytest.mark.parametrize(
    ("counts", "signs"),
    [((7, 4), (1, 1)), ((60, 41), (-1, 1)), ((300, 900), (1, -1)), ((2001, 1000), (-1, -1))],
)
def test_intervals_against_binomial_coefficients(counts: tuple[int, int], signs: tuple[int, int]) -> None:
    rng, pairs = np.random.default_rng(sum(counts)), []
    rows, columns = (independent._Count.of(law_of(counts, signs), axis) for axis in range(2))
    ways = [[math.comb(c, j) for j in range(c + 1)] for c in counts]
    for _ in range(10):
        reach = int(rng.integers(1, 5)) * math.isqrt(counts[1])
        middle = [sign * c // 2 for sign, c in zip(signs, counts, strict=True)]
        x = np.unique(middle[0] + rng.integers(-rows.terms.size // 2 + 1, rows.terms.size // 2 - 1, 12))
        ends = np.sort(middle[1] + rng.integers(-reach, reach + 1, (2, x.size)), axis=0)
        held = columns.start, columns.start + columns.terms.size - 1
        intervals = RowIntervals((x,), *np.clip(ends, *held))
        truth = sum(
            ways[0][signs[0] * at] * sum(ways[1][signs[1] * y] for y in range(first, last + 1))
            for at, first, last in zip(
                x.tolist(), intervals.first.tolist(), intervals.last.tolist(), strict=True
            )
        )
        pairs.append(
            relative(independent._summed(rows, columns, intervals), Fraction(truth, 2 ** sum(counts)))
        )
    check_band(pairs, 150)


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
@pytest.mark.parametrize(("n", "right", "better"), [(40, 0.8, 0.1), (900, 0.85, 0.02), (5_000, 0.7, 0.15)])
def test_agrees_with_transforms(
    n: int, right: float, better: float, alternative: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed, swapped, h = labelled(n, right, better)

    def found() -> PermutationTest:
        return structured_test(observed, swapped, h, alternative=alternative, method="lattice")

    here = found()
    monkeypatch.setattr(independent, "are_independent", lambda _: False)
    there = found()
    assert here.error_bound < 1e-12
    assert abs(here.log10_pvalue - there.log10_pvalue) * math.log(10.0) <= 1e-14 * max(
        1.0, -here.log10_pvalue
    ) + 1.1 * (here.error_bound + there.error_bound)


def test_tails_below_the_range_of_floats_are_left_to_transforms(monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = []
    plain: Callable[..., Any] = independent.independent_tail

    def refused(*arguments: Any) -> Any:
        try:
            return plain(*arguments)
        except CapacityError as refusal:
            refusals.append(refusal.message)
            raise

    monkeypatch.setattr(permutation, "independent_tail", refused)
    observed, swapped, h = labelled(10_000, 0.6, 0.35)
    test = structured_test(observed, swapped, h)
    assert test.log10_pvalue < -300.0
    assert test.error_bound < 1e-9
    assert refusals == ["the tail is below the range of floats"]


def test_few_swaps_are_listed_instead() -> None:
    observed, swapped, h = labelled(40, 0.8, 0.1)
    assert structured_test(observed, swapped, h).method == "enumerate"
    assert structured_test(observed, swapped, h, method="lattice").method == "lattice"


def test_estimated_costs_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0]])
    h = TP.divide(TP + FP, undefined=0) - TQ.divide(TQ + FQ, undefined=0)
    found = partial(structured_test, pairs, pairs[:, [2, 3, 0, 1]], h, multiplicities=[30_100, 30_000, 100])
    here = found()
    assert here.method == "lattice"
    with pytest.raises(CapacityError, match="it needs about"):
        found(method="lattice", memory_budget=2**20)
    monkeypatch.setattr(independent, "SECONDS_PER_ROW", 1.0)
    assert found().method != "lattice"
    assert found(method="lattice").error_bound == here.error_bound  # that of transforms is another


def test_more_rows_than_the_budget_holds_are_refused() -> None:
    unread: Any = None  # the budget is checked before the region and its reach are
    with pytest.raises(CapacityError, match="rows, beyond the memory budget"):
        independent.independent_tail(law_of((500, 500)), unread, unread, 10_000)


def test_points_without_a_value_are_refused() -> None:
    u, v = np.array([[1, 0]] * 3 + [[0, 1]] * 2 + [[0, 0]]), np.array([[0, 0]] * 5 + [[0, 1]])
    ratio = TP.divide(FP) - TQ.divide(FQ)
    with pytest.raises(UndefinedStatisticError, match="divides by 0"):
        structured_test(np.hstack([u, v]), np.hstack([v, u]), ratio, method="lattice", alternative="less")


@pytest.mark.parametrize(
    ("steps", "independent"),
    [
        ([[1, 0], [0, -1]], True),
        ([[0, 1], [1, 0]], True),
        ([[1, 0], [1, 0]], False),
        ([[2, 0], [0, 1]], False),
        ([[1, 0], [0, 1], [1, 1]], False),
        ([[1], [2]], False),
    ],
)
def test_which_laws_are_independent(steps: list[list[int]], independent: bool) -> None:
    law = SwapDistribution(np.array(steps), np.ones(len(steps), dtype=np.int64))
    assert are_independent(law) is independent


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_bounds_of_tails_far_below_the_range_of_floats(alternative: Any) -> None:
    """Where too many frequencies matter, an upper end is above the mass of the observed point, far below 1.

    A guess of the tail that is too small must not cut bounds to the range of floats.
    """
    sizes, solved = (100_000, 90_000), (90_044, 81_095)
    wins = [(1, 0, 0, 0), (0, 0, 0, 1)]  # the candidate finds a positive; the baseline says a wrong one
    kinds = [*wins, *(point[2:] + point[:2] for point in wins)]
    counts = [*solved, *(n - k for n, k in zip(sizes, solved, strict=True))]
    swapped = [point[2:] + point[:2] for point in kinds]

    def f1(tp: RationalStatistic, fp: RationalStatistic) -> RationalStatistic:
        return (2 * tp).divide(tp + fp + 150_000, undefined=0)

    h = f1(TP, FP) - f1(TQ, FQ)
    result = structured_test(kinds, swapped, h, alternative=alternative, multiplicities=counts)
    at_observed = sum(
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2.0)
        for n, k in zip(sizes, solved, strict=True)
    ) / math.log(10.0)
    assert result.error_bound == 1.0
    assert at_observed <= result.log10_pvalue <= 0.7 * at_observed
