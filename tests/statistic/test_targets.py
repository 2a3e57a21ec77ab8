"""One expression, four meanings: data frames, integer arrays, rational and real functions; against Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
import pytest
from hypothesis import given, settings
from support.budget import cases
from support.engines import ENGINES, SPARK, each_engine, evaluated, frame
from support.specs import parse
from support.written_expressions import INTEGERS, Written, conditions, python

from trackperm.errors import SpecError
from trackperm.statistic import OUT_OF_RANGE, ColumnType
from trackperm.statistic.expressions.frames import count_expression
from trackperm.statistic.expressions.types import Checker

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


COUNTS = INTEGERS | conditions(INTEGERS)


@settings(deadline=None, max_examples=cases(15))
@given(COUNTS)
def test_counts_against_python_on_every_engine(expression: Written) -> None:
    check_counts(expression, DATA, ENGINES)


@pytest.mark.extended
@settings(deadline=None, max_examples=cases(40))
@given(COUNTS)
def test_counts_of_extreme_values_on_every_engine(expression: Written) -> None:
    check_counts(expression, EXTREME, ENGINES)


@pytest.mark.spark
@pytest.mark.parametrize("data", [DATA, EXTREME], ids=["values", "extreme values"])
@settings(deadline=None, max_examples=cases(20))
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


AS_IN_PYTHON = [
    "s == t", "s != 'a'", "d == i", "flag", "flag + flag", "flag == (i > j)", "small * small", "small + 250",
    "-small", "abs(-7 // 2)", "i // 2 * 2 + i % 2 == i", "i // -3", "i % -3", "j != 0 and i // j > 0",
    "j == 0 or i % j == 0", "min(i, d) < 0", "i * 0 + 3", "3", "2 ** 10", "1 < 2",
]  # fmt: skip
SPELT_OTHERWISE = {
    "d > 0.1": "d > Fraction(0.1)",
    "d * 3 == 0.3": "float(d) * 3 == 0.3",
    "where(j != 0, i // j, 0)": "i // j if j else 0",
    "where(i > j, s, t) == 'a'": "(s if i > j else t) == 'a'",
    "where(flag, d, i) > 0.5": "(d if flag else i) > 0.5",
    "where(1 > 0, i, j)": "i",
}


@pytest.mark.sample(35, spark=10)
@each_engine
@pytest.mark.parametrize("text", [*AS_IN_PYTHON, *SPELT_OTHERWISE])
def test_one_meaning_on_every_engine(engine: str, text: str) -> None:
    python_text = SPELT_OTHERWISE.get(text, text)
    wanted = [
        int(eval(python_text, {"Fraction": Fraction, **row, "d": Fraction(row["d"])})) for row in rows(DATA)
    ]
    assert counted(engine, text) == wanted


LARGE = {
    "i": [2**63 - 1, -(2**63), 2**62, 2**31, 2**53 + 1, 3],
    "j": [2**63 - 1, 2, 2**62 + 1, 2**31, 1, 0],
}


@pytest.mark.sample(12, spark=4)
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
@pytest.mark.sample(spark=2)
@pytest.mark.parametrize("text", ["d == d", "d < 1", "min(d, 0) < 1", "where(i > 0, d, 0.5) > 0"])
def test_nan_is_out_of_range(engine: str, text: str) -> None:
    found = counted(engine, text, {"i": [1, 1], "d": [math.nan, 0.5]})
    assert found == [OUT_OF_RANGE, 1]


def test_targets_that_expand_too_far_are_refused() -> None:
    with pytest.raises(SpecError, match="expands too far"):
        counted("polars", "i" + " % 7" * 30)
