"""Interface of the data frame engines that pair runs, beyond the expressions of narwhals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import narwhals as nw
import polars as pl

from trackperm.statistic.expressions.functions import NARWHALS, Functions
from trackperm.tables.column_types import ColumnType
from trackperm.tables.table import ExampleTable

Frame = nw.LazyFrame[Any]
Types = dict[str, ColumnType]


class Engine(AbstractContextManager["Engine"]):
    """A data frame engine that pairs runs; as a context manager, it frees its tables at the end.

    Attributes
    ----------
    name : str
        Value of the option ``--engine``.
    is_local : bool
        Whether all rows are in the memory of this process, so that any number of them may be collected.
    functions : Functions
        Functions that build expressions over the engine's tables.
    """

    name: str
    is_local: bool = False
    functions: Functions = NARWHALS

    @abstractmethod
    def typed(
        self, tables: Sequence[ExampleTable], columns: Sequence[str], texts: Sequence[str]
    ) -> tuple[list[Frame], Types]:
        """Convert each column to one type in both tables, and give it its internal name.

        The types, and the errors raised, are those of :func:`~trackperm.tables.column_types.typed_columns`.
        """

    @abstractmethod
    def local(self, frame: pl.DataFrame) -> Frame:
        """Hand a small table over to the engine."""

    @abstractmethod
    def with_text_words(self, frame: Frame, words: Mapping[str, str]) -> Frame:
        """Add the words of columns of text; `words` maps the name of each word to its column.

        A word is an int64. A text that matches :data:`~trackperm.pairing.row_hashes.INTEGER_TEXT` has its
        integer as word, any other text its :func:`~trackperm.pairing.row_hashes.text_word`, and a null
        :data:`~trackperm.pairing.row_hashes.NULL_WORD`.
        """

    @abstractmethod
    def with_row_hash(self, frame: Frame, words: Sequence[str], name: str, rounds: int = 2) -> Frame:
        """Add the hash of every row's `words` as columns of int64.

        The names of these columns are :func:`~trackperm.pairing.row_hashes.hash_names`. `rounds` is the
        number of times that the combination of the words is raised to its fifth power.
        """

    @abstractmethod
    def mapped(self, frame: Frame, function: Callable[[pl.DataFrame], pl.DataFrame]) -> Frame:
        """Apply `function`, which adds columns, to batches of rows."""

    @abstractmethod
    def kept(self, frame: Frame) -> Frame:
        """Compute a table and store it, because several queries read it."""

    @abstractmethod
    def collected(self, frame: Frame) -> pl.DataFrame:
        """Collect a table of few rows into memory."""

    @abstractmethod
    def beyond_ascii(self, frame: Frame, name: str) -> Frame:
        """Keep the rows whose text in a column has characters beyond ASCII."""

    @abstractmethod
    def sampled(self, frame: Frame, n: int) -> Frame:
        """Keep about `n` rows at random, or all if there are fewer."""

    @abstractmethod
    def n_distinct(self, frame: Frame, name: str) -> int:
        """Count the distinct values of a column; an estimate to within about a fifth is enough."""
