"""Default method: the same for all swaps of the same pairs, until a limit beyond which swaps are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from support.budget import cases

from trackperm.exact import (
    PermutationTest,
    RationalStatistic,
    RealStatistic,
    structured_test,
)

Counts = np.ndarray[Any, np.dtype[np.int64]]

EXACT = {"enumerate", "lattice", "binomial", "dp"}
DRAWN = {"tilted", "monte-carlo"}

BUDGETS = [2**30, 2**30, 2**26, 2**24]
"""Memory that fits all windows, or some, or none."""


def share(part: Any, whole: Any) -> Any:
    return part.divide(whole, undefined=0)


def f1(x: Sequence[Any]) -> Any:
    return share(2 * x[0], 2 * x[0] + x[1])


SCORES: dict[str, tuple[int, Any, Callable[[Sequence[Any]], Any]]] = {
    "F1": (2, RationalStatistic, f1),
    "sum of cubes": (2, RationalStatistic, lambda x: x[0] * x[0] * x[0] + x[1] * x[1] * x[1]),
    "root of a product": (2, RealStatistic, lambda x: (x[0] * x[1] + 1).sqrt()),
    "precision and a count": (3, RationalStatistic, lambda x: share(x[0], x[0] + x[1]) + x[2] / 10),
    "volume": (3, RationalStatistic, lambda x: x[0] * x[1] * x[2]),
    "root of three counts": (3, RealStatistic, lambda x: (x[0] * x[1] + x[2] + 1).sqrt()),
    "macro-F1": (4, RationalStatistic, lambda x: f1(x[:2]) + f1(x[2:])),
    "product of four": (4, RationalStatistic, lambda x: x[0] * x[1] * x[2] * x[3]),
}


class Pairs:
    """Distinct pairs of counts with multiplicities, and the difference of a score of both runs."""

    def __init__(self, rng: np.random.Generator) -> None:
        name = list(SCORES)[rng.integers(len(SCORES))]
        m, kind, score = SCORES[name]
        x = [kind.variable(i, 2 * m) for i in range(2 * m)]
        self.h = score(x[:m]) - score(x[m:])
        n_kinds, highest = int(rng.integers(2, 8)), int(rng.choice([1, 2, 5, 30, 300]))
        self.there, self.back = rng.integers(0, highest + 1, (2, n_kinds, m))
        self.counts = rng.integers(1, int(rng.choice([1, 3, 10, 50, 300])) + 1, n_kinds)
        self.budget = int(rng.choice(BUDGETS))

    def assignments(self, rng: np.random.Generator) -> list[Counts]:
        """Return how many pairs of each kind stay: a half, all, those of the better score, and any."""
        better = (self.there - self.back)[:, 0] >= 0
        return [
            self.counts // 2,
            self.counts,
            np.where(better, self.counts, 0),
            np.where(better, self.counts - self.counts // 6, self.counts // 6),
            rng.binomial(self.counts, rng.random(self.counts.size)),
            rng.binomial(self.counts, 0.5),
        ]

    def tested(self, n_stay: Counts) -> PermutationTest:
        u, v = np.vstack([self.there, self.back]), np.vstack([self.back, self.there])
        counts = np.concatenate([n_stay, self.counts - n_stay])
        present = counts > 0
        return structured_test(
            np.hstack([u, v])[present],
            np.hstack([v, u])[present],
            self.h,
            multiplicities=counts[present],
            memory_budget=self.budget,
            n_samples=None,
        )


def check_choice(results: Sequence[PermutationTest]) -> set[str]:
    """Exact engines answer for all assignments or none; if none, random swaps for the most extreme ones."""
    # A statistic that is 0, or never changes, is settled without an engine.
    settled = [each for each in results if each.pvalue == 1.0 and each.error_bound == 0.0]
    others = [each for each in results if each not in settled]
    methods = {each.method for each in others}
    assert not (methods & EXACT and methods - EXACT), methods
    drawn = [abs(each.observed) for each in others if each.method in DRAWN]
    certain = [abs(each.observed) for each in others if each.method not in DRAWN]
    assert not drawn or max(certain, default=0.0) <= min(drawn) * (1 + 1e-12)
    return methods


def check_many(seed: int, n_cases: int) -> set[str]:
    rng = np.random.default_rng(seed)
    seen: set[str] = set()
    for _ in range(n_cases):
        pairs = Pairs(rng)
        seen |= check_choice([pairs.tested(n_stay) for n_stay in pairs.assignments(rng)])
    return seen


@pytest.mark.parametrize("seed", [20, 21])
def test_the_method_is_that_of_the_unordered_pairs(seed: int) -> None:
    assert check_many(seed, cases(6)) >= {"enumerate", "lattice"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.nightly) for n in (2, 3, 4))])
def test_the_method_is_that_of_the_unordered_pairs_in_many_cases(seed: int) -> None:
    assert check_many(seed, cases(40)) >= {"enumerate", "lattice"}


def test_more_points_than_are_decided_one_by_one_are_drawn_whatever_the_memory() -> None:
    observed = np.random.default_rng(0).integers(0, 4_000_000, (300, 2))
    x, y = (RationalStatistic.variable(i, 2) for i in range(2))
    h = share(x * x - y * y, x * x + y * y)
    found = [structured_test(observed, observed[:, ::-1], h, memory_budget=2**b) for b in (30, 34)]
    assert [each.method for each in found] == ["tilted", "tilted"]
    assert found[0].pvalue == found[1].pvalue


def test_intervals_of_a_numpy_function_are_part_of_the_memory() -> None:
    moved = np.random.default_rng(0).integers(-3, 4, (3_000, 2))
    rows = np.hstack([moved, np.zeros_like(moved)])

    def waves(g: Any) -> Any:
        return np.sin(2.5 * (g[..., 0] - g[..., 2]) + 1.7 * (g[..., 1] - g[..., 3]))

    found = structured_test(rows, rows[:, [2, 3, 0, 1]], waves, memory_budget=2**22)
    assert found.method == "monte-carlo"
