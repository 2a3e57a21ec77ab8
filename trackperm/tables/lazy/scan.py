"""Lazy table of a file, whose columns are read when they are used."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from trackperm.errors import TrackpermError
from trackperm.tables.expansion import Expansion
from trackperm.tables.lazy.table import COUNT, LazyTable
from trackperm.tables.lazy.type_representatives import type_representatives
from trackperm.tables.panics import panics_unprinted

UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)
"""Exceptions that polars raises for a broken file."""

_SLICE = 2**18  # rows that are read at once to find types
_COMPARED = 2**22  # rows that are compared with each other at once: those with equal hashes
_COUNTED = 2**20  # rows that are read at once to count values
_WIDTH = 16  # bytes of a text's header in polars, and of the largest number


@dataclass(frozen=True, eq=False)
class Scan(LazyTable):
    """Lazy table of a file: only the columns that are used are read.

    Every method that reads raises :class:`~trackperm.errors.SourceError` if the file is broken, which may be
    found only when a column is read.

    Attributes
    ----------
    lazy : polars.LazyFrame
        The table.
    unreadable : callable
        Function that converts an error of polars to the error to raise.
    folder : object, optional
        An object that must stay alive while the file is read, such as the temporary folder that contains it.
    expansion : Expansion, optional
        Limit on the memory of columns that are read at once.
    parquet : tuple of Path
        Parquet files of the table, for engines that read them directly; empty for other formats.
    held : callable, optional
        Function that returns the decompressed bytes of the columns of given names, according to the metadata
        of the file. It raises ValueError or OSError if the metadata cannot be read.
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
        return nw.from_native(pl.LazyFrame(schema=self._schema)).collect_schema()

    @cached_property
    def _schema(self) -> pl.Schema:
        # narwhals takes lists without values as lists of an unknown type, on which polars panics.
        try:
            with panics_unprinted():
                return self.lazy.collect_schema()
        except UNREADABLE as error:
            raise self.unreadable(error) from error

    @cached_property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._collected(self.lazy.select(pl.len())).item())

    def dtypes(self, names: Collection[str]) -> dict[str, pl.DataType]:
        """Types of the columns `names`."""
        return {name: self._schema[name] for name in names}

    def head(self, n: int) -> Scan:
        """Take the first `n` rows."""
        return replace(self, lazy=self.lazy.head(n), parquet=())

    def among(self, name: str, values: pl.Series) -> Scan:
        """Keep the rows whose value in the column `name` is one of `values`, which are of its type."""
        return replace(self, lazy=self.lazy.filter(pl.col(name).is_in(values.implode())), parquet=())

    def replaced(self, names: Collection[str], change: Callable[[str], nw.Expr]) -> Scan:
        """Replace columns by the expressions that `change` returns for their names."""
        lazy = nw.from_native(self.lazy).with_columns(change(name) for name in names)
        return replace(self, lazy=lazy.to_native(), parquet=())

    def renamed(self, names: Mapping[str, str]) -> Scan:
        """Keep the columns that are keys of `names`, under new names."""
        held, before = self.held, {new: old for old, new in names.items()}
        return replace(
            self,
            lazy=self.lazy.select(pl.col(old).alias(new) for old, new in names.items()),
            parquet=(),
            held=None if held is None else lambda wanted: held([before[name] for name in wanted]),
        )

    def read(self, names: Iterable[str]) -> nw.DataFrame[Any]:
        """Read the columns `names`, all at once.

        Raise SourceError if they are broken, or exceed the limit on the expanded size of a file.
        """
        names = list(names)
        if self.expansion is not None:
            self.expansion.require(self.n_rows * _WIDTH * len(names))
        self._require_held(names)
        return nw.from_native(self._limited(self.lazy.select(names)), eager_only=True)

    def parts(self, names: Iterable[str], starts: Iterable[int], size: int) -> Iterator[pl.DataFrame]:
        """Read `size` rows of the columns `names` from each start.

        Raise SourceError if they are broken, or exceed the limit on the expanded size of a file.
        """
        names = list(names)
        self._require_held(names)
        lazy = self.lazy.select(names)
        for start in starts:
            yield self._limited(lazy.slice(start, size))

    def repeats(self, names: Sequence[str]) -> bool:
        """Whether two rows have the same values in all of the columns `names`."""
        n_parts = self.n_rows // _COMPARED + 1
        for part in range(n_parts):
            is_of_part = pl.struct(names).hash() % n_parts == part
            rows = self.lazy.select(names) if n_parts == 1 else self.lazy.select(names).filter(is_of_part)
            sizes = rows.group_by(names).agg(pl.len().alias(COUNT)).filter(pl.col(COUNT) > 1)
            if len(self._collected(sizes.select(COUNT).head(1))):
                return True
        return False

    def value_counts(self, name: str, most: int) -> pl.DataFrame:
        """Count how often each value of the column `name` occurs; stop when there are more than `most`."""
        total = pl.DataFrame(schema={**self.dtypes([name]), COUNT: pl.Int64})
        for part in self.slices([name], _COUNTED):
            counts = part.group_by(name).agg(pl.len().cast(pl.Int64).alias(COUNT))
            total = pl.concat([total, counts]).group_by(name).agg(pl.col(COUNT).sum())
            if len(total) > most:
                break
        return total.head(most + 1)

    def type_representatives(self, names: Collection[str], untyped: Collection[str]) -> pl.DataFrame:
        """Return a few values that determine the types of columns, read slice by slice."""
        none = pl.DataFrame(schema=self.dtypes(names))
        return pl.concat(
            [none, *(type_representatives(part, untyped) for part in self.slices(names, _SLICE))]
        )

    def _require_held(self, names: Collection[str]) -> None:
        if self.expansion is None or self.held is None:
            return
        try:
            n_bytes = self.held(names)
        except (ValueError, OSError) as error:
            raise self.unreadable(error) from error
        self.expansion.require(n_bytes)

    def _limited(self, lazy: pl.LazyFrame) -> pl.DataFrame:
        """Collect within the limit; a text that rows share counts for each of them, as it would in a copy."""
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
