"""Weights of examples in sums over pairs, against the sums themselves after every swap."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from exact.pairwise.levels import area_sums, rate
from support.budget import cases

from trackperm.errors import InputError
from trackperm.exact.pairwise import (
    PairMean,
    PairScores,
    PairSums,
    Roles,
    coded_scores,
    compared_pairs,
    influences_of,
    ranked_pairs,
    ranked_scores,
)
from trackperm.exact.pairwise.dominance import KeyOrder, n_below

STEPS = [(0,), (-1, 1), (Fraction(-1, 2), 0, 2)]


class Case:
    """Random scores, roles and terms of a few examples, with the sum over pairs by definition."""

    def __init__(self, rng: np.random.Generator, number: int) -> None:
        n = int(rng.integers(1, 8))
        n_left, n_right = (int(size) for size in rng.integers(1, 4, 2))
        self.steps = tuple(Fraction(step) for step in STEPS[number % 3])
        self.u, self.v = rng.integers(0, 5, n), rng.integers(0, 5, n)
        groups = rng.integers(0, 2 if number % 2 else 1, n)
        self.roles = Roles(
            rng.integers(-1, n_left, n),
            rng.integers(-1, n_right, n),
            rng.integers(0, 3, n),
            rng.integers(0, 3, n),
            groups,
            groups,
        )
        self.is_pair = rng.random((n_left, n_right, 3)) < 0.8
        terms = rng.integers(-3, 4, (n_left, n_right, 3, 2 * len(self.steps) + 1))
        self.terms = terms * self.is_pair[..., None]

    def pairs(self) -> list[tuple[int, int, tuple[int, int, int]]]:
        roles, n = self.roles, len(self.u)
        found = []
        for i, j in product(range(n), range(n)):
            if (
                i == j
                or roles.left[i] < 0
                or roles.right[j] < 0
                or roles.left_group[i] != roles.right_group[j]
            ):
                continue
            place = 1 + int(np.sign(roles.left_place[i] - roles.right_place[j]))
            kind = int(roles.left[i]), int(roles.right[j]), place
            if self.is_pair[kind]:
                found.append((i, j, kind))
        return found

    def total(self, scores: np.ndarray[Any, Any]) -> int:
        found = 0
        for i, j, kind in self.pairs():
            difference = int(scores[i]) - int(scores[j])
            region = sum((difference >= step) + (difference > step) for step in self.steps)
            found += int(self.terms[(*kind, region)])
        return found


def assert_sums(sums: PairSums, total: Callable[[Any], int], u: Any, v: Any) -> None:
    assert (sums.candidate.sum(), sums.baseline.sum()) == (total(u), total(v))
    for signs in product((1, -1), repeat=len(u)):
        stays = np.array(signs) > 0
        difference = total(np.where(stays, u, v)) - total(np.where(stays, v, u))
        assert 2 * difference == int(np.array(signs) @ sums.weights)


def test_against_the_sum_after_every_swap() -> None:
    rng = np.random.default_rng(0)
    for number in range(cases(150)):
        case = Case(rng, number)
        scores = coded_scores(case.u, case.v, case.steps)
        sums = ranked_pairs(scores, case.roles, case.terms, case.is_pair)
        assert_sums(sums, case.total, case.u, case.v)
        pairs = case.pairs()
        n = range(len(case.u))
        assert sums.partners.tolist() == [sum(i == k for i, _, _ in pairs) for k in n]
        assert sums.pairs.tolist() == [sum(k in (i, j) for i, j, _ in pairs) for k in n]


def test_any_term_against_the_sum_after_every_swap() -> None:
    rng = np.random.default_rng(1)
    for _ in range(cases(30)):
        n = int(rng.integers(2, 8))
        u, v = rng.integers(-9, 9, n), rng.integers(-9, 9, n)
        factors = rng.integers(-3, 4, (n, n))
        both = np.stack([v, u])

        def term(i: Any, j: Any, own: bool, other: bool, both: Any = both, factors: Any = factors) -> Any:
            return factors[i, j] * both[int(own), i] * (both[int(other), j] + 1)

        def total(scores: Any, factors: Any = factors) -> int:
            found = factors * np.outer(scores, scores + 1)
            return int(found.sum() - np.trace(found))

        assert_sums(compared_pairs(term, lambda i, j: i >= 0, n), total, u, v)


def test_the_two_ways_of_summing_agree() -> None:
    rng = np.random.default_rng(2)
    n = 900
    label = rng.random(n) < 0.3
    u, v = (np.round(rng.normal(size=n) + label, 1) for _ in range(2))
    fast = area_sums(label, coded_scores(u, v))
    both = np.stack([v, u])

    def term(i: Any, j: Any, own: bool, other: bool) -> Any:
        a, b = both[int(own), i], both[int(other), j]
        return 2 * (a > b) + (a == b)

    slow = compared_pairs(term, lambda i, j: label[i] & ~label[j], n)
    for name in ("weights", "candidate", "baseline", "partners", "own", "pairs"):
        assert np.array_equal(getattr(fast, name), getattr(slow, name)), name


def test_standard_error_is_that_of_delong() -> None:
    rng = np.random.default_rng(3)
    n = 60
    label = rng.random(n) < 0.4
    u, v = (np.round(rng.normal(size=n) + label, 1) for _ in range(2))
    sums = area_sums(label, coded_scores(u, v))
    # Structural components V10 and V01 of DeLong, DeLong and Clarke-Pearson (1988), by definition.
    psi = [(s[label][:, None] > s[~label][None]) + (s[label][:, None] == s[~label][None]) / 2 for s in (u, v)]
    difference = psi[0] - psi[1]
    m, k = difference.shape
    variance = difference.mean(axis=1).var(ddof=1) / m + difference.mean(axis=0).var(ddof=1) / k
    mean = PairMean(sums, Fraction(1, 2), label.astype(np.int64), np.zeros(n, dtype=np.int64), np.ones(1))
    assert influences_of([mean]).standard_error == pytest.approx(variance**0.5, rel=1e-12)


def test_steps_are_exact_for_decimals() -> None:
    scores = coded_scores(
        np.array([0.1, 0.3, 0.8]), np.array([0.6, 0.3, 0.1]), (Fraction(-1, 5), Fraction(1, 5))
    )
    one, three, eight = scores.u.tolist()
    # 0.3 - 0.1 is 0.2, and so is 0.8 - 0.6, which floats make 0.19999999999999998 and 0.20000000000000007.
    assert (scores.left[0][three], scores.left[1][three]) == (one, one + 1)
    assert scores.left[1][eight] == scores.v.tolist()[0] + 1


def test_ranks_are_midranks_within_each_system() -> None:
    scores = ranked_scores(np.array([3.0, 1.0, 3.0]), np.array([10, 20, 30]))
    assert scores.u.tolist() == [5, 2, 5]
    assert scores.v.tolist() == [2, 4, 6]


def test_counts_of_points_by_definition() -> None:
    rng = np.random.default_rng(4)
    for n, largest in ((1, 1), (7, 3), (64, 64), (65, 2), (500, 40), (500, 10**7)):
        keys, heights = rng.integers(0, largest, n), rng.integers(0, largest, n)
        bounds, limits = rng.integers(0, largest + 1, 90), rng.integers(0, largest + 1, 90)
        limits[:n] = heights[:90]
        for n_groups in (1, 2, 40, 2**40):
            groups, own = rng.integers(0, min(n_groups, 40), n), rng.integers(0, min(n_groups, 40), 90)
            wide = keys * max(1, n_groups // 40), bounds * max(1, n_groups // 40)
            found = KeyOrder.of(wide[0], groups, wide[1], own).below(heights, limits)
            is_counted = (groups[:, None] == own) & (keys[:, None] < bounds)
            lower, equal = heights[:, None] < limits, heights[:, None] == limits
            assert found[0].tolist() == (is_counted & lower).sum(axis=0).tolist()
            assert found[1].tolist() == (is_counted & equal).sum(axis=0).tolist()
        assert n_below(keys, bounds).tolist() == (keys[:, None] < bounds).sum(axis=0).tolist()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scores_have_to_be_finite(value: float) -> None:
    for code in (ranked_scores, coded_scores):
        with pytest.raises(InputError, match="NaN or infinite"):
            code(np.array([0.0, value]), np.array([0.0, 1.0]))


def test_sums_that_may_overflow_are_refused() -> None:
    zeros = np.zeros(2, dtype=np.int64)
    scores = PairScores(zeros, zeros, 1, (np.array([0]), np.array([1])), (np.array([0]), np.array([1])))
    terms = np.full((1, 1, 3, 3), 2**60)
    with pytest.raises(InputError, match="may add up to 2\\^62"):
        ranked_pairs(scores, Roles(*[zeros] * 6), terms, np.ones((1, 1, 3), dtype=bool))


@pytest.mark.extended
@pytest.mark.parametrize(("n", "share", "most"), [(40, 0.3, 0.07), (100, 0.3, 0.07)])
def test_level_of_ranks(n: int, share: float, most: float) -> None:
    """With 600 samples, a level of 0.05 exceeds 0.07 once in 60 times; the seed is fixed."""
    assert 0.02 < rate(n, share, 600) < most
