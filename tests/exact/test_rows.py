"""Regions of a plane lattice as intervals in rows, against deciding every point."""

from __future__ import annotations

import numpy as np
import pytest

from trackperm.exact import DifferenceHistogram, RationalStatistic
from trackperm.exact.lattice import reduce_rank
from trackperm.exact.lattice_statistic import LatticeStatistic
from trackperm.exact.pmf import Window
from trackperm.exact.rational_region import RationalRegion
from trackperm.exact.region import INSIDE
from trackperm.exact.rows import row_intervals

X = [RationalStatistic.variable(i, 4) for i in range(4)]
STATISTICS = {
    "f1": X[0].divide(X[0] + X[1] / 2, undefined=0) - X[2].divide(X[2] + X[3] / 2, undefined=0),
    "precision": X[0].divide(X[0] + X[1], undefined=0) - X[2].divide(X[2] + X[3], undefined=0),
    "product": X[0] * X[1] - X[2] * X[3],
    "ellipse": (X[0] - X[2]) ** 2 + 3 * (X[1] - X[3]) ** 2,
    "double line": (X[0] + X[1] - X[2] - X[3]) ** 2,
}


def region_of(name: str, rng: np.random.Generator, *, upper: bool) -> tuple[RationalRegion, tuple[int, ...]]:
    n_examples = int(rng.integers(20, 400))
    u = rng.binomial(3, (0.8, 0.2), size=(n_examples, 2))
    v = rng.binomial(3, (rng.random(), 0.3), size=(n_examples, 2))
    histogram = DifferenceHistogram.from_pairs(np.hstack([u, v]), np.hstack([v, u]))
    statistic = LatticeStatistic(STATISTICS[name], histogram, reduce_rank(histogram))
    assert statistic.observed_exact is not None
    region = statistic.region(statistic.observed_exact, statistic.observed_point, upper=upper)
    assert isinstance(region, RationalRegion)
    return region, statistic.observed_point


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("name", STATISTICS)
def test_against_every_point(name: str, upper: bool) -> None:
    rng = np.random.default_rng(5)
    n_simple = 0
    for _ in range(40):
        region, (x, y) = region_of(name, rng, upper=upper)
        start = (x - int(rng.integers(0, 70)), y - int(rng.integers(0, 70)))
        window = Window(start, (int(rng.integers(1, 90)), int(rng.integers(1, 90))))
        rows = row_intervals(region, window)
        if rows is None:
            continue
        n_simple += 1
        found = np.zeros(window.periods, dtype=int)
        for at, first, last in zip(
            rows.x - start[0], rows.first - start[1], rows.last - start[1], strict=True
        ):
            found[at, first : last + 1] += 1
        points = [start[axis] + grid for axis, grid in enumerate(np.indices(window.periods))]
        np.testing.assert_array_equal(found, region.membership(points) == INSIDE)
    assert n_simple >= 15


def test_a_box_with_a_pole_is_not_simple() -> None:
    region, _ = region_of("f1", np.random.default_rng(0), upper=True)
    assert row_intervals(region, Window((-2000, -2000), (4000, 4000))) is None
