"""Irrational values against 250 digits, and ties that no number of digits decides against algebra."""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.budget import cases
from support.decimal_oracle import (
    N_VARIABLES,
    NOTHING,
    POINTS,
    TREES,
    Both,
    truth,
    zero,
)
from support.oracles import Point

from trackperm.errors import UndefinedError
from trackperm.exact.functions.ball import Ball
from trackperm.exact.functions.real import RealStatistic
from trackperm.exact.functions.real_number import RealNumber, as_ball


def number(statistic: RealStatistic, point: Point) -> RealNumber | None:
    try:
        return statistic.number(point)
    except UndefinedError:
        return None


def decimals(statistic: RealStatistic, point: Point, digits: int) -> Decimal | None:
    """The value at a point to about so many digits; None where it is undefined."""
    value = number(statistic, point)
    if value is None:
        return None
    middle = as_ball(value.at(digits + 10), digits + 10).middle
    return Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX).plus(middle)


@settings(deadline=None, max_examples=cases(150))
@given(TREES, POINTS)
def test_floats_stay_within_their_bounds(tree: Both, points: list[Point]) -> None:
    enclosure = tree.ours.enclosed([np.array(column) for column in zip(*points, strict=True)])
    values, errors, undefined = (
        np.broadcast_to(array, len(points)).tolist()
        for array in (enclosure.value, enclosure.bound, enclosure.undefined)
    )
    for point, value, error, nowhere in zip(points, values, errors, undefined, strict=True):
        wanted = truth(tree.oracle, point)
        if nowhere:
            assert wanted is None
        elif math.isfinite(error):
            assert wanted is not None
            assert abs(Fraction(value) - Fraction(wanted)) <= Fraction(error) + Fraction(NOTHING)


@settings(deadline=None, max_examples=cases(150))
@given(TREES, POINTS)
def test_values_against_250_digits(tree: Both, points: list[Point]) -> None:
    for point in points:
        wanted, found = truth(tree.oracle, point), decimals(tree.ours, point, 40)
        assert (found is None) == (wanted is None)
        if wanted is not None and found is not None:
            assert abs(found - wanted) <= Decimal("1e-30") * max(1, abs(wanted))


@settings(deadline=None, max_examples=cases(150))
@given(TREES, POINTS)
def test_order_against_250_digits(tree: Both, points: list[Point]) -> None:
    known = [(number(tree.ours, point), truth(tree.oracle, point)) for point in points]
    first, expected = known[0]
    for value, wanted in known:
        if value is None or wanted is None or first is None or expected is None:
            assert (value is None) == (wanted is None)
            continue
        with localcontext() as context:
            context.prec = 250
            difference = wanted - expected
        sign, by_digits = value.compare(first)
        if abs(difference) > Decimal("1e-90") * max(1, abs(wanted)):
            assert sign == (1 if difference > 0 else -1)
            assert not by_digits or value.by_digits or first.by_digits
        elif zero(difference):
            assert sign == 0


# --- algebra ---------------------------------------------------------------------------------------

X, Y, Z = (RealStatistic.variable(i, N_VARIABLES) for i in range(N_VARIABLES))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (X.sqrt(), 2 * Y.sqrt()),  # sqrt(8) and 2 sqrt(2)
        ((X * Y).sqrt(), X.sqrt() * Y.sqrt()),
        (1 / X.sqrt(), Y.sqrt() / 4),
        (X.sqrt() / Y.sqrt(), RealStatistic.constant(2, 3)),
        (X.sqrt() + Z.sqrt(), Z.sqrt() + 2 * Y.sqrt()),
        ((X.sqrt() + Z.sqrt()) ** 2, X + Z + 2 * (X * Z).sqrt()),
        ((X.sqrt() + Z.sqrt()) / Y.sqrt() - 2, Z.sqrt() * Y.sqrt() / 2),
        (X.log(), 3 * Y.log()),
        (X.log() / 3 + Z.log() / 5, Z.log() / 5 + Y.log()),
        ((Fraction(10**9, 8) * X).log(), 9 * (Y * 5).log()),
        (Fraction(1, 10**6) * X.log(), Fraction(3, 10**6) * Y.log()),
        ((X / X).log(), 0 * X),
        ((X - 4 * Y).exp(), X / X),
        (X.sqrt().maximum(2 * Y.sqrt()), X.sqrt()),
        (X.sqrt().equals(2 * Y.sqrt()), RealStatistic.constant(1, 3)),
        (
            (X.sqrt() - 2 * Y.sqrt()).divide(X.log() - 3 * Y.log(), Fraction(1, 7)),
            RealStatistic.constant(Fraction(1, 7), 3),
        ),
    ],
)
def test_ties_by_algebra(one: RealStatistic, other: RealStatistic) -> None:
    assert one.number([8, 2, 3]).compare(other.number([8, 2, 3])) == (0, False)
    nearly = other + Fraction(1, 10**90)
    assert one.number([8, 2, 3]).compare(nearly.number([8, 2, 3])) == (-1, False)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((3 + 2 * Y.sqrt()).sqrt(), 1 + Y.sqrt()),  # sqrt(3 + 2 sqrt(2)) = 1 + sqrt(2)
        (Y.sqrt() + X.log(), 3 * Y.log() + Y.sqrt()),
        (1 / (1 + Y.sqrt()), Y.sqrt() - 1),
        (X.exp(), Y.exp() ** 4),
        ((X.log() / 3).exp(), Y),
        (X.sqrt().log(), X.log() / 2),
        ((X**6000).log(), 9000 * (2 * Y).log()),  # arguments of 18,000 bits
    ],
)
def test_ties_that_only_digits_suggest(one: RealStatistic, other: RealStatistic) -> None:
    assert one.number([8, 2, 3]).compare(other.number([8, 2, 3])) == (0, True)
    nearly = other + Fraction(1, 10**90)
    assert one.number([8, 2, 3]).compare(nearly.number([8, 2, 3])) == (-1, False)


def test_the_search_for_a_sign_ends() -> None:
    """sqrt(x^2 + 1) - x = 1 / (2 x) (1 - ...): no search for its sign goes on for ever."""
    x = 10**600
    difference = (X**2 + 1).sqrt() - X
    assert difference.number([x, 0, 0]).compare(0) == (0, True)
    assert difference.number([10**200, 0, 0]).compare(0) == (1, False)


def test_more_digits_where_a_value_has_lost_them() -> None:
    # sqrt(sqrt(x^4 + 1) + 1) - sqrt(x^2 + 1) = 1 / (4 x^3) (1 - 1 / (2 x^2) + ...): 1e-125 of sqrt(x^2 + 1).
    x = 10**25
    value = (((X**4 + 1).sqrt() + 1).sqrt() - (X**2 + 1).sqrt()).number([x, 0, 0])
    assert value.compare(Fraction(1, 4 * x**3)) == (-1, False)
    assert value.compare(Fraction(1, 4 * x**3) * (1 - Fraction(1, x**2))) == (1, False)


def test_digits_that_decide_a_condition_are_remembered() -> None:
    h = (3 + 2 * Y.sqrt()).sqrt().equals(1 + Y.sqrt()).where(X, Z)
    assert h.number([5, 2, 7]).compare(5) == (0, True)
    assert h.number([5, 3, 7]).compare(7) == (0, False)


THIRDS = X / 10 + Y / 10 - Z / 10
"""Zero at (1, 2, 3), where floats make it 5e-17."""


@pytest.mark.parametrize(
    ("h", "wanted"),
    [
        (THIRDS.divide(THIRDS, 7), 7),
        (1 / THIRDS, None),
        (THIRDS.sqrt(), 0),
        ((-THIRDS).sqrt(), 0),
        (THIRDS.log(), None),
        ((THIRDS > 0).where(1, 2), 2),
        ((THIRDS >= 0).where(1, 2), 1),
        (THIRDS.equals(0).where(1, 2), 1),
    ],
)
def test_floats_are_undecided_near_zero(h: RealStatistic, wanted: int | None) -> None:
    assert THIRDS([1, 2, 3]) != 0
    enclosure = h.enclosed([np.array([i]) for i in (1, 2, 3)])
    assert not enclosure.undefined.any()
    assert np.isinf(enclosure.bound).all()
    assert decimals(h, (1, 2, 3), 20) == wanted


FRACTIONS = st.fractions(-30, 30, max_denominator=99)


@given(FRACTIONS, FRACTIONS.filter(bool), st.integers(3, 9))
def test_balls_contain_the_truth(a: Fraction, b: Fraction, digits: int) -> None:
    one, other = Ball.of(a, digits), Ball.of(b, digits)
    pairs = [
        (one + other, a + b),
        (one - other, a - b),
        (one * other, a * b),
        (one / other, a / b),
        ((one * other + one) * (one / other) / other - other, (a * b + a) * (a / b) / b - b),
    ]
    with localcontext() as context:
        context.prec = 60
        size = abs(b.numerator) / Decimal(b.denominator)
        pairs += [((other * other).sqrt(), abs(b)), ((other * other).log(), Fraction(2 * size.ln()))]
        pairs += [((-(other * other)).exp(), Fraction((-size * size).exp()))]
    for ball, wanted in pairs:
        error = abs(Fraction(ball.middle) - wanted)
        assert error <= Fraction(ball.radius) + Fraction(1, 10**50)
        assert wanted == 0 or ball.sign in (None, 1 if wanted > 0 else -1)


@given(st.fractions(-(10**7), 10**7))
@example(Fraction(-800))
@example(Fraction(0))
def test_exponentials_of_any_size(value: Fraction) -> None:
    ball = Ball.of(value, 60).exp()
    with localcontext(Context(prec=250, Emax=MAX_EMAX, Emin=MIN_EMIN)):
        wanted = (Decimal(value.numerator) / value.denominator).exp()
        assert abs(ball.middle - wanted) <= ball.radius <= wanted * Decimal("1e-50")
    enclosure = RealStatistic.constant(value, 1).exp().enclosed([])
    assert math.isfinite(enclosure.bound) or value > 709
    if math.isfinite(enclosure.bound):
        rounded = Fraction(wanted) if value > -2000 else Fraction(0)
        assert abs(Fraction(float(enclosure.value)) - rounded) <= Fraction(float(enclosure.bound))


@given(st.integers(-900, 600), st.integers(0, 9 * 10**18))
@example(-600, 9 * 10**18)  # which floats take for -1024
def test_exponentials_of_sums_that_cancel(exponent: int, size: int) -> None:
    """The rounding error of an argument becomes one of its exponential."""
    h = (X + Y - X).exp()
    enclosure = h.enclosed([np.array([size]), np.array([exponent]), np.array([0])])
    wanted = decimals(h, (size, exponent, 0), 40)
    assert wanted is not None
    assert np.isfinite(enclosure.bound[0]) or size > 10**16
    if np.isfinite(enclosure.bound[0]):
        error = abs(Fraction(float(enclosure.value[0])) - Fraction(wanted))
        assert error <= Fraction(float(enclosure.bound[0]))


def test_exponentials_beyond_all_bounds_are_refused() -> None:
    edge = 10**15
    assert decimals(X.exp(), (10**7, 0, 0), 3) == Decimal("6.59E+4342944")
    assert X.exp().number([edge - 1, 0, 0]) > X.exp().number([edge - 2, 0, 0])
    for h in (X.exp(), (-X).exp(), (X + Z.sqrt()).exp()):
        assert decimals(h, (edge + 1, 0, 2), 20) is None
        enclosure = h.enclosed([np.array([edge // 2, 2 * edge]), np.array([0]), np.array([2])])
        assert enclosure.undefined.tolist() == [False, True]
