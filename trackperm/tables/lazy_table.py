"""Tables whose columns are read when they are used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import narwhals as nw
import polars as pl

from trackperm.tables.witnesses import has_witnesses

COUNT = "trackperm.count"
"""Name of the column of :meth:`LazyTable.value_counts` that says how often a value occurs."""


class LazyTable(ABC):
    """Columns of a file or of a query, of which only those are read that are used.

    Every method raises :class:`~trackperm.errors.SourceError` where they cannot be read.

    Attributes
    ----------
    is_query : bool
        Whether a column is computed when it is read, whatever that costs, and nothing tells its size before.
    """

    is_query: bool = False

    @property
    @abstractmethod
    def schema(self) -> nw.Schema:
        """Names of the columns and their types."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows."""

    @abstractmethod
    def dtypes(self, names: Collection[str]) -> dict[str, pl.DataType]:
        """Types of the columns `names` once they are read."""

    @abstractmethod
    def head(self, n: int) -> LazyTable:
        """Take the first `n` rows, or any `n` where rows have no order."""

    @abstractmethod
    def among(self, name: str, values: pl.Series) -> LazyTable:
        """Keep the rows whose value in the column `name` is one of `values`, which are of its type."""

    @abstractmethod
    def read(self, names: Iterable[str]) -> nw.DataFrame[Any]:
        """Read the columns `names` into memory, all at once."""

    @abstractmethod
    def slices(self, names: Iterable[str], size: int) -> Iterator[pl.DataFrame]:
        """Read the columns `names`, `size` rows at a time."""

    @abstractmethod
    def repeats(self, names: Sequence[str]) -> bool:
        """Whether two rows have the same values in all of the columns `names`."""

    @abstractmethod
    def value_counts(self, name: str, most: int) -> pl.DataFrame:
        """Count how often each value of the column `name` occurs, in a column :data:`COUNT`.

        Where there are more than `most` different values, `most` + 1 of them are returned, and they may have
        been counted in a part of the rows alone.
        """

    @abstractmethod
    def witnesses(self, names: Collection[str], untyped: Collection[str]) -> pl.DataFrame:
        """Return a few values of each of the columns `names` that tell its type as well as all of them do.

        Parameters
        ----------
        untyped : collection of str
            Columns of text that may be numbers.
        """

    def has_witnesses(self, names: Collection[str]) -> bool:
        """Whether :meth:`witnesses` tell the types of the columns `names`."""
        return all(map(has_witnesses, self.dtypes(names).values()))
