from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trackperm.errors import InputError, InputTypeError
from trackperm.tables.columns import types
from trackperm.tables.columns.types import ColumnType, typed_columns, unusable
from trackperm.tables.table import ExampleTable, shared_columns

INTEGER, DECIMAL, BOOLEAN, TEXT, TEXT_LIST, INTEGER_LIST, DECIMAL_LIST = ColumnType


def table(values: Any, origin: str = "a") -> ExampleTable:
    series = values if isinstance(values, pl.Series) else pl.Series(values)
    return ExampleTable.from_native(series.alias("x").to_frame(), origin)


def untyped(values: list[str | None], origin: str = "a") -> ExampleTable:
    frame = nw.from_native(pl.DataFrame({"x": pl.Series(values, dtype=pl.String)}), eager_only=True)
    return ExampleTable(frame, origin, untyped=True)


def typed(
    baseline: ExampleTable, candidate: ExampleTable, text: tuple[str, ...] = ()
) -> tuple[ColumnType, list[Any], list[Any]]:
    first, second, types = typed_columns(baseline, candidate, ["x"], text)
    assert first.frame.schema == second.frame.schema
    return types["x"], first.frame["x"].to_list(), second.frame["x"].to_list()


class TestFromNative:
    frames = (
        pl.DataFrame({"id": ["a"], "n": [1]}),
        pl.LazyFrame({"id": ["a"], "n": [1]}),
        pd.DataFrame({"id": ["a"], "n": [1]}),
        pa.table({"id": ["a"], "n": [1]}),
        nw.from_native(pl.DataFrame({"id": ["a"], "n": [1]})),
    )

    @pytest.mark.parametrize("frame", frames, ids=lambda frame: type(frame).__module__)
    def test_any_data_frame(self, frame: Any) -> None:
        examples = ExampleTable.from_native(frame, "baseline")
        assert (examples.columns, len(examples), examples.untyped) == (["id", "n"], 1, False)

    @pytest.mark.parametrize("value", [[1, 2], {"id": [1]}, "runs.csv", pl.Series([1]), None])
    def test_other_types_than_data_frames_are_refused(self, value: Any) -> None:
        with pytest.raises(InputTypeError, match=r"`baseline` has the type `\w+`; expected a data frame"):
            ExampleTable.from_native(value, "baseline")

    @pytest.mark.parametrize(
        "frame", [pd.DataFrame([[1, 2]], columns=["x", "x"]), pa.table([[1], [2]], names=["x", "x"])]
    )
    def test_columns_of_one_name_are_refused(self, frame: Any) -> None:
        with pytest.raises(InputError, match="`baseline` has columns of the same name"):
            ExampleTable.from_native(frame, "baseline")

    def test_a_column_name_that_is_not_text_is_refused(self) -> None:
        with pytest.raises(InputTypeError, match="column named 0, which is not text"):
            ExampleTable.from_native(pd.DataFrame([[1, 2]]), "baseline")


UNTYPED = {
    "integers": (["1", "-2", "0"], ["10"], INTEGER, [1, -2, 0], [10]),
    "integers and nothing": (["1", None], [None], INTEGER, [1, None], [None]),
    "decimals": (["0.5", "1"], ["2"], DECIMAL, [0.5, 1.0], [2.0]),
    "decimals in the other run": (["1"], ["0.5"], DECIMAL, [1.0], [0.5]),
    "integral decimals": (["1.0", "2"], ["3e0"], INTEGER, [1, 2], [3]),
    "NaN": (["nan", "0.5"], ["NaN"], DECIMAL, [None, 0.5], [None]),
    "NaN alone": (["nan"], ["nan"], TEXT, ["nan"], ["nan"]),
    "short decimals": ([".5", "1."], ["-.5e-1"], DECIMAL, [0.5, 1.0], [-0.05]),
    "minus zero": (["-0"], ["0"], INTEGER, [0], [0]),
    "leading zeros": (["007", "1"], ["2"], TEXT, ["007", "1"], ["2"]),
    "leading zeros in the other run": (["1"], ["01"], TEXT, ["1"], ["01"]),
    "text in the other run": (["1"], ["yes"], TEXT, ["1"], ["yes"]),
    "spaces": ([" 1"], ["1"], TEXT, [" 1"], ["1"]),
    "a sign": (["+1"], ["1"], TEXT, ["+1"], ["1"]),
    "underscores": (["1_0"], ["1"], TEXT, ["1_0"], ["1"]),
    "booleans": (["True"], ["False"], TEXT, ["True"], ["False"]),
    "a newline": (["1\n"], ["1"], TEXT, ["1\n"], ["1"]),
    "the largest integer": (["9223372036854775807"], ["1"], INTEGER, [2**63 - 1], [1]),
    "an integer too large": (["9223372036854775808"], ["1"], TEXT, ["9223372036854775808"], ["1"]),
    "a decimal would round": (["9007199254740993"], ["0.5"], TEXT, ["9007199254740993"], ["0.5"]),
    "nothing": ([None], [None], TEXT, [None], [None]),
}


@pytest.mark.parametrize("case", UNTYPED.values(), ids=UNTYPED)
def test_untyped_columns_are_typed_by_the_values_of_both_runs(case: Any) -> None:
    baseline, candidate, *expected = case
    assert typed(untyped(baseline), untyped(candidate, "b")) == tuple(expected)
    swapped = typed(untyped(candidate), untyped(baseline, "b"))
    assert swapped == (expected[0], expected[2], expected[1])


def test_untyped_ids_stay_text() -> None:
    assert typed(untyped(["1", "02"]), untyped(["1"]), text=("x",)) == (TEXT, ["1", "02"], ["1"])


TYPED = {
    "integers": ([1, 2], [3], INTEGER, [1, 2], [3]),
    "small integers": (pl.Series([1], dtype=pl.Int8), [2], INTEGER, [1], [2]),
    "unsigned integers": (pl.Series([1], dtype=pl.UInt64), [-2], INTEGER, [1], [-2]),
    "integers above 2^53": ([2**53 + 1], [2**62], INTEGER, [2**53 + 1], [2**62]),
    "booleans": ([True, None], [False], BOOLEAN, [True, None], [False]),
    "booleans and integers": ([True, False], [1], INTEGER, [1, 0], [1]),
    "booleans and integral decimals": ([True, None], [math.nan, 1.0], INTEGER, [1, None], [None, 1]),
    "integral decimals": ([1.0, math.nan], [2.0], INTEGER, [1, None], [2]),
    "integral decimals in one run": ([1.0], [0.5], DECIMAL, [1.0], [0.5]),
    "integers and decimals": ([1], [0.5], DECIMAL, [1.0], [0.5]),
    "decimals too large for integers": ([1e300], [1.0], DECIMAL, [1e300], [1.0]),
    "decimals of fixed point": ([decimal.Decimal("0.5")], [decimal.Decimal("2")], DECIMAL, [0.5], [2.0]),
    "fixed point without a point": (
        pl.Series([decimal.Decimal(2**60 + 1)], dtype=pl.Decimal(38, 0)), [1], INTEGER, [2**60 + 1], [1],
    ),
    "text": (["1", None], ["a"], TEXT, ["1", None], ["a"]),
    "categories": (pl.Series(["a"], dtype=pl.Categorical), ["b"], TEXT, ["a"], ["b"]),
    "nothing in one run": (["a"], [None], TEXT, ["a"], [None]),
    "only NaN in one run": ([True], [math.nan], BOOLEAN, [True], [None]),
    "nothing of a list": ([1], pl.Series([None], dtype=pl.Int64), INTEGER, [1], [None]),
}  # fmt: skip


@pytest.mark.parametrize("case", TYPED.values(), ids=TYPED)
def test_typed_columns_keep_their_types(case: Any) -> None:
    baseline, candidate, *expected = case
    assert typed(table(baseline), table(candidate, "b")) == tuple(expected)
    assert typed(table(candidate), table(baseline, "b"))[0] is expected[0]


MIXED = {
    "text wins": (untyped(["1", "2"]), table(["1"]), TEXT, ["1", "2"], ["1"]),
    "integers": (untyped(["1", None]), table([2]), INTEGER, [1, None], [2]),
    "booleans": (untyped(["1"]), table([True]), INTEGER, [1], [1]),
    "decimals": (untyped(["1"]), table([0.5]), DECIMAL, [1.0], [0.5]),
    "nothing": (untyped(["1"]), table([None]), INTEGER, [1], [None]),
}


@pytest.mark.parametrize("case", MIXED.values(), ids=MIXED)
def test_untyped_columns_follow_a_typed_partner(case: Any) -> None:
    baseline, candidate, *expected = case
    assert typed(baseline, candidate) == tuple(expected)


def test_integer_ids_become_text_beside_untyped_ones() -> None:
    assert typed(untyped(["1"]), table([1, 20]), text=("x",)) == (TEXT, ["1"], ["1", "20"])
    assert typed(table([1.0]), untyped(["1"]), text=("x",)) == (TEXT, ["1"], ["1"])


CLASHES = {
    "text and integers": (
        table([1]),
        table(["a"], "b"),
        "integer in `a` (such as 1) but text in `b` (such as 'a')",
    ),
    "text and booleans": (table([None, True]), table(["a"], "b"), "boolean in `a` (such as True) but text"),
    "booleans and decimals": (
        table([True]),
        table([0.5], "b"),
        "boolean in `a` (such as True) but decimal in `b`",
    ),
    "untyped text and integers": (
        untyped(["x"]),
        table([1], "b"),
        "text in `a` (such as 'x') but integer in `b`",
    ),
    "infinite": (table([math.inf]), table([1.0], "b"), "column `x` of `a` has infinite values"),
    "infinite text": (untyped(["1"]), untyped(["-inf"], "b"), "column `x` of `b` has infinite values"),
    "too large": (
        table(pl.Series([2**63], dtype=pl.UInt64)),
        table([1], "b"),
        "(largest: 9223372036854775808)",
    ),
    "would round": (table([2**53 + 1]), table([0.5], "b"), "column `x` of `a` has integers above 2^53"),
    "lists": (
        table([[1]]),
        table([1], "b"),
        "column `x` is list of integers in `a` (such as [1]) but integer",
    ),
    "lists of both types": (table([[1]]), table([["a"]], "b"), "column `x` is list of integers in `a`"),
    "lists of decimals and text": (table([[0.5]]), table([["a"]], "b"), "column `x` is list of decimals in"),
    "lists of lists": (table([[[1]]]), table([[1]], "b"), "column `x` of `a` holds lists of List(Int64)"),
    "lists of too large integers": (
        table(pl.Series([[2**63]], dtype=pl.List(pl.UInt64))),
        table([[1]], "b"),
        "column `x` of `a`, inside its lists, has integers outside the range of int64",
    ),
    "objects": (table([{"a": 1}]), table([1], "b"), "column `x` of `a` holds lists or objects"),
    "dates": (
        table([dt.date(2020, 1, 1)]),
        table([1], "b"),
        "column `x` of `a` holds values of type Date",
    ),
    "complex": (
        ExampleTable.from_native(pd.DataFrame({"x": [1j]}), "a"),
        table([1], "b"),
        "column `x` of `a` has values of a type that cannot be read",
    ),
    "mixed": (
        ExampleTable.from_native(pd.DataFrame({"x": pd.Series(["1", 1], dtype=object)}), "a"),
        table([1], "b"),
        "column `x` of `a` mixes values of several types",
    ),
}


@pytest.mark.parametrize("case", CLASHES.values(), ids=CLASHES)
def test_types_that_do_not_go_together_are_refused(case: Any) -> None:
    baseline, candidate, message = case
    with pytest.raises(InputTypeError) as caught:
        typed_columns(baseline, candidate, ["x"])
    assert message in str(caught.value)


def test_a_column_that_was_read_without_a_type_is_refused_with_the_reason() -> None:
    examples = ExampleTable(
        table([1]).frame, "a", unusable={"x": "mixes text (line 1) and integers (line 2)"}
    )
    assert unusable(examples, "x") == "column `x` of `a` mixes text (line 1) and integers (line 2)"
    assert unusable(table([1]), "x") is None
    with pytest.raises(InputTypeError, match=r"column `x` of `a` mixes text \(line 1\)"):
        typed_columns(examples, table([1]), ["x"])


PANDAS_DTYPES = {
    "integers": ([1, 0, 3], INTEGER, ["int64", "int8", "uint64", "Int64", "float64", "category", object]),
    "integers with nulls": (
        [1, None, 3],
        INTEGER,
        ["float64", "Int64", "int64[pyarrow]", "category", object],
    ),
    "decimals": ([0.5, None, 3], DECIMAL, ["float64", "Float64", "double[pyarrow]", "category", object]),
    "booleans": ([True, False], BOOLEAN, ["bool", "boolean", "bool[pyarrow]", "category", object]),
    "booleans with nulls": ([True, None], BOOLEAN, ["boolean", "bool[pyarrow]", object]),
    "text": (["a", "b", "a"], TEXT, ["str", "string", "string[pyarrow]", "category", object]),
    "text with nulls": (["a", None, "01"], TEXT, ["str", "string", "string[pyarrow]", "category", object]),
}


@pytest.mark.parametrize(
    ("values", "expected", "dtype"),
    [
        pytest.param(values, expected, dtype, id=f"{name}-{dtype}")
        for name, (values, expected, dtypes) in PANDAS_DTYPES.items()
        for dtype in dtypes
    ],
)
def test_pandas_dtypes_mean_what_polars_means(values: list[Any], expected: ColumnType, dtype: Any) -> None:
    index = list(range(10, 10 + len(values)))
    frame = pd.DataFrame({"x": pd.Series(values, dtype=dtype, index=index)})
    assert typed(ExampleTable.from_native(frame, "a"), table(values, "b")) == (expected, values, values)


def scalars() -> st.SearchStrategy[list[Any]]:
    kinds: list[st.SearchStrategy[Any]] = [
        st.integers(-(2**63), 2**63 - 1),
        st.booleans(),
        st.text(st.characters(codec="utf-8"), max_size=5),
        st.floats(allow_infinity=False, allow_nan=False),
    ]
    return st.one_of(*(st.lists(st.none() | kind, min_size=1, max_size=8) for kind in kinds))


@settings(deadline=None)
@given(values=scalars())
def test_engines_agree(values: list[Any]) -> None:
    native = pl.Series(values)
    frames = [table(native), ExampleTable.from_native(pa.table({"x": native.to_arrow()}), "pyarrow")]
    frames.append(ExampleTable.from_native(pd.DataFrame({"x": pd.Series(values, dtype=object)}), "pandas"))
    found = [typed(frame, frame) for frame in frames]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("names", ["id", ["doc", "id"]])
def test_a_named_index_of_pandas_is_a_column(names: Any) -> None:
    plain = pd.DataFrame({"doc": [1, 1, 2], "id": [3, 4, 3], "x": ["a", "b", "c"]})
    table = ExampleTable.from_native(plain.set_index(names), "run")
    assert set(table.columns) == {"doc", "id", "x"}
    assert table.frame.get_column("id").to_list() == [3, 4, 3]
    other = plain.set_index(plain["id"].rename("x"))  # a column has this name already
    assert ExampleTable.from_native(other, "run").columns == ["doc", "id", "x"]


@pytest.mark.parametrize("names", [[0], [None], ["u", "u"], ["x", "y"], [None, "id"]])
def test_an_index_of_pandas_without_new_names_is_none(names: list[Any]) -> None:
    index = pd.MultiIndex.from_tuples([(1, 2)[: len(names)]], names=names)
    frame = pd.DataFrame({"x": ["a"]}, index=index if len(names) > 1 else pd.Index([1], name=names[0]))
    assert ExampleTable.from_native(frame, "run").columns == ["x"]


def test_the_columns_of_wide_tables_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: they were listed for each name, so that errors about 600 columns took minutes."""
    row = {f"c{i}": [i] for i in range(50)}
    tables = [ExampleTable.from_native(pl.DataFrame(row), run) for run in ("a", "b")]
    listed, schema = list[object](), nw.DataFrame.schema

    def counted(frame: nw.DataFrame[Any]) -> nw.Schema:
        listed.append(frame)
        return schema.__get__(frame)

    monkeypatch.setattr(nw.DataFrame, "schema", property(counted))
    assert shared_columns(tables) == shared_columns(tables) == list(row)
    assert len(listed) <= len(tables)


def test_a_small_column_is_read_once_and_anew_where_it_was_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    normalised = types._normalised
    monkeypatch.setattr(types, "_normalised", lambda *given: read.append(given[1]) or normalised(*given))
    numbers = table([1, 2])
    for _ in range(3):
        assert types.are_integers("x", [numbers])
        assert typed(numbers, numbers)[0] is INTEGER
    assert len(read) == 1
    assert types.are_decimals("x", [numbers.with_rows(pl.DataFrame({"x": [0.5]}))])
    assert len(read) == 2
