"""Tables of every data frame library have the same results and the same errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.budget import cases
from support.engines import ENGINES, SPARK, each_engine, native

import trackperm
from trackperm.errors import PairingError, TrackpermError

LARGE = [2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integer": (pa.int64(), [0, 1, 2, -1]),
    "small": (pa.uint8(), [0, 1, 200, 255]),
    "large": (pa.int64(), LARGE),
    "boolean": (pa.bool_(), [False, True]),
    "decimal": (pa.float64(), [0.0, 1.0, 0.1, -2.5]),
    "whole decimal": (pa.float64(), [0.0, 1.0, 255.0]),
    "text": (pa.string(), ["a", "A", "", "b ", "🙂"]),
    "numbers as text": (pa.string(), ["1", "01", "1.0", "1e0", "NaN", "true"]),
}


@st.composite
def columns(draw: Any, n: int, kind: str) -> pa.Array:
    type_, values = VALUES[kind]
    return pa.array(draw(st.lists(st.sampled_from([None, *values]), min_size=n, max_size=n)), type_)


@st.composite
def runs(draw: Any) -> tuple[pa.Table, pa.Table]:
    n = draw(st.integers(1, 8))
    kinds = st.sampled_from(list(VALUES))
    first = draw(kinds)
    others = st.just(first) | kinds
    label = draw(columns(n, draw(others)))
    ids = draw(st.sampled_from([range(n), [f"0{i}" for i in range(n)], [2**53 + i for i in range(n)]]))
    baseline, candidate = (
        pa.table({"id": ids, "prediction": draw(columns(n, draw(others))), "label": label}) for _ in "ab"
    )
    return baseline, candidate


def outcome(engine: str, baseline: pa.Table, candidate: pa.Table) -> tuple[object, ...]:
    """What a comparison by accuracy is made of, or how it is refused."""
    try:
        found = trackperm.compare(native(engine, baseline), native(engine, candidate), missing="drop")
    except TrackpermError as error:
        return type(error), error.message
    table = found.count_table
    counts = [array.tolist() for array in (table.candidate, table.baseline, table.multiplicities)]
    return found.pvalue, found.pairing, counts, found.discordant.rows()


def check(engines: Sequence[str], tables: tuple[pa.Table, pa.Table]) -> None:
    expected = outcome("pyarrow", *tables)
    for engine in engines:
        assert outcome(engine, *tables) == expected, engine


@settings(deadline=None, max_examples=cases(4))
@given(runs())
def test_comparisons_agree_on_every_engine(tables: tuple[pa.Table, pa.Table]) -> None:
    check(ENGINES, tables)


@pytest.mark.spark
@settings(deadline=None, max_examples=cases(3))
@given(runs())
def test_comparisons_agree_on_spark(tables: tuple[pa.Table, pa.Table]) -> None:
    check([SPARK], tables)


@each_engine
def test_two_engines_are_compared(engine: str) -> None:
    rng = np.random.default_rng(2)
    label, u, v = rng.integers(0, 3, (3, 50)).tolist()
    order = rng.permutation(50).tolist()
    candidate = pa.table({"id": range(50), "prediction": u, "label": label})
    baseline = pa.table({"id": range(50), "prediction": v, "label": label}).take(order)
    found = trackperm.compare(native(engine, baseline), candidate)
    assert found.key == trackperm.compare(baseline, candidate).key
    assert found.pvalue == trackperm.compare(baseline, candidate).pvalue < 1


@pytest.mark.parametrize(
    "engine", ["polars", "pandas", "pandas pyarrow", "duckdb", pytest.param(SPARK, marks=pytest.mark.spark)]
)
def test_lists_are_counted(engine: str) -> None:
    label = [["B-X", "O"]] * 4 + [["O"]] * 2
    baseline = pa.table({"id": range(6), "prediction": [["O", "O"]] * 4 + [["B-X"], ["O"]], "label": label})
    candidate = pa.table({"id": range(6), "prediction": [*label[:4], ["O"], ["B-X"]], "label": label})
    found = trackperm.compare(native(engine, baseline), native(engine, candidate), "span_f1")
    assert found.key == trackperm.compare(baseline, candidate, "span_f1").key
    assert found.candidate_score == pytest.approx(8 / 9)


@pytest.mark.parametrize("engine", ["duckdb", pytest.param(SPARK, marks=pytest.mark.spark)])
def test_rows_without_an_order_are_not_paired_by_position(engine: str) -> None:
    run = pa.table({"prediction": [0, 1], "label": [0, 0]})
    with pytest.raises(PairingError, match="the rows of `candidate` have no fixed order"):
        trackperm.compare(run, native(engine, run), by_position=True)
    assert trackperm.compare(run, pl.from_arrow(run).lazy(), by_position=True).pvalue == 1


def test_ids_that_repeat_in_both_runs_where_a_sample_does_not_show_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trackperm.pairing.checked_join._SAMPLED", 1)
    run = pa.table({"id": [*range(9), 0], "prediction": [0] * 10, "label": [0, 1] * 5})
    with pytest.raises(PairingError) as caught:
        trackperm.compare(run, run, engine="duckdb")
    assert caught.value.message.count("2 of 10 rows") == 2
