"""Generated cases against enumeration and integer polynomials, for one to four counts."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from support import oracles
from support.budget import cases
from support.cases import (
    F1,
    Tree,
    f1_difference,
    mirrored_points,
    paired_points,
    statistic,
    trees,
    value,
)
from support.certificates import check_pvalue
from support.oracles import ALTERNATIVES, Point

from trackperm.errors import InputError
from trackperm.exact import CountTable, PermutationTest, RationalStatistic, difference_test, structured_test

Pairs = tuple[list[Point], list[Point]]
Test = Callable[..., None]

ANY_METHOD = st.sampled_from(["auto", "lattice"])
ANY_ALTERNATIVE = st.sampled_from(ALTERNATIVES)

DIFFERENCES = st.lists(
    st.one_of(
        st.integers(-1, 1),
        st.integers(-9, 9),
        st.sampled_from([-60, -2, 2, 60, 360]),
        st.integers(-2_000, 2_000),
    ),
    min_size=1,
    max_size=60,
)


def generated(n_cases: int) -> Callable[[Test], Test]:
    return settings(
        max_examples=cases(n_cases),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )


def result_of(
    observed: list[Point], swapped: list[Point], h: RationalStatistic, **options: Any
) -> PermutationTest:
    """Test, unless the statistic divides by an expression that is always 0, such as 0 / (0 / x)."""
    try:
        return structured_test(observed, swapped, h, **options)
    except InputError as error:
        assume("always 0" not in error.message)
        raise


def check_statistic(
    pairs: Pairs, h: RationalStatistic, truth: Callable[[Point], Fraction], alternative: str, method: str
) -> None:
    """Compare with enumeration; where the truth is undefined after some swap, expect a refusal."""
    observed, swapped = pairs
    counts = oracles.enumerated_sums(observed, swapped)
    try:
        pvalue = oracles.structured_pvalues(counts, observed, truth)[alternative]
    except ZeroDivisionError:
        check_refusal(pairs, h, truth, alternative, method)
        return
    result = result_of(observed, swapped, h, alternative=alternative, method=method)
    check_pvalue(result, pvalue)
    assert result.observed == float(truth(tuple(map(sum, zip(*observed, strict=True)))))
    assert result.n_discordant == sum(a != b for a, b in zip(observed, swapped, strict=True))


def check_refusal(
    pairs: Pairs, h: RationalStatistic, truth: Callable[[Point], Fraction], alternative: str, method: str
) -> None:
    """Undefined after some swap: refused, except that |t| >= 0 is certain whatever t is."""
    try:
        if alternative == "two-sided" and truth(tuple(map(sum, zip(*pairs[0], strict=True)))) == 0:
            return
    except ZeroDivisionError:
        pass
    with pytest.raises(InputError, match=r"undefined|value of 0/0|always 0"):
        structured_test(*pairs, h, alternative=alternative, method=method)


# --- one integer score per example -----------------------------------------------------------------


@generated(100)
@given(DIFFERENCES, ANY_METHOD)
def test_differences_against_integer_polynomials(differences: list[int], method: str) -> None:
    candidate, baseline = np.maximum(differences, 0), np.maximum(-np.array(differences), 0)
    for alternative, pvalue in oracles.difference_pvalues(differences).items():
        result = difference_test(candidate, baseline, alternative=alternative, method=method)
        check_pvalue(result, pvalue)
        assert result.n_better == sum(d > 0 for d in differences)
        assert result.n_worse == sum(d < 0 for d in differences)
        assert result.observed == float(Fraction(sum(differences), len(differences)))


@pytest.mark.extended
@generated(30)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=11), st.integers(10, 10**15))
def test_huge_differences_by_enumeration(differences: list[int], scale: int) -> None:
    """Scores of up to 10^16, far beyond any window; a dozen examples can be listed."""
    scores = [scale * d + i for i, d in enumerate(differences)]
    for alternative, pvalue in oracles.difference_pvalues(scores).items():
        result = difference_test(scores, [0] * len(scores), alternative=alternative, method="enumerate")
        check_pvalue(result, pvalue)


# --- any rational statistic of one to four sums ----------------------------------------------------


@st.composite
def points_and_trees(draw: st.DrawFn) -> tuple[Pairs, Tree]:
    pairs = draw(paired_points())
    return pairs, draw(trees(len(pairs[0][0])))


ROUNDINGS_IN_THE_DIRECTION: tuple[Pairs, Tree] = (
    (
        [(0, 0, 0), (0, 0, 0), (0, 1, 0), (0, 2, 3), (0, 2, 3), (0, -1, 0), (1, -1, 3)],
        [(0, 1, 0), (0, 1, 0), (0, 3, 0), (-2, -3, 3), (-2, -3, 3), (0, -1, 1), (-1, 1, 0)],
    ),
    ("/", -1, ("x", 1), None),
)
"""Divided differences leave slopes of a billionth here, which no tilt should follow."""


@generated(100)
@example(ROUNDINGS_IN_THE_DIRECTION, "less", "lattice")
@given(points_and_trees(), st.sampled_from(["less", "greater"]), ANY_METHOD)
def test_rational_statistics_against_enumeration(
    case: tuple[Pairs, Tree], alternative: str, method: str
) -> None:
    pairs, tree = case
    try:
        h = statistic(tree, len(pairs[0][0]))
    except InputError:  # a division by the constant 0
        assume(False)
    check_statistic(pairs, h, lambda point: value(tree, point), alternative, method)


# --- differences of scores of two systems ----------------------------------------------------------


@st.composite
def systems_and_trees(draw: st.DrawFn) -> tuple[Pairs, Tree]:
    p = draw(st.integers(1, 2))
    return draw(mirrored_points(p)), draw(trees(p))


@generated(100)
@given(systems_and_trees(), ANY_ALTERNATIVE, ANY_METHOD)
def test_score_differences_against_enumeration(
    case: tuple[Pairs, Tree], alternative: str, method: str
) -> None:
    """The score of the candidate minus that of the baseline is antisymmetric, whatever the score."""
    pairs, tree = case
    m = len(pairs[0][0])
    try:
        h = statistic(tree, m) - statistic(tree, m, first=m // 2)
    except InputError:
        assume(False)

    def truth(point: Point) -> Fraction:
        return value(tree, point[: m // 2]) - value(tree, point[m // 2 :])

    check_statistic(pairs, h, truth, alternative, method)


@st.composite
def larger_systems_and_trees(draw: st.DrawFn) -> tuple[Pairs, Tree]:
    """Two counts of each system on tens of examples of a few kinds: too many swaps to list."""
    pair = st.tuples(st.tuples(*[st.integers(0, 4)] * 2), st.tuples(*[st.integers(0, 4)] * 2))
    kinds = draw(st.lists(st.tuples(pair, st.integers(1, 12)), min_size=2, max_size=8))
    u, v = zip(*(pair for pair, count in kinds for _ in range(count)), strict=True)
    pairs = [a + b for a, b in zip(u, v, strict=True)], [b + a for a, b in zip(u, v, strict=True)]
    return pairs, draw(st.one_of(trees(2), st.sampled_from(FAMILIAR)))


F1_TREE: Tree = ("/", ("*", 2, ("x", 0)), ("+", ("*", 2, ("x", 0)), ("x", 1)), 0)
PRECISION_TREE: Tree = ("/", ("x", 0), ("+", ("x", 0), ("x", 1)), 0)
ODDS_TREE: Tree = ("/", ("x", 0), ("+", ("x", 1), Fraction(1, 2)), None)
PRODUCT_TREE: Tree = ("*", ("x", 0), ("x", 1))
POLE_TREE: Tree = ("/", ("x", 0), ("-", ("x", 1), Fraction(61, 2)), None)
FAMILIAR = [F1_TREE, PRECISION_TREE, ODDS_TREE, PRODUCT_TREE, POLE_TREE]


@pytest.mark.extended
@generated(30)
@example((([(0, 1, 0, 2)], [(0, 2, 0, 1)]), ("/", 0, ("/", 0, ("x", 1), None), 0)), "two-sided")
@given(larger_systems_and_trees(), ANY_ALTERNATIVE)
def test_larger_score_differences(case: tuple[Pairs, Tree], alternative: str) -> None:
    (observed, swapped), tree = case
    try:
        h = statistic(tree, 4) - statistic(tree, 4, first=2)
    except InputError:
        assume(False)
    # what the baseline has is what the candidate has not
    total = tuple(map(sum, zip(*(point[:2] for point in observed + swapped), strict=True)))
    counts = oracles.sums_by_polynomial([point[:2] for point in observed], [point[:2] for point in swapped])

    def truth(point: Point) -> Fraction:
        other = tuple(t - x for t, x in zip(total, point, strict=True))
        return value(tree, point) - value(tree, other)

    try:
        pvalues = oracles.structured_pvalues(counts, [point[:2] for point in observed], truth)
    except ZeroDivisionError:
        assume(False)
    check_pvalue(result_of(observed, swapped, h, alternative=alternative), pvalues[alternative], useful=1.0)


# --- callables -------------------------------------------------------------------------------------


@generated(100)
@given(paired_points(), st.data(), st.sampled_from(["less", "greater"]), ANY_METHOD)
def test_callables_against_enumeration(
    pairs: Pairs, data: st.DataObject, alternative: str, method: str
) -> None:
    """An integer-valued function: floats are exact, so the tie band changes nothing."""
    m = len(pairs[0][0])
    weights = data.draw(st.tuples(*[st.integers(-3, 3)] * m))

    def h(x: np.ndarray) -> np.ndarray:
        return x @ np.array(weights, dtype=float) + np.abs(x[..., 0] * x[..., -1])

    def truth(point: Point) -> Fraction:
        return Fraction(sum(w * x for w, x in zip(weights, point, strict=True)) + abs(point[0] * point[-1]))

    counts = oracles.enumerated_sums(*pairs)
    result = structured_test(*pairs, h, alternative=alternative, method=method)
    pvalue = oracles.structured_pvalues(counts, pairs[0], truth)[alternative]
    check_pvalue(result, pvalue)
    assert result.ties == "approximate" or result.n_discordant == 0


def test_distant_corners_that_mislead_the_tilt() -> None:
    """Two swaps are as extreme, in corners far from each other: no tilt suits both."""
    observed = [(3, -2), (3, -2), (2, -2), (2, 3), (0, -3), (0, -2), (-1, 0)]
    swapped = [(-1, 0), (-1, 0), (0, 3), (-3, 0), (0, -3), (2, -1), (3, 3)]

    def h(x: np.ndarray) -> np.ndarray:
        return np.abs(x[..., 0] * x[..., 1]) - x[..., 0]

    check_pvalue(
        structured_test(observed, swapped, h, alternative="greater", method="lattice"),
        Fraction(1, 32),
        useful=1e-11,
    )


# --- laws ------------------------------------------------------------------------------------------


def same(one: PermutationTest, other: PermutationTest) -> bool:
    return (one.pvalue, one.log10_pvalue, one.error_bound) == (
        other.pvalue,
        other.log10_pvalue,
        other.error_bound,
    )


@generated(100)
@given(mirrored_points(2, max_examples=12), st.data(), ANY_ALTERNATIVE)
def test_order_of_examples_changes_nothing(pairs: Pairs, data: st.DataObject, alternative: str) -> None:
    result = structured_test(*pairs, F1, alternative=alternative)
    shuffled = data.draw(st.permutations(list(zip(*pairs, strict=True))))
    observed, swapped = zip(*shuffled, strict=True)
    assert same(result, structured_test(observed, swapped, F1, alternative=alternative))
    # nor does grouping them first
    table = CountTable.from_counts(("tp", "incorrect"), np.array(observed)[:, :2], np.array(observed)[:, 2:])
    u, v = table.candidate, table.baseline
    grouped = structured_test(
        np.hstack([u, v]),
        np.hstack([v, u]),
        F1,
        alternative=alternative,
        multiplicities=table.multiplicities,
    )
    assert same(result, grouped)
    assert (grouped.n_examples, grouped.n_discordant) == (result.n_examples, result.n_discordant)


@pytest.mark.extended
@generated(100)
@given(mirrored_points(2, max_examples=40), ANY_METHOD)
def test_exchanging_the_runs(pairs: Pairs, method: str) -> None:
    """The statistic changes sign, `less` becomes `greater`, and the two-sided p-value stays."""
    exchanged = {"two-sided": "two-sided", "less": "greater", "greater": "less"}
    counts = oracles.sums_by_dictionary(*pairs)
    truth = oracles.structured_pvalues(counts, pairs[0], f1_difference)
    for alternative, mirror in exchanged.items():
        one = structured_test(*pairs, F1, alternative=alternative, method=method)
        other = structured_test(*pairs[::-1], F1, alternative=mirror, method=method)
        assert one.observed == -other.observed
        check_pvalue(one, truth[alternative])
        check_pvalue(other, truth[alternative])


@generated(100)
@given(paired_points(m=4, low=0), ANY_ALTERNATIVE)
def test_identical_runs_are_certainly_as_extreme(pairs: Pairs, alternative: str) -> None:
    observed = [point[:2] * 2 for point in pairs[0]]
    result = structured_test(observed, observed, F1, alternative=alternative)
    assert (result.pvalue, result.error_bound, result.n_discordant, result.rank) == (1.0, 0.0, 0, 0)


@generated(100)
@given(mirrored_points(2, max_examples=10))
def test_null_distribution_against_enumeration(pairs: Pairs) -> None:
    """Mass below any threshold, within the stated bound; attained values only."""
    counts = oracles.enumerated_sums(*pairs)
    n_swaps = 2 ** len(pairs[0])
    law: dict[Fraction, int] = {}
    for point, count in counts.items():
        law[f1_difference(point)] = law.get(f1_difference(point), 0) + count
    found = structured_test(*pairs, F1).null_distribution
    assert found.mass.sum() == pytest.approx(1.0, abs=found.mass_error_bound + 1e-15)
    assert found.values == pytest.approx([float(v) for v in sorted(law)], abs=1e-11)
    below = np.cumsum(found.mass)
    truth = np.cumsum([law[v] / n_swaps for v in sorted(law)])
    assert np.abs(below - truth).max() <= found.mass_error_bound + 1e-15
