"""Contributions of rows to a mean: weights that are rounded, and changes of any size."""

from __future__ import annotations

import numpy as np
import pytest

from trackperm.exact import RationalStatistic
from trackperm.exact.intervals import additive_scores


def test_large_weights_are_rounded_to_the_nearest_thousandth_of_the_largest() -> None:
    total, n, total_v, n_v = (RationalStatistic.variable(i, 4) for i in range(4))
    sizes = np.array([1, 3, 7, 1999, 4996, 5000])
    observed = np.stack([sizes // 2 + 1, sizes, 0 * sizes, sizes], axis=1)
    found = additive_scores(observed, observed[:, [2, 3, 0, 1]], total / n - total_v / n_v, np.ones(6, int))
    assert found is not None
    # A row with a weight keeps one.
    assert sorted(found.weights.tolist()) == [1, 1, 1, 400, 999, 1000]


@pytest.mark.parametrize("factor", [3, 3**60])
def test_rows_with_the_same_change_are_one_row(factor: int) -> None:
    """Changes are int64, or Python integers where they do not fit."""
    a, b, n, a_v, b_v, n_v = (RationalStatistic.variable(i, 6) for i in range(6))
    h = (a * factor + b) / n - (a_v * factor + b_v) / n_v
    observed = np.array([[1, 0, 1, 0, 0, 1], [2, 0, 1, 1, 0, 1], [0, 0, 1, 0, 1, 1], [0, 4, 1, 0, 5, 1]])
    found = additive_scores(observed, observed[:, [3, 4, 5, 0, 1, 2]], h, np.array([2, 3, 5, 7]))
    assert found is not None
    moves = dict(zip(found.moves.tolist(), found.multiplicities.tolist(), strict=True))
    assert moves == {factor: 5, -1: 12}
    assert found.n_rows == 17
