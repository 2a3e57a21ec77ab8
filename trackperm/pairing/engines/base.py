"""Interface of the data frame engines that pair runs, beyond the expressions of narwhals.

Engines also compute the hashes of rows, whose sums are digests that depend neither on row order nor on the
engine. Each value becomes an integer of 64 bits, its word. A linear combination of words, modulo two primes
below 2^31, is raised to a power that permutes the residues. Products of residues stay below 2^62, so that
plain 64-bit arithmetic is exact in every engine.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from hashlib import sha256
from typing import Any

import narwhals as nw
import polars as pl

from trackperm.statistic.expressions.functions import NARWHALS, Functions
from trackperm.tables.columns.types import ColumnType
from trackperm.tables.table import ExampleTable

Frame = nw.LazyFrame[Any]
Types = dict[str, ColumnType]

HALVES = {"0": 2**31 - 1, "1": 2**31 - 19}
"""Primes p of the two halves of a hash, by suffix: the columns of a hash ``h`` are ``h_0`` and ``h_1``.

5 does not divide p - 1, so that x -> x^5 permutes the residues.
"""

INTEGER_TEXT = r"^(?:0|-?[1-9][0-9]{0,17})$"
"""Texts that have the word of an integer, so that digests do not depend on how a format stores integers."""

TEXT_DIGITS = 15
"""Hexadecimal digits of MD5 that make the word of any other text: 60 bits, which fit into int64."""

NULL_WORD = -(2**62)
"""Word of a missing value."""


@lru_cache(maxsize=2**10)
def hash_factor(half: str, word: int) -> int:
    """Return the factor of a word in the linear combination of a half; word -1 is the constant term."""
    return int(sha256(f"row hash {half} {word}".encode()).hexdigest(), 16) % (HALVES[half] - 1) + 1


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

        The types, and the errors raised, are those of :func:`~trackperm.tables.columns.types.typed_columns`.
        """

    @abstractmethod
    def local(self, frame: pl.DataFrame) -> Frame:
        """Hand a small table over to the engine."""

    @abstractmethod
    def with_text_words(self, frame: Frame, words: Mapping[str, str]) -> Frame:
        """Add the words of columns of text; `words` maps the name of each word to its column.

        A word is an int64. A text that matches :data:`INTEGER_TEXT` has its integer as word, any other text
        the number in the first :data:`TEXT_DIGITS` hexadecimal digits of its MD5, and a null
        :data:`NULL_WORD`.
        """

    @abstractmethod
    def with_row_hash(self, frame: Frame, words: Sequence[str], name: str, rounds: int = 2) -> Frame:
        """Add the hash of every row's `words` as columns of int64.

        A row has one hash for each of :data:`HALVES`: the linear combination of its words by
        :func:`hash_factor`, raised to its fifth power, plus one, `rounds` times.
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
