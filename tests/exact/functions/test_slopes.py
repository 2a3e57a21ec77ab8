"""Slopes against divided differences, and where there are none."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from trackperm.exact import RationalStatistic, RealStatistic
from trackperm.exact.functions.slopes import corners, values_and_slopes

X = [RationalStatistic.variable(i, 3) for i in range(3)]
Y = [RealStatistic.variable(i, 3) for i in range(3)]
SMOOTH = {
    "sum": 2 * X[0] - X[1] / 3 + 5,
    "F1": X[0].divide(X[0] + X[1] / 2, undefined=0) - X[2] / (X[0] + X[2]),
    "shared": (X[0] * X[1]) / (X[0] * X[1] + X[2] * X[0]),
    "root": (Y[0] * Y[1] + Y[2] ** 3).sqrt() / Y[1],
    "log ratio": (Y[0] / (Y[0] + Y[1])).log() - (Y[2] + Fraction(1, 2)).log(),
    "exp": (Y[0] / (Y[1] + Y[2])).exp() * Y[2] ** 2,
}


@pytest.mark.parametrize("name", SMOOTH)
def test_against_divided_differences(name: str) -> None:
    h = SMOOTH[name]
    points = np.random.default_rng(0).integers(2, 30, (7, 3)).astype(float)
    values, slopes = values_and_slopes(h, points)
    for i in range(3):
        step = np.eye(3)[i] * 1e-4
        ahead, _ = values_and_slopes(h, points + step)
        behind, _ = values_and_slopes(h, points - step)
        assert slopes[:, i] == pytest.approx((ahead - behind) / 2e-4, rel=1e-6, abs=1e-9)
    assert values == pytest.approx(h.values(points) if isinstance(h, RationalStatistic) else h(points))
    assert not corners(h)


def test_a_declared_value_is_constant() -> None:
    declared = X[0].divide(X[1], undefined=1) + X[2]
    values, slopes = values_and_slopes(declared, np.array([[0, 0, 3], [1, 2, 3], [1, 0, 3]]))
    assert values[:2].tolist() == [4.0, 3.5]
    assert np.isnan(values[2])
    assert slopes[:2].tolist() == [[0.0, 0.0, 1.0], [0.5, -0.25, 1.0]]
    through_a_root = Y[0].divide((Y[0] * Y[1]).sqrt(), undefined=0)
    values, slopes = values_and_slopes(through_a_root, np.array([[0, 0, 0]]))
    assert (values.tolist(), slopes.tolist()) == ([0.0], [[0.0, 0.0, 0.0]])


def test_a_root_at_0_is_steep_and_a_constant_is_flat() -> None:
    assert np.isinf(values_and_slopes(Y[0].sqrt(), np.array([0, 1, 1]))[1][0])
    values, slopes = values_and_slopes(RationalStatistic.constant(3, 3), np.zeros((2, 3)))
    assert (values.tolist(), slopes.any()) == ([3.0, 3.0], False)


def test_corners_have_no_slope() -> None:
    h = (Y[0] > 1).where(Y[0], Y[1].minimum(Y[2])) + abs(Y[1])
    assert corners(h) == {"> 0", "where", "min", "abs"}
    with pytest.raises(ValueError, match="`abs` is not differentiable everywhere"):
        values_and_slopes(abs(Y[0]), np.zeros((1, 3)))
