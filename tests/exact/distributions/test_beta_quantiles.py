"""Quantiles of beta distributions at very small levels."""

from __future__ import annotations

import math

import pytest
from scipy.special import betainc

from trackperm.exact.distributions.beta_quantiles import beta_quantile, upper_beta_quantile
from trackperm.exact.intervals.effect_size import odds_interval
from trackperm.exact.intervals.paired_proportions import paired_proportions_interval

LEVELS = (1e-120, 1e-200, 5e-301)


@pytest.mark.parametrize("level", [0.025, *LEVELS])
@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 4), (3, 3), (4, 2), (5, 900), (900, 5)])
def test_the_probability_of_a_quantile_is_its_level(a: int, b: int, level: float) -> None:
    assert math.isclose(float(betainc(a, b, beta_quantile(a, b, level))), level, rel_tol=1e-9)
    assert upper_beta_quantile(b, a, level) == pytest.approx(1.0 - beta_quantile(a, b, level), abs=1e-12)


@pytest.mark.parametrize("alpha", [2.0 * level for level in LEVELS])
def test_ends_of_intervals_are_numbers(alpha: float) -> None:
    """Regression: an end at the level 1e-300 was NaN, as SciPy's quantile is."""
    for better in range(6):
        for worse in range(6 - better):
            found = paired_proportions_interval(better, worse, 5, alpha=alpha)
            assert -1.0 <= found.low <= (better - worse) / 5 <= found.high <= 1.0
            if better + worse:
                odds = odds_interval(better, worse, alpha=alpha)
                assert 0.0 <= odds.low <= (better / worse if worse else math.inf) <= odds.high
