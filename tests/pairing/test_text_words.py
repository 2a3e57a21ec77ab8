"""Words of many texts at once are those of each."""

from __future__ import annotations

from hashlib import md5

import polars as pl
import pytest

from trackperm.pairing.text_words import text_words

LENGTHS = [*range(70), 119, 120, 1000]


@pytest.mark.parametrize("n", [len(LENGTHS), 3 * 2**13])
def test_against_hashlib(n: int) -> None:
    texts = [f"{i}-{'x' * 1000}"[: LENGTHS[i % len(LENGTHS)]] for i in range(n)]
    texts += ["\0", "a\0", "\x7f" * 55, "ß" * 20, "日本", "\U0001f600"]
    expected = [int(md5(text.encode()).hexdigest()[:15], 16) for text in texts]
    assert text_words(pl.Series(texts)).tolist() == expected


def test_of_none() -> None:
    assert text_words(pl.Series([], dtype=pl.String)).tolist() == []
    assert text_words(pl.Series(["", ""])).tolist() == [0xD41D8CD98F00B20] * 2
