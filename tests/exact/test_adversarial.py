"""Inputs that break careless code (design notes, section 9), each against exact integer counts."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from support import oracles
from support.cases import (
    F1,
    F1_TIE_OBSERVED,
    F1_TIE_SWAPPED,
    INCORRECT_U,
    INCORRECT_V,
    TP_U,
    TP_V,
    f1_difference,
)
from support.certificates import check_pvalue
from support.oracles import ALTERNATIVES, Point

from trackperm.errors import InputError
from trackperm.exact import RationalStatistic, difference_test, structured_test


@pytest.mark.parametrize("wins", [900, 980])
def test_nearly_all_one_way(wins: int) -> None:
    candidate = np.array([1] * wins + [0] * (1_000 - wins) + [1] * 50)
    baseline = np.array([0] * wins + [1] * (1_000 - wins) + [1] * 50)
    for alternative, pvalue in oracles.difference_pvalues((candidate - baseline).tolist()).items():
        for method in ("auto", "lattice"):
            result = difference_test(candidate, baseline, alternative=alternative, method=method)
            check_pvalue(result, pvalue)
            assert (result.n_better, result.n_worse) == (wins, 1_000 - wins)


def test_ten_thousand_wins() -> None:
    """p = 2^-9999 is far below the smallest float; its logarithm is not."""
    result = difference_test([1] * 10_000, [0] * 10_000, method="lattice")
    check_pvalue(result, Fraction(2, 2**10_000))
    assert result.pvalue == 0.0
    assert result.log10_pvalue == pytest.approx(-9_999 * math.log10(2), abs=1e-9)


@pytest.mark.parametrize("method", ["auto", "enumerate", "lattice"])
@pytest.mark.parametrize(
    ("differences", "observed"), [([1, -1], 0), ([5, -2, -3, 0], 0), ([7], 7), ([0, 0, -4], -4)]
)
def test_two_sided_certainty(differences: list[int], observed: int, method: str) -> None:
    """An observed value of 0, and a single example that differs, prove nothing."""
    result = difference_test(differences, [0] * len(differences), method=method)
    assert result.observed == observed / len(differences)
    check_pvalue(result, Fraction(1))


# --- statistics of several counts ------------------------------------------------------------------

PRECISION_DIFFERENCE = TP_U.divide(TP_U + INCORRECT_U, undefined=0) - TP_V.divide(
    TP_V + INCORRECT_V, undefined=0
)
ELLIPSE = (TP_U - TP_V) ** 2 + 3 * (INCORRECT_U - INCORRECT_V) ** 2


def precision_difference(point: Point) -> Fraction:
    tp_u, incorrect_u, tp_v, incorrect_v = point
    u = Fraction(tp_u, tp_u + incorrect_u) if tp_u or incorrect_u else Fraction(0)
    return u - (Fraction(tp_v, tp_v + incorrect_v) if tp_v or incorrect_v else Fraction(0))


def check_structured(
    observed: list[Point],
    swapped: list[Point],
    h: RationalStatistic,
    truth: Callable[[Point], Fraction],
    alternatives: tuple[str, ...] = ALTERNATIVES,
    methods: tuple[str, ...] = ("auto", "lattice"),
) -> None:
    counts = oracles.sums_by_dictionary(observed, swapped)
    pvalues = oracles.structured_pvalues(counts, observed, truth)
    for alternative in alternatives:
        for method in methods:
            result = structured_test(observed, swapped, h, alternative=alternative, method=method)
            check_pvalue(result, pvalues[alternative])
            assert result.observed == float(truth(tuple(map(sum, zip(*observed, strict=True)))))
            assert result.ties == "exact"


def mirrored(u: list[Point], v: list[Point]) -> tuple[list[Point], list[Point]]:
    return [a + b for a, b in zip(u, v, strict=True)], [b + a for a, b in zip(u, v, strict=True)]


def test_f1_tie() -> None:
    """Six examples whose F1 differences tie in exact arithmetic only: 11/16, in floats 10/16."""
    check_structured(F1_TIE_OBSERVED, F1_TIE_SWAPPED, F1, f1_difference)
    for method in ("auto", "enumerate", "lattice"):
        result = structured_test(F1_TIE_OBSERVED, F1_TIE_SWAPPED, F1, method=method)
        assert result.pvalue == pytest.approx(11 / 16, rel=result.error_bound)


@pytest.mark.parametrize("identical", [0, 1, 2, 7])
def test_identical_pairs_change_f1(identical: int) -> None:
    """A pair of equal counts does not enter the random sum, but moves the value of F1."""
    observed = F1_TIE_OBSERVED + [(5, 0, 5, 0)] * identical
    swapped = F1_TIE_SWAPPED + [(5, 0, 5, 0)] * identical
    check_structured(observed, swapped, F1, f1_difference)


@pytest.mark.parametrize(("h", "truth"), [(F1, f1_difference), (PRECISION_DIFFERENCE, precision_difference)])
@pytest.mark.parametrize("n_examples", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("seed", range(4))
def test_0_by_0_inside_the_region(
    h: RationalStatistic, truth: Callable[[Point], Fraction], n_examples: int, seed: int
) -> None:
    """Every prediction of one system may be empty, so that it divides 0 by 0."""
    rng = np.random.default_rng(seed)
    predicted, correct = rng.integers(0, 2, (2, n_examples))
    full = [(int(p * c), int(p * (1 - c))) for p, c in zip(predicted, correct, strict=True)]
    empty = [(0, 0)] * n_examples
    check_structured(*mirrored(full, empty), h, truth)
    check_structured(*mirrored(empty, full), h, truth)


def test_two_sided_tests_need_a_statistic_that_changes_sign() -> None:
    observed, swapped = mirrored([(1, 0), (2, 1)], [(0, 0), (1, 3)])
    with pytest.raises(InputError, match="the two-sided test needs a statistic that changes sign"):
        structured_test(observed, swapped, ELLIPSE)


@pytest.mark.sample(1)
@pytest.mark.parametrize("shift", [1, 2, 3])
def test_far_tails_of_nonlinear_statistics(shift: int) -> None:
    """The candidate is better on nearly every example: p is far below the rounding of a transform."""
    rng = np.random.default_rng(shift)
    v = rng.integers(0, 3, (70, 2))
    u = np.column_stack([v[:, 0] + rng.integers(0, shift + 1, 70), np.maximum(v[:, 1] - 1, 0)])
    observed, swapped = mirrored(list(map(tuple, u.tolist())), list(map(tuple, v.tolist())))
    check_structured(observed, swapped, F1, f1_difference)
    check_structured(observed, swapped, PRECISION_DIFFERENCE, precision_difference)
    check_structured(swapped, observed, F1, f1_difference)


@pytest.mark.extended
def test_collapse_to_one_weighted_sum() -> None:
    """An affine statistic of three counts; one direction of the lattice carries no weight."""
    x, y, z = (RationalStatistic.variable(i, 3) for i in range(3))
    rng = np.random.default_rng(7)
    observed, swapped = (list(map(tuple, rng.integers(-3, 4, (25, 3)).tolist())) for _ in range(2))
    weights = (Fraction(1, 3), Fraction(-2, 7), Fraction(5))
    h = sum((w * v for w, v in zip(weights, (x, y, z), strict=True)), RationalStatistic.constant(11, 3))
    check_structured(
        observed,
        swapped,
        h,
        lambda point: 11 + sum(w * c for w, c in zip(weights, point, strict=True)),
        alternatives=("less", "greater"),
    )
    check_structured(
        observed, swapped, x - z, lambda p: Fraction(p[0] - p[2]), alternatives=("less", "greater")
    )


@pytest.mark.parametrize("method", ["auto", "lattice"])
@pytest.mark.parametrize("n_examples", [3, 3_000])
def test_a_constant_statistic(n_examples: int, method: str) -> None:
    """Recall where only the predictions differ, and a constant: every swap gives the observed value."""
    one = RationalStatistic.constant(1, 4)
    for observed, swapped in (((1, 0, 1, 2), (1, 2, 1, 0)), ((1, 0, 0, 2), (0, 2, 1, 0))):
        h = TP_U - TP_V if observed[0] == swapped[0] else one
        for alternative in ("less", "greater"):
            result = structured_test(
                [observed, swapped],
                [swapped, observed],
                h,
                alternative=alternative,
                multiplicities=[n_examples, 1],
                method=method,
            )
            check_pvalue(result, Fraction(1))
    two_ways = structured_test(
        [(0, 0, 1, 0), (0, 0, 0, 1)], [(1, 0, 0, 0), (0, 1, 0, 0)], one, alternative="less", method=method
    )
    check_pvalue(two_ways, Fraction(1))


def test_points_that_no_swap_reaches_may_be_undefined() -> None:
    """The lattice goes on below zero counts, where F1 divides a non-zero number by zero."""
    observed, swapped = mirrored([(1, 0), (0, 0), (2, 0)], [(0, 0), (0, 1), (0, 1)])
    check_structured(observed, swapped, F1, f1_difference)


def test_undefined_where_swaps_lead_is_refused() -> None:
    ratio = TP_U / INCORRECT_U - TP_V / INCORRECT_V  # x/0 and undeclared 0/0
    observed, swapped = mirrored([(1, 1), (2, 0)], [(1, 0), (0, 1)])
    for method in ("auto", "lattice"):
        with pytest.raises(InputError, match="the statistic is undefined after some swaps"):
            structured_test(observed, swapped, ratio, method=method)
    with pytest.raises(InputError, match="the observed value of the statistic is undefined"):
        structured_test([(1, 0, 1, 1)], [(1, 1, 1, 0)], ratio)


@pytest.mark.parametrize("method", ["auto", "lattice"])
def test_one_sided_declaration_of_0_by_0_is_refused(method: str) -> None:
    """0/0 is declared for the candidate alone: a two-sided test needs it on both sides."""
    h = TP_U.divide(TP_U + INCORRECT_U, undefined=0) - TP_V / (TP_V + INCORRECT_V)
    observed, swapped = mirrored([(1, 0), (0, 1)], [(0, 0), (0, 0)])
    with pytest.raises(InputError, match="undefined"):
        structured_test(swapped, observed, h, method=method)
    observed, swapped = mirrored([(1, 0), (0, 1), (1, 0)], [(0, 0), (0, 0), (1, 1)])
    structured_test(observed, swapped, h, method=method)


def test_zero_that_has_another_value_at_a_pole_is_not_taken_for_zero() -> None:
    zero, x = RationalStatistic.constant(0, 1), RationalStatistic.variable(0, 1)
    with pytest.raises(InputError, match="always 0"):
        structured_test(
            [(0,)], [(1,)], zero.divide(zero.divide(x, undefined=1), undefined=1), alternative="less"
        )


def test_f1_of_precision_and_recall_without_true_positives_is_zero() -> None:
    zero = RationalStatistic.constant(0, 2)
    wrong, missed = (RationalStatistic.variable(i, 2) for i in range(2))
    precision, recall = (zero.divide(errors, undefined=0) for errors in (wrong, missed))
    f1 = (2 * precision * recall).divide(precision + recall, undefined=0)
    assert f1.simplified() == zero


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_one_pair_of_many_counts(alternative: str) -> None:
    check_structured([(3, 1, 0, 4)], [(0, 4, 3, 1)], F1, f1_difference, alternatives=(alternative,))
