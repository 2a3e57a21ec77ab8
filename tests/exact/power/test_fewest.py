"""Fewest examples with which a test can reject, against tests of all sizes and sums of binomial masses."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from trackperm.choices import Alternative
from trackperm.exact import difference_test
from trackperm.exact.power import paired_power
from trackperm.exact.power.fewest import can_reach, fewest_discordant, fewest_examples


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
@pytest.mark.parametrize("alpha", [0.3, 0.05, 2.0**-5, 0.0016])
def test_with_one_discordant_example_less_no_pvalue_is_below_alpha(
    alpha: float, alternative: Alternative
) -> None:
    """The smallest p-value of distinct differences is that of all on one side."""
    least = fewest_discordant(alpha, alternative)
    for m in (least - 1, least):
        moves = 2 ** np.arange(m)
        smallest = min(
            (
                difference_test(
                    np.where(signs, moves, 0), np.where(signs, 0, moves), alternative=alternative
                ).pvalue
                for signs in itertools.product([True, False], repeat=m)
            )
            if m <= 6
            else [difference_test(moves, 0 * moves, alternative=alternative).pvalue],
            default=1.0,
        )
        assert (smallest < alpha) == (m == least)


@pytest.mark.parametrize("share", [1.0, 0.4, 0.03])
def test_fewest_examples_have_enough_discordant_ones(share: float) -> None:
    """By the sum of the binomial masses."""
    least, found = fewest_discordant(0.05, "two-sided"), fewest_examples(share, 0.8, 0.05, "two-sided")

    def chance(n: int) -> float:
        return math.fsum(math.comb(n, m) * share**m * (1 - share) ** (n - m) for m in range(least, n + 1))

    assert chance(found) >= 0.8 > chance(found - 1)
    assert can_reach(found, share, 0.8, 0.05, "two-sided")
    assert not can_reach(found - 1, share, 0.8, 0.05, "two-sided")


def test_no_power_is_reached_with_fewer() -> None:
    """The exact power of 0/1 scores, where all discordant examples favour one run."""
    found = fewest_examples(0.3, 0.8, 0.05, "two-sided")
    assert paired_power(found, 0.3, 0.3) >= 0.8 > paired_power(found - 1, 0.3, 0.3)
