"""Generated inputs of paired-permutation tests, shared by the suites of `tests/exact`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from support.oracles import Point
from trackperm.exact import RationalStatistic
from trackperm.exact.intervals import AdditiveScores


def mean_scores(
    differences: Sequence[int], multiplicities: Sequence[int], unit: Fraction = Fraction(1)
) -> AdditiveScores:
    """Scores whose statistic is the mean of these differences, in integers of `unit`."""
    counts = np.array(multiplicities, dtype=np.int64)
    return AdditiveScores(np.array(differences), np.ones(counts.size, dtype=np.int64), counts, unit)


@st.composite
def paired_points(
    draw: st.DrawFn, m: int | None = None, max_examples: int = 9, low: int = -3, high: int = 3
) -> tuple[list[Point], list[Point]]:
    """Lists `observed` and `swapped` of N points of m integers; some pairs are equal, some repeat."""
    m = draw(st.integers(1, 4)) if m is None else m
    point = st.tuples(*[st.integers(low, high)] * m)
    distinct = draw(st.lists(st.tuples(point, point), min_size=1, max_size=5))
    pair = st.one_of(st.sampled_from(distinct), st.tuples(point, point), point.map(lambda x: (x, x)))
    pairs = draw(st.lists(pair, min_size=1, max_size=max_examples))
    return [a for a, _ in pairs], [b for _, b in pairs]


@st.composite
def mirrored_points(
    draw: st.DrawFn, p: int = 2, max_examples: int = 9, high: int = 4
) -> tuple[list[Point], list[Point]]:
    """The same from p counts of each of two systems: observed (u, v) and swapped (v, u), so m = 2 p."""
    u, v = draw(paired_points(p, max_examples, 0, high))
    return [a + b for a, b in zip(u, v, strict=True)], [b + a for a, b in zip(u, v, strict=True)]


def f1_difference(point: Point) -> Fraction:
    """F1 of (tp, incorrect) of the candidate minus that of the baseline; 0/0 is 0 (Appendix B)."""
    tp_u, incorrect_u, tp_v, incorrect_v = point

    def f1(tp: int, incorrect: int) -> Fraction:
        return Fraction(2 * tp, 2 * tp + incorrect) if tp or incorrect else Fraction(0)

    return f1(tp_u, incorrect_u) - f1(tp_v, incorrect_v)


TP_U, INCORRECT_U, TP_V, INCORRECT_V = (RationalStatistic.variable(i, 4) for i in range(4))
F1 = TP_U.divide(TP_U + INCORRECT_U / 2, undefined=0) - TP_V.divide(TP_V + INCORRECT_V / 2, undefined=0)
"""The same as a statistic."""


# (tp, incorrect) of six examples whose F1 differences tie in exact arithmetic only: p = 11/16
F1_TIE_U = [(1, 0), (1, 2), (1, 3), (0, 3), (0, 0), (4, 4)]
F1_TIE_V = [(1, 4), (0, 3), (0, 1), (1, 0), (0, 0), (1, 0)]
F1_TIE_OBSERVED = [a + b for a, b in zip(F1_TIE_U, F1_TIE_V, strict=True)]
F1_TIE_SWAPPED = [b + a for a, b in zip(F1_TIE_U, F1_TIE_V, strict=True)]


# --- rational statistics: one expression tree, read twice ------------------------------------------

Tree = int | Fraction | tuple
"""A number, ("x", i), (operator, left, right) or ("/", left, right, value of 0/0 or None)."""


def trees(n_variables: int) -> st.SearchStrategy[Tree]:
    """Expressions of a few operations over integer variables."""
    leaves = st.one_of(
        st.integers(-3, 3),
        st.fractions(-2, 2, max_denominator=5),
        st.integers(0, n_variables - 1).map(lambda i: ("x", i)),
        st.integers(0, n_variables - 1).map(lambda i: ("x", i)),
    )

    def extend(children: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        undefined = st.one_of(st.none(), st.sampled_from([0, 1, Fraction(1, 2)]))
        return st.one_of(
            st.tuples(st.sampled_from("+-*"), children, children),
            st.tuples(st.just("/"), children, children, undefined),
        )

    return st.recursive(leaves, extend, max_leaves=6)


def value(tree: Tree, point: Point) -> Fraction:
    """Evaluate in fractions; ZeroDivisionError where a division has no value."""
    if not isinstance(tree, tuple):
        return Fraction(tree)
    if tree[0] == "x":
        return Fraction(point[tree[1]])
    left, right = value(tree[1], point), value(tree[2], point)
    if tree[0] == "/" and left == right == 0 and tree[3] is not None:
        return Fraction(tree[3])
    return {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}[tree[0]](
        left, right
    )


def statistic(tree: Tree, n_variables: int, first: int = 0) -> RationalStatistic:
    """The same for trackperm, on variables from `first` on."""
    if not isinstance(tree, tuple):
        return RationalStatistic.constant(tree, n_variables)
    if tree[0] == "x":
        return RationalStatistic.variable(first + tree[1], n_variables)
    left, right = (statistic(branch, n_variables, first) for branch in tree[1:3])
    if tree[0] == "/":
        return left.divide(right, undefined=tree[3])
    return {"+": operator.add, "-": operator.sub, "*": operator.mul}[tree[0]](left, right)
