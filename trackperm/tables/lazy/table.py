"""Lazy tables: their columns are read only when they are used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import narwhals as nw
import polars as pl

from trackperm.tables.lazy.type_representatives import has_representatives

COUNT = "trackperm.count"
"""Column of :meth:`LazyTable.value_counts` with the number of rows that have a value."""


class LazyTable(ABC):
    """Table of a file or a query, whose columns are read only when they are used.

    Every method raises :class:`~trackperm.errors.SourceError` if the columns cannot be read.

    Attributes
    ----------
    is_query : bool
        Whether columns are computed when they are read, so that their cost and size are not known before.
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
        """Take the first `n` rows, or any `n` rows if they have no order."""

    @abstractmethod
    def among(self, name: str, values: pl.Series) -> LazyTable:
        """Keep the rows whose value in the column `name` is one of `values`, which are of its type."""

    @abstractmethod
    def read(self, names: Iterable[str]) -> nw.DataFrame[Any]:
        """Read the columns `names` into memory, all at once."""

    @abstractmethod
    def replaced(self, names: Collection[str], change: Callable[[str], nw.Expr]) -> LazyTable:
        """Replace columns by the expressions that `change` returns for their names."""

    def renamed(self, names: Mapping[str, str]) -> LazyTable | nw.DataFrame[Any]:
        """Keep the columns that are keys of `names`, under new names; by default they are read."""
        return self.read(names).rename(dict(names))

    def slices(self, names: Iterable[str], size: int) -> Iterator[pl.DataFrame]:
        """Yield the columns `names`, `size` rows at a time; without rows, one empty data frame."""
        yield from self.parts(names, range(0, max(1, self.n_rows), size), size)

    def parts(self, names: Iterable[str], starts: Iterable[int], size: int) -> Iterator[pl.DataFrame]:
        """Yield `size` rows of the columns `names` from each start; by default all rows are read at once."""
        whole = self.read(names).to_polars()
        yield from (whole.slice(start, size) for start in starts)

    @abstractmethod
    def repeats(self, names: Sequence[str]) -> bool:
        """Whether two rows have the same values in all of the columns `names`."""

    @abstractmethod
    def value_counts(self, name: str, most: int) -> pl.DataFrame:
        """Count how often each value of the column `name` occurs, in a column :data:`COUNT`.

        If there are more than `most` distinct values, `most` + 1 of them are returned, and their counts may
        be those of only a part of the rows.
        """

    @abstractmethod
    def type_representatives(self, names: Collection[str], untyped: Collection[str]) -> pl.DataFrame:
        """Return a few values of each of the columns `names` that determine its type as all its values do.

        Columns in `untyped` are text that may be numbers.
        """

    def has_representatives(self, names: Collection[str]) -> bool:
        """Whether :meth:`type_representatives` determine the types of the columns `names`."""
        return all(map(has_representatives, self.dtypes(names).values()))
