"""Attainable p-values against the tests of all swapped data."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from support.budget import cases
from support.cases import F1

from trackperm.errors import CapacityError, InputError
from trackperm.exact import difference_test, structured_test
from trackperm.exact.multiplicity import AttainablePvalues, attainable_pvalues

ALTERNATIVES = ["two-sided", "less", "greater"]


def pvalues_of_all_swaps(test, observed: np.ndarray, swapped: np.ndarray) -> np.ndarray:
    """The p-value that `test` gives for each of the 2^n ways to exchange outputs."""
    return np.array(
        [
            test(np.where(mask, swapped, observed), np.where(mask, observed, swapped)).pvalue
            for mask in map(np.array, itertools.product([False, True], repeat=len(observed)))
        ]
    )


def check_law(found: AttainablePvalues, pvalues: np.ndarray) -> None:
    """The bound is P(p <= t), wherever p-values are not within TIE of t."""
    levels = np.unique(np.concatenate([pvalues * (1 + 1e-6), pvalues * (1 - 1e-6), [0.0, 1.0]]))
    levels = levels[levels <= 1.0]
    truth = (pvalues <= levels[:, None]).mean(axis=1)
    np.testing.assert_allclose(found.cdf(levels), truth, rtol=1e-8, atol=1e-12)
    # Equal p-values of two engines may differ by rounding errors.
    assert (found.cdf(pvalues) >= [(pvalues <= p).mean() * (1 - 1e-12) for p in pvalues]).all()


@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=6).filter(any),
    st.sampled_from(ALTERNATIVES),
)
@settings(deadline=None, max_examples=cases(25))
def test_linear_statistics_against_all_swaps(differences, alternative):
    def test(candidate, baseline):
        return difference_test(candidate, baseline, alternative=alternative)

    moves, zeros = np.array(differences), np.zeros(len(differences), dtype=int)
    found = attainable_pvalues(test(moves, zeros))
    pvalues = pvalues_of_all_swaps(test, moves, zeros)
    check_law(found, pvalues)
    assert found.smallest == pytest.approx(pvalues.min(), rel=1e-9)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_f1_against_all_swaps(alternative):
    u = np.array([[1, 0], [1, 2], [1, 3], [0, 3], [4, 4]])
    v = np.array([[1, 4], [0, 3], [0, 1], [1, 0], [1, 0]])

    def test(observed, swapped):
        counts = np.hstack([observed, swapped]), np.hstack([swapped, observed])
        return structured_test(*counts, F1, alternative=alternative)

    pvalues = np.array(
        [
            test(np.where(mask, v, u), np.where(mask, u, v)).pvalue
            for mask in (np.array(bits)[:, None] for bits in itertools.product([False, True], repeat=5))
        ]
    )
    found = attainable_pvalues(test(u, v))
    check_law(found, pvalues)
    assert found.smallest == pytest.approx(pvalues.min(), rel=1e-9)


def sign_test_law(n: int, levels: np.ndarray) -> np.ndarray:
    """P(p <= t) of the two-sided sign test of n discordant examples."""
    pvalues = np.minimum(2 * binom.cdf(np.arange(n // 2 + 1), n, 0.5), 1.0)
    return np.append(0.0, pvalues)[np.searchsorted(pvalues, levels * (1 + 1e-12), side="right")]


@pytest.mark.parametrize("n", [1, 2, 7, 40, 200, 3000])
def test_paired_proportions_against_the_binomial_law(n):
    found = attainable_pvalues(difference_test([1] * n + [0], [0] * n + [0]))
    pvalues = np.minimum(2 * binom.cdf(np.arange(n // 2 + 1), n, 0.5), 1.0)
    resolved = pvalues[pvalues > 1e-5]
    levels = np.concatenate([resolved, resolved[1:] * (1 - 1e-6)])
    np.testing.assert_allclose(found.cdf(levels), sign_test_law(n, levels), rtol=1e-8)
    assert found.smallest == pytest.approx(2.0 ** (1 - n), rel=1e-9)


def test_it_is_an_upper_bound_where_the_law_is_not_resolved():
    n = 200
    found = attainable_pvalues(difference_test([1] * n, [0] * n))
    pvalues = 2 * binom.cdf(np.arange(n // 2), n, 0.5)
    levels = np.concatenate([pvalues, pvalues * (1 - 1e-5), pvalues * (1 + 1e-5), np.logspace(-59, 0, 300)])
    levels = np.minimum(levels, 1.0)
    assert (found.cdf(levels) >= sign_test_law(n, levels) * (1 - 1e-10)).all()
    assert (found.cdf(levels) <= levels * (1 + 1e-5)).all()
    assert found.cdf(2.0**-199 / 2) == 0.0


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=8), st.floats(0.0, 1.0))
@settings(deadline=None)
def test_listed_values_make_a_step_function(values, level):
    found = AttainablePvalues.listed([*values, 1.0])
    reached = [p for p in [*values, 1.0] if p * (1 - 1e-9) <= level]
    assert found.cdf(level) == max(reached, default=0.0)


def test_every_valid_pvalue_has_the_continuous_bound():
    levels = [0.0, 1e-9, 1e-3, 0.5, 1.0]
    assert AttainablePvalues.continuous().cdf(levels).tolist() == levels
    assert AttainablePvalues.continuous(0.01).cdf(levels).tolist() == [0.0, 0.0, 0.0, 0.5, 1.0]


def test_refuses_what_is_not_exact():
    u, v = [1] * 30, [0] * 29 + [1]
    with pytest.raises(InputError, match="drawn at random"):
        attainable_pvalues(difference_test(u, v, method="monte-carlo", n_samples=99))
    with pytest.raises(InputError, match="mid p-value"):
        attainable_pvalues(difference_test(u, v, mid_p=True))


def test_refuses_laws_with_too_many_values():
    differences = np.arange(1, 40_000) * 1_000_003
    test = difference_test(differences, np.zeros_like(differences), memory_budget=2**24)
    with pytest.raises(CapacityError, match="too many values"):
        attainable_pvalues(test)


@pytest.mark.parametrize(
    ("values", "message"),
    [([], "empty"), ([0.0, 1.0], "positive"), ([0.1, 0.5], "greatest"), ([math.nan, 1.0], "nan")],
)
def test_refuses_lists_that_are_no_law(values, message):
    with pytest.raises(InputError, match=message):
        AttainablePvalues.listed(values)
