"""Irrational statistics: p-values against enumeration, and statistics that are refused."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import oracles
from support.budget import cases
from support.certificates import check_pvalue
from support.decimal_oracle import (
    TREES,
    Both,
    logarithm,
    over,
    root,
    truth,
)
from support.oracles import Point
from support.score_laws import geometric_mean, mcc

from trackperm.errors import InputError
from trackperm.exact import structured_test
from trackperm.exact.counts import DifferenceHistogram
from trackperm.exact.distributions.characteristic import SwapDistribution
from trackperm.exact.engines.lattice.lattice import reduce_rank
from trackperm.exact.engines.lattice.statistic import LatticeStatistic
from trackperm.exact.functions.real import RealStatistic
from trackperm.exact.types import INSIDE, UNDEFINED


def variables(m: int) -> list[RealStatistic]:
    return [RealStatistic.variable(i, m) for i in range(m)]


def error_rate(over: Any, f: Any, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    return f.log(over(2 * fp + 2 * fn + 1, 2 * tp + 2 * fp + 2 * fn + 2 * tn))


SCORES = {"mcc": mcc, "geometric mean": geometric_mean, "error rate": error_rate}
DECIMALS = SimpleNamespace(sqrt=root, log=logarithm)


def difference_of(name: str) -> Both:
    score, x = SCORES[name], variables(8)

    def value(four: tuple[int, ...]) -> Decimal:
        return score(lambda a, b: over(a, b, Fraction(0)), DECIMALS, *map(Decimal, four))

    ours = [score(lambda a, b: a.divide(b, 0), RealStatistic, *part) for part in (x[:4], x[4:])]
    return Both(ours[0] - ours[1], lambda point: value(point[:4]) - value(point[4:]))


def rounded(oracle: Callable[[Point], Decimal]) -> Callable[[Point], Fraction]:
    """The oracle to 150 decimals, so that equal numbers are equal."""

    def value(point: Point) -> Fraction:
        found = truth(oracle, point)
        assert found is not None
        return Fraction(round(Fraction(found) * 10**150), 10**150)

    return value


METHODS = st.sampled_from(["auto", "enumerate", "lattice"])


@settings(deadline=None, max_examples=cases(60))
@given(
    TREES,
    st.lists(st.tuples(*[st.tuples(*[st.integers(-2, 4)] * 3)] * 2), min_size=1, max_size=6),
    st.sampled_from(["less", "greater"]),
    METHODS,
)
def test_any_expression_against_enumeration(
    tree: Both, pairs: list[tuple[Point, Point]], alternative: Any, method: Any
) -> None:
    observed, swapped = map(list, zip(*pairs, strict=True))
    counts = oracles.enumerated_sums(observed, swapped)
    if any(truth(tree.oracle, point) is None for point in counts):
        return
    expected = oracles.structured_pvalues(counts, observed, rounded(tree.oracle))
    result = structured_test(observed, swapped, tree.ours, alternative=alternative, method=method)
    check_pvalue(result, expected[alternative])


def statistic_of(observed: Any, swapped: Any, h: Any) -> tuple[LatticeStatistic, SwapDistribution]:
    histogram = DifferenceHistogram.from_pairs(observed, swapped)
    lattice = reduce_rank(histogram)
    return LatticeStatistic(h, histogram, lattice), SwapDistribution(
        lattice.coordinates, histogram.multiplicities
    )


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("name", SCORES)
def test_membership_on_a_grid_against_250_digits(name: str, upper: bool, strict: bool) -> None:
    rng = np.random.default_rng(3)
    label, u, v = rng.random((3, 60)) < np.array([[0.4], [0.5], [0.45]])
    u, v = (np.where(rng.random(60) < 0.8, label, guess) for guess in (u, v))
    cells = [np.stack([p & label, p & ~label, ~p & label, ~p & ~label], axis=1).astype(int) for p in (u, v)]
    h = difference_of(name)
    statistic, law = statistic_of(np.hstack(cells), np.hstack(cells[::-1]), h.ours)
    value = rounded(h.oracle)
    observed = value(statistic.histogram.observed)
    region = statistic.region(statistic.observed_exact, upper=upper, strict=strict, mirror=law.total)
    axes = [np.arange(low, high + 1) for low, high in law.support]
    points = np.meshgrid(*axes, indexing="ij", sparse=True)
    found = region.membership(points)
    assert found.shape == tuple(axis.size for axis in axes)
    totals = np.stack(statistic.totals(np.broadcast_arrays(*points)), axis=-1)
    n_ties = 0
    for place in np.ndindex(found.shape):
        point = tuple(totals[place].tolist())
        if min(point) < 0:
            continue  # no swap leads there
        beyond = (value(point) - observed) * (1 if upper else -1)
        n_ties += beyond == 0
        assert (found[place] == INSIDE) == (beyond > 0 or (beyond == 0 and not strict)), point
    assert n_ties >= 1
    assert statistic.ties == "exact"


def test_different_values_with_equal_floats() -> None:
    """sqrt(10^14 + k) for k = 0 to 10, one-sided: a band of 2^-40 of the value would tie all eleven."""
    observed = np.array([[10**14]] + [[1]] * 10)
    swapped = np.array([[10**14]] + [[0]] * 10)
    root_of = RealStatistic.variable(0, 1).sqrt()
    exact = structured_test(observed, swapped, root_of, alternative="greater", method="enumerate")
    assert (exact.pvalue, exact.ties) == (2.0**-10, "exact")
    banded = structured_test(observed, swapped, root_of.__call__, alternative="greater", method="enumerate")
    assert (banded.pvalue, banded.ties) == (1.0, "approximate")


def test_an_observed_value_that_is_zero_by_algebra() -> None:
    """sqrt(18) - 3 sqrt(2): zero, and so every swap is as extreme, whatever floats make of it."""
    x = variables(4)
    h = (x[0].sqrt() + 3 * x[1].sqrt()) - (x[2].sqrt() + 3 * x[3].sqrt())
    assert h(np.array([18, 0, 0, 2])) != 0.0
    tie = structured_test([(18, 0, 0, 2)], [(0, 2, 18, 0)], h)
    assert (tie.observed, tie.pvalue, tie.ties) == (0.0, 1.0, "exact")


def test_ties_by_digits_are_noted() -> None:
    x = variables(2)
    nested = (3 + 2 * x[0].sqrt()).sqrt() - (1 + x[0].sqrt()) + x[1] * 0
    observed, swapped = [(2, 0), (0, 0)], [(1, 1), (0, 1)]
    result = structured_test(observed, swapped, nested, alternative="less")
    assert (result.pvalue, result.ties) == (0.5, "100 digits")


def test_no_note_without_ties() -> None:
    """A value of no closed form ties with itself by being itself."""
    nested = (3 + 2 * RealStatistic.variable(0, 1).sqrt()).sqrt()
    result = structured_test([[2], [5]], [[1], [1]], nested, alternative="greater")
    assert (result.pvalue, result.ties) == (0.25, "exact")


def test_undefined_values() -> None:
    x = variables(1)[0]
    with pytest.raises(
        InputError, match="observed value of the statistic is undefined: it takes the logarithm"
    ):
        structured_test([[0], [0]], [[1], [0]], x.log(), alternative="greater")
    with pytest.raises(InputError, match="undefined after some swaps"):
        structured_test([[1], [1]], [[0], [0]], x.log(), alternative="greater")
    statistic, _ = statistic_of([[1], [1]], [[0], [0]], x.log())
    region = statistic.region(statistic.observed_exact, upper=True)
    assert region.membership([np.array([-1, 0, 1, 2])]).tolist() == [UNDEFINED, UNDEFINED, 0, 1]


@pytest.mark.parametrize("alternative", ["less", "greater"])
def test_infinite_values_where_swaps_do_not_lead(alternative: Any) -> None:
    """log |min(x, y)| is infinite on both sides of the mean, where its slope is not a number."""
    x, y = variables(2)
    h = abs(x.minimum(y)).log()
    result = structured_test(
        [[0, 0], [1, 1]], [[0, 1], [-1, 0]], h, alternative=alternative, method="lattice"
    )
    assert result.pvalue == 1.0


# --- exchanged runs --------------------------------------------------------------------------------


def test_conditions_that_break_the_symmetry_are_refused() -> None:
    """-h after exchanging all pairs, but for ties of u and v, which random swaps of many pairs may miss."""
    u, v = variables(2)
    broken = u.equals(v).where(1, u.sqrt() - v.sqrt())
    observed, swapped = [[9, 0]] + [[1, 0]] * 9, [[0, 9]] + [[0, 1]] * 9
    with pytest.raises(InputError, match=r"is 1.0 after some swaps and 1.0 after the opposite swaps"):
        structured_test(observed, swapped, broken, method="lattice")
    fair = u.equals(v).where(0, u.sqrt() - v.sqrt())
    mirrored = structured_test(observed, swapped, fair)
    assert mirrored.pvalue == structured_test(observed, swapped, u.sqrt() - v.sqrt()).pvalue


@pytest.mark.parametrize(
    "h",
    [
        lambda u, v: u.sqrt() + v.sqrt(),
        lambda u, v: (u / (v + 1)).sqrt(),
        lambda u, v: u.sqrt() - (v + 1).sqrt(),
        lambda u, v: u.sqrt() - u.sqrt() + v,
        lambda u, v: u.sqrt() - 2 * v.sqrt(),
    ],
)
def test_statistics_that_are_not_antisymmetric_are_refused(h: Any) -> None:
    with pytest.raises(InputError, match="changes sign when the two runs are exchanged"):
        structured_test([[3, 1], [2, 2], [4, 0]], [[1, 3], [2, 2], [0, 4]], h(*variables(2)))


@pytest.mark.parametrize("name", SCORES)
def test_antisymmetry_of_a_difference_is_read_off(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LatticeStatistic, "sample", None)
    observed = [[1, 0, 0, 0, 0, 0, 1, 0], [0, 0, 0, 1, 0, 1, 0, 0], [1, 0, 0, 0, 1, 0, 0, 0]]
    statistic, law = statistic_of(observed, [row[4:] + row[:4] for row in observed], difference_of(name).ours)
    statistic.check_antisymmetric(law.total)


def test_antisymmetry_of_a_product_is_found_on_samples() -> None:
    u, v = variables(2)
    observed, swapped = [[3, 1], [2, 5], [4, 0]], [[1, 3], [5, 2], [0, 4]]
    product = (u - v) * (u * v).sqrt()

    def oracle(point: Point) -> Decimal:
        return (point[0] - point[1]) * Decimal(point[0] * point[1]).sqrt()

    expected = oracles.structured_pvalues(
        oracles.enumerated_sums(observed, swapped), observed, rounded(oracle)
    )
    assert structured_test(observed, swapped, product).pvalue == expected["two-sided"]


# --- callables -------------------------------------------------------------------------------------


def test_ties_of_a_callable_do_not_depend_on_blocks() -> None:
    """Far points have values 10^13 times those near the threshold; the band must not follow them."""
    rng = np.random.default_rng(0)
    observed = rng.integers(0, 5, size=(300, 2))
    statistic, law = statistic_of(
        observed, observed[:, ::-1], lambda x: np.sinh((x[..., 0] - x[..., 1]) / 10.0)
    )
    axes = [np.arange(low, high + 1) for low, high in law.support]
    whole = statistic.region(statistic.observed, upper=True)
    found = whole.membership(axes)
    blocks = [
        statistic.region(statistic.observed, upper=True).membership([axes[0][i : i + 7]])
        for i in range(0, axes[0].size, 7)
    ]
    np.testing.assert_array_equal(found, np.concatenate(blocks))
    fewer = [whole.membership([axes[0][i : i + 1]]) for i in range(axes[0].size)]
    np.testing.assert_array_equal(found, np.concatenate(fewer))


@pytest.mark.extended
def test_samples_stay_small_and_within_reach() -> None:
    rng = np.random.default_rng(0)
    observed = np.unique(rng.integers(0, 10**6, size=(200_000, 2)), axis=0)
    statistic, law = statistic_of(observed, observed[:, ::-1].copy(), lambda x: x[..., 0] - x[..., 1])
    tracemalloc.start()
    points = statistic.sample(rng)
    statistic.check_antisymmetric(law.total)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40 * 2**20
    for axis, (low, high) in zip(points.T, law.support, strict=True):
        assert axis.min() >= low
        assert axis.max() <= high
