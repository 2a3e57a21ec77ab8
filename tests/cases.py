"""Generated inputs of paired-permutation tests, shared by the suites of `tests/exact`."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st
from oracles import Point


@st.composite
def paired_points(
    draw: st.DrawFn, m: int | None = None, max_examples: int = 9, low: int = -3, high: int = 3
) -> tuple[list[Point], list[Point]]:
    """Lists `stay` and `swap` of N points of m integers; some pairs are equal, some repeat."""
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
    """The same from p counts of each of two systems: stay = (u, v) and swap = (v, u), so m = 2 p."""
    u, v = draw(paired_points(p, max_examples, 0, high))
    return [a + b for a, b in zip(u, v, strict=True)], [b + a for a, b in zip(u, v, strict=True)]


def f1_difference(point: Point) -> Fraction:
    """F1 of (tp, incorrect) of the candidate minus that of the baseline; 0/0 is 0 (Appendix B)."""
    tp_u, incorrect_u, tp_v, incorrect_v = point

    def f1(tp: int, incorrect: int) -> Fraction:
        return Fraction(2 * tp, 2 * tp + incorrect) if tp or incorrect else Fraction(0)

    return f1(tp_u, incorrect_u) - f1(tp_v, incorrect_v)


# (tp, incorrect) of six examples whose F1 differences tie in exact arithmetic only: p = 11/16
F1_TIE_U = [(1, 0), (1, 2), (1, 3), (0, 3), (0, 0), (4, 4)]
F1_TIE_V = [(1, 4), (0, 3), (0, 1), (1, 0), (0, 0), (1, 0)]
F1_TIE_STAY = [a + b for a, b in zip(F1_TIE_U, F1_TIE_V, strict=True)]
F1_TIE_SWAP = [b + a for a, b in zip(F1_TIE_U, F1_TIE_V, strict=True)]
