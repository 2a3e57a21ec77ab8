"""Certificates of tails of several counts, by rows and by cells."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from support import oracles
from support.bands import (
    BUDGET,
    COARSE,
    arb,
    check_band,
    off_by_delta,
    relative,
    times_delta,
    upper_share,
)
from support.cases import F1, f1_difference

from trackperm.errors import CapacityError
from trackperm.exact import DifferenceHistogram
from trackperm.exact.distributions import pmf, tilt
from trackperm.exact.distributions.characteristic import FloatArray, SwapDistribution
from trackperm.exact.distributions.pmf import LatticePMF, Window, lattice_pmf, plan_window
from trackperm.exact.distributions.tilt import (
    ScaleFactor,
    TailMass,
    Tilted,
    without_undefined,
)
from trackperm.exact.engines.lattice import grid, plane, spectrum, tail
from trackperm.exact.engines.lattice.lattice import reduce_rank
from trackperm.exact.engines.lattice.rows import RowIntervals
from trackperm.exact.engines.lattice.statistic import LatticeStatistic
from trackperm.exact.types import INSIDE, OUTSIDE


class Problem:
    """F1 of generated counts, one-sided, with the p-value from integers."""

    def __init__(self, seed: int, n: int, lift: float) -> None:
        rng = np.random.default_rng(seed)
        v = rng.integers(0, 3, (n, 2))
        lifted = (rng.random(n) < lift)[:, None] * [1, -1]
        u = np.where(rng.random((n, 1)) < 0.3, rng.integers(0, 3, (n, 2)), np.clip(v + lifted, 0, 3))
        histogram = DifferenceHistogram.from_pairs(np.hstack([u, v]), np.hstack([v, u]))
        lattice = reduce_rank(histogram)
        self.law = SwapDistribution(lattice.coordinates, histogram.multiplicities)
        self.statistic = LatticeStatistic(F1, histogram, lattice)
        total = (u + v).sum(axis=0).tolist()
        points = [list(map(tuple, counts.tolist())) for counts in (u, v)]
        self.truth = oracles.structured_pvalues(
            oracles.sums_by_polynomial(*points),
            points[0],
            lambda x: f1_difference((*x, total[0] - x[0], total[1] - x[1])),
        )["greater"]

    def tail(self) -> TailMass:
        observed = self.statistic.observed_exact
        return tail.region_tail(
            self.law,
            self.statistic,
            float(observed),
            self.statistic.region(observed, upper=True),
            upper=True,
            memory_budget=BUDGET,
        )


@cache
def problems() -> list[Problem]:
    kinds = [(40, 0.1), (40, 0.3), (60, 0.5), (60, 0.2), (80, 0.15), (40, 0.0), (50, 0.0)]
    return [Problem(seed, n, lift) for seed, (n, lift) in enumerate(kinds)]


@pytest.fixture(params=["plane", "grid"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each engine once, satisfied with its first tail."""

    def refuse(*_: Any) -> TailMass:
        raise CapacityError("not this one")

    monkeypatch.setattr(tail, "WANTED", math.inf)
    if request.param == "grid":
        monkeypatch.setattr(tail, "rows_tail", refuse)
    return str(request.param)


def check_tails(c: float, *others: Problem) -> None:
    found = [relative(problem.tail(), problem.truth) for problem in (*problems(), *others)]
    check_band([pair for pair in found if pair[1] < 1.0], c)


@pytest.mark.usefixtures("engine")
def test_roundings_of_several_counts() -> None:
    check_tails(200)


@pytest.mark.usefixtures("engine")
def test_scale_factor_of_several_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tilt, "scale_factor", off_by_delta)
    check_tails(1.1, Problem(seed=7, n=60, lift=0.8))  # a mild tail has no tilt


@pytest.mark.usefixtures("engine")
def test_spectrum_of_several_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectrum, "characteristic_function", times_delta)
    monkeypatch.setattr(pmf, "characteristic_function", times_delta)
    check_tails(2.5)


@pytest.mark.usefixtures("engine")
def test_pruned_frequencies_of_several_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plane, "LOG_PRUNED", -6.0)
    monkeypatch.setattr(pmf, "LOG_PRUNED", -6.0)
    check_tails(400)


@pytest.mark.usefixtures("engine")
def test_points_that_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plane, "LOG_IGNORED", -2.0)
    monkeypatch.setattr(grid, "LOG_IGNORED", -2.0)
    check_tails(1500)


def test_points_beyond_the_null_window(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def narrow(law: SwapDistribution, at: FloatArray, log_mass: float, *, fast: bool) -> Window:
        return plan_window(law, at, -4.0, fast=fast)

    def exact(law: SwapDistribution, _: Tilted, rows: RowIntervals, *__: Any) -> tuple[float, float]:
        none = np.zeros(law.rank)
        window = plan_window(law, none, pmf.LOG_WINDOW, fast=True)
        (x, y), mass = window.start, lattice_pmf(law, none, window, BUDGET).mass
        parts = zip(rows.heads[0] - x, rows.first - y, rows.last - y + 1, strict=True)
        total = math.fsum(mass[at, first:stop].sum() for at, first, stop in parts)
        return total, 1e-12 * total

    monkeypatch.setattr(grid, "plan_window", narrow)
    if engine == "plane":  # without a tilt, its rows are those of the tilt's window
        monkeypatch.setattr(tilt, "plan_window", narrow)
        monkeypatch.setattr(plane, "_row_sums", exact)
    check_tails(300)


def independent_counts(window: Window) -> tuple[SwapDistribution, Tilted]:
    """Two independent counts on a window that the mass below and above comes back into."""
    law = SwapDistribution(np.array([[1, 0], [0, 1]]), np.array([30, 100]))
    return law, Tilted(np.zeros(2), (15, 50), ScaleFactor(0.0, 0.0), np.array([15.0, 50.0]), window)


def test_wrapped_mass_of_rows() -> None:
    law, tilt = independent_counts(Window((0, 46), (31, 55)))
    rows = RowIntervals((np.arange(31),), np.full(31, 46), np.full(31, 100))
    total, bound = plane._row_sums(law, tilt, rows, 0.0, BUDGET)
    check_band([(abs(total - float(upper_share({1: 100}, 46))), bound)], 10)


@pytest.mark.parametrize("slope", [0.0, 2.0**-20, 0.03, -0.03])
def test_sums_of_narrow_and_wide_intervals(slope: float) -> None:
    """1 - q cancels near frequency 0, where a plain difference loses digits."""
    law = SwapDistribution(np.array([[1, 0], [0, 1]]), np.array([30, 2_000]))
    tilt = plane._tilted(law, np.array([0.0, slope]), log_tail=-6.0)
    x = np.arange(31)
    mean = round(float(tilt.mean[1]))
    pairs = []
    for first, last in (
        (mean, mean),
        (mean - 3, mean + 40),
        (mean + 10, mean + 150),
        (mean - 150, mean - 20),
    ):
        rows = RowIntervals((x,), np.full(31, first), np.full(31, last))
        total, bound = plane._row_sums(law, tilt, rows, 0.0, BUDGET)
        truth = upper_share({1: 2_000}, first) - upper_share({1: 2_000}, last + 1)
        pairs.append((float(abs(arb(tilt.scale.log).exp() * total / arb(truth) - 1)), bound / total))
    check_band(pairs, 3_000)
    assert min(bound for _, bound in pairs) < 1e-12


def sum_of_cells(law: SwapDistribution, tilt: Tilted, least: int) -> tuple[float, float]:
    """The mass from a last coordinate on in a tilt's window, divided by exp of its scale, and its bound."""
    axis = np.arange(tilt.window.periods[-1]) + tilt.window.start[-1]
    membership = np.broadcast_to(np.where(axis >= least, INSIDE, OUTSIDE), tilt.window.periods)
    sums = grid._Sums(law, tilt, grid._Cells(tilt.window, membership.astype(np.int8), None), -250.0)
    return sums._summed(INSIDE, [tilt], 0, tilt.scale.log, BUDGET)


def test_wrapped_mass_of_cells() -> None:
    law, tilt = independent_counts(Window((0, 46), (31, 20)))
    total, bound = sum_of_cells(law, tilt, 46)
    held = upper_share({1: 100}, 46) - upper_share({1: 100}, 66)
    check_band([(abs(total - float(held)), bound)], 5)


def exact_mass(window: Window) -> np.ndarray:
    """The masses of the independent counts, of 30 and 100 coins, on a window."""
    shares = [np.array([math.comb(n, k) for k in range(n + 1)]) / 2**n for n in (30, 100)]
    x, y = (slice(start, start + n) for start, n in zip(window.start, window.periods, strict=True))
    return np.outer(shares[0][x], shares[1][y])


def test_rows_without_a_tilt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only tilt has a window of 20 points, and the region goes on beyond it."""

    def exact(_: Any, tilt: Tilted, rows: RowIntervals, *__: Any) -> tuple[float, float]:
        parts = zip(rows.heads[0], rows.first, rows.sizes, strict=True)
        return math.fsum(exact_mass(Window((x, y), (1, n))).sum() for x, y, n in parts), 0.0

    monkeypatch.setattr(plane, "MOST_TILTS", 1)
    monkeypatch.setattr(plane, "_row_sums", exact)
    law, tilt = independent_counts(Window((0, 46), (31, 20)))
    x, ends = np.tile(np.arange(31), 2), [46, 66, 65, 100]
    rows = RowIntervals((x,), *(np.repeat(each, 31) for each in (ends[:2], ends[2:])))
    precision = law.least_precision
    tilts, chosen, bounds = plane._assigned(law, tilt, rows, 0.0, precision)
    found = plane._summed(law, tilts, rows, chosen, 0.0, bounds[chosen == -1], precision, BUDGET)
    check_band([relative(found, upper_share({1: 100}, 46))], 3000)


def test_cells_without_a_tilt(monkeypatch: pytest.MonkeyPatch) -> None:
    def exact(_: Any, __: Any, window: Window, ___: int) -> LatticePMF:
        return LatticePMF(window, exact_mass(window), 0.0, -math.inf)

    monkeypatch.setattr(grid, "MOST_TILTS", 1)
    monkeypatch.setattr(grid, "lattice_pmf", exact)
    law, tilt = independent_counts(Window((0, 46), (31, 20)))
    whole = Window((0, 0), (31, 101))
    membership = np.broadcast_to(np.where(np.arange(101) >= 46, INSIDE, OUTSIDE), whole.periods)
    cells = grid._Cells(whole, membership.astype(np.int8), None)
    found = grid._Sums(law, tilt, cells, 0.0).tail(INSIDE, -math.inf, BUDGET)
    check_band([relative(found, upper_share({1: 100}, 46))], 3000)


@pytest.mark.parametrize(("least", "sign"), [(124, 0), (190, -1)])
def test_roundings_of_masses_and_weights_of_cells(
    least: int, sign: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exponents of weights are about 0 next to the mean of a tilt, and -30 far out."""
    law = SwapDistribution(np.array([[1]]), np.array([200]))
    tilt = Tilted.of(law, np.array([0.5]), -300.0, fast=True)
    exact, _ = sum_of_cells(law, tilt, least)
    plain, weights = lattice_pmf, Tilted.log_weight

    def off(*arguments: Any) -> Any:
        found = plain(*arguments)
        return replace(found, mass=found.mass * (1 + 16 * COARSE), error_norm=0.0, log_wrapped=-math.inf)

    monkeypatch.setattr(grid, "UNIT", COARSE)
    monkeypatch.setattr(grid, "lattice_pmf", off)
    monkeypatch.setattr(
        Tilted, "log_weight", lambda *arguments: weights(*arguments) * (1 + 4 * sign * COARSE)
    )
    total, bound = sum_of_cells(law, tilt, least)
    check_band([(abs(total - exact), bound)], 2)


def test_points_where_the_statistic_is_undefined() -> None:
    """All of their mass, or none of it, may belong to the tail."""
    found = without_undefined(TailMass(0.0, 0.5, 1e-9), TailMass(-3.0, 0.1, 1.0), (0, 0))
    more = 0.1 * math.exp(-3.0)
    check_band([(0.5 / (0.5 - more) - 1.0, found.error)], 1.01)
    imprecise = without_undefined(TailMass(0.0, 0.5, 0.25), TailMass(-3.0, 1e-15, 1.0), (0, 0))
    assert 0.25 <= imprecise.error <= 0.2501
