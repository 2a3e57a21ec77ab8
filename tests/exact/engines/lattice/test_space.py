"""Statistics of three independent counts, row by row: against all swaps, the grid, and every point."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support import oracles
from support.budget import cases
from support.certificates import check_pvalue

from trackperm.choices import Alternative
from trackperm.errors import CapacityError, InputError
from trackperm.exact import DifferenceHistogram, RationalStatistic, RealStatistic, structured_test
from trackperm.exact import permutation as permutation_module
from trackperm.exact.distributions.characteristic import SwapDistribution
from trackperm.exact.distributions.narrow_window import narrow_window
from trackperm.exact.distributions.pmf import Window, plan_window
from trackperm.exact.engines.lattice import tail as tail_module
from trackperm.exact.engines.lattice.forms import in_fewer_forms
from trackperm.exact.engines.lattice.grid import grid_tail
from trackperm.exact.engines.lattice.lattice import Reach, along, reduce_rank
from trackperm.exact.engines.lattice.row_direction import in_short_rows
from trackperm.exact.engines.lattice.rows import region_rows, window_rows
from trackperm.exact.engines.lattice.statistic import LatticeStatistic
from trackperm.exact.types import INSIDE, OUTSIDE, UNDEFINED

USEFUL = 1e-10
BUDGET = 2**30

Score = Callable[[Sequence[Any]], Any]


def share(part: Any, whole: Any) -> Any:
    """Return a quotient with the value 0 for 0/0, of statistics and of numbers."""
    if isinstance(whole, RationalStatistic | RealStatistic):
        return part.divide(whole, undefined=0)
    return Fraction(part) / whole if whole else Fraction(0)


RATIONAL: dict[str, Score] = {
    "precision and a count": lambda x: share(x[0], x[0] + x[1]) + x[2] / Fraction(10),
    "macro-F1 by errors": lambda x: share(2 * x[0], 2 * x[0] + x[2]) + share(2 * x[1], 2 * x[1] + x[2]),
    "volume": lambda x: x[0] * x[1] * x[2],
    "cubic in one count": lambda x: x[0] * x[0] * x[0] + x[1] * x[2],
    "cubic in all counts": lambda x: x[0] * x[0] * x[0] + 2 * x[1] * x[1] * x[1] - x[2] * x[2] * x[2],
    "product of shares": lambda x: share(x[0], x[0] + x[1]) * share(x[0], x[0] + x[2]),
    "pole": lambda x: x[0] / (2 * x[1] - Fraction(7)) + x[2],
}


def correlation(x: Sequence[RealStatistic]) -> RealStatistic:
    """A quotient by a root, affine in the first count; 0/0 is 0."""
    return (7 * x[0] - x[1] * x[2]).divide((x[1] * x[2]).sqrt(), undefined=0)


REAL: dict[str, Score] = {
    "correlation": correlation,
    "root and two counts": lambda x: (x[0] + 1).sqrt() * x[1] + x[2],
    "root of a product": lambda x: (x[0] * x[1] + x[2]).sqrt(),
}


def difference(score: Score, kind: type[RationalStatistic] | type[RealStatistic], m: int = 3) -> Any:
    x = [kind.variable(i, 2 * m) for i in range(2 * m)]
    return score(x[:m]) - score(x[m:])


def mirrored(u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.hstack([u, v]), np.hstack([v, u])


def counts(rng: np.random.Generator, n: int, m: int = 3) -> tuple[np.ndarray, np.ndarray]:
    high = rng.integers(2, 5, size=m)
    u = rng.integers(0, high, size=(n, m))
    return u, np.where(rng.random((n, m)) < 0.3, u, rng.integers(0, high, size=(n, m)))


def exact_pvalue(
    u: np.ndarray, v: np.ndarray, values: Callable[..., Any], alternative: str, *, mid_p: bool
) -> Fraction:
    """Return the p-value by all swaps, from values that compare exactly."""
    observed, swapped = ([tuple(map(int, row)) for row in rows] for rows in mirrored(u, v))
    sums = oracles.sums_by_dictionary(observed, swapped)
    at = values(tuple(map(sum, zip(*observed, strict=True))))
    total = Fraction(0)
    for point, ways in sums.items():
        value = values(point)
        if oracles.rejects(value, at, alternative):
            tied = value == at or (alternative == "two-sided" and abs(value) == abs(at))
            total += Fraction(ways, 2 if tied and mid_p else 1)
    return Fraction(total, 2 ** len(observed))


@pytest.fixture
def no_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise CapacityError("no grid here")

    monkeypatch.setattr(tail_module, "grid_tail", refuse)


@pytest.mark.sample(4)
@pytest.mark.usefixtures("no_grid")
@pytest.mark.parametrize("mid_p", [False, True])
@pytest.mark.parametrize("alternative", oracles.ALTERNATIVES)
@pytest.mark.parametrize("name", RATIONAL)
def test_against_all_swaps(name: str, alternative: Alternative, mid_p: bool) -> None:
    rng = np.random.default_rng([list(RATIONAL).index(name), mid_p])
    h = difference(RATIONAL[name], RationalStatistic)
    ranks = set()
    for _ in range(6):
        u, v = counts(rng, int(rng.integers(4, 13)))
        result = structured_test(*mirrored(u, v), h, alternative=alternative, method="lattice", mid_p=mid_p)
        truth = exact_pvalue(u, v, h, alternative, mid_p=mid_p)
        check_pvalue(result, truth, useful=USEFUL)
        ranks.add(result.rank)
    assert 3 in ranks


@pytest.mark.sample(4)
@pytest.mark.usefixtures("no_grid")
@pytest.mark.parametrize("alternative", oracles.ALTERNATIVES)
@pytest.mark.parametrize("name", REAL)
def test_irrational_statistics_against_all_swaps(name: str, alternative: Alternative) -> None:
    rng = np.random.default_rng(list(REAL).index(name))
    h = difference(REAL[name], RealStatistic)

    def values(point: Sequence[int]) -> Fraction:
        # Values apart from ties differ by far more than floats err.
        return Fraction(round(float(h(np.array(point))) * 2**36))

    checked = 0
    while checked < 5:
        u, v = counts(rng, int(rng.integers(4, 13)))
        if not math.isfinite(h(np.hstack([u, v]).sum(axis=0))):
            continue
        try:
            result = structured_test(*mirrored(u, v), h, alternative=alternative, method="lattice")
        except InputError:  # 7 x / 0 after some swaps
            continue
        check_pvalue(result, exact_pvalue(u, v, values, alternative, mid_p=False), useful=USEFUL)
        checked += 1


SIZES = [
    # (examples, of which the candidate is better in this share)
    (20, 0.3), (40, 0.1), (40, 0.5), (60, 0.2), (60, 0.9), (90, 0.04),
]  # fmt: skip


def statistic(name: str) -> Any:
    return difference(*((REAL[name], RealStatistic) if name in REAL else (RATIONAL[name], RationalStatistic)))


def check_rows_and_cells(h: Any, u: np.ndarray, v: np.ndarray, alternative: Alternative) -> float:
    """Check that both engines agree within the sum of their bounds; return the p-value."""
    options: dict[str, Any] = {"method": "lattice", "alternative": alternative}
    rows = structured_test(*mirrored(u, v), h, **options)
    assert rows.rank == 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tail_module, "rows_tail", grid_tail)
        patch.setattr(permutation_module, "in_short_rows", lambda statistic: statistic)
        cells = structured_test(*mirrored(u, v), h, **options)
    assert max(rows.error_bound, cells.error_bound) <= USEFUL
    assert rows.pvalue == pytest.approx(cells.pvalue, rel=rows.error_bound + cells.error_bound, abs=0.0)
    return rows.pvalue


@pytest.mark.sample(16)
@pytest.mark.parametrize("name", [*RATIONAL, "correlation"])
@pytest.mark.parametrize(("n", "lift"), SIZES)
def test_rows_and_cells_agree(name: str, n: int, lift: float) -> None:
    """P-values down to 1e-18, of statistics with rows in closed form and without."""
    rng = np.random.default_rng(n + round(100 * lift))
    v = rng.integers(0, 3, size=(n, 3)) + (name == "correlation")
    u = np.where(rng.random((n, 1)) < lift, v + np.array([1, 0, 1]), v)
    u = np.where(rng.random((n, 1)) < 0.3, v[:, [1, 2, 0]], u)
    check_rows_and_cells(statistic(name), u, v, "greater")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*RATIONAL, "correlation", "root and two counts"])
def test_rows_and_cells_agree_in_generated_cases(name: str) -> None:
    """Counts up to 4 of 10 to 70 examples, with p-values down to 1e-14 and below."""
    rng, h, found = np.random.default_rng(list(name.encode())), statistic(name), list[float]()
    while len(found) < cases(40):
        n = int(rng.integers(10, 70))
        v = rng.integers(0, rng.integers(2, 5, size=3), size=(n, 3)) + 1
        better = v + rng.integers(0, 2, size=3)
        u = np.where(rng.random((n, 1)) < rng.choice([0.0, 0.1, 0.5, 0.9]), better, v)
        u = np.where(rng.random((n, 1)) < rng.choice([0.1, 0.3, 0.6]), v[rng.permutation(n)], u)
        if np.linalg.matrix_rank(u - v) < 3:
            continue
        found.append(check_rows_and_cells(h, u, v, oracles.ALTERNATIVES[len(found) % 3]))
    assert min(found) < 1e-3


@pytest.mark.usefixtures("no_grid")
@pytest.mark.parametrize("n", [40, 400])
def test_tails_beyond_the_range_of_floats(n: int) -> None:
    """All examples favour the candidate: p is 2^-n, of three tilts that make every coin certain."""
    h = difference(RATIONAL["precision and a count"], RationalStatistic)
    kinds = np.array([[1, 0, 0], [0, 0, 1], [1, 0, 1]]), np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    result = structured_test(
        *mirrored(*kinds), h, multiplicities=[n] * 3, alternative="greater", method="lattice"
    )
    check_pvalue(result, Fraction(1, 2 ** (3 * n)), useful=USEFUL)


@pytest.mark.usefixtures("no_grid")
def test_independent_counts_of_thousands_of_examples() -> None:
    """The last count alone decides: a binomial tail below 1e-50."""
    h = difference(lambda x: x[2] + share(x[0], x[0] + x[1]) / 10**6, RationalStatistic)
    kinds = (
        np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]]),
        np.array([[0, 1, 0], [1, 1, 0], [0, 0, 0], [0, 0, 1]]),
    )
    sizes = [400, 300, 700, 230]
    result = structured_test(
        *mirrored(*kinds), h, multiplicities=sizes, alternative="greater", method="lattice"
    )
    more = Fraction(sum(math.comb(930, k) for k in range(701, 931)), 2**930)
    tied = Fraction(math.comb(930, 700), 2**930)
    assert result.rank == 3
    assert more <= Fraction(result.pvalue) <= more + tied
    assert result.error_bound <= USEFUL
    assert result.log10_pvalue < -50


def problem(score: Score, kind: Any, rng: np.random.Generator, n: int) -> tuple[LatticeStatistic, Reach, Any]:
    h = difference(score, kind)
    while True:
        u, v = counts(rng, n)
        histogram = DifferenceHistogram.from_pairs(*mirrored(u + 1, v + 1))
        lattice = reduce_rank(histogram)
        if lattice.rank == 3:
            break
    statistic = in_short_rows(LatticeStatistic(h, histogram, lattice))
    law = SwapDistribution(statistic.lattice.coordinates, histogram.multiplicities)
    return statistic, Reach(law, histogram.origin, statistic.lattice.basis), law


@pytest.mark.sample(14)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("name", [*RATIONAL, *REAL])
def test_regions_against_every_point(name: str, upper: bool, strict: bool) -> None:
    rng = np.random.default_rng(5)
    kind, score = (RealStatistic, REAL[name]) if name in REAL else (RationalStatistic, RATIONAL[name])
    for _ in range(6):
        statistic, reach, _ = problem(score, kind, rng, int(rng.integers(4, 80)))
        centre = statistic.observed_point
        observed = statistic.observed_exact
        assert observed is not None
        region = statistic.region(observed, upper=upper, strict=strict)
        start = tuple(x - int(rng.integers(0, 20)) for x in centre)
        window = Window(start, tuple(int(size) for size in rng.integers(1, 28, size=3)))
        points = [x + grid for x, grid in zip(start, np.indices(window.periods), strict=True)]
        reached = reach.contains(points)
        for divisor in reach.strips_of(getattr(region, "affine_divisors", None) or []):
            reached &= divisor.contains(points)
        expected = np.full(window.periods, OUTSIDE, dtype=np.int8)
        expected[reached] = region.membership([axis[reached] for axis in points])
        found = region_rows(region, window_rows(window), reach, BUDGET)
        for rows, wanted in ((found.inside, INSIDE), (found.undefined, UNDEFINED)):
            painted = np.zeros(window.periods, dtype=np.int64)
            for x, y, first, last in zip(*rows.heads, rows.first, rows.last, strict=True):
                painted[x - start[0], y - start[1], first - start[2] : last + 1 - start[2]] += 1
            np.testing.assert_array_equal(painted, expected == wanted)


def test_rows_lie_where_the_statistic_is_simple() -> None:
    rng = np.random.default_rng(3)
    closed = {}
    for name, score in {**RATIONAL, **REAL}.items():
        kind = RealStatistic if name in REAL else RationalStatistic
        closed[name] = problem(score, kind, rng, 60)[0].is_closed_in_rows
    assert {name for name, is_closed in closed.items() if not is_closed} == {
        "cubic in all counts",
        "root of a product",
    }


@pytest.mark.parametrize("rank", [2, 3])
def test_bases_along_a_direction(rank: int) -> None:
    """The lattice stays the same, and no coordinate but the last changes along the direction."""
    rng = np.random.default_rng(rank)
    for _ in range(20):
        u, v = counts(rng, 30, rank)
        histogram = DifferenceHistogram.from_pairs(*mirrored(u, v))
        lattice = reduce_rank(histogram)
        assert lattice.rank == rank
        direction = rng.integers(-3, 4, size=rank)
        direction[int(rng.integers(rank))] = 1
        exact = lattice.coordinates.astype(object)
        gram = ((exact.T * histogram.multiplicities.astype(object)) @ exact).tolist()
        moved = along(lattice, gram, direction.tolist())
        basis, other = np.array(lattice.basis), np.array(moved.basis)
        np.testing.assert_array_equal(moved.coordinates @ other.T, lattice.coordinates @ basis.T)
        np.testing.assert_array_equal(other[:, -1], basis @ direction)


GOLD = {
    "F1": lambda x: share(2 * x[0], x[1] + x[2]),
    "F0.5": lambda x: share(5 * x[0], 4 * x[1] + x[2]),
    "twice a sum": lambda x: share(x[0], 2 * (x[1] + 2 * x[2]) + 3) + (x[1] + 2 * x[2]) / Fraction(100),
}


@pytest.mark.sample(3)
@pytest.mark.usefixtures("no_grid")
@pytest.mark.parametrize("alternative", oracles.ALTERNATIVES)
@pytest.mark.parametrize("kind", [RationalStatistic, RealStatistic])
@pytest.mark.parametrize("name", GOLD)
def test_counts_that_enter_as_sums(name: str, kind: Any, alternative: Alternative) -> None:
    """Gold that varies from run to run: true positives, predicted and actual items have rank 2 together."""
    rng = np.random.default_rng(list(GOLD).index(name))
    h, exact = difference(GOLD[name], kind), difference(GOLD[name], RationalStatistic)
    for _ in range(3):
        u, v = counts(rng, 11)
        assert reduce_rank(DifferenceHistogram.from_pairs(*mirrored(u, v))).rank == 3
        result = structured_test(*mirrored(u, v), h, alternative=alternative, method="lattice")
        assert result.rank == 2
        assert result.n_examples == 11
        assert result.n_discordant == int((u != v).any(axis=1).sum())
        check_pvalue(result, exact_pvalue(u, v, exact, alternative, mid_p=False), useful=USEFUL)


def test_forms_of_counts_that_all_matter_stay() -> None:
    rng = np.random.default_rng(1)
    histogram = DifferenceHistogram.from_pairs(*mirrored(*counts(rng, 20)))
    lattice = reduce_rank(histogram)
    for score in RATIONAL.values():
        assert in_fewer_forms(difference(score, RationalStatistic), histogram, lattice) is None


@pytest.mark.extended
def test_narrow_windows_leave_out_what_they_say() -> None:
    """Coins of one axis are independent of the others: binomial tails under a tilt, by integers."""
    law = SwapDistribution(np.eye(3, dtype=np.int64), np.array([40, 300, 2_000]))
    for slope, log_mass in ((0.0, -10.0), (1.5, -38.0), (-4.0, -20.0)):
        tilt = np.full(3, slope)
        window = narrow_window(law, tilt, log_mass)
        widest = plan_window(law, tilt, log_mass, fast=False)
        odds, outside = Fraction(math.exp(slope)), Fraction(0)
        for n, start, period in zip([40, 300, 2_000], window.start, window.periods, strict=True):
            low, high = start, start + period - 1
            out = [k for k in range(n + 1) if not low <= k <= high and min(abs(k - low), abs(k - high)) < 60]
            outside += sum(math.comb(n, k) * odds**k for k in out) / (1 + odds) ** n
        assert float(outside) <= math.exp(log_mass)
        assert all(a <= b for a, b in zip(window.periods, widest.periods, strict=True))
    assert sum(window.periods) < 0.6 * sum(widest.periods)


def test_the_planner_knows_rows_of_rank_three() -> None:
    """Where a grid would take minutes, rows take less than two seconds."""
    rng = np.random.default_rng(2)
    u, v = counts(rng, 3_000)
    h = difference(RATIONAL["precision and a count"], RationalStatistic)
    result = structured_test(*mirrored(u, v), h)
    assert (result.method, result.rank) == ("lattice", 3)
    assert result.error_bound <= USEFUL
