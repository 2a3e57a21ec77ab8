"""Pairing by polars, in memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import md5
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.pairing.engines.base import (
    HALVES,
    INTEGER_TEXT,
    NULL_WORD,
    TEXT_DIGITS,
    Engine,
    Frame,
    Types,
    hash_factor,
)
from trackperm.pairing.internal_names import internal
from trackperm.statistic.expressions.functions import POLARS
from trackperm.tables.columns.types import typed_columns
from trackperm.tables.table import ExampleTable

_IS_INTEGER = re.compile(INTEGER_TEXT, re.ASCII).fullmatch
_SHIFT = 64 - 4 * TEXT_DIGITS  # of the first 64 bits of MD5
_TOGETHER = 2**14  # rows that are hashed at once: their words stay in the processor's cache
_FEW = 2**11  # texts up to which Python is as quick as the operations of polars, each of which has a cost


class InMemory(Engine):
    """Engine of polars, in memory; its frames are native lazy frames of polars, without narwhals.

    The columns need about twice their size.
    """

    name = "polars"
    is_local = True
    functions = POLARS
    _last: tuple[Frame | None, pl.DataFrame | None] = None, None

    def __exit__(self, *_: object) -> None:
        """Free nothing, as all tables are in this process's memory."""

    def typed(
        self, tables: Sequence[ExampleTable], columns: Sequence[str], texts: Sequence[str]
    ) -> tuple[list[Frame], Types]:
        """Convert each of `columns` to one type in both tables."""
        *typed, types = typed_columns(tables[0], tables[1], columns, text=texts)
        frames = [table.frame.to_polars().rename({name: internal(name) for name in types}) for table in typed]
        return [self.local(frame) for frame in frames], types

    def local(self, frame: pl.DataFrame) -> Frame:
        """Return the table as a lazy frame."""
        lazy = cast(Frame, frame.lazy())
        self._last = lazy, frame
        return lazy

    def with_text_words(self, frame: Frame, words: Mapping[str, str]) -> Frame:
        """Add the words of columns of text."""
        data = self.collected(frame)
        return self.local(data.hstack([text_words(data[name]).alias(word) for word, name in words.items()]))

    def with_row_hash(self, frame: Frame, words: Sequence[str], name: str, rounds: int = 2) -> Frame:
        """Add the hashes of rows, computed by NumPy: expressions take ten times as long on few rows."""
        data = self.collected(frame)
        found = row_hashes([data[word].to_numpy() for word in words], len(data), rounds)
        return self.local(data.hstack([pl.Series(f"{name}_{half}", each) for half, each in found.items()]))

    def mapped(self, frame: Frame, function: Callable[[pl.DataFrame], pl.DataFrame]) -> Frame:
        """Apply `function`, which adds columns, to all rows at once."""
        return self.local(function(self.collected(frame)))

    def kept(self, frame: Frame) -> Frame:
        """Compute a table and keep it in memory."""
        return self.local(self.collected(frame))

    def collected(self, frame: Frame) -> pl.DataFrame:
        """Collect a table; the one that :meth:`local` returned last is not computed again."""
        lazy, data = self._last
        return data if frame is lazy and data is not None else cast(pl.LazyFrame, frame).collect()

    def beyond_ascii(self, frame: Frame, name: str) -> Frame:
        """Keep the rows whose text in a column has characters beyond ASCII."""
        rows = cast(pl.LazyFrame, frame)
        return cast(Frame, rows.filter(pl.col(name).str.len_bytes() > pl.col(name).str.len_chars()))

    def sampled(self, frame: Frame, n: int) -> Frame:
        """Keep `n` rows at random, or all if there are fewer."""
        rows = self.collected(frame)
        return self.local(rows.sample(min(n, len(rows)), seed=0))

    def n_distinct(self, frame: Frame, name: str) -> int:
        """Count the distinct values of a column."""
        return self.collected(frame.select(name))[name].n_unique()


def row_hashes(words: Sequence[npt.NDArray[Any]], n: int, rounds: int) -> dict[str, npt.NDArray[np.int64]]:
    """Return the hashes of `n` rows by half, given their words as arrays of int64."""
    found = {half: np.empty(n, dtype=np.int64) for half in HALVES}
    for start in range(0, n, _TOGETHER):
        part = slice(start, min(start + _TOGETHER, n))
        for half, p in HALVES.items():
            h = np.full(part.stop - start, hash_factor(half, -1), dtype=np.int64)
            for i, word in enumerate(words):
                h += _remainder(_remainder(word[part], p) * hash_factor(half, i), p)
            h = _remainder(h, p)
            for _ in range(rounds):
                square = _remainder(h * h, p)
                h = _remainder(_remainder(square * square, p) * h + 1, p)
            found[half][part] = h
    return found


def _remainder(a: npt.NDArray[np.int64], p: int) -> npt.NDArray[np.int64]:
    """Return a mod p, from 0 to p - 1, by floor division, which NumPy computes as a multiplication."""
    multiples = a // p
    multiples *= p
    return np.subtract(a, multiples, out=multiples)


def text_words(texts: pl.Series) -> pl.Series:
    """Return the words of texts; the word of a text that repeats is computed only once."""
    if len(texts) <= _FEW:
        values = texts.to_list()
        known = {text: NULL_WORD if text is None else _word(text) for text in set(values)}
        return pl.Series([known[text] for text in values], dtype=pl.Int64)
    if texts.head(_FEW).n_unique() == _FEW:
        return _words_of_each(texts)
    distinct = texts.unique()
    return texts.replace_strict(distinct, _words_of_each(distinct), return_dtype=pl.Int64)


def _word(text: str) -> int:
    if _IS_INTEGER(text):
        return int(text)
    return int.from_bytes(md5(text.encode(), usedforsecurity=False).digest()[:8], "big") >> _SHIFT


def _words_of_each(texts: pl.Series) -> pl.Series:
    is_integer = texts.str.contains(INTEGER_TEXT)
    words = texts.set(~is_integer, None).cast(pl.Int64).fill_null(NULL_WORD)
    others = texts.filter(~is_integer).to_list()
    if not others:
        return words
    digests = b"".join([md5(text.encode(), usedforsecurity=False).digest() for text in others])
    bits = (np.frombuffer(digests, dtype=">u8")[::2] >> np.uint64(_SHIFT)).astype(np.int64)
    return words.scatter((~is_integer).arg_true(), pl.Series(bits))
