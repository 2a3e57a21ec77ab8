"""Columns of a file that are read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import narwhals as nw
import polars as pl

from trackperm.errors import SourceError

UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)
"""What polars raises where a file is not what it should be."""


@dataclass(frozen=True, eq=False)
class Scan:
    """A file of which only those columns are read that are used.

    Every reading raises :class:`~trackperm.errors.SourceError` where the file is broken, which may show in
    its columns alone.

    Attributes
    ----------
    lazy : polars.LazyFrame
        The table.
    unreadable : callable
        What to raise where it cannot be read, given what polars said.
    """

    lazy: pl.LazyFrame
    unreadable: Callable[[BaseException], SourceError]

    @cached_property
    def schema(self) -> nw.Schema:
        """Names of the columns and their types."""
        try:
            return nw.from_native(self.lazy).collect_schema()
        except UNREADABLE as error:
            raise self.unreadable(error) from error

    @cached_property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._collected(self.lazy.select(pl.len())).item())

    def head(self, n: int) -> Scan:
        """Take the first `n` rows."""
        return replace(self, lazy=self.lazy.head(n))

    def read(self, names: Iterable[str]) -> nw.DataFrame[Any]:
        """Read the columns `names`, all at once."""
        return nw.from_native(self._collected(self.lazy.select(list(names))), eager_only=True)

    def _collected(self, lazy: pl.LazyFrame) -> pl.DataFrame:
        try:
            return lazy.collect()
        except UNREADABLE as error:
            raise self.unreadable(error) from error
