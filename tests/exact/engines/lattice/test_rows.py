"""Regions of a plane lattice as intervals in rows, against deciding every point."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from trackperm.errors import CapacityError
from trackperm.exact import DifferenceHistogram, RationalStatistic
from trackperm.exact.distributions.characteristic import SwapDistribution
from trackperm.exact.distributions.pmf import Window
from trackperm.exact.engines.lattice import rows as rows_module
from trackperm.exact.engines.lattice.lattice import Reach, Strip, reduce_rank
from trackperm.exact.engines.lattice.rational_region import RationalRegion, _signs
from trackperm.exact.engines.lattice.rows import RowIntervals, region_rows, window_rows
from trackperm.exact.engines.lattice.statistic import LatticeStatistic
from trackperm.exact.functions.rational import Polynomial, Quotient
from trackperm.exact.types import INSIDE, OUTSIDE, UNDEFINED, IntArray, Membership, Region

X = [RationalStatistic.variable(i, 4) for i in range(4)]
STATISTICS = {
    "f1": X[0].divide(X[0] + X[1] / 2, undefined=0) - X[2].divide(X[2] + X[3] / 2, undefined=0),
    "precision": X[0].divide(X[0] + X[1], undefined=0) - X[2].divide(X[2] + X[3], undefined=0),
    "odds": X[0] / X[1] - X[2] / X[3],
    "pole": X[0] / (2 * X[1] - X[0] - 3) - X[2] / (2 * X[3] - X[2] - 3),
    "product": X[0] * X[1] - X[2] * X[3],
    "ellipse": (X[0] - X[2]) ** 2 + 3 * (X[1] - X[3]) ** 2,
    "double line": (X[0] + X[1] - X[2] - X[3]) ** 2,
    "steep double line": (5 * X[0] - 7 * X[1] - 5 * X[2] + 7 * X[3]) ** 2,
    "ties beyond floats": (10**16 + 61) * (3 * X[0] + X[1] - X[2] - 2 * X[3]) ** 2,
    "cubic": X[0] ** 2 * X[1] - X[2] ** 2 * X[3],
    "divisor of degree 2": X[0] / (X[0] * X[1] + 1) - X[2] / (X[2] * X[3] + 1),
}
EXAMPLES = {"few": (2, 12), "many": (20, 400)}
BUDGET = 2**30


def problem_of(
    name: str, n_examples: int, rng: np.random.Generator
) -> tuple[LatticeStatistic, Reach, SwapDistribution]:
    statistic = STATISTICS[name]
    while True:
        u = rng.binomial(3, (0.8, 0.2), size=(n_examples, 2))
        v = rng.binomial(3, (rng.random(), 0.3), size=(n_examples, 2))
        histogram = DifferenceHistogram.from_pairs(np.hstack([u, v]), np.hstack([v, u]))
        lattice = reduce_rank(histogram)
        try:
            statistic(histogram.observed)
        except ZeroDivisionError:
            continue
        if lattice.rank == 2:
            break
    law = SwapDistribution(lattice.coordinates, histogram.multiplicities)
    local = LatticeStatistic(statistic, histogram, lattice)
    return local, Reach(law, histogram.origin, lattice.basis), law


def region_of(
    name: str, n_examples: int, rng: np.random.Generator, *, upper: bool, strict: bool = False
) -> tuple[Region, Reach, SwapDistribution, tuple[int, ...]]:
    local, reach, law = problem_of(name, n_examples, rng)
    region = local.region(local.observed_exact, upper=upper, strict=strict)
    return region, reach, law, local.observed_point


def painted(rows: RowIntervals, window: Window) -> IntArray:
    """How often each point of a window is in an interval."""
    found = np.zeros(window.periods, dtype=np.int64)
    x, y = window.start
    for at, first, last in zip(rows.heads[0] - x, rows.first - y, rows.last - y, strict=True):
        assert 0 <= first <= last < window.periods[1]
        found[at, first : last + 1] += 1
    return found


def check_every_point(region: Region, reach: Reach, window: Window) -> None:
    points = [start + grid for start, grid in zip(window.start, np.indices(window.periods), strict=True)]
    reached = reach.contains(points)
    for divisor in reach.strips_of((isinstance(region, RationalRegion) and region.affine_divisors) or []):
        reached &= divisor.contains(points)
    expected = np.full(window.periods, OUTSIDE, dtype=np.int8)
    expected[reached] = region.membership([axis[reached] for axis in points])
    found = region_rows(region, window_rows(window), reach, BUDGET)
    np.testing.assert_array_equal(painted(found.inside, window), expected == INSIDE)
    np.testing.assert_array_equal(painted(found.undefined, window), expected == UNDEFINED)


@pytest.mark.sample(10)
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("size", EXAMPLES)
@pytest.mark.parametrize("name", STATISTICS)
def test_against_every_point(name: str, size: str, strict: bool, upper: bool) -> None:
    rng = np.random.default_rng(5)
    for _ in range(15):
        n_examples = int(rng.integers(*EXAMPLES[size]))
        region, reach, _, (x, y) = region_of(name, n_examples, rng, upper=upper, strict=strict)
        start = (x - int(rng.integers(0, 70)), y - int(rng.integers(0, 70)))
        check_every_point(region, reach, Window(start, (int(rng.integers(1, 90)), int(rng.integers(1, 90)))))


@pytest.mark.parametrize("name", ["f1", "precision", "odds", "pole"])
def test_poles_cost_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the whole support, poles included, are not decided point by point."""
    rng = np.random.default_rng(1)
    for _ in range(5):
        region, reach, law, _ = region_of(name, 200, rng, upper=True)
        (x0, x1), (y0, y1) = law.support
        window = Window((x0, y0), (x1 - x0 + 1, y1 - y0 + 1))
        check_every_point(region, reach, window)
        with monkeypatch.context() as patched:
            patched.setattr(rows_module, "MOST_CELLS", 4 * (x1 - x0 + 1))
            region_rows(region, window_rows(window), reach, BUDGET)


@pytest.mark.sample(2)
@pytest.mark.parametrize("width", [0, 1, 2, 9, 14])
@pytest.mark.parametrize("name", ["double line", "steep double line", "ties beyond floats"])
def test_strips_of_few_points(name: str, width: int) -> None:
    """The region between two roots that are close together, or equal, on either side of the vertex."""
    rng = np.random.default_rng(7)
    factor = 10**16 + 61 if name == "ties beyond floats" else 1
    n_inside = 0
    for _ in range(30):
        local, reach, _ = problem_of(name, int(rng.integers(20, 400)), rng)
        x, y = local.observed_point
        region = local.region(Fraction(factor * width**2), upper=False)
        for _ in range(4):
            window = Window((x - 40, y - int(rng.integers(0, 70))), (80, int(rng.integers(1, 90))))
            check_every_point(region, reach, window)
            n_inside += int(region_rows(region, window_rows(window), reach, BUDGET).inside.sizes.sum())
    assert n_inside >= (2 if name == "ties beyond floats" else 20)


@pytest.mark.sample(6)
@pytest.mark.parametrize("width", [0, 4, 20, 60, 100])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("n", [10**8, 10**10])
def test_strips_of_few_points_far_from_the_centre(n: int, upper: bool, width: int) -> None:
    """The roots of a row err by more than a point there, but its vertex does not."""
    pairs = np.array([[1, 0, 0, 0], [0, 1, 0, 0]])
    histogram = DifferenceHistogram.from_pairs(pairs, pairs[:, [2, 3, 0, 1]], multiplicities=[n, n])
    lattice = reduce_rank(histogram)
    local = LatticeStatistic(STATISTICS["steep double line"], histogram, lattice)
    law = SwapDistribution(lattice.coordinates, histogram.multiplicities)
    reach = Reach(law, histogram.origin, lattice.basis)
    region = local.region(Fraction(width**2), upper=upper, strict=upper)
    rng = np.random.default_rng(8)
    for share in (0.9, 0.7, 0.31):
        # The form is 10 a - 14 b + 2 n in the first two totals a and b.
        a = int(share * n)
        totals = np.array([a, (10 * a + 2 * n) // 14]) - np.array(histogram.origin[:2])
        x, y = np.rint(np.linalg.solve(np.array(lattice.basis[:2], dtype=float), totals)).astype(int)
        for _ in range(4):
            start = (x - int(rng.integers(0, 20)), y - int(rng.integers(0, 40)))
            check_every_point(region, reach, Window(start, (20, int(rng.integers(10, 60)))))


class Checkered:
    """A region without a formula, undefined here and there."""

    def membership(self, points: Sequence[IntArray]) -> Membership:
        x, y = np.broadcast_arrays(*points)
        return np.where((x * y) % 7 == 3, UNDEFINED, np.where((x + y // 5) % 3 == 0, INSIDE, OUTSIDE)).astype(
            np.int8
        )


@pytest.mark.parametrize("block", [1, 7, 64, 2**18])
def test_any_region_in_blocks_of_any_size(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "BLOCK", block)
    _, reach, _, (x, y) = region_of("f1", 40, np.random.default_rng(2), upper=True)
    window = Window((x - 20, y - 30), (40, 60))
    found = region_rows(Checkered(), window_rows(window), reach, BUDGET)
    points = [start + grid for start, grid in zip(window.start, np.indices(window.periods), strict=True)]
    expected = np.where(reach.contains(points), Checkered().membership(points), OUTSIDE)
    np.testing.assert_array_equal(painted(found.inside, window) > 0, expected == INSIDE)
    np.testing.assert_array_equal(painted(found.undefined, window) > 0, expected == UNDEFINED)
    assert painted(found.inside, window).max() == 1


def test_too_many_points_or_intervals_are_refused() -> None:
    law = SwapDistribution(np.array([[1, 0], [0, 1]]), np.array([20_000, 20_000]))
    reach = Reach(law, (0, 0), ((1, 0), (0, 1)))
    with pytest.raises(CapacityError, match=r"about 4\.1 × 10\^8 points; the limit is 134,217,728"):
        region_rows(Checkered(), window_rows(Window((0, 0), (20_001, 20_001))), reach, BUDGET)
    with pytest.raises(CapacityError, match="intervals, beyond the memory budget"):
        region_rows(Checkered(), window_rows(Window((0, 0), (2_000, 2_000))), reach, 2**20)


@pytest.mark.parametrize("scale", [1, 2**61])
def test_strips_against_integers(scale: int) -> None:
    """Rows cut to least <= constant + slopes . x <= greatest, where int64 is wide enough and where not."""
    rng = np.random.default_rng(3)
    grid = np.indices((17, 19)) - 8
    for _ in range(200):
        constant, *slopes = (int(value) * scale for value in rng.integers(-6, 7, size=3))
        least, greatest = sorted(int(value) * scale for value in rng.integers(-40, 41, size=2))
        strip = Strip(constant, (slopes[0], slopes[1]), least, greatest)
        values = constant + slopes[0] * grid[0].astype(object) + slopes[1] * grid[1].astype(object)
        expected = (values >= least) & (values <= greatest)
        np.testing.assert_array_equal(strip.contains(list(grid)), expected.astype(bool))
        x = grid[0][:, 0]
        low, high = strip.cut([x], np.full_like(x, -8), np.full_like(x, 10))
        rows = RowIntervals((x,), low, high).chosen(low <= high)
        np.testing.assert_array_equal(painted(rows, Window((-8, -8), (17, 19))) > 0, expected.astype(bool))


def test_strips_with_one_far_end() -> None:
    """Differences to the far end are beyond int64, though the form itself is not."""
    constant, (along, across), least, greatest = -(2**61), (2**55, 3), -5, 2**63 - 9
    strip = Strip(constant, (along, across), least, greatest)
    x, width = np.arange(-3, 12), 2**60
    low, high = strip.cut([x], np.full_like(x, -width), np.full_like(x, width))
    for at, first, last in zip(x.tolist(), low.tolist(), high.tolist(), strict=True):
        rest = constant + along * at
        assert first == max(-((rest - least) // across), -width)
        assert last == min((greatest - rest) // across, width)


def test_reach_is_attained() -> None:
    """Each total's range is that over all swaps; parallel totals give one strip."""
    rng = np.random.default_rng(4)
    u, v = rng.integers(0, 4, (2, 6, 2))
    histogram = DifferenceHistogram.from_pairs(np.hstack([u, v]), np.hstack([v, u]))
    lattice = reduce_rank(histogram)
    reach = Reach(
        SwapDistribution(lattice.coordinates, histogram.multiplicities), histogram.origin, lattice.basis
    )
    swaps = np.indices((2,) * 6).reshape(6, -1).T
    totals = swaps @ u + (1 - swaps) @ v
    assert len(reach.strips) == 2
    for strip, values in zip(reach.strips, totals.T, strict=True):
        assert (strip.least, strip.greatest) == (values.min(), values.max())


def test_signs_of_values_next_to_0() -> None:
    """Pell's equation: x^2 - 2 y^2 is 1 and -1 by turns, and its terms are beyond the integers of floats."""
    polynomial = Polynomial({(2, 0): 1, (0, 2): -2}, 2)
    x, y, pairs = 1, 1, []
    for _ in range(44):
        pairs.append((x, y))
        x, y = x + 2 * y, x + y
    signs = _signs(polynomial, list(np.array(pairs).T))
    assert signs.tolist() == [-1, 1] * 22


@pytest.mark.parametrize("name", ["f1", "ellipse", "ties beyond floats"])
def test_signs_along_rows_against_integers(name: str) -> None:
    rng = np.random.default_rng(6)
    n_ties = 0
    for _ in range(10):
        region, _, _, observed = region_of(name, 300, rng, upper=True)
        assert isinstance(region, RationalRegion)
        x, y = (at + grid for at, grid in zip(observed, np.indices((81, 81)) - 40, strict=True))
        quadratics = region.quadratics([x[:, 0]], y[:, 0], y[:, -1])
        offsets = [axis.astype(object) - at for axis, at in zip((x, y), quadratics.centre, strict=True)]
        expected = np.sign(quadratics.polynomial(offsets)).astype(int)
        np.testing.assert_array_equal(quadratics.signs(y.T).T, expected)
        n_ties += int((expected == 0).sum())
    assert n_ties >= (100 if name == "ties beyond floats" else 10)


@pytest.mark.parametrize("centre", [0, -(10**12), 2**60 + 1])
def test_quadratics_in_short_rows_against_points(centre: int) -> None:
    """Roots at the ends of rows, in one cell or twice at one point, and vertices between points."""
    rng = np.random.default_rng(7)
    for _ in range(100):
        steps, slope = (int(value) for value in rng.integers(1, 4, 2))
        at, beside, more = (int(value) for value in rng.integers(-9, 10, 3))
        # (steps y - at) (steps y - at - beside), more or less, and linear rows among them
        square = 0 if rng.random() < 0.1 else steps**2
        terms = {
            (0, 2): square,
            (0, 1): -steps * (2 * at + beside),
            (0, 0): at * (at + beside),
            (1, 0): slope,
        }
        numerator = Polynomial({e: c for e, c in terms.items() if c}, 2).scaled(
            10 ** int(rng.integers(0, 30))
        )
        quotient = Quotient(numerator, Polynomial({(0, 0): 1}, 2), ())
        upper, strict = (bool(value) for value in rng.integers(0, 2, 2))
        threshold = Fraction(more * (more > 4))
        region = RationalRegion(quotient, (0, centre), lambda _: Fraction(0), threshold, upper, strict, None)
        window = Window(
            (int(rng.integers(-9, 1)), centre - int(rng.integers(0, 9))), (9, int(rng.integers(1, 20)))
        )
        found = rows_module._quadratic_intervals(region, window_rows(window))
        points = [start + grid for start, grid in zip(window.start, np.indices(window.periods), strict=True)]
        np.testing.assert_array_equal(painted(found, window), region.membership(points) == INSIDE)
