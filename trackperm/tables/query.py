"""Rows that a query returns: a DuckDB relation, a Spark data frame or a lazy frame of polars."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import narwhals as nw
import polars as pl

from trackperm.errors import SourceError
from trackperm.tables.lazy_table import LazyTable
from trackperm.tables.panics import panics_unprinted
from trackperm.tables.witnesses import has_witnesses, witnesses

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, eq=False)
class Query(LazyTable):
    """Rows that their own engine computes, column by column, when they are needed.

    Each use computes them anew, and may give them another order: what belongs together is read at once.

    Attributes
    ----------
    lazy : narwhals.LazyFrame
        A DuckDB relation, a Spark data frame or a lazy frame of polars.
    origin : str
        What messages call it.
    """

    lazy: nw.LazyFrame[Any]
    origin: str = "query"

    @cached_property
    def schema(self) -> nw.Schema:
        """Names of the columns and their types."""
        try:
            return self.lazy.collect_schema()
        except Exception as error:
            raise self._unreadable(error) from error

    @cached_property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._collected(self.lazy.select(nw.len())).item())

    @property
    def is_spark(self) -> bool:
        """Whether Spark holds the rows."""
        return bool(self.lazy.implementation.is_spark_like())

    @property
    def is_duckdb(self) -> bool:
        """Whether DuckDB holds the rows."""
        return bool(self.lazy.implementation.is_duckdb())

    def head(self, n: int) -> Query:
        """Take `n` rows: of polars the first, of others in no certain order."""
        return replace(self, lazy=self.lazy.head(n))

    def read(self, names: Iterable[str]) -> nw.DataFrame[Any]:
        """Read the columns `names` into memory, all at once.

        Raises
        ------
        SourceError
            If their engine cannot compute them.
        """
        names = list(names)
        found = self._collected(self.lazy.select(names)) if names else pl.DataFrame()
        return nw.from_native(found, eager_only=True)

    def slices(self, names: Iterable[str], size: int) -> Iterator[pl.DataFrame]:
        """Read the columns `names` at once, and yield `size` rows at a time."""
        yield from self.read(names).to_polars().iter_slices(size)

    def has_witnesses(self, names: Collection[str]) -> bool:
        """Whether :meth:`witnesses` tell the types of the columns `names`."""
        return all(map(has_witnesses, self.head(0).read(names).to_polars().dtypes))

    def witnesses(self, names: Collection[str], untyped: Collection[str] = ()) -> pl.DataFrame:
        """Return few values of the columns `names` that tell their types."""
        return witnesses(self.read(names).to_polars(), untyped)

    def _collected(self, lazy: nw.LazyFrame[Any]) -> pl.DataFrame:
        try:
            with panics_unprinted():
                if self.is_duckdb:
                    return pl.DataFrame(ArrowStream(lazy.to_native()))
                return lazy.collect("polars").to_polars()
        except (Exception, pl.exceptions.PanicException) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: BaseException) -> SourceError:
        return SourceError(f"`{self.origin}` cannot be read: {error}")


class ArrowStream:
    """A relation's Arrow stream: polars keeps the types of what it reads, and DuckDB calls its own leaks."""

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._relation = relation

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._relation.__arrow_c_stream__()
