"""Words and hashes of rows are the same on every engine, and different for different rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from hashlib import md5

import narwhals as nw
import numpy as np
import polars as pl
from support.engines import every_engine

from trackperm.pairing.digests import number_word
from trackperm.pairing.engines.base import HALVES, NULL_WORD, Engine
from trackperm.pairing.engines.in_memory import InMemory, row_hashes
from trackperm.statistic.expressions.functions import NARWHALS
from trackperm.tables.columns.types import ColumnType

INTEGERS = [1, -2, 0, 2**63 - 1, -(2**63), None]
DECIMALS = [1.5, -0.0, 1e300, 5e-324, -3.25e-10, None]
WHOLE = [2.0**53 - 1, 2.0**53, -(2.0**60), 0.1, 7.0, -7.0]
TEXTS = ["1", "-2", "01", "ß", "", None, "1\n", "-0", "9" * 18, "9" * 19, "a\nb", "a\n1"]
TYPES = {"i": ColumnType.INTEGER, "d": ColumnType.DECIMAL, "w": ColumnType.DECIMAL}


def hashed(engine: Engine) -> pl.DataFrame:
    frame = engine.local(pl.DataFrame({"row": list(range(6)), "i": INTEGERS, "d": DECIMALS, "w": WHOLE}))
    for name, type_ in TYPES.items():
        frame = number_word(engine.functions, frame, name, type_, f"word_{name}")
    words = [f"word_{name}" for name in TYPES]
    frame = engine.with_row_hash(frame, words, "hash")
    frame = engine.with_row_hash(frame, [], "no_words", 1)
    names = [*words, *(f"{name}_{half}" for name in ("hash", "no_words") for half in HALVES)]
    return engine.collected(frame.select("row", *names).sort("row"))


@every_engine
def test_engines_agree(engine: Callable[[], Engine]) -> None:
    with InMemory() as in_memory, engine() as other:
        expected = hashed(in_memory)
        assert hashed(other).equals(expected)
    words = [expected[f"word_{name}"].to_numpy() for name in TYPES]
    for half, found in row_hashes(words, 6, 2).items():
        assert found.tolist() == expected[f"hash_{half}"].to_list()


def test_words_of_numbers_are_different_and_those_of_whole_decimals_the_integers() -> None:
    frame = nw.from_native(pl.DataFrame({"d": [*DECIMALS, *WHOLE]}).lazy())
    words = number_word(NARWHALS, frame, "d", ColumnType.DECIMAL, "w").collect()["w"].to_list()
    assert words[1] == 0
    assert words[5] == NULL_WORD
    assert words[6] == 2**53 - 1
    assert words[-2:] == [7, -7]
    assert len(set(words)) == len(words)


@every_engine
def test_texts_that_are_integers_have_the_words_of_integers(engine: Callable[[], Engine]) -> None:
    with engine() as chosen:
        frame = chosen.local(pl.DataFrame({"t": TEXTS}))
        found = chosen.collected(chosen.with_text_words(frame, {"w": "t"}))
    words = dict(zip(found["t"], found["w"], strict=True))
    hashed_texts = (text for text in TEXTS if text is not None)
    assert words == {text: int(md5(text.encode()).hexdigest()[:15], 16) for text in hashed_texts} | {
        "1": 1, "-2": -2, "9" * 18: 10**18 - 1, None: NULL_WORD,
    }  # fmt: skip


def test_hashes_of_few_different_rows_do_not_meet() -> None:
    rng = np.random.default_rng(3)
    words = [np.repeat(np.arange(300), 300), np.tile(np.arange(300), 300)]
    found = row_hashes(words, 90_000, 2)
    assert len(set(zip(*(hashes.tolist() for hashes in found.values()), strict=True))) == 90_000
    assert all((found[half] >= 0).all() and (found[half] < p).all() for half, p in HALVES.items())
    # Sums of hashes over sets that differ in two rows that changed their second words.
    rows = rng.integers(0, 90_000, (2000, 2))
    a, b = words[0][rows], words[1][rows]
    both = (row_hashes([a.ravel(), second.ravel()], 4000, 2) for second in (b, b[:, ::-1]))
    one, other = ([h.reshape(-1, 2).sum(axis=1) for h in hashes.values()] for hashes in both)
    differ = (a[:, 0] != a[:, 1]) & (b[:, 0] != b[:, 1])
    assert differ.sum() > 1900
    assert all(math.isclose(float((x == y)[differ].mean()), 0.0) for x, y in zip(one, other, strict=True))
