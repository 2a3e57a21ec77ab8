"""Tarone-Holm against closed testing, Tarone's own definition, and the worst dependence there is."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from support.cases import F1

from trackperm.errors import InputError
from trackperm.exact import RationalStatistic, difference_test, structured_test
from trackperm.exact.multiplicity import (
    adjust,
    log10_smallest_pvalue,
    tarone_holm,
    tarone_holm_log10,
)


def random_family(rng: np.random.Generator, most: int = 7) -> tuple[np.ndarray, np.ndarray]:
    m = int(rng.integers(1, most + 1))
    pvalues = rng.choice([0.001, 0.01, 0.02, 0.04, 0.3, 1.0, *rng.random(4) ** 2], m)
    return pvalues, np.minimum(pvalues, rng.choice([0.0, 0.01, 0.02, 0.03, 0.2], m))


def intersections(m: int) -> list[list[int]]:
    return [list(c) for size in range(1, m + 1) for c in itertools.combinations(range(m), size)]


@pytest.mark.parametrize("seed", range(40))
def test_against_closed_testing(seed):
    pvalues, smallest = random_family(np.random.default_rng(seed))
    expected = np.zeros(pvalues.size)
    for members in intersections(pvalues.size):
        p, a = pvalues[members], smallest[members]
        local = min(t * np.count_nonzero(a <= t) for t in p)
        expected[members] = np.maximum(expected[members], local)
    np.testing.assert_allclose(tarone_holm(pvalues, smallest), np.minimum(expected, 1.0), rtol=1e-14)


def rejected_by_tarone(pvalues: np.ndarray, smallest: np.ndarray, alpha: float) -> bool:
    """Tarone (1990): with K the least k for which at most k tests can reach alpha / k, p <= alpha / K."""
    sizes = range(1, pvalues.size + 1)
    least = min(k for k in sizes if np.count_nonzero(smallest <= alpha / k) <= k)
    return bool((pvalues <= alpha / least).any())


@pytest.mark.parametrize("seed", range(40))
def test_against_tarones_rejections_at_all_levels_up_to_alpha(seed):
    # Hommel and Krummenauer (1998): Tarone's rejections need not grow with alpha; those at lower levels stay.
    pvalues, smallest = random_family(np.random.default_rng(seed), most=5)
    m = pvalues.size
    levels = np.unique(np.concatenate([k * np.concatenate([pvalues, smallest]) for k in range(1, m + 1)]))
    levels = levels[(levels > 0.0) & (levels < 1.0)]
    for alpha in (0.02, 0.05, 0.2):
        local = {
            tuple(members): any(
                rejected_by_tarone(pvalues[members], smallest[members], gamma)
                for gamma in [*levels[levels <= alpha], alpha]
            )
            for members in intersections(m)
        }
        expected = [all(found for members, found in local.items() if i in members) for i in range(m)]
        assert (tarone_holm(pvalues, smallest) <= alpha * (1 + 1e-12)).tolist() == expected


def random_supports(rng: np.random.Generator, m: int, most: int) -> list[np.ndarray]:
    """Attainable p-values of m tests, each with at most `most`; some coarse, some equal, all up to 1."""
    return [
        np.unique(np.append(np.round(rng.random(rng.integers(0, most)) ** 2 + 1e-3, 3).clip(0, 1), 1.0))
        for _ in range(m)
    ]


def outcomes(supports: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """All families of p-values, shape (n, m), and their probabilities under independent true hypotheses."""
    pvalues = np.array(list(itertools.product(*supports)))
    masses = [np.diff(support, prepend=0.0) for support in supports]
    return pvalues, np.array([np.prod(mass) for mass in itertools.product(*masses)])


def worst_fwer(supports: list[np.ndarray], rejects: np.ndarray) -> float:
    """The greatest probability of `rejects` over all joint laws with the given marginals."""
    pvalues, _ = outcomes(supports)
    rows = [pvalues[:, i] == value for i, support in enumerate(supports) for value in support]
    masses = np.concatenate([np.diff(support, prepend=0.0) for support in supports])
    found = linprog(-rejects.astype(float), A_eq=np.array(rows, dtype=float), b_eq=masses)
    return -float(found.fun)


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(12))
def test_the_level_holds_under_any_dependence(seed):
    rng = np.random.default_rng(seed)
    supports = random_supports(rng, 3, 5)
    smallest = np.array([support[0] for support in supports])
    families, _ = outcomes(supports)
    adjusted = np.array([tarone_holm(family, smallest) for family in families])
    for alpha in (0.05, 0.2):
        rejected = adjusted < alpha
        assert worst_fwer(supports, rejected.any(axis=1)) <= alpha + 1e-9
        # With a false hypothesis among them, whatever its p-value.
        for false in range(3):
            true = [i for i in range(3) if i != false]
            for value in supports[false]:
                here = families[:, false] == value
                wrong = rejected[here][:, true].any(axis=1)
                assert worst_fwer([supports[i] for i in true], wrong) <= alpha + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_never_above_holm_and_equal_where_everything_is_attainable(seed):
    pvalues, smallest = random_family(np.random.default_rng(seed))
    assert (tarone_holm(pvalues, smallest) <= adjust(pvalues, "holm") * (1 + 1e-14)).all()
    np.testing.assert_allclose(tarone_holm(pvalues, np.zeros(pvalues.size)), adjust(pvalues, "holm"))


@pytest.mark.parametrize("seed", range(20))
def test_logarithms_agree(seed):
    pvalues, smallest = random_family(np.random.default_rng(seed))
    with np.errstate(divide="ignore"):
        found = tarone_holm_log10(np.log10(pvalues), np.log10(smallest))
    np.testing.assert_allclose(10.0**found, tarone_holm(pvalues, smallest), rtol=1e-12)


def test_logarithms_below_the_range_of_floats():
    found = tarone_holm_log10([-900.0, -1.0, -0.5], [-1000.0, -950.0, -0.6])
    np.testing.assert_allclose(found, [-900.0 + math.log10(2), -1.0 + math.log10(1), -0.5])


def test_tests_that_cannot_be_significant_cost_nothing():
    # Accuracy on 10 discordant examples; five statistics of 3, each at least 0.25.
    assert tarone_holm([2 / 1024] + [0.25] * 5, [2 / 1024] + [0.25] * 5)[0] == 2 / 1024


def test_smallest_of_linear_statistics_is_attained():
    test = difference_test([1] * 1200 + [0] * 300, [0] * 1200 + [0] * 300)
    assert log10_smallest_pvalue(test) == pytest.approx(-1199 * math.log10(2))
    assert test.log10_pvalue >= log10_smallest_pvalue(test) - 1e-9


def cube_of_first_count(n_first: int, n_second: int):
    """t = (x1 - x3)^3 of counts that differ on `n_first` examples, x2 and x4 on `n_second` others."""
    x = [RationalStatistic.variable(i, 4) for i in range(4)]
    observed = np.array([[1, 0, 0, 0]] * n_first + [[0, 1, 0, 0]] * n_second)
    return structured_test(observed, observed[:, [2, 3, 0, 1]], (x[0] - x[2]) ** 3 + 0 * (x[1] - x[3]))


def test_smallest_of_others_comes_from_the_law_where_it_is_resolved():
    test = cube_of_first_count(3, 4)
    assert test.log10_smallest_pvalue == pytest.approx(-6 * math.log10(2))
    assert log10_smallest_pvalue(test) == pytest.approx(-2 * math.log10(2))


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_smallest_of_f1_is_the_least_over_all_swaps(alternative):
    u = np.array([[1, 0], [1, 2], [1, 3], [0, 3], [4, 4]])
    v = np.array([[1, 4], [0, 3], [0, 1], [1, 0], [1, 0]])

    def test(observed, swapped):
        counts = np.hstack([observed, swapped]), np.hstack([swapped, observed])
        return structured_test(*counts, F1, alternative=alternative)

    masks = (np.array(bits)[:, None] for bits in itertools.product([False, True], repeat=5))
    pvalues = [test(np.where(mask, v, u), np.where(mask, u, v)).pvalue for mask in masks]
    assert 10.0 ** log10_smallest_pvalue(test(u, v)) == pytest.approx(min(pvalues), rel=1e-9)


def test_smallest_of_many_is_a_lower_bound():
    test = cube_of_first_count(30, 20)
    assert log10_smallest_pvalue(test) == test.log10_smallest_pvalue < -29 * math.log10(2)


def test_pvalues_drawn_at_random_have_no_smallest():
    test = difference_test([1] * 30, [0] * 30, method="monte-carlo", n_samples=99)
    assert log10_smallest_pvalue(test) == -math.inf


def test_refusals():
    with pytest.raises(InputError, match=r"below the smallest attainable, 0\.25"):
        tarone_holm([0.1, 0.1], [0.1, 0.25])
    with pytest.raises(InputError, match="expected one number for each"):
        tarone_holm([0.1, 0.1], [0.1])
    with pytest.raises(InputError, match="index 0 is nan"):
        tarone_holm_log10([-1.0], [math.nan])
    with pytest.raises(InputError, match="mid p-value"):
        log10_smallest_pvalue(difference_test([1, 1, 0], [0, 0, 1], mid_p=True))


def test_families_of_none():
    assert tarone_holm([], []).tolist() == []


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_smallest_of_a_nonlinear_statistic_of_one_sum_is_the_least_over_all_swaps(alternative, step):
    """(u - 2)^2 - (v - 2)^2 of sums u and v is greatest where u is 0 or all, or, by the steps, in between."""
    u, v = np.array([[step], [step], [1]]), np.array([[0], [0], [0]])
    x = [RationalStatistic.variable(i, 2) for i in range(2)]
    square = (x[0] - 2) ** 2 - (x[1] - 2) ** 2

    def test(observed, swapped):
        counts = np.hstack([observed, swapped]), np.hstack([swapped, observed])
        return structured_test(*counts, square, alternative=alternative)

    masks = (np.array(bits)[:, None] for bits in itertools.product([False, True], repeat=3))
    pvalues = [test(np.where(mask, v, u), np.where(mask, u, v)).pvalue for mask in masks]
    assert 10.0 ** log10_smallest_pvalue(test(u, v)) == pytest.approx(min(pvalues), rel=1e-9)


def test_smallest_of_two_examples_that_change_nothing_is_1():
    """Precision without true positives is 0, whichever false positives there are."""
    x = [RationalStatistic.variable(i, 4) for i in range(4)]
    observed = np.array([[0, 1, 0, 0]] * 2)
    precision = x[0] / (x[1] + 1) - x[2] / (x[3] + 1)
    test = structured_test(observed, observed[:, [2, 3, 0, 1]], precision, alternative="less")
    assert test.rank == 1
    assert 10.0 ** log10_smallest_pvalue(test) == pytest.approx(1.0)
