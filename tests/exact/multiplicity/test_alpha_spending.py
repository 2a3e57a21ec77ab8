"""Alpha spending: the union bound over any number of looks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trackperm.errors import InputError
from trackperm.exact.multiplicity.alpha_spending import adjust_spending_log10, spending_levels

looks = st.lists(st.floats(1e-300, 1.0), max_size=30)


def adjusted(pvalues):
    return 10.0 ** adjust_spending_log10(np.log10(pvalues))


def test_levels_add_up_to_alpha_over_all_looks():
    # The sum of 1 / i^2 from n + 1 on lies between 1 / (n + 1) and 1 / n.
    spent = math.fsum(spending_levels(100_000, 0.05))
    left = 0.05 * 6 / math.pi**2 / 100_000
    assert 0.05 - left * 1.001 < spent < 0.05 - left * 0.999


def test_levels_against_the_definition():
    expected = [0.1 * 6 / (math.pi**2 * i**2) for i in range(1, 6)]
    np.testing.assert_allclose(spending_levels(5, 0.1), expected, rtol=1e-15)


@given(looks, st.floats(0.001, 0.5))
@settings(deadline=None)
def test_adjusted_pvalues_make_the_decision_of_the_level(pvalues, alpha):
    levels = spending_levels(len(pvalues), alpha)
    for p, level, found in zip(pvalues, levels, adjusted(pvalues), strict=True):
        if abs(p - level) > 1e-12 * level:
            assert (found < alpha) == (p < level)


@given(looks, looks)
@settings(deadline=None)
def test_later_looks_change_no_earlier_decision(before, after):
    assert adjusted([*before, *after])[: len(before)].tolist() == adjusted(before).tolist()


def test_logarithms_below_the_range_of_floats():
    found = adjust_spending_log10([-1.0, -500.0])
    assert found[1] == pytest.approx(-500.0 + math.log10(math.pi**2 * 4 / 6))


def test_worst_dependence_stays_below_alpha():
    # The rejections of all looks are disjoint: the union bound is attained, whatever the number of looks.
    uniform = (np.arange(200_000) + 0.5) / 200_000
    ends = np.append(0.0, np.cumsum(spending_levels(50, 0.2)))
    # Each is uniform: one and the same uniform number, moved around the circle.
    pvalues = (uniform[:, None] - ends[:-1]) % 1.0
    rejected = np.array([adjusted(row) for row in pvalues[::10]]) < 0.2
    share = rejected.any(axis=1).mean()
    assert 0.19 < share <= 0.2
    assert rejected.sum(axis=1).max() == 1


def test_refusals():
    with pytest.raises(InputError, match="`alpha` is 0"):
        spending_levels(3, 0.0)
    with pytest.raises(InputError, match="`n_looks` is -1"):
        spending_levels(-1)
    with pytest.raises(InputError, match="index 0"):
        adjust_spending_log10([0.1])
