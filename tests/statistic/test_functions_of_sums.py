"""Functions of sums: integer arrays, rational and real functions against Python."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import oracles
from support.certificates import check_pvalue
from support.oracles import Point
from support.specs import load, parse
from support.written_expressions import UNDEFINED, Over, Written, quotients, whole

from trackperm.errors import CapacityError, SpecError, UndefinedError
from trackperm.exact import structured_test
from trackperm.statistic import ColumnType
from trackperm.statistic.expressions.arrays import integers
from trackperm.statistic.expressions.exact_functions import exact_function, is_rational
from trackperm.statistic.expressions.types import Checker

U, V = ["u.a", "u.b"], ["v.a", "v.b"]


POINTS = st.lists(st.tuples(*[st.integers(-20, 20)] * 4), min_size=1, max_size=6)


def values(points: list[tuple[int, ...]]) -> dict[str, Any]:
    return {name: np.array(column) for name, column in zip(U + V, zip(*points, strict=True), strict=True)}


@dataclass(frozen=True)
class Side:
    a: int | Fraction
    b: int | Fraction


def at(text: str, point: tuple[int, ...], **more: Any) -> Any:
    u, v = Side(*point[:2]), Side(*point[2:])
    return eval(text, {"__builtins__": {}, "abs": abs, "min": min, "max": max, "u": u, "v": v, **more})


@settings(deadline=None)
@given(whole(U + V, columns=False), POINTS)
def test_integer_arrays_against_python(expression: Written, points: list[tuple[int, ...]]) -> None:
    wanted: list[int | None] = []
    for point in points:
        try:
            wanted.append(int(at(expression.python, point)))
        except ZeroDivisionError:
            wanted.append(None)
    try:
        found = integers(parse(expression.ours), values(points), len(points))
    except SpecError as error:
        problem = error.message
        assert "division by zero" in problem
        assert None in wanted
    else:
        assert found.tolist() == wanted


def test_integer_arrays_beyond_64_bits() -> None:
    big = values([(2**31, 3, -(2**31), 1)])
    assert integers(parse("u.a ** 3 * v.a"), big, 1).tolist() == [-(2**124)]
    assert integers(parse("u.a * u.b"), big, 1).dtype == np.int64


def test_integer_arrays_compare_with_decimals() -> None:
    found = integers(parse("(u.a < 0.5) + 2 * (u.a > 1.5)"), {"u.a": np.array([-1, 0, 1, 2])}, 4)
    assert found.tolist() == [1, 1, 0, 2]


@settings(deadline=None)
@given(quotients(U + V), POINTS, UNDEFINED)
def test_rational_functions_against_fractions(
    expression: Written, points: list[tuple[int, ...]], undefined: Fraction | None
) -> None:
    parsed = parse(expression.ours)
    assert is_rational(parsed)
    try:
        h = exact_function(parsed, U + V, undefined)
    except SpecError as error:
        problem = error.message
        assert "always 0" in problem
        return
    same = exact_function(parsed, U + V, undefined, real=True)
    for point in points:
        over = Over(undefined)
        try:
            wanted = at(expression.python, tuple(map(Fraction, point)), over=over, Fraction=Fraction)
        except ZeroDivisionError:
            with pytest.raises(ZeroDivisionError):
                h(point)
            with pytest.raises(UndefinedError):
                same.number(point)
        else:
            assert h(point) == wanted
            assert same.number(point).compare(wanted) == (0, False)
            assert same(np.array(point)).shape == ()
            with contextlib.suppress(CapacityError):
                found = None if over.n_undefined else h.quotient
                assert found is None or Fraction(found.numerator(point), found.denominator(point)) == wanted


FAR = [2**31, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 10**30]
FAR_POINTS = st.lists(st.tuples(*[st.integers(-3, 3) | st.sampled_from(FAR)] * 4), min_size=1, max_size=3)


@settings(deadline=None)
@given(quotients(U + V, conditional=True), FAR_POINTS, UNDEFINED)
def test_conditional_functions_against_fractions(
    expression: Written, points: list[tuple[int, ...]], undefined: Fraction | None
) -> None:
    """The number is exact, and the enclosure in floats contains it."""
    parsed = parse(expression.ours)
    try:
        Checker(False, lambda *_: ColumnType.INTEGER).result(parsed, "h")
        h = exact_function(parsed, U + V, undefined, real=True)
    except SpecError:
        return
    for point in points:
        enclosure = h.enclosed([np.array([x], dtype=object) for x in point])
        parts = (enclosure.value, enclosure.bound, enclosure.undefined)
        found, error, is_undefined = (np.broadcast_to(part, (1,))[0] for part in parts)
        names = {"over": Over(undefined), "Fraction": Fraction}
        try:
            wanted = Fraction(at(expression.python, tuple(map(Fraction, point)), **names))
        except ZeroDivisionError:
            with pytest.raises(UndefinedError):
                h.number(point)
        else:
            assert h.number(point).compare(wanted) == (0, False)
            assert not is_undefined
            if np.isfinite(found) and np.isfinite(error):
                assert abs(Fraction(float(found)) - wanted) <= Fraction(float(error))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sqrt(u.a) - sqrt(v.a)", 1.0),
        ("log(u.a / v.a)", math.log(9 / 4)),
        ("abs(v.a - u.a)", 5.0),
        ("max(u.a, v.a, 10.5) + min(u.a, v.a)", 14.5),
        ("where(u.a > v.a, u.a / v.a, u.b / v.b)", 2.25),
        ("where(v.b > 0, u.b / v.b, 0.5)", 0.5),
        ("(u.a > v.a) * 2 + (u.b != 0)", 2.0),
        ("where((v.b > 0) & (u.a > 1), 1, 2)", 2.0),
        ("where(v.b > 0 and u.b / v.b > 1, 1, 2)", 2.0),
        ("where(not (u.a == 9 or v.a == 9), 1, 2)", 2.0),
        ("u.b / v.b", math.nan),
        ("u.a / v.b", math.nan),
        ("u.a ** -1", 1 / 9),
        ("sqrt(-u.a)", math.nan),
        ("+u.a", 9.0),
    ],
)
def test_floats(text: str, expected: float) -> None:
    points = np.tile([9, 0, 4, 0], (2, 3, 1))
    found = exact_function(parse(text), U + V, None, real=True)(points)
    assert found.shape == (2, 3)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_floats_with_a_declared_value_for_0_over_0() -> None:
    h = exact_function(parse("sqrt(u.a / u.b)"), U, Fraction(1, 4))
    np.testing.assert_array_equal(h(np.array([[0, 0], [4, 1], [1, 0]])), [0.5, 2.0, np.nan])


@pytest.mark.parametrize(
    ("text", "holds"),
    [("u.a / (u.b + 0.5) ** -2", True), ("abs(u.a)", False), ("u.a > 1", False), ("sqrt(u.a)", False)],
)
def test_is_rational(text: str, holds: bool) -> None:
    assert is_rational(parse(text)) is holds


@pytest.mark.parametrize("text", ["u.a / (u.b - u.b)", "1 / (u.a * 0)", "(u.a - u.a) ** -1"])
def test_division_by_a_sum_that_is_always_zero(text: str) -> None:
    with pytest.raises(SpecError, match="always 0"):
        exact_function(parse(text), U, None)
    with pytest.raises(SpecError, match="always 0"):
        exact_function(parse(f"sqrt({text})"), U, None)


CONDITIONS: dict[str, Callable[[int, int], int]] = {
    "where(u.a > u.b, u.a, u.b) == max(u.a, u.b)": lambda a, b: True,
    "abs(u.a - 1/3) < 0.5 and not (u.b / 2 == 1)": lambda a, b: abs(3 * a - 1) < 1.5 and b != 2,
    "'x' != 'x' or u.a * 0.1 == 0.3": lambda a, b: a == 3,
    "where(u.a > 1, 'x', 'y') == 'x'": lambda a, b: a > 1,
    "'x' == where(u.a > 1, where(u.b < 3, 'x', 'z'), 'y')": lambda a, b: a > 1 and b < 3,
    "(u.a >= u.b) + (u.a <= u.b) * 2 + (u.a != 3)": lambda a, b: (a >= b) + (a <= b) * 2 + (a != 3),
    "(u.a > 1) | (u.b > 1)": lambda a, b: a > 1 or b > 1,
    "(u.a > 1) & ~(u.b > 1)": lambda a, b: a > 1 and not b > 1,
}


@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions_against_python(text: str) -> None:
    expression = parse(text)
    Checker(False, lambda *_: ColumnType.INTEGER).result(expression, "h")
    function = exact_function(expression, U, None)
    for point in [(0, 0), (0, 2), (1, 1), (2, 2), (3, 1), (3, 3), (5, 4)]:
        assert function.number(point).compare(int(CONDITIONS[text](*point))) == (0, False)


PAIRS = [(0, 1, 1), (1, 1, 1), (1, 1, 0), (0, 0, 0), (1, 0, 1), (0, 0, 1), (1, 1, 0), (0, 1, 0), (1, 1, 1)]
CONFUSION = """
counts:
  tp: (prediction == 1) & (label == 1)
  fp: (prediction == 1) & (label == 0)
  fn: (prediction == 0) & (label == 1)
  tn: (prediction == 0) & (label == 0)
"""


@pytest.mark.parametrize(
    ("score", "value"),
    [
        (
            "(tp * tn - fp * fn) / sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))",
            lambda tp, fp, fn, tn: (
                (tp * tn - fp * fn) / d
                if (d := ((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)).sqrt())
                else 0
            ),
        ),
        (
            "sqrt(tp / (tp + fn) * tn / (tn + fp))",
            lambda tp, fp, fn, tn: (tp / (tp + fn) * tn / (tn + fp)).sqrt(),
        ),
        (
            "log((fp + fn + 0.5) / (tp + fp + fn + tn))",
            lambda tp, fp, fn, tn: (fp + fn + Decimal("0.5")).ln(),
        ),
        ("min(tp / (tp + fn), tn / (tn + fp))", lambda tp, fp, fn, tn: min(tp / (tp + fn), tn / (tn + fp))),
        ("abs(tp / (tp + fn) - 0.5)", lambda tp, fp, fn, tn: abs(tp / (tp + fn) - Decimal("0.5"))),
        (
            "where(tp + fp > 0 and tp / (tp + fp) > 0.5, sqrt(tp), log(1 + tn))",
            lambda tp, fp, fn, tn: tp.sqrt() if tp > fp else (1 + tn).ln(),
        ),
    ],
    ids=["MCC", "geometric mean", "log error", "worst recall", "distance", "where"],
)
def test_specs_of_irrational_scores_against_enumeration(tmp_path: Path, score: str, value: Any) -> None:
    statistic = load(tmp_path, f"{CONFUSION}score: {score}\nundefined: 0\n")
    cells = np.array(
        [
            [[(p, label) == cell for cell in ((1, 1), (1, 0), (0, 1), (0, 0))] for p in (u, v)]
            for label, u, v in PAIRS
        ]
    ).astype(np.int64)
    observed, swapped = statistic.pairs(cells[:, 0], cells[:, 1])

    def difference(point: Point) -> Fraction:
        with localcontext() as context:
            context.prec = 100
            u, v = (value(*map(Decimal, part)) for part in (point[:4], point[4:]))
            return round(Fraction(u - v) * 10**60) / Fraction(10**60)

    points = [[tuple(row) for row in side.tolist()] for side in (observed, swapped)]
    expected = oracles.structured_pvalues(oracles.enumerated_sums(*points), points[0], difference)
    for alternative, pvalue in expected.items():
        result = structured_test(observed, swapped, statistic.h, alternative=alternative)
        check_pvalue(result, pvalue)
        assert result.ties == "exact"
    assert any(0 < pvalue < 1 for pvalue in expected.values())
