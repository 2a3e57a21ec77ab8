"""Moments and ranges of sums over swaps, by listing all swaps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from trackperm.exact.distributions.characteristic import SwapDistribution


@pytest.mark.parametrize("seed", range(10))
def test_totals_ranges_and_covariance_by_listing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps, counts = rng.integers(-4, 5, (3, 2)), rng.integers(1, 4, 3)
    law = SwapDistribution(steps, counts)
    coins = np.repeat(steps, counts, axis=0)
    shown = np.indices((2,) * len(coins)).reshape(len(coins), -1).T
    values = shown @ coins
    assert law.n_coins == len(coins)
    assert law.total == tuple(coins.sum(axis=0))
    assert law.support == tuple(zip(values.min(axis=0), values.max(axis=0), strict=True))
    assert law.covariance(np.zeros(2)) == pytest.approx(np.cov(values.T, bias=True))
    tilt = np.array([0.3, -0.2])
    weights = np.exp((values - values.mean(axis=0)) @ tilt)
    assert np.exp(law.cumulant(tilt)) == pytest.approx(weights.mean())
    mean = weights @ values / weights.sum()
    assert law.centred_mean(tilt) == pytest.approx(mean - np.array(law.total) / 2, abs=1e-12)


@pytest.mark.parametrize(("step", "n"), [(1, 1), (3, 1), (1, 2), (2, 7), (1, 20)])
def test_mass_outside_an_interval_is_bounded(step: int, n: int) -> None:
    """Hoeffding's inequality, which one coin attains to within a fifth."""
    law = SwapDistribution(np.array([[step]]), np.array([n]))
    shares = np.array([math.comb(n, k) for k in range(n + 1)]) / 2**n
    distances = step * (np.arange(n + 1) - n / 2)
    for below in (*distances[distances > 0], math.inf):
        for above in (*distances[distances > 0], math.inf):
            outside = shares[(distances <= -below) | (distances >= above)].sum()
            assert outside <= math.exp(law.log_outside(0, below, above))
            assert law.log_outside(0, above, below) == law.log_outside(0, below, above)
