"""Words and hashes of rows are the same on every engine, and tell rows apart."""

from __future__ import annotations

import math
from hashlib import md5

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from support.engines import SPARK, native

from trackperm.pairing.engines.duckdb import DuckDB
from trackperm.pairing.engines.in_memory import InMemory
from trackperm.pairing.row_hashes import (
    NULL_WORD,
    PRIMES,
    hash_names,
    number_word,
    row_hash,
    text_word,
    with_row_hash,
)
from trackperm.statistic.expressions.functions import NARWHALS
from trackperm.tables.column_types import ColumnType

INTEGERS = [1, -2, 0, 2**63 - 1, -(2**63), None]
DECIMALS = [1.5, -0.0, 1e300, 5e-324, -3.25e-10, None]
WHOLE = [2.0**53 - 1, 2.0**53, -(2.0**60), 0.1, 7.0, -7.0]
TEXTS = ["1", "-2", "01", "ß", "", None]
TYPES = {"i": ColumnType.INTEGER, "d": ColumnType.DECIMAL, "w": ColumnType.DECIMAL}


def hashed(frame: nw.LazyFrame) -> pl.DataFrame:
    for name, type_ in TYPES.items():
        frame = number_word(NARWHALS, frame, name, type_, f"word_{name}")
    words = [f"word_{name}" for name in TYPES]
    found = (
        with_row_hash(NARWHALS, frame, words, "hash")
        .select("row", *words, *hash_names("hash"))
        .collect("polars")
    )
    return found.to_native().sort("row").select(pl.all().cast(pl.Int64))


@pytest.mark.parametrize("engine", ["duckdb", pytest.param(SPARK, marks=pytest.mark.spark)])
def test_engines_agree(engine: str) -> None:
    data = {"row": range(6), "i": INTEGERS, "d": DECIMALS, "w": WHOLE}
    expected = hashed(nw.from_native(pl.DataFrame({**data, "row": list(range(6))}).lazy()))
    assert hashed(nw.from_native(native(engine, data))).equals(expected)
    words = [expected[f"word_{name}"].to_numpy() for name in TYPES]
    for found, name in zip(row_hash(words, 6), hash_names("hash"), strict=True):
        assert found.tolist() == expected[name].to_list()


def test_words_of_numbers_are_different_and_those_of_whole_decimals_the_integers() -> None:
    frame = nw.from_native(pl.DataFrame({"d": [*DECIMALS, *WHOLE]}).lazy())
    words = number_word(NARWHALS, frame, "d", ColumnType.DECIMAL, "w").collect()["w"].to_list()
    assert words[1] == 0
    assert words[5] == NULL_WORD
    assert words[6] == 2**53 - 1
    assert words[-2:] == [7, -7]
    assert len(set(words)) == len(words)


def test_texts_that_are_integers_have_the_words_of_integers() -> None:
    found = []
    for engine in (InMemory(), DuckDB()):
        with engine:
            frame = engine.local(pl.DataFrame({"t": TEXTS}))
            found.append(engine.collected(engine.with_text_words(frame, {"w": "t"}))["w"].to_list())
    assert found[0] == found[1] == [1, -2, text_word("01"), text_word("ß"), text_word(""), NULL_WORD]
    assert text_word("ß") == int(md5("ß".encode()).hexdigest()[:15], 16)


def test_hashes_of_few_different_rows_do_not_meet() -> None:
    rng = np.random.default_rng(3)
    words = [np.repeat(np.arange(300), 300), np.tile(np.arange(300), 300)]
    halves = row_hash(words, 90_000)
    assert len(set(zip(*(half.tolist() for half in halves), strict=True))) == 90_000
    assert all((half >= 0).all() and (half < p).all() for half, p in zip(halves, PRIMES, strict=True))
    # Sums of hashes over sets that differ in two rows that changed their second words.
    rows = rng.integers(0, 90_000, (2000, 2))
    a, b = words[0][rows], words[1][rows]
    one = [h.reshape(-1, 2).sum(axis=1) for h in row_hash([a.ravel(), b.ravel()], 4000)]
    other = [h.reshape(-1, 2).sum(axis=1) for h in row_hash([a.ravel(), b[:, ::-1].ravel()], 4000)]
    differ = (a[:, 0] != a[:, 1]) & (b[:, 0] != b[:, 1])
    assert differ.sum() > 1900
    assert all(math.isclose(float((x == y)[differ].mean()), 0.0) for x, y in zip(one, other, strict=True))
