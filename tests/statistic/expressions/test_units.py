"""Expressions of integers that stand for real numbers, against the real numbers in fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.engines import frame
from support.specs import load, parse, refusal

from trackperm.errors import InputError, InputTypeError, SpecError
from trackperm.exact import RationalStatistic
from trackperm.statistic import ColumnType, load_statistic
from trackperm.statistic.compiler.compile import compile_statistic
from trackperm.statistic.compiler.entries import Entries
from trackperm.statistic.document import Document
from trackperm.statistic.expressions.arrays import integers
from trackperm.statistic.expressions.frames import count_expression
from trackperm.statistic.expressions.units import in_units, with_units
from trackperm.statistic.written_spec import written_spec

EXPRESSIONS = [
    "u.a", "-u.a", "u.a + v.b", "u.a - 3 * v.c", "u.a * v.b", "u.a ** 3", "u.a // v.b", "u.a % v.b",
    "abs(u.a - v.b)", "max(u.a, v.b, 0)", "min(u.a, v.c)", "u.a < v.b", "u.a == 0.5",
    "(u.a < 0.5) & (v.b >= 1)", "where(u.a > v.c, u.a, v.b)", "where(u.a != v.a, u.b * v.b, 2)",
    "(u.a > v.a) + 2 * (u.b <= v.b) + v.c",
]  # fmt: skip
UNITS = st.sampled_from([Fraction(1), Fraction(1, 10), Fraction(1, 3), Fraction(5, 2), Fraction(1, 2**20)])


@pytest.mark.sample(6)
@pytest.mark.parametrize("text", EXPRESSIONS)
@given(UNITS, UNITS, st.lists(st.integers(-30, 30), min_size=6, max_size=6))
def test_against_fractions(text: str, a: Fraction, b: Fraction, counts: list[int]) -> None:
    units = {"a": a, "b": b, "c": Fraction(1)}
    names = ["u.a", "v.a", "u.b", "v.b", "u.c", "v.c"]
    real = {name: n * units[name[-1]] for name, n in zip(names, counts, strict=True)}
    python = text.replace("where(", "chosen(").replace("0.5", "Fraction(1, 2)")
    for name, value in real.items():
        python = python.replace(name, f"({value!r})")
    scope = {"Fraction": Fraction, "chosen": lambda condition, yes, no: yes if condition else no}
    expression, unit = in_units(parse(text), lambda node: units[node.name])
    columns = {name: np.array([n]) for name, n in zip(names, counts, strict=True)}
    try:
        wanted = eval(python, scope)
    except ZeroDivisionError:
        with pytest.raises(SpecError, match="division by zero"):
            integers(expression, columns, 1)
    else:
        assert int(integers(expression, columns, 1)[0]) * unit == wanted


@pytest.mark.parametrize("text", [text for text in EXPRESSIONS if "0.5" not in text])
def test_units_of_1_change_nothing(text: str) -> None:
    expression = parse(text)
    assert in_units(expression, lambda _: Fraction(1)) == (expression, 1)
    assert with_units(expression, dict.fromkeys((name.full for name in expression.names), Fraction(1))) == (
        expression
    )


@pytest.mark.parametrize("engine", ["polars", "pandas", "pyarrow"])
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("d", [math.nan, 0.5]),
        ("2 * d - i", [math.nan, 0.0]),
        ("min(d, i)", [math.nan, 0.5]),
        ("i * 0.5", [0.5] * 2),
    ],
)
def test_decimal_counts(engine: str, text: str, wanted: list[float]) -> None:
    values = frame(engine, {"i": [1, 1], "d": [math.nan, 0.5]})
    types = {"i": ColumnType.INTEGER, "d": ColumnType.DECIMAL}
    expression = count_expression(parse(text), {"i": "i", "d": "d"}, types)
    found = values.with_columns(found=expression)["found"].to_list()
    np.testing.assert_array_equal(np.array(found, dtype=float), wanted)


def value(function: object, point: list[int]) -> Fraction:
    assert isinstance(function, RationalStatistic)
    return function(point)


MEAN = "counts: {total: score, n: 1}\nscore: total / n\n"


@pytest.mark.parametrize(
    ("written", "unit"),
    [("0.01", Fraction(1, 100)), ("1e-2", Fraction(1, 100)), ("1/3", Fraction(1, 3)), ("2", Fraction(2)),
     ("2**-52", Fraction(1, 2**52)), ("'0.5'", Fraction(1, 2))],
)  # fmt: skip
def test_scores_are_in_the_units_of_the_spec(tmp_path: Path, written: str, unit: Fraction) -> None:
    statistic = load(tmp_path, MEAN + f"resolution: {{total: {written}}}\n")
    assert statistic.resolution == {"total": unit}
    assert value(statistic.score, [30, 4]) == 30 * unit / 4
    assert value(statistic.h, [30, 4, 10, 4]) == 20 * unit / 4
    again = load(tmp_path, written_spec(statistic))
    assert written_spec(again) == written_spec(statistic)
    assert again.resolution == statistic.resolution


def test_one_resolution_awaits_the_data(tmp_path: Path) -> None:
    statistic = load(tmp_path, MEAN + "resolution: 0.01\n")
    assert statistic.resolution == Fraction(1, 100)
    assert value(statistic.score, [30, 4]) == Fraction(30, 4)
    assert "\nresolution: '0.01'\n" in written_spec(statistic)
    assert written_spec(load(tmp_path, written_spec(statistic))) == written_spec(statistic)
    known = load_statistic(statistic, resolution={"total": Fraction(1, 100)})
    assert value(known.score, [30, 4]) == Fraction(3, 40)
    assert "\nresolution:\n  total: '0.01'\n" in written_spec(known)
    none = load_statistic(statistic, resolution={})
    assert none.resolution == {}
    assert "resolution" not in written_spec(none)


def test_a_statistic_loaded_again_keeps_its_resolution() -> None:
    statistic = load_statistic("mean", resolution="0.01")
    assert load_statistic(statistic, columns={"score": "bleu"}).resolution == Fraction(1, 100)
    assert load_statistic(statistic, resolution={"n": 2}).resolution == {"n": Fraction(2)}


def test_g_of_decimals(tmp_path: Path) -> None:
    text = (
        "counts: {s: score, k: k}\nresolution: {s: 0.1}\n"
        "g: {win: (u.s > v.s + 0.25) - (v.s > u.s + 0.25), gain: u.s * u.k - v.s * v.k, n: abs(u.k)}\n"
        "h: (win + gain) / n\nalternative: greater\n"
    )
    statistic = load(tmp_path, text)
    observed, swapped = statistic.pairs(np.array([[7, 2]]), np.array([[4, 3]]))
    assert observed.tolist() == [[1, 2, 2]]
    assert swapped.tolist() == [[-1, -2, 3]]
    assert value(statistic.h, [1, 2, 2]) == (1 + Fraction(2, 10)) / 2
    assert "win: (u.s > v.s + 0.25) - (v.s > u.s + 0.25)" in written_spec(statistic)


def test_decimals_in_g_are_not_rounded_down(tmp_path: Path) -> None:
    statistic = load(tmp_path, "g: {x: (u.a < 0.5) - (v.a < 0.5)}\nh: x\n")
    assert statistic.pairs(np.array([[0], [1]]), np.array([[1], [1]]))[0].tolist() == [[1], [0]]


def test_other_functions_take_units_too(tmp_path: Path) -> None:
    statistic = load(tmp_path, "counts: {s: s, n: 1}\nresolution: {s: 0.25}\nscore: sqrt(s / n)\n")
    assert statistic.score is not None
    assert not isinstance(statistic.score, RationalStatistic)
    assert statistic.score(np.array([[16, 1]]))[0] == pytest.approx(2.0, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("0", "3:13", "`resolution` is 0; expected a number above 0 at `$.resolution`", "such as 0.001"),
        ("-0.1", "3:13", "`resolution` is -0.1; expected a number above 0", None),
        ("fine", "3:13", "`resolution` is 'fine'; expected a finite number", "such as 0.001"),
        (".inf", "3:13", "`resolution` is '.inf'; expected a finite number", None),
        ("1/0", "3:13", "`resolution` is '1/0'; expected a finite number", None),
        ("true", "3:13", "expected a number, or one for each count named, found a boolean", None),
        ("[1]", "3:13", "expected a number, or one for each count named, found a list", None),
        ("", "3:12", "expected a number, or one for each count named, found nothing", None),
        ("{total: 0}", "3:21", "`resolution` is 0; expected a number above 0 at `$.resolution.total`", None),
        ("{total: [1]}", "3:21", "expected one value, found a list at `$.resolution.total`", None),
        ("{total: true}", "3:21", "`resolution` is 'true'; expected a finite number", None),
        ("{totl: 0.1}", "3:14", "`totl` is not a count at `$.resolution.totl`", "Did you mean `total`?"),
        ("{score: 0.1}", "3:14", "`score` is not a count", "the counts of this statistic are total, n."),
    ],
)
def test_refused(tmp_path: Path, text: str, place: str, message: str, hint: str | None) -> None:
    found = refusal(tmp_path, MEAN + f"resolution: {text}\n")
    assert found.startswith(f"spec.yaml:{place}: {message}")
    assert hint is None or hint in found.partition("Hint: ")[2]


def test_refused_where_loaded() -> None:
    with pytest.raises(InputError, match="the statistic `mean` has no count `totl`") as caught:
        load_statistic("mean", resolution={"totl": 0.1})
    assert caught.value.hint == "the counts of this statistic are total, n. Did you mean `total`?"
    with pytest.raises(InputError, match="expected a number above 0"):
        load_statistic("mean", resolution=0)
    with pytest.raises(InputTypeError, match="is a `list`"):
        load_statistic("mean", resolution={"total": [1]})


@given(st.integers(-1100, 1000))
def test_units_that_data_give_read_back(power: int) -> None:
    statistic = load_statistic("mean", resolution={"total": Fraction(2) ** power})
    again = compile_statistic(Entries(Document.parse(written_spec(statistic), "again.yaml"), {}, {}), "mean")
    assert again.resolution == statistic.resolution
