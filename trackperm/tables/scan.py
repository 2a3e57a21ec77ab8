"""Columns of a file that are read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from trackperm.errors import TrackpermError
from trackperm.tables.expansion import Expansion
from trackperm.tables.lazy_table import COUNT, LazyTable
from trackperm.tables.panics import panics_unprinted
from trackperm.tables.witnesses import witnesses

UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)
"""What polars raises where a file is not what it should be."""

_SLICE = 2**18  # rows that are looked at at once
_COUNTED = 2**20  # rows whose values are counted at once
_WIDTH = 16  # bytes of a text in polars, and the most of a number


@dataclass(frozen=True, eq=False)
class Scan(LazyTable):
    """A file of which only those columns are read that are used.

    Every reading raises :class:`~trackperm.errors.SourceError` where the file is broken, which may show in
    its columns alone.

    Attributes
    ----------
    lazy : polars.LazyFrame
        The table.
    unreadable : callable
        What to raise where it cannot be read, given what polars said.
    folder : object, optional
        What has to be there as long as the file is read, such as the temporary folder that holds it.
    expansion : Expansion, optional
        What the columns that are read at once may take.
    parquet : tuple of Path
        The Parquet files that hold the table, for engines that read such themselves; empty where it is in
        another format.
    held : callable, optional
        Given names of columns, the bytes that the file says they come to, decompressed. Raises ValueError or
        OSError where that cannot be told.
    """

    lazy: pl.LazyFrame
    unreadable: Callable[[BaseException], TrackpermError]
    folder: object = None
    expansion: Expansion | None = None
    parquet: tuple[Path, ...] = ()
    held: Callable[[Collection[str]], int] | None = None

    @cached_property
    def schema(self) -> nw.Schema:
        """Names of the columns and their types."""
        try:
            with panics_unprinted():
                return nw.from_native(self.lazy).collect_schema()
        except UNREADABLE as error:
            raise self.unreadable(error) from error

    @cached_property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._collected(self.lazy.select(pl.len())).item())

    def dtypes(self, names: Collection[str]) -> dict[str, pl.DataType]:
        """Types of the columns `names`."""
        schema = self.schema.to_polars()
        return {name: schema[name] for name in names}

    def head(self, n: int) -> Scan:
        """Take the first `n` rows."""
        return replace(self, lazy=self.lazy.head(n), parquet=())

    def among(self, name: str, values: pl.Series) -> Scan:
        """Keep the rows whose value in the column `name` is one of `values`, which are of its type."""
        return replace(self, lazy=self.lazy.filter(pl.col(name).is_in(values.implode())), parquet=())

    def read(self, names: Iterable[str]) -> nw.DataFrame[Any]:
        """Read the columns `names`, all at once.

        Raises
        ------
        SourceError
            If they are broken, or take more than the file may hold.
        """
        names = list(names)
        if self.expansion is not None:
            self.expansion.require(self.n_rows * _WIDTH * len(names))
        self._require_held(names)
        return nw.from_native(self._limited(self.lazy.select(names)), eager_only=True)

    def slices(self, names: Iterable[str], size: int) -> Iterator[pl.DataFrame]:
        """Read the columns `names`, `size` rows at a time.

        Raises
        ------
        SourceError
            If they are broken, or hold more than the file may.
        """
        names = list(names)
        self._require_held(names)
        lazy = self.lazy.select(names)
        for start in range(0, self.n_rows, size):
            yield self._limited(lazy.slice(start, size))

    def repeats(self, names: Sequence[str]) -> bool:
        """Whether two rows have the same values in all of the columns `names`."""
        sizes = self.lazy.group_by(names).agg(pl.len().alias(COUNT))
        return len(self._collected(sizes.filter(pl.col(COUNT) > 1).select(COUNT).head(1))) > 0

    def value_counts(self, name: str, most: int) -> pl.DataFrame:
        """Count how often each value of the column `name` occurs, up to the slice with too many of them."""
        total = pl.DataFrame(schema={**self.dtypes([name]), COUNT: pl.Int64})
        for part in self.slices([name], _COUNTED):
            counts = part.group_by(name).agg(pl.len().cast(pl.Int64).alias(COUNT))
            total = pl.concat([total, counts]).group_by(name).agg(pl.col(COUNT).sum())
            if len(total) > most:
                break
        return total.head(most + 1)

    def witnesses(self, names: Collection[str], untyped: Collection[str]) -> pl.DataFrame:
        """Return few values of the columns `names` that tell their types, slice by slice."""
        none = pl.DataFrame(schema=self.dtypes(names))
        return pl.concat([none, *(witnesses(part, untyped) for part in self.slices(names, _SLICE))])

    def _require_held(self, names: Collection[str]) -> None:
        if self.expansion is None or self.held is None:
            return
        try:
            n_bytes = self.held(names)
        except (ValueError, OSError) as error:
            raise self.unreadable(error) from error
        self.expansion.require(n_bytes)

    def _limited(self, lazy: pl.LazyFrame) -> pl.DataFrame:
        """Collect, and count a text that many rows share for each of them, as whatever copies it will."""
        frame = self._collected(lazy)
        if self.expansion is not None:
            self.expansion.require(int(frame.estimated_size()))
        return frame

    def _collected(self, lazy: pl.LazyFrame) -> pl.DataFrame:
        try:
            with panics_unprinted():
                return lazy.collect()
        except UNREADABLE as error:
            raise self.unreadable(error) from error
