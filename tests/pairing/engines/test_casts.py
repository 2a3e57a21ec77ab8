"""Few values of a column tell its type as all of them do."""

from __future__ import annotations

import polars as pl
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.budget import cases

from trackperm.errors import InputTypeError
from trackperm.pairing.engines.casts import types_of
from trackperm.tables.columns.types import typed_columns
from trackperm.tables.table import ExampleTable

NUMBERS = st.one_of(
    st.integers(-(2**64), 2**64).map(str),
    st.integers(-9, 9).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(
        [
            "007",
            "-0",
            "1.",
            ".5",
            "1e5",
            "NaN",
            "nan",
            "inf",
            "-Infinity",
            "9007199254740993",
            "9223372036854775808",
        ]
    ),
)
TEXTS = st.one_of(NUMBERS, st.text(max_size=4), st.none())
COLUMNS = st.one_of(
    st.lists(NUMBERS, min_size=1, max_size=40),
    st.lists(st.one_of(NUMBERS, st.none()), min_size=1, max_size=40),
    st.lists(TEXTS, min_size=1, max_size=40),
)


def outcome(way: object, tables: list[ExampleTable], texts: list[str]) -> object:
    try:
        return way(tables, texts)  # type: ignore[operator]
    except InputTypeError as error:
        return error.message.split(" (first")[0]


@settings(max_examples=cases(150), deadline=None)
@example(["0"], ["0.0", "-0.0", "-9007199254740992.0"], False)  # the largest text is not the largest number
@example(["0"], ["0.0", "2.0", "1.5", "10.0"], False)
@given(COLUMNS, COLUMNS, st.booleans())
def test_types_of_untyped_columns(first: list[str | None], second: list[str | None], is_text: bool) -> None:
    tables = [
        ExampleTable.from_native(pl.DataFrame({"x": values}, schema={"x": pl.String}), origin)
        for origin, values in (("base", first), ("cand", second))
    ]
    for table in tables:
        object.__setattr__(table, "untyped", True)
    texts = ["x"] if is_text else []
    expected = outcome(lambda t, names: typed_columns(*t, ["x"], text=names)[2], tables, texts)
    assert outcome(lambda t, names: types_of(t, ["x"], names), tables, texts) == expected


@settings(max_examples=cases(100), deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.floats(), st.integers(-5, 5).map(float)), min_size=1, max_size=30),
    st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=30),
)
def test_types_of_numbers(decimals: list[float | None], integers: list[int | None]) -> None:
    frames = [
        pl.DataFrame({"x": decimals}, schema={"x": pl.Float64}),
        pl.DataFrame({"x": integers}, schema={"x": pl.Int64}),
    ]
    for pair in (frames, frames[::-1], frames[:1] * 2):
        tables = [ExampleTable.from_native(frame, f"run {i}") for i, frame in enumerate(pair)]
        expected = outcome(lambda t, names: typed_columns(*t, ["x"], text=names)[2], tables, [])
        assert outcome(lambda t, names: types_of(t, ["x"], names), tables, []) == expected
