"""Columns of a file that are read when they are asked for."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from trackperm.errors import SourceError
from trackperm.tables.expansion import Expansion
from trackperm.tables.named_frame import named_frame
from trackperm.tables.panics import panics_unprinted

UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)
"""What polars raises where a file is not what it should be."""

_INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)  # int64 holds all of them
_PLAIN = (*_INTEGERS, pl.Boolean, pl.String)
_DECIMAL_TEXT = r"^-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_MOST_DIGITS = 25  # of integers that are told apart by their length; int64 has 19
_WIDTH = 16  # bytes of a text in polars, and the most of a number


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
    unreadable: Callable[[BaseException], SourceError]
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

    def head(self, n: int) -> Scan:
        """Take the first `n` rows."""
        return replace(self, lazy=self.lazy.head(n), parquet=())

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


def has_witnesses(dtype: pl.DataType) -> bool:
    """Whether :func:`witnesses` tell all of a column of type `dtype`."""
    if isinstance(dtype, pl.List):
        return dtype.inner in _PLAIN
    return dtype in (*_PLAIN, pl.Float32, pl.Float64)


def witnesses(frame: pl.DataFrame, untyped: Collection[str] = ()) -> pl.DataFrame:
    """Return a few values of each column that tell its type as well as all of them do.

    They are the first, the least and the greatest, the first that is not integral, and the first list that
    holds something; of columns whose type is not known, the least and the greatest text of each length among
    integers, and one of each other kind. Witnesses of slices, one slice below the other, are witnesses of the
    whole.

    Parameters
    ----------
    untyped : collection of str
        Columns of text that may be numbers.
    """
    columns = []
    for values in frame:
        present = (values.fill_nan(None) if values.dtype.is_float() else values).drop_nulls()
        found = [present.head(1)]
        if values.dtype.is_numeric() and len(present):
            found += [pl.Series(values.name, [present.min(), present.max()], values.dtype)]
        if values.dtype.is_float():
            found.append(present.filter(present != present.round()).head(1))
        if isinstance(values.dtype, pl.List):
            found.append(present.filter(present.list.len() > 0).head(1))
        if values.dtype == pl.String and values.name in untyped:
            found.append(_kinds_of_text(present))
        columns.append(pl.concat(found))
    n = max((len(column) for column in columns), default=0)
    return copied(named_frame(column.extend_constant(None, n - len(column)) for column in columns))


def _kinds_of_text(texts: pl.Series) -> pl.Series:
    """Return texts of each kind that numbers are told from: integers by sign and length, and others."""
    integers = texts.cast(pl.Int64, strict=False)
    if not integers.has_nulls() and (integers.cast(pl.String) == texts).all():
        # All are integers of int64 in their one spelling: the least and the greatest tell the type.
        return pl.Series(texts.name, [integers.min(), integers.max()], pl.Int64).drop_nulls().cast(pl.String)
    text = pl.col("text")
    kinds = (
        texts.alias("text")
        .to_frame()
        .select(
            text,
            kind=pl.when(text.str.contains(r"^-?[0-9]+$"))
            .then(text.str.len_bytes().clip(0, _MOST_DIGITS).cast(pl.Int64) + text.str.starts_with("-") * 100)
            .when(text.str.contains(r"^[nN]a[nN]$"))
            .then(-1)
            .when(text.str.contains(r"^-?[iI]nf(?:inity)?$"))
            .then(-2)
            .when(text.str.contains(_DECIMAL_TEXT))
            .then(-3)
            .otherwise(-4),
            zero=text.str.contains(r"^-?0[0-9]|^-0$"),
        )
    )
    ends = kinds.group_by("kind", "zero").agg(low=text.min(), high=text.max())
    return pl.concat([ends["low"], ends["high"]]).alias(texts.name)


def copied(part: pl.DataFrame) -> pl.DataFrame:
    """Copy a part of a frame, which else keeps all texts of the frame in memory."""
    stream = io.BytesIO()
    part.write_ipc_stream(stream)
    stream.seek(0)
    return pl.read_ipc_stream(stream)
