"""Regions of several counts, row by row and cell by cell: each p-value within 1e-10, however small it is."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from math import comb, prod
from typing import Any

import numpy as np
import pytest
from support import oracles
from support.certificates import check_pvalue
from support.oracles import Point

import trackperm
from trackperm.errors import CapacityError, InputError
from trackperm.exact import RationalStatistic, structured_test
from trackperm.exact.distributions.characteristic import SwapDistribution
from trackperm.exact.distributions.tilt import TailMass
from trackperm.exact.engines.lattice import grid as grid_module
from trackperm.exact.engines.lattice import tail as tail_module
from trackperm.exact.engines.lattice.grid import grid_tail
from trackperm.exact.engines.lattice.lattice import Reach
from trackperm.exact.engines.lattice.plane import rows_tail
from trackperm.exact.types import INSIDE, IntArray, Membership

USEFUL = 1e-10

Counts = Sequence[Any]
Score = Callable[[Counts], Any]
Truth = Callable[[Counts], Fraction]


def share(part: Any, whole: Any, undefined: Fraction = Fraction(0)) -> Any:
    """Return a quotient with a value for 0/0, of statistics and of numbers."""
    if isinstance(whole, RationalStatistic):
        return part.divide(whole, undefined=undefined)
    return Fraction(part) / whole if part or whole else undefined


SCORES: dict[str, Score] = {
    "f1": lambda x: share(2 * x[0], 2 * x[0] + x[1]),
    "precision": lambda x: share(x[0], x[0] + x[1]),
    "share": lambda x: share(x[0], x[0] + 3 * x[1], Fraction(1, 2)),
    "pole": lambda x: x[0] / (2 * x[1] - Fraction(7)),
    "product": lambda x: x[0] * x[1],
    "cubic": lambda x: x[0] * x[0] * x[1],
    "harmonic": lambda x: 2 * x[0] * (x[0] + 1) / (x[0] * (x[0] + x[1]) + Fraction(1)),
    "micro-f1": lambda x: share(2 * x[0], 2 * x[0] + x[1] + x[2]),
    "macro-f1": lambda x: share(2 * x[0], 2 * x[0] + x[1] + x[2]) + share(2 * x[3], 2 * x[3] + x[1] + x[2]),
}

SMALL = [
    # (score, alternative, candidate's and baseline's counts by kind of example, examples of each kind)
    ("f1", "less", [(0, 0, 1, 1), (0, 0, 1, 0)], [41, 87]),
    ("f1", "greater", [(1, 1, 0, 1), (1, 1, 0, 0), (1, 1, 1, 0)], [27, 53, 13]),
    ("f1", "two-sided", [(1, 0, 0, 0), (1, 1, 1, 0), (1, 0, 1, 1), (0, 0, 1, 1)], [16, 17, 12, 6]),
    ("f1", "two-sided", [(1, 0, 0, 1), (1, 0, 0, 2), (0, 1, 1, 0)], [40, 4, 3]),
    ("precision", "less", [(0, 0, 0, 1), (0, 0, 1, 1), (0, 0, 0, 0)], [15, 64, 38]),
    ("precision", "greater", [(1, 1, 0, 2), (3, 1, 1, 0), (2, 1, 0, 0)], [12, 40, 2]),
    ("share", "two-sided", [(1, 0, 0, 1), (0, 0, 0, 1), (1, 1, 0, 1)], [61, 25, 12]),
    ("pole", "two-sided", [(0, 0, 0, 2), (0, 0, 1, 2), (1, 0, 1, 2), (0, 0, 1, 0)], [21, 13, 12, 12]),
    ("pole", "greater", [(2, 0, 1, 2), (1, 2, 1, 2), (2, 0, 0, 2), (1, 0, 0, 0)], [4, 5, 7, 7]),
    ("product", "two-sided", [(14, 12, 10, 23), (28, 0, 21, 3)], [51, 51]),
    ("cubic", "less", [(167, 56, 24, 112), (97, 138, 70, 157), (54, 9, 4, 133)], [3, 2, 4]),
    ("cubic", "greater", [(3, 2, 0, 3), (3, 2, 1, 3), (3, 0, 0, 3), (3, 1, 1, 3)], [2, 6, 7, 2]),
    ("harmonic", "greater", [(9, 12, 12, 17), (17, 0, 7, 11), (24, 14, 25, 12)], [17, 15, 14]),
    ("harmonic", "less", [(0, 1, 1, 0), (0, 0, 2, 1), (1, 2, 1, 0)], [39, 20, 10]),
    ("micro-f1", "two-sided", [(5, 1, 4, 5, 2, 5), (5, 2, 1, 1, 5, 2), (5, 0, 0, 2, 5, 5)], [17, 9, 17]),
    ("micro-f1", "greater", [(1, 0, 0, 0, 1, 0), (1, 0, 0, 0, 0, 1), (1, 1, 0, 1, 0, 1)], [30, 20, 9]),
    ("macro-f1", "two-sided", [(1, 0, 0, 0, 0, 1, 0, 0), (0, 0, 0, 1, 0, 0, 1, 0), (1, 1, 0, 0, 0, 0, 1, 1)],
     [19, 23, 5]),
]  # fmt: skip


def difference(name: str, n_counts: int) -> tuple[RationalStatistic, Truth]:
    def of(x: Counts) -> Any:
        return SCORES[name](x[:n_counts]) - SCORES[name](x[n_counts:])

    return of([RationalStatistic.variable(i, 2 * n_counts) for i in range(2 * n_counts)]), of


def exact_pvalue(kinds: Sequence[Point], sizes: Sequence[int], truth: Truth, alternative: str) -> Fraction:
    """One term for each way to choose how many of each kind are swapped."""
    observed, mirrored = mirrored_arrays(kinds)
    ways: Counter[Point] = Counter()
    for swapped in product(*(range(size + 1) for size in sizes)):
        total = sizes @ observed + swapped @ (mirrored - observed)
        ways[tuple(total.tolist())] += prod(map(comb, sizes, swapped))
    return oracles.structured_pvalues(ways, [tuple((sizes @ observed).tolist())], truth)[alternative]


def mirrored_arrays(kinds: Sequence[Point]) -> tuple[np.ndarray, np.ndarray]:
    observed = np.array(kinds)
    middle = observed.shape[1] // 2
    return observed, np.hstack([observed[:, middle:], observed[:, :middle]])


def check(kinds: Sequence[Point], sizes: Sequence[int], h: Any, truth: Truth, alternative: str) -> None:
    result = structured_test(
        *mirrored_arrays(kinds), h, multiplicities=sizes, alternative=alternative, method="lattice"
    )
    check_pvalue(result, exact_pvalue(kinds, sizes, truth, alternative), useful=USEFUL)


@pytest.fixture
def no_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planes have to do with rows."""

    def planes_alone(law: SwapDistribution, *arguments: Any) -> TailMass:
        if law.rank == 2:
            raise CapacityError("no grid here")
        return grid_tail(law, *arguments)

    monkeypatch.setattr(tail_module, "grid_tail", planes_alone)


@pytest.mark.sample(6)
@pytest.mark.usefixtures("no_grid")
@pytest.mark.parametrize(("name", "alternative", "kinds", "sizes"), SMALL)
def test_small_pvalues_are_certain(name: str, alternative: str, kinds: list[Point], sizes: list[int]) -> None:
    """Poles next to the region, regions in several parts, more than two dimensions."""
    h, truth = difference(name, len(kinds[0]) // 2)
    check(kinds, sizes, h, truth, alternative)


@pytest.mark.usefixtures("no_grid")
@pytest.mark.parametrize("sizes", [(3, 3), (38, 25), (10, 40), (100, 60)])
def test_two_tails_of_one_quadratic_form(sizes: tuple[int, int]) -> None:
    """The region is what lies outside an ellipse: no single point of it dominates the others."""
    kinds = [(0, 0, 1, 1), (1, 0, 1, 1)]
    x = [RationalStatistic.variable(i, 4) for i in range(4)]
    h = (x[0] - x[2]) ** 2 + 3 * (x[1] - x[3]) ** 2

    def truth(point: Counts) -> Fraction:
        return Fraction((point[0] - point[2]) ** 2 + 3 * (point[1] - point[3]) ** 2)

    for alternative in ("greater", "less"):
        check(kinds, sizes, h, truth, alternative)


@pytest.mark.parametrize("alternative", oracles.ALTERNATIVES)
@pytest.mark.parametrize(
    ("kinds", "sizes"),
    [
        ([(2, 1, 1, 1), (1, 0, 0, 1), (1, 1, 1, 0)], [20, 13, 9]),
        ([(3, 0, 1, 2), (0, 2, 1, 1), (2, 1, 2, 0)], [3, 2, 4]),
    ],
)
def test_callables_row_by_row(kinds: list[Point], sizes: list[int], alternative: str) -> None:
    """Geometric means of counts: irrational, but their squares decide which is greater."""

    def h(x: np.ndarray) -> np.ndarray:
        return np.sqrt(x[..., 0] * x[..., 1] + x[..., 0]) - np.sqrt(x[..., 2] * x[..., 3] + x[..., 2])

    # Values of h apart from ties differ by far more than floats err, so floats order them.
    def truth(point: Counts) -> Fraction:
        value = float(h(np.array([float(x) for x in point])))
        return Fraction(round(value * 2**36))

    check(kinds, sizes, h, truth, alternative)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("name", "alternative", "kinds", "sizes"), SMALL[:4] + SMALL[9:11])
def test_rows_and_cells_agree(
    name: str, alternative: str, kinds: list[Point], sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transform on a grid takes planes too, in blocks that split every axis."""
    h, truth = difference(name, 2)
    monkeypatch.setattr(tail_module, "rows_tail", grid_tail)
    monkeypatch.setattr(grid_module, "BLOCK", 37)
    if name == "cubic":
        monkeypatch.setattr(grid_module, "BLOCK", 2**16)
    check(kinds, sizes, h, truth, alternative)


@pytest.mark.parametrize("better", [0.02, 0.08, 0.2])
def test_rows_and_cells_agree_beyond_one_window(better: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """F1 of 1,500 examples: no tilt's window holds the whole support."""
    rng = np.random.default_rng(8)
    u = rng.binomial(2, (0.7 + better, 0.3 - better), size=(1_500, 2))
    v = rng.binomial(2, (0.7, 0.3), size=(1_500, 2))
    h, _ = difference("f1", 2)
    rows = structured_test(np.hstack([u, v]), np.hstack([v, u]), h, method="lattice")
    monkeypatch.setattr(tail_module, "rows_tail", grid_tail)
    cells = structured_test(np.hstack([u, v]), np.hstack([v, u]), h, method="lattice")
    assert max(rows.error_bound, cells.error_bound) <= USEFUL
    assert rows.pvalue == pytest.approx(cells.pvalue, rel=rows.error_bound + cells.error_bound)


def test_a_ratio_of_wide_sums_stays_within_its_memory() -> None:
    """Tokens right of tokens said: counts that vary by thousands, and no two examples alike."""
    rng = np.random.default_rng(0)
    said = rng.integers(1, 3_000, size=300)
    said = [said, np.maximum(said + rng.integers(-300, 301, size=300), 1)]
    u, v = (np.stack([rng.binomial(n, p), n], axis=1) for n, p in zip(said, (0.8, 0.79), strict=True))
    x = [RationalStatistic.variable(i, 4) for i in range(4)]
    h, observed, swapped = x[0] / x[1] - x[2] / x[3], np.hstack([u, v]), np.hstack([v, u])
    budget = 2**23
    tracemalloc.start()
    test = structured_test(observed, swapped, h, method="lattice", memory_budget=budget)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert test.error_bound < 1e-10
    assert peak <= budget
    with pytest.raises(CapacityError, match=r"the memory budget is 1\.0 MiB"):
        structured_test(observed, swapped, h, method="lattice", memory_budget=2**20)


def test_tails_beyond_the_range_of_floats() -> None:
    """Steep tilts: F1 where all of 1,200 examples favour the candidate; p is 2^-1200."""
    h, _ = difference("f1", 2)
    kinds = [(1, 0, 0, 1), (1, 0, 0, 0), (1, 1, 0, 1), (1, 0, 1, 1)]
    result = structured_test(
        *mirrored_arrays(kinds), h, multiplicities=[300] * 4, alternative="greater", method="lattice"
    )
    check_pvalue(result, Fraction(1, 2**1200), useful=USEFUL)
    wide = [(300, 0, 0, 1), (1, 0, 0, 270), (1, 0, 0, 1)]
    result = structured_test(
        *mirrored_arrays(wide), h, multiplicities=[2, 2, 400], alternative="greater", method="lattice"
    )
    check_pvalue(result, Fraction(1, 2**404), useful=USEFUL)


@pytest.mark.parametrize("engine", [rows_tail, grid_tail])
def test_undefined_where_swaps_lead(engine: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """x/0 after one swap in 2^4 is refused; after one in 2^130 it is part of the error bound."""
    monkeypatch.setattr(tail_module, "rows_tail", engine)
    x = [RationalStatistic.variable(i, 4) for i in range(4)]
    h = x[0].divide(x[1], undefined=0) - x[2].divide(x[3], undefined=0)
    kinds = [(1, 0, 0, 1), (0, 1, 0, 0)]
    with pytest.raises(InputError, match="the statistic is undefined after some swaps"):
        structured_test(*mirrored_arrays(kinds), h, multiplicities=[2, 2], method="lattice")
    result = structured_test(*mirrored_arrays(kinds), h, multiplicities=[70, 60], method="lattice")
    assert result.error_bound <= USEFUL


class Everything:
    """A region without a formula."""

    def membership(self, points: Sequence[IntArray]) -> Membership:
        return np.full(np.broadcast_shapes(*(axis.shape for axis in points)), INSIDE, dtype=np.int8)


@pytest.mark.parametrize(
    ("engine", "rank", "message"),
    [
        (rows_tail, 2, r"the exact sum has about \S+ × 10\^\d+ points; the limit is 134,217,728"),
        (grid_tail, 2, r"would decide \d+ x \d+ lattice points"),
        (grid_tail, 3, r"would decide \d+ x \d+ x \d+ lattice points"),
    ],
)
def test_windows_beyond_the_limits_are_refused(engine: Callable, rank: int, message: str) -> None:
    law = SwapDistribution(np.eye(rank, dtype=np.int64), np.full(rank, 3 * 10**6))
    reach = Reach(law, (0,) * rank, np.eye(rank, dtype=int).tolist())
    with pytest.raises(CapacityError, match=message):
        engine(law, np.zeros(rank), -1.0, lambda centre: Everything(), reach, 2**30)


def test_a_plane_with_many_peaks_is_not_chosen() -> None:
    """Regression: counts that look up the labels have frequencies all over the plane, and took minutes."""
    rng = np.random.default_rng(1)
    n, k = 5000, 3
    label = rng.choice(k, n, p=[0.2, 0.3, 0.5])
    wrong, right = rng.integers(0, k, (2, n)), rng.random((2, n)) < [[0.7], [0.75]]
    old, new = np.where(right, label, wrong)
    assert trackperm.compare(label, old, new, statistic="quadratic_weighted_kappa").method == "tilted"
