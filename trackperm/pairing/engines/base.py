"""What pairing wants of a data frame engine beside narwhals' expressions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import narwhals as nw
import polars as pl

from trackperm.statistic.expressions.functions import NARWHALS, Functions
from trackperm.tables.column_types import ColumnType
from trackperm.tables.table import ExampleTable

Frame = nw.LazyFrame[Any]
Types = dict[str, ColumnType]


class Engine(ABC):
    """A data frame engine that pairs runs, and a context that frees at its end what the engine holds.

    Attributes
    ----------
    name : str
        As ``--engine`` calls it.
    is_local : bool
        Whether all rows are in this process's memory, so that any number of them may be looked at.
    functions : Functions
        What expressions over its tables are built with.
    """

    name: str
    is_local: bool = False
    functions: Functions = NARWHALS

    @abstractmethod
    def typed(
        self, tables: Sequence[ExampleTable], columns: Sequence[str], texts: Sequence[str]
    ) -> tuple[list[Frame], Types]:
        """Bring columns of two tables to one type each, under their internal names.

        What types are found, and what is refused, is that of
        :func:`~trackperm.tables.column_types.typed_columns`.
        """

    @abstractmethod
    def local(self, frame: pl.DataFrame) -> Frame:
        """Take a small table from memory."""

    @abstractmethod
    def with_text_words(self, frame: Frame, words: Mapping[str, str]) -> Frame:
        """Add the words of columns of text: `words` has the column of each, by its name.

        A word is an int64: of a text that matches :data:`~trackperm.pairing.row_hashes.INTEGER_TEXT` the
        integer, of another :func:`~trackperm.pairing.row_hashes.text_word`, of a null
        :data:`~trackperm.pairing.row_hashes.NULL_WORD`.
        """

    @abstractmethod
    def with_row_hash(self, frame: Frame, words: Sequence[str], name: str, rounds: int = 2) -> Frame:
        """Add the hash of every row's `words` as columns of int64.

        The columns are those of :func:`~trackperm.pairing.row_hashes.hash_names`; `rounds` says how often the
        combination of the words is raised to its fifth power.
        """

    @abstractmethod
    def mapped(self, frame: Frame, function: Callable[[pl.DataFrame], pl.DataFrame]) -> Frame:
        """Add the columns that `function` makes of batches of rows."""

    @abstractmethod
    def kept(self, frame: Frame) -> Frame:
        """Compute a table that several queries read."""

    @abstractmethod
    def collected(self, frame: Frame) -> pl.DataFrame:
        """Bring few rows into memory."""

    @abstractmethod
    def beyond_ascii(self, frame: Frame, name: str) -> Frame:
        """Keep the rows whose text in a column has other characters than those of ASCII."""

    @abstractmethod
    def sampled(self, frame: Frame, n: int) -> Frame:
        """Take about `n` rows at random, or all."""

    @abstractmethod
    def n_distinct(self, frame: Frame, name: str) -> int:
        """Count the distinct values of a column, to within a fifth or so."""

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None
