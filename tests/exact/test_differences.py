"""Differences of examples: the skewness that they would have if their mean were 0."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import skew

from trackperm.exact.differences import Differences


def differences(values: list[int]) -> Differences:
    distinct, counts = np.unique(np.array(values), return_counts=True)
    return Differences(distinct, counts.astype(np.int64), Fraction(1))


def test_skewness_is_that_of_differences_with_mean_0():
    values = [-1] * 40 + [-3] * 2 + [46]
    assert differences([*values, *[0] * 30]).skewness == pytest.approx(skew(values))
    assert differences([-value for value in values]).skewness == pytest.approx(-skew(values))


@pytest.mark.parametrize("up", [1, 5, 200])
def test_differences_of_one_size_are_never_skewed(up: int):
    assert differences([1] * up + [-1] * 5 + [0] * 7).skewness == pytest.approx(0.0, abs=1e-9)


def test_the_nearest_law_with_mean_0():
    """Weights c exp(tilt d), the tilt found on a grid."""
    d, c = np.array([-2.0, 1.0, 3.0]), np.array([1.0, 2.0, 1.0])
    weights = c * np.exp(np.outer(np.linspace(-2, 2, 400_001), d))
    nearest = weights[np.argmin(np.abs(weights @ d))]
    nearest /= nearest.sum()
    expected = nearest @ d**3 / (nearest @ d**2) ** 1.5
    assert differences([-2, 1, 1, 3]).skewness == pytest.approx(expected, abs=1e-4)


def test_differences_of_one_sign_have_no_skewness():
    assert differences([1, 2, 5, 0]).skewness is None
    assert differences([-1, -2]).skewness is None
    assert differences([0]).skewness is None


def test_skewness_of_one_large_difference():
    """One of a million against fifty of 1: with mean 0 it has the weight 1e-6, and the skewness sqrt(1e6)."""
    assert differences([-1] * 50 + [10**6]).skewness == pytest.approx(1000.0, rel=1e-3)
