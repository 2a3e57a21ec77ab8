"""Irrational statistics against 250 digits, and ties that no number of digits decides against algebra."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import oracles
import pytest
from certificates import check_pvalue
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import Point

from trackperm.errors import InputError
from trackperm.exact import structured_test
from trackperm.exact.counts import DifferenceHistogram
from trackperm.exact.functions.ball import Ball
from trackperm.exact.functions.closed_form import ClosedForm, coprime_base
from trackperm.exact.functions.power import perfect_root
from trackperm.exact.functions.real import RealStatistic
from trackperm.exact.functions.real_number import RealNumber, UndefinedError
from trackperm.exact.lattice.basis import reduce_rank
from trackperm.exact.lattice.region import INSIDE, UNDEFINED
from trackperm.exact.lattice.statistic import LatticeStatistic
from trackperm.exact.spectrum.characteristic import SwapSum

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


def number(statistic: RealStatistic, point: Point) -> RealNumber | None:
    try:
        return statistic.number(point)
    except UndefinedError:
        return None


@settings(deadline=None, max_examples=400)
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


@settings(deadline=None, max_examples=400)
@given(TREES, POINTS)
def test_values_against_250_digits(tree: Both, points: list[Point]) -> None:
    for point in points:
        wanted, found = truth(tree.oracle, point), tree.ours.exact(point, 40)
        assert (found is None) == (wanted is None)
        if wanted is not None and found is not None:
            assert abs(found - wanted) <= Decimal("1e-30") * max(1, abs(wanted))


@settings(deadline=None, max_examples=400)
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
        (X.log(), 3 * Y.log()),
        (X.log() / 3 + Z.sqrt(), Z.sqrt() + Y.log()),
        (X.sqrt().log(), X.log() / 2),
        ((Fraction(10**9, 8) * X).log(), 9 * (Y * 5).log()),
        (Fraction(1, 10**6) * X.log(), Fraction(3, 10**6) * Y.log()),
        (X.exp(), Y.exp() ** 4),
        (X.exp() * (-Y).exp(), (X - Y).exp()),
        ((X.log() / 4).exp(), X.sqrt().sqrt()),
        ((X.log() / 3).exp() + Z.exp(), Y + Z.exp()),
        ((1 + X.log() / 2).exp(), 2 * Y.sqrt() * RealStatistic.constant(1, 3).exp()),
        (1 / (Z + X.log() / 3).exp(), (-Z).exp() / Y),
        ((Y.exp() + Y.sqrt()) ** 2, (2 * Y).exp() + (8 * Y.exp() * Y.exp()).sqrt() + Y),
        (X.exp().sqrt().log(), X / 2),
        (X.exp().log() * Z.log(), 8 * Z.log()),
        ((Z.exp() * X.sqrt()).log(), Z + 3 * Y.log() / 2),
        (X.sqrt().sqrt() * Y.sqrt().sqrt(), Y),
        ((X.log() / 6 + Y.log() / 5).exp() - (Y.log() * Fraction(7, 10)).exp(), 0 * X),
        (X.exp().equals(Y.exp() ** 4), RealStatistic.constant(1, 3)),
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
    nearly = other + Fraction(1, 10**500)
    assert one.number([8, 2, 3]).compare(nearly.number([8, 2, 3])) == (-1, False)


def test_ties_that_only_digits_suggest() -> None:
    # sqrt(3 + 2 sqrt(2)) = 1 + sqrt(2)
    nested, plain = (3 + 2 * Y.sqrt()).sqrt(), 1 + Y.sqrt()
    assert nested.number([0, 2, 0]).compare(plain.number([0, 2, 0])) == (0, True)
    assert nested.number([0, 3, 0]).compare(plain.number([0, 3, 0])) == (-1, False)
    # No algebra is known for e + log(2), and none is kept for roots of a high order.
    for one, other in ((Y.exp() + X.log(), 3 * Y.log() + Y.exp()), (X.sqrt().exp(), (2 * Y.sqrt()).exp())):
        assert one.number([8, 2, 0]).compare(other.number([8, 2, 0])) == (0, True)
    high, higher = (X.log() / 40).exp().sqrt(), (X.log() / 80).exp()
    assert high.number([8, 2, 0]).compare(higher.number([8, 2, 0])) == (0, True)
    assert high.number([8, 2, 0]).compare(higher.number([9, 2, 0])) == (-1, False)
    one, other = (
        reduce(lambda root, _: root.sqrt(), range(50), X),
        reduce(lambda root, _: root.sqrt(), range(50), Y),
    )
    assert one.number([8, 2, 0]).compare((other**3).number([8, 2, 0])) == (0, True)


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
def test_floats_say_where_they_do_not_know(h: RealStatistic, wanted: int | None) -> None:
    assert THIRDS([1, 2, 3]) != 0
    enclosure = h.enclosed([np.array([i]) for i in (1, 2, 3)])
    assert not enclosure.undefined.any()
    assert np.isinf(enclosure.bound).all()
    assert h.exact([1, 2, 3], 20) == wanted


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


@given(st.lists(st.integers(1, 10**6), max_size=6))
def test_coprime_base(integers: list[int]) -> None:
    base = coprime_base(integers)
    assert all(math.gcd(a, b) == 1 for i, a in enumerate(base) for b in base[:i])
    for integer in integers:
        for element in base:
            while integer % element == 0:
                integer //= element
        assert integer == 1


@given(st.integers(1, 10**6), st.integers(1, 12))
def test_perfect_roots(integer: int, order: int) -> None:
    assert perfect_root(integer**order, order) == integer
    inexact = perfect_root(integer**order + 1, order)
    assert inexact is None if order > 1 else inexact == integer + 1


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
    wanted = h.exact([size, exponent, 0], 40)
    assert wanted is not None
    assert np.isfinite(enclosure.bound[0]) or size > 10**16
    if np.isfinite(enclosure.bound[0]):
        error = abs(Fraction(float(enclosure.value[0])) - Fraction(wanted))
        assert error <= Fraction(float(enclosure.bound[0]))


def test_no_exponentials_beyond_all_bounds() -> None:
    edge = 10**15
    assert X.exp().exact([10**7, 0, 0], 3) == Decimal("6.59E+4342944")
    assert X.exp().number([edge - 1, 0, 0]) > X.exp().number([edge - 2, 0, 0])
    for h in (X.exp(), (-X).exp(), (X + Z.sqrt()).exp()):
        assert h.exact([edge + 1, 0, 2], 20) is None
        enclosure = h.enclosed([np.array([edge // 2, 2 * edge]), np.array([0]), np.array([2])])
        assert enclosure.undefined.tolist() == [False, True]


@given(st.fractions(0, 50), st.fractions(0, 50))
def test_square_roots_multiply(a: Fraction, b: Fraction) -> None:
    product = ClosedForm.root(a).times(ClosedForm.root(b))
    assert product is not None
    difference = product.plus(ClosedForm.root(a * b).scaled(-1))
    assert difference is not None
    assert difference.is_zero


# --- whole tests -----------------------------------------------------------------------------------


def variables(m: int) -> list[RealStatistic]:
    return [RealStatistic.variable(i, m) for i in range(m)]


def mcc(tp: Any, fp: Any, fn: Any, tn: Any, divide: Any, sqrt: Any) -> Any:
    return divide(tp * tn - fp * fn, sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


def geometric_mean(tp: Any, fp: Any, fn: Any, tn: Any, divide: Any, sqrt: Any) -> Any:
    return sqrt(divide(tp, tp + fn) * divide(tn, tn + fp))


def error_rate(tp: Any, fp: Any, fn: Any, tn: Any, divide: Any, log: Any) -> Any:
    return log(divide(2 * fp + 2 * fn + 1, 2 * tp + 2 * fp + 2 * fn + 2 * tn))


SCORES = {"mcc": mcc, "geometric mean": geometric_mean, "error rate": error_rate}


def difference_of(name: str) -> Both:
    score = SCORES[name]
    our_function = RealStatistic.log if name == "error rate" else RealStatistic.sqrt
    function = logarithm if name == "error rate" else root
    x = variables(8)

    def value(four: tuple[int, ...]) -> Decimal:
        return score(*map(Decimal, four), lambda a, b: over(a, b, Fraction(0)), function)

    ours = [score(*part, lambda a, b: a.divide(b, 0), our_function) for part in (x[:4], x[4:])]
    return Both(ours[0] - ours[1], lambda point: value(point[:4]) - value(point[4:]))


def rounded(oracle: Callable[[Point], Decimal]) -> Callable[[Point], Fraction]:
    """The oracle to 150 decimals, so that equal numbers are equal."""

    def value(point: Point) -> Fraction:
        found = truth(oracle, point)
        assert found is not None
        return Fraction(round(Fraction(found) * 10**150), 10**150)

    return value


OUTCOMES = st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1))


@st.composite
def classified(draw: st.DrawFn) -> tuple[list[Point], list[Point]]:
    """Examples with a label and two predictions, as confusion matrices of both runs."""
    stay, swap = [], []
    for label, u, v in draw(st.lists(OUTCOMES, min_size=1, max_size=9)):
        cells = [tuple(int((label, p) == cell) for cell in ((1, 1), (0, 1), (1, 0), (0, 0))) for p in (u, v)]
        stay.append(cells[0] + cells[1])
        swap.append(cells[1] + cells[0])
    return stay, swap


METHODS = st.sampled_from(["auto", "enumerate", "lattice"])


@pytest.mark.parametrize("name", SCORES)
@settings(deadline=None, max_examples=60)
@given(classified(), st.sampled_from(oracles.ALTERNATIVES), METHODS)
def test_scores_against_enumeration(
    name: str, pairs: tuple[list[Point], list[Point]], alternative: Any, method: Any
) -> None:
    h = difference_of(name)
    expected = oracles.structured_pvalues(oracles.enumerated_sums(*pairs), pairs[0], rounded(h.oracle))
    result = structured_test(*pairs, h.ours, alternative=alternative, method=method)
    check_pvalue(result, expected[alternative])
    assert result.ties == "exact"


@settings(deadline=None, max_examples=150)
@given(
    TREES,
    st.lists(st.tuples(*[st.tuples(*[st.integers(-2, 4)] * 3)] * 2), min_size=1, max_size=6),
    st.sampled_from(["less", "greater"]),
    METHODS,
)
def test_any_expression_against_enumeration(
    tree: Both, pairs: list[tuple[Point, Point]], alternative: Any, method: Any
) -> None:
    stay, swap = map(list, zip(*pairs, strict=True))
    counts = oracles.enumerated_sums(stay, swap)
    if any(truth(tree.oracle, point) is None for point in counts):
        return
    expected = oracles.structured_pvalues(counts, stay, rounded(tree.oracle))
    result = structured_test(stay, swap, tree.ours, alternative=alternative, method=method)
    check_pvalue(result, expected[alternative])


def statistic_of(stay: Any, swap: Any, h: Any) -> tuple[LatticeStatistic, SwapSum]:
    histogram = DifferenceHistogram.from_pairs(stay, swap)
    lattice = reduce_rank(histogram)
    return LatticeStatistic(h, histogram, lattice), SwapSum(lattice.coordinates, histogram.multiplicities)


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
    observed = value(statistic.histogram.stay)
    region = statistic.region(statistic.observed_exact, (0, 0), upper=upper, strict=strict, mirror=law.total)
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


def test_values_that_floats_cannot_tell_apart() -> None:
    """sqrt(10^14 + k) for k = 0 to 10, one-sided: a band of 2^-40 of the value would tie all eleven."""
    stay = np.array([[10**14]] + [[1]] * 10)
    swap = np.array([[10**14]] + [[0]] * 10)
    root_of = RealStatistic.variable(0, 1).sqrt()
    exact = structured_test(stay, swap, root_of, alternative="greater", method="enumerate")
    assert (exact.pvalue, exact.ties) == (2.0**-10, "exact")
    banded = structured_test(stay, swap, root_of.__call__, alternative="greater", method="enumerate")
    assert (banded.pvalue, banded.ties) == (1.0, "approximate")


def test_an_observed_value_that_is_zero_by_algebra() -> None:
    """sqrt(18) - 3 sqrt(2): zero, and so every swap is as extreme, whatever floats make of it."""
    x = variables(4)
    h = (x[0].sqrt() + 3 * x[1].sqrt()) - (x[2].sqrt() + 3 * x[3].sqrt())
    assert h(np.array([18, 0, 0, 2])) != 0.0
    tie = structured_test([(18, 0, 0, 2)], [(0, 2, 18, 0)], h)
    assert (tie.observed, tie.pvalue, tie.ties) == (0.0, 1.0, "exact")


def test_ties_by_digits_are_said() -> None:
    x = variables(2)
    nested = (3 + 2 * x[0].sqrt()).sqrt() - (1 + x[0].sqrt()) + x[1] * 0
    stay, swap = [(2, 0), (0, 0)], [(1, 1), (0, 1)]
    result = structured_test(stay, swap, nested, alternative="less")
    assert (result.pvalue, result.ties) == (0.5, "100 digits")


def test_no_digits_decide_where_nothing_ties() -> None:
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
    region = statistic.region(statistic.observed_exact, (0,), upper=True)
    assert region.membership([np.array([-1, 0, 1, 2])]).tolist() == [UNDEFINED, UNDEFINED, 0, 1]


# --- exchanged runs --------------------------------------------------------------------------------


def test_conditions_that_break_the_symmetry_are_refused() -> None:
    """-h after exchanging all pairs, but for ties of u and v, which random swaps of many pairs may miss."""
    u, v = variables(2)
    broken = u.equals(v).where(1, u.sqrt() - v.sqrt())
    stay, swap = [[9, 0]] + [[1, 0]] * 9, [[0, 9]] + [[0, 1]] * 9
    with pytest.raises(InputError, match=r"is 1.0 after some swaps and 1.0 after the opposite ones"):
        structured_test(stay, swap, broken, method="lattice")
    fair = u.equals(v).where(0, u.sqrt() - v.sqrt())
    mirrored = structured_test(stay, swap, fair)
    assert mirrored.pvalue == structured_test(stay, swap, u.sqrt() - v.sqrt()).pvalue


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
    stay = [[1, 0, 0, 0, 0, 0, 1, 0], [0, 0, 0, 1, 0, 1, 0, 0], [1, 0, 0, 0, 1, 0, 0, 0]]
    statistic, law = statistic_of(stay, [row[4:] + row[:4] for row in stay], difference_of(name).ours)
    statistic.check_antisymmetric(law.total, np.random.default_rng(0))


def test_antisymmetry_of_a_product_is_found_on_samples() -> None:
    u, v = variables(2)
    stay, swap = [[3, 1], [2, 5], [4, 0]], [[1, 3], [5, 2], [0, 4]]
    product = (u - v) * (u * v).sqrt()

    def oracle(point: Point) -> Decimal:
        return (point[0] - point[1]) * Decimal(point[0] * point[1]).sqrt()

    expected = oracles.structured_pvalues(oracles.enumerated_sums(stay, swap), stay, rounded(oracle))
    assert structured_test(stay, swap, product).pvalue == expected["two-sided"]


# --- callables -------------------------------------------------------------------------------------


def test_ties_of_a_callable_do_not_depend_on_blocks() -> None:
    """Far points have values 10^13 times those near the threshold; the band must not follow them."""
    rng = np.random.default_rng(0)
    stay = rng.integers(0, 5, size=(300, 2))
    statistic, law = statistic_of(stay, stay[:, ::-1], lambda x: np.sinh((x[..., 0] - x[..., 1]) / 10.0))
    axes = [np.arange(low, high + 1) for low, high in law.support]
    whole = statistic.region(statistic.observed, law.total, upper=True)
    found = whole.membership(axes)
    blocks = [
        statistic.region(statistic.observed, law.total, upper=True).membership([axes[0][i : i + 7]])
        for i in range(0, axes[0].size, 7)
    ]
    np.testing.assert_array_equal(found, np.concatenate(blocks))
    fewer = [whole.membership([axes[0][i : i + 1]]) for i in range(axes[0].size)]
    np.testing.assert_array_equal(found, np.concatenate(fewer))


def test_samples_stay_small_and_within_reach() -> None:
    rng = np.random.default_rng(0)
    stay = np.unique(rng.integers(0, 10**6, size=(200_000, 2)), axis=0)
    statistic, law = statistic_of(stay, stay[:, ::-1].copy(), lambda x: x[..., 0] - x[..., 1])
    tracemalloc.start()
    points = statistic.sample(rng)
    statistic.check_antisymmetric(law.total, rng)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40 * 2**20
    for axis, (low, high) in zip(points.T, law.support, strict=True):
        assert axis.min() >= low
        assert axis.max() <= high
