"""One expression, four meanings: data frames, integer arrays, rational and real functions; against Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import oracles
import pytest
from certificates import check_pvalue
from engines import ENGINES, SPARK, each_engine, evaluated, frame
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import Point
from specs import load, parse

from trackperm.errors import SpecError
from trackperm.exact import structured_test
from trackperm.exact.functions.real_number import UndefinedError
from trackperm.statistic import OUT_OF_RANGE, ColumnType
from trackperm.statistic.arrays import integers
from trackperm.statistic.check import Checker
from trackperm.statistic.frames import count_expression
from trackperm.statistic.rational import is_rational, rational
from trackperm.statistic.real import real

TYPES = {
    "i": ColumnType.INTEGER,
    "j": ColumnType.INTEGER,
    "small": ColumnType.INTEGER,
    "d": ColumnType.DECIMAL,
    "flag": ColumnType.BOOLEAN,
    "s": ColumnType.TEXT,
    "t": ColumnType.TEXT,
}
DATA: dict[str, list[Any]] = {
    "i": [0, 1, -1, 7, -7, 12, 5, -3],
    "j": [3, -2, 1, 0, 2, -5, 5, 9],
    "small": [250, 3, 0, 255, 1, 128, 200, 7],
    "d": [0.5, -0.25, 1.0, 0.1, 2.5, -3.0, 0.0, 7.125],
    "flag": [True, False, True, True, False, False, True, False],
    "s": ["a", "b", "", "Ä", "a", "b ", "🙂", "1"],
    "t": ["a", "a", "", "ä", "b", "b", "🙂", "1"],
}
EXTREME: dict[str, list[Any]] = {
    "i": [2**63 - 1, -(2**63), 2**62, 2**53 + 1, -(2**53), 2**31, 0, -1],
    "j": [2**63 - 1, -1, 2**62, 2**51 + 1, 2**51, 3, 0, 7],
    "small": [255, 0, 200, 255, 1, 128, 0, 7],
    "d": [2.0**53, -0.0, 1e308, 5e-324, 0.1, -1e308, 0.0, 2.0**63],
    "flag": [True, False, True, False, True, False, True, False],
    "s": ["1", "01", "1.0", "1e0", "true", "NaN", "", " 1"],
    "t": ["1", "1", "1", "1", "true", "nan", "", "1"],
}


def rows(data: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]


def counted(engine: str, text: str, data: dict[str, list[Any]] = DATA) -> list[int]:
    expression = parse(text)
    Checker(True, lambda _, node: TYPES[node.full], "column").result(expression, "the count")
    table = frame(engine, data)
    if "small" in data and engine != "pandas object":
        # Spark has no unsigned integers
        table = table.with_columns(nw.col("small").cast(nw.Int16 if engine == SPARK else nw.UInt8))
    values = count_expression(expression, {name: name for name in TYPES}, TYPES)
    found = evaluated(table, {"count": values})["count"]
    assert found.dtype == nw.Int64
    return found.to_list()


@dataclass(frozen=True)
class Written:
    """An expression in our language and the same in Python."""

    ours: str
    python: str


def join(operator: str, a: Written, b: Written, python: str | None = None) -> Written:
    return Written(f"({a.ours} {operator} {b.ours})", f"({a.python} {python or operator} {b.python})")


def power(a: Written, exponent: int) -> Written:
    return Written(f"({a.ours} ** {exponent})", f"({a.python} ** {exponent})")


def call(name: str, *arguments: Written) -> Written:
    return Written(
        f"{name}({', '.join(a.ours for a in arguments)})", f"{name}({', '.join(a.python for a in arguments)})"
    )


def where(condition: Written, yes: Written, no: Written) -> Written:
    return Written(
        f"where({condition.ours}, {yes.ours}, {no.ours})",
        f"({yes.python} if {condition.python} else {no.python})",
    )


def same(text: str) -> Written:
    return Written(text, text)


COMPARISONS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
TEXT = st.sampled_from(["s", "t", "'a'", "'Ä'"]).map(same)


def conditions(numbers: Any, *, columns: bool = True) -> Any:
    leaves = st.builds(join, COMPARISONS, numbers, numbers)
    if columns:
        leaves = leaves | st.just(same("flag")) | st.builds(join, st.sampled_from(["==", "!="]), TEXT, TEXT)
        others = st.sampled_from(["d", "0.1", "2.5", "i"]).map(same)
        leaves = leaves | st.builds(join, COMPARISONS, others, st.just(same("d")))
    return st.one_of(
        leaves,
        st.builds(join, st.sampled_from(["&", "|", "and", "or"]), leaves, leaves),
        leaves.map(lambda a: Written(f"(~{a.ours})", f"(not {a.python})")),
        leaves.map(lambda a: Written(f"(not {a.ours})", f"(not {a.python})")),
    )


def whole(names: list[str], *, columns: bool = True) -> Any:
    leaves = st.sampled_from(names).map(same) | st.integers(0, 12).map(lambda n: same(str(n)))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(join, st.sampled_from(["+", "-", "*", "//", "%"]), inner, inner),
            st.builds(power, inner, st.integers(0, 3)),
            inner.map(lambda a: Written(f"(-{a.ours})", f"(-{a.python})")),
            inner.map(lambda a: call("abs", a)),
            st.builds(call, st.sampled_from(["min", "max"]), inner, inner),
            st.builds(where, conditions(inner, columns=columns), inner, inner),
        ),
        max_leaves=8,
    )


INTEGERS = whole(["i", "j", "small"])


def python(text: str, row: dict[str, Any]) -> int | None:
    """What Python makes of it; None where it divides by zero."""
    try:
        return int(eval(text, {"__builtins__": {}, "abs": abs, "min": min, "max": max, **row}))
    except ZeroDivisionError:
        return None


COUNTS = INTEGERS | conditions(INTEGERS)


@settings(deadline=None, max_examples=150)
@given(COUNTS)
def test_counts_against_python_on_every_engine(expression: Written) -> None:
    check_counts(expression, DATA, ENGINES)


@settings(deadline=None, max_examples=150)
@given(COUNTS)
def test_counts_of_extreme_values_on_every_engine(expression: Written) -> None:
    check_counts(expression, EXTREME, ENGINES)


@pytest.mark.spark
@pytest.mark.parametrize("data", [DATA, EXTREME], ids=["values", "extreme values"])
@settings(deadline=None, max_examples=60)
@given(expression=COUNTS)
def test_counts_against_python_on_spark(data: dict[str, list[Any]], expression: Written) -> None:
    check_counts(expression, data, ("polars", SPARK))


def check_counts(expression: Written, data: dict[str, list[Any]], engines: Sequence[str]) -> None:
    expected = [python(expression.python, row) for row in rows(data)]
    try:
        found = {engine: counted(engine, expression.ours, data) for engine in engines}
    except SpecError as error:
        problem = error.message
        assert any(word in problem for word in ("by zero", "degree", "expands too far"))
        return
    assert len(set(map(tuple, found.values()))) == 1, found
    for value, wanted in zip(found["polars"], expected, strict=True):
        if wanted is None:
            assert value == OUT_OF_RANGE
        elif value == OUT_OF_RANGE:
            # Guards may be early, but never on what could be a count with factors that could be counts.
            assert data is EXTREME or "*" in expression.ours
        else:
            assert value == wanted


@each_engine
@pytest.mark.parametrize(
    "text",
    [
        "s == t",
        "s != 'a'",
        "d > 0.1",
        "d * 3 == 0.3",
        "d == i",
        "flag",
        "flag + flag",
        "flag == (i > j)",
        "small * small",
        "small + 250",
        "-small",
        "abs(-7 // 2)",
        "i // 2 * 2 + i % 2 == i",
        "i // -3",
        "i % -3",
        "where(j != 0, i // j, 0)",
        "j != 0 and i // j > 0",
        "j == 0 or i % j == 0",
        "where(i > j, s, t) == 'a'",
        "where(flag, d, i) > 0.5",
        "min(i, d) < 0",
        "where(1 > 0, i, j)",
        "i * 0 + 3",
        "3",
        "2 ** 10",
        "1 < 2",
    ],
)
def test_one_meaning_on_every_engine(engine: str, text: str) -> None:
    expected = []
    for row in rows(DATA):
        # Python's own words for what differs in spelling.
        exact = {name: Fraction(value) if name == "d" else value for name, value in row.items()}
        expected.append(exact)
    words = {
        "s == t": lambda r: r["s"] == r["t"],
        "s != 'a'": lambda r: r["s"] != "a",
        "d > 0.1": lambda r: r["d"] > Fraction(0.1),
        "d * 3 == 0.3": lambda r: float(r["d"]) * 3 == 0.3,
        "where(j != 0, i // j, 0)": lambda r: r["i"] // r["j"] if r["j"] else 0,
        "where(i > j, s, t) == 'a'": lambda r: (r["s"] if r["i"] > r["j"] else r["t"]) == "a",
        "where(flag, d, i) > 0.5": lambda r: (r["d"] if r["flag"] else r["i"]) > 0.5,
        "where(1 > 0, i, j)": lambda r: r["i"],
    }
    wanted = [
        int(words[text](row) if text in words else eval(text, {"abs": abs, "min": min, **row}))
        for row in expected
    ]
    assert counted(engine, text) == wanted


LARGE = {
    "i": [2**63 - 1, -(2**63), 2**62, 2**31, 2**53 + 1, 3],
    "j": [2**63 - 1, 2, 2**62 + 1, 2**31, 1, 0],
}


@each_engine
@pytest.mark.parametrize(
    "text", ["i + j", "i - j", "i * j", "-i", "abs(i)", "i ** 2", "i * j // j", "i % 7", "i // -1"]
)
def test_arithmetic_never_wraps(engine: str, text: str) -> None:
    for value, i, j in zip(counted(engine, text, LARGE), *LARGE.values(), strict=True):
        exact = python(text, {"i": i, "j": j})
        assert value in (exact, OUT_OF_RANGE)
        if max(abs(i), abs(j)) < 2**31 and exact is not None:
            assert value == exact


@each_engine
def test_division_does_not_round(engine: str) -> None:
    rng = np.random.default_rng(5)
    j = np.concatenate([2**51 - np.arange(20), rng.integers(1, 2 ** rng.integers(1, 52, 200))])
    near_a_multiple = rng.integers(0, 2**62 // j) * j + rng.integers(-1, 2, len(j))
    i = np.where(rng.random(len(j)) < 0.8, near_a_multiple, rng.integers(-(2**62), 2**62, len(j)))
    i, j = (values * rng.choice([-1, 1], len(j)) for values in (i, j))
    data = {"i": i.tolist(), "j": j.tolist()}
    assert counted(engine, "i // j", data) == (i // j).tolist()
    assert counted(engine, "i % j", data) == (i % j).tolist()


@each_engine
def test_large_integers_compare_exactly(engine: str) -> None:
    assert counted(engine, "i == j", LARGE) == [1, 0, 0, 1, 0, 0]
    assert counted(engine, "i < j", LARGE) == [0, 1, 1, 0, 0, 0]
    assert counted(engine, "i == 9223372036854775807", LARGE) == [1, 0, 0, 0, 0, 0]


@each_engine
def test_integers_that_decimals_cannot_hold_are_out_of_range(engine: str) -> None:
    assert counted(engine, "i > 0.5", LARGE) == [OUT_OF_RANGE] * 3 + [1, OUT_OF_RANGE, 1]


@pytest.mark.parametrize(
    "engine", ["polars", "pandas", "pyarrow", "duckdb", pytest.param(SPARK, marks=pytest.mark.spark)]
)
@pytest.mark.parametrize("text", ["d == d", "d < 1", "min(d, 0) < 1", "where(i > 0, d, 0.5) > 0"])
def test_nan_is_out_of_range(engine: str, text: str) -> None:
    found = counted(engine, text, {"i": [1, 1], "d": [math.nan, 0.5]})
    assert found == [OUT_OF_RANGE, 1]


def test_what_expands_too_far_is_refused() -> None:
    with pytest.raises(SpecError, match="expands too far"):
        counted("polars", "i" + " % 7" * 30)


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


def quotients(names: list[str]) -> Any:
    leaves = st.sampled_from(names).map(same) | st.sampled_from(["1", "2", "0.1", "1.5"]).map(
        lambda n: Written(n, f"Fraction('{n}')")
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(join, st.sampled_from(["+", "-", "*"]), inner, inner),
            st.builds(
                lambda a, b: Written(f"({a.ours} / {b.ours})", f"over({a.python}, {b.python})"), inner, inner
            ),
            st.builds(power, inner, st.integers(1, 3)),
            inner.map(lambda a: Written(f"(-{a.ours})", f"(-{a.python})")),
        ),
        max_leaves=8,
    )


@settings(deadline=None)
@given(quotients(U + V), POINTS, st.sampled_from([None, Fraction(0), Fraction(1, 3)]))
def test_rational_functions_against_fractions(
    expression: Written, points: list[tuple[int, ...]], undefined: Fraction | None
) -> None:
    def over(a: Fraction, b: Fraction) -> Fraction:
        if a == b == 0 and undefined is not None:
            return undefined
        return Fraction(a) / b

    parsed = parse(expression.ours)
    assert is_rational(parsed)
    try:
        h = rational(parsed, U + V, undefined)
    except SpecError as error:
        problem = error.message
        assert "always 0" in problem
        return
    same = real(parsed, U + V, undefined)
    for point in points:
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
    found = real(parse(text), U + V, None)(points)
    assert found.shape == (2, 3)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_floats_with_a_declared_value_for_0_over_0() -> None:
    h = real(parse("sqrt(u.a / u.b)"), U, Fraction(1, 4))
    np.testing.assert_array_equal(h(np.array([[0, 0], [4, 1], [1, 0]])), [0.5, 2.0, np.nan])


@pytest.mark.parametrize(
    ("text", "holds"),
    [("u.a / (u.b + 0.5) ** -2", True), ("abs(u.a)", False), ("u.a > 1", False), ("sqrt(u.a)", False)],
)
def test_is_rational(text: str, holds: bool) -> None:
    assert is_rational(parse(text)) is holds


@pytest.mark.parametrize("text", ["u.a / (u.b - u.b)", "1 / (u.a * 0)", "(u.a - u.a) ** -1"])
def test_division_by_what_is_always_zero(text: str) -> None:
    with pytest.raises(SpecError, match="always 0"):
        rational(parse(text), U, None)
    with pytest.raises(SpecError, match="always 0"):
        real(parse(f"sqrt({text})"), U, None)


@pytest.mark.parametrize(
    "text",
    [
        "where(u.a > u.b, u.a, u.b) == max(u.a, u.b)",
        "abs(u.a - 1/3) < 0.5 and not (u.b / 2 == 1)",
        "'x' != 'x' or u.a * 0.1 == 0.3",
        "where(u.a > 1, 'x', 'y') == 'x'",
        "'x' == where(u.a > 1, where(u.b < 3, 'x', 'z'), 'y')",
        "(u.a >= u.b) + (u.a <= u.b) * 2 + (u.a != 3)",
        "(u.a > 1) | (u.b > 1)",
        "(u.a > 1) & ~(u.b > 1)",
    ],
)
def test_conditions_against_python(text: str) -> None:
    expression = parse(text)
    Checker(False, lambda *_: ColumnType.INTEGER).result(expression, "h")
    function = real(expression, U, None)
    words = {
        "where(u.a > u.b, u.a, u.b) == max(u.a, u.b)": lambda a, b: True,
        "abs(u.a - 1/3) < 0.5 and not (u.b / 2 == 1)": lambda a, b: abs(3 * a - 1) < 1.5 and b != 2,
        "'x' != 'x' or u.a * 0.1 == 0.3": lambda a, b: a == 3,
        "where(u.a > 1, 'x', 'y') == 'x'": lambda a, b: a > 1,
        "'x' == where(u.a > 1, where(u.b < 3, 'x', 'z'), 'y')": lambda a, b: a > 1 and b < 3,
        "(u.a >= u.b) + (u.a <= u.b) * 2 + (u.a != 3)": lambda a, b: (a >= b) + (a <= b) * 2 + (a != 3),
        "(u.a > 1) | (u.b > 1)": lambda a, b: a > 1 or b > 1,
        "(u.a > 1) & ~(u.b > 1)": lambda a, b: a > 1 and not b > 1,
    }
    for point in [(0, 0), (0, 2), (1, 1), (2, 2), (3, 1), (3, 3), (5, 4)]:
        assert function.number(point).compare(int(words[text](*point))) == (0, False)


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
    stay, swap = statistic.pairs(cells[:, 0], cells[:, 1])

    def difference(point: Point) -> Fraction:
        with localcontext() as context:
            context.prec = 100
            u, v = (value(*map(Decimal, part)) for part in (point[:4], point[4:]))
            return round(Fraction(u - v) * 10**60) / Fraction(10**60)

    points = [[tuple(row) for row in side.tolist()] for side in (stay, swap)]
    expected = oracles.structured_pvalues(oracles.enumerated_sums(*points), points[0], difference)
    for alternative, pvalue in expected.items():
        result = structured_test(stay, swap, statistic.h, alternative=alternative)
        check_pvalue(result, pvalue)
        assert result.ties == "exact"
    assert any(0 < pvalue < 1 for pvalue in expected.values())
