"""Texts in the order of their bytes."""

from __future__ import annotations

import random

import polars as pl
import pytest

from trackperm.pairing.text_order import text_order

ALPHABETS = ["0123456789", "ab", "a", "a\0", "aé😀\uffff"]
PREFIXES = ["", "pre", "question", "é" * 7]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_order_is_that_of_the_bytes(alphabet: str, prefix: str) -> None:
    chance = random.Random(0)
    for longest in (1, 3, 9, 20, 50) * 4:
        n = chance.randrange(100)
        texts = [prefix + "".join(chance.choices(alphabet, k=chance.randrange(longest))) for _ in range(n)]
        order = text_order(pl.Series(texts, dtype=pl.String))
        assert sorted(order.tolist()) == list(range(n))
        assert [texts[row] for row in order] == sorted(texts, key=str.encode)


def test_groups_of_long_common_beginnings() -> None:
    texts = [f"{group * 60}/{i}" for i in range(50) for group in "bca"]
    assert [texts[row] for row in text_order(pl.Series(texts))] == sorted(texts)


def test_more_texts_than_are_joined_at_once() -> None:
    chance = random.Random(0)
    texts = [f"question-{i}" for i in range(2**18 + 1000)]
    chance.shuffle(texts)
    series = pl.concat([pl.Series(texts[:1000]), pl.Series(texts[1000:])], rechunk=False)
    assert [texts[row] for row in text_order(series)] == sorted(texts)
