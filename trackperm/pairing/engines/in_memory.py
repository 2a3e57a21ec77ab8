"""Pairing by polars, in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import narwhals as nw
import polars as pl

from trackperm.pairing.engines.base import Engine, Frame, Types
from trackperm.pairing.internal_names import internal
from trackperm.pairing.row_hashes import INTEGER_TEXT, NULL_WORD, text_word
from trackperm.tables.column_types import typed_columns
from trackperm.tables.table import ExampleTable


class InMemory(Engine):
    """polars on columns that fit in memory, once more than they are."""

    name = "polars"
    is_local = True

    def typed(
        self, tables: Sequence[ExampleTable], columns: Sequence[str], texts: Sequence[str]
    ) -> tuple[list[Frame], Types]:
        """Bring `columns` of two tables to one type each."""
        *typed, types = typed_columns(tables[0], tables[1], columns, text=texts)
        frames = [table.frame.to_polars().rename({name: internal(name) for name in types}) for table in typed]
        return [self.local(frame) for frame in frames], types

    def numbered(self, table: Frame, name: str) -> Frame:
        """Add the numbers of the rows, from 0."""
        rows: pl.LazyFrame = table.to_native()
        return nw.from_native(rows.with_row_index(name).with_columns(pl.col(name).cast(pl.Int64)))

    def local(self, frame: pl.DataFrame) -> Frame:
        """Take a table."""
        return nw.from_native(frame.lazy())

    def with_text_words(self, frame: Frame, words: Mapping[str, str]) -> Frame:
        """Add the words of columns of text."""
        data = self.collected(frame)
        return self.local(data.with_columns(_text_words(data[name]).alias(word) for word, name in words.items()))

    def mapped(
        self, frame: Frame, function: Callable[[pl.DataFrame], pl.DataFrame], added: Mapping[str, Any]
    ) -> Frame:
        """Add columns that `function` makes of all rows."""
        return self.local(function(self.collected(frame)))

    def kept(self, frame: Frame) -> Frame:
        """Compute a table."""
        return self.local(self.collected(frame))

    def collected(self, frame: Frame) -> pl.DataFrame:
        """Compute a table."""
        found: pl.LazyFrame = frame.to_native()
        return found.collect()

    def beyond_ascii(self, frame: Frame, name: str) -> Frame:
        """Keep the rows whose text in a column has other characters than those of ASCII."""
        rows: pl.LazyFrame = frame.to_native()
        return nw.from_native(rows.filter(pl.col(name).str.len_bytes() > pl.col(name).str.len_chars()))

    def sample(self, frame: Frame, name: str, n: int) -> pl.Series:
        """Take all values of a column."""
        return self.collected(frame.select(name))[name]

    def n_distinct(self, frame: Frame, name: str) -> int:
        """Count the distinct values of a column."""
        return int(self.collected(frame.select(nw.col(name).n_unique())).item())


def _text_words(texts: pl.Series) -> pl.Series:
    if texts.str.contains(INTEGER_TEXT).all() and not texts.has_nulls():
        return texts.cast(pl.Int64)
    distinct = texts.drop_nulls().unique()
    is_integer = distinct.str.contains(INTEGER_TEXT)
    values = [
        int(text) if written else text_word(text)
        for text, written in zip(distinct.to_list(), is_integer.to_list(), strict=True)
    ]
    words = pl.DataFrame([distinct.alias("text"), pl.Series("word", values, pl.Int64)])
    found = texts.alias("text").to_frame().join(words, on="text", how="left", maintain_order="left")
    return found["word"].fill_null(NULL_WORD)
