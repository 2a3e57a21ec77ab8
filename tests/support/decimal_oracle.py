"""Expressions that may be irrational, each beside the same in plain `decimal` with 250 digits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

from hypothesis import strategies as st

from support.oracles import Point
from trackperm.exact.functions.real import RealStatistic

N_VARIABLES = 3
NOTHING = Decimal("1e-150")


class NoValueError(Exception):
    """The oracle's word for undefined."""


@dataclass(frozen=True)
class Both:
    """A statistic, and the same in plain `decimal`."""

    ours: RealStatistic
    oracle: Callable[[Point], Decimal]


def zero(value: Decimal) -> bool:
    return abs(value) < NOTHING


def over(a: Decimal, b: Decimal, declared: Fraction | None) -> Decimal:
    if not zero(b):
        return a / b
    if declared is None or not zero(a):
        raise NoValueError
    return Decimal(declared.numerator) / declared.denominator


def root(a: Decimal) -> Decimal:
    if zero(a):
        return Decimal(0)
    if a < 0:
        raise NoValueError
    return a.sqrt()


def logarithm(a: Decimal) -> Decimal:
    if zero(a) or a < 0:
        raise NoValueError
    return a.ln()


def exponential(a: Decimal) -> Decimal:
    return max(min(a, Decimal(5)), Decimal(-5)).exp()


def truth(oracle: Callable[[Point], Decimal], point: Point) -> Decimal | None:
    """The value to more than 200 digits; None where there is none."""
    with localcontext() as context:
        context.prec = 250
        try:
            return oracle(point)
        except NoValueError:
            return None


def leaf(index: int) -> Both:
    return Both(RealStatistic.variable(index, N_VARIABLES), lambda point: Decimal(point[index]))


def fraction(value: Fraction) -> Both:
    return Both(
        RealStatistic.constant(value, N_VARIABLES), lambda _: Decimal(value.numerator) / value.denominator
    )


def joined(ours: Callable[..., RealStatistic], oracle: Callable[..., Decimal], *parts: Both) -> Both:
    return Both(
        ours(*(part.ours for part in parts)), lambda point: oracle(*(part.oracle(point) for part in parts))
    )


def chosen(comparison: str, a: Both, b: Both, yes: Both, no: Both) -> Both:
    ours, oracle = {
        "<": (lambda x, y: x < y, lambda x, y: y - x >= NOTHING),
        "<=": (lambda x, y: x <= y, lambda x, y: x - y < NOTHING),
        ">": (lambda x, y: x > y, lambda x, y: x - y >= NOTHING),
        ">=": (lambda x, y: x >= y, lambda x, y: y - x < NOTHING),
        "==": (lambda x, y: x.equals(y), lambda x, y: zero(x - y)),
        "!=": (lambda x, y: ~x.equals(y), lambda x, y: not zero(x - y)),
        "either": (lambda x, y: (x > y) | (y > 1), lambda x, y: x - y >= NOTHING or y - 1 >= NOTHING),
        "both": (lambda x, y: (x > 0) & (y > 0), lambda x, y: x >= NOTHING and y >= NOTHING),
    }[comparison]
    return Both(
        ours(a.ours, b.ours).where(yes.ours, no.ours),
        lambda point: (yes if oracle(a.oracle(point), b.oracle(point)) else no).oracle(point),
    )


def divided(a: Both, b: Both, declared: Fraction | None) -> Both:
    if b.ours.operation == "constant" and b.ours.value == 0:
        return a
    return joined(lambda x, y: x.divide(y, declared), lambda x, y: over(x, y, declared), a, b)


LEAVES = st.integers(0, N_VARIABLES - 1).map(leaf) | st.sampled_from(
    [Fraction(0), Fraction(1), Fraction(2), Fraction(1, 2), Fraction(1, 3)]
).map(fraction)
COMPARISONS = st.sampled_from(["<", "<=", ">", ">=", "==", "!=", "either", "both"])
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda a, b: joined(lambda x, y: x + y, lambda x, y: x + y, a, b), inner, inner),
        st.builds(lambda a, b: joined(lambda x, y: x - y, lambda x, y: x - y, a, b), inner, inner),
        st.builds(lambda a, b: joined(lambda x, y: x * y, lambda x, y: x * y, a, b), inner, inner),
        st.builds(divided, inner, inner, st.sampled_from([None, Fraction(0), Fraction(1, 3)])),
        st.builds(lambda a, n: joined(lambda x: x**n, lambda x: x**n, a), inner, st.integers(1, 3)),
        inner.map(lambda a: joined(RealStatistic.sqrt, root, a)),
        inner.map(lambda a: joined(RealStatistic.log, logarithm, a)),
        # Not too small, so that no value but 0 is below `NOTHING`.
        inner.map(lambda a: joined(lambda x: x.minimum(5).maximum(-5).exp(), exponential, a)),
        inner.map(lambda a: joined(abs, abs, a)),
        st.builds(lambda a, b: joined(RealStatistic.minimum, min, a, b), inner, inner),
        st.builds(lambda a, b: joined(RealStatistic.maximum, max, a, b), inner, inner),
        st.builds(chosen, COMPARISONS, inner, inner, inner, inner),
    ),
    max_leaves=10,
)
POINTS = st.lists(
    st.tuples(*[st.integers(-3, 9) | st.sampled_from([10**9, 2**55 + 1])] * 3), min_size=1, max_size=6
)
