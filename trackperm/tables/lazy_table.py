"""Tables whose columns are read when they are used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import narwhals as nw
import polars as pl


class LazyTable(ABC):
    """Columns of a file or of a query, of which only those are read that are used.

    Every method raises :class:`~trackperm.errors.SourceError` where they cannot be read.
    """

    @property
    @abstractmethod
    def schema(self) -> nw.Schema:
        """Names of the columns and their types."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows."""

    @abstractmethod
    def head(self, n: int) -> LazyTable:
        """Take the first `n` rows, or any where rows have no order."""

    @abstractmethod
    def read(self, names: Iterable[str]) -> nw.DataFrame[Any]:
        """Read the columns `names` into memory, all at once."""

    @abstractmethod
    def slices(self, names: Iterable[str], size: int) -> Iterator[pl.DataFrame]:
        """Read the columns `names`, `size` rows at a time."""

    @abstractmethod
    def has_witnesses(self, names: Collection[str]) -> bool:
        """Whether :meth:`witnesses` tell the types of the columns `names`."""

    @abstractmethod
    def witnesses(self, names: Collection[str], untyped: Collection[str]) -> pl.DataFrame:
        """Return a few values of each of the columns `names` that tell its type as well as all of them do.

        Parameters
        ----------
        untyped : collection of str
            Columns of text that may be numbers.
        """
