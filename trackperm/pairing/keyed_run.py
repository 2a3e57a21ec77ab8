"""Columns of one run with the key by which its rows are matched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import narwhals as nw
import polars as pl

from trackperm.errors import PairingError
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.engines.base import Engine, Frame, Types
from trackperm.pairing.internal_names import internal
from trackperm.statistic.expressions.functions import POLARS, Functions
from trackperm.tables.column_types import ColumnType
from trackperm.tables.table import ExampleTable

KEY = "row_key"
"""Internal name of the column of keys."""

NUMBER = "row_number"
"""Internal name of the column that numbers the rows of one key, from 1."""


@dataclass(frozen=True, eq=False)
class KeyedRun:
    """Typed columns of one run with the key of every row.

    Attributes
    ----------
    frame : narwhals.LazyFrame
        Rows with the key, which is never null, :data:`NUMBER` where an example may have several rows, and the
        columns.
    table : ExampleTable
        The run as it was read.
    n_rows, n_keyed : int
        Number of rows of the run, and of its rows that have a key.
    """

    frame: Frame
    table: ExampleTable
    n_rows: int
    n_keyed: int

    @property
    def origin(self) -> str:
        """Name of the run in messages."""
        return self.table.origin


def keyed_runs(
    engine: Engine, baseline: ExampleTable, candidate: ExampleTable, columns: PairedColumns
) -> tuple[tuple[KeyedRun, KeyedRun], Types]:
    """Convert each column to one type in both runs, and add the keys of their rows.

    Raises
    ------
    InputTypeError
        If a column cannot be used, or its types in the two runs are not compatible.
    PairingError
        If ids are neither integers nor text, or clusters, strata or classes are decimals.
    """
    tables = baseline, candidate
    frames, types = engine.typed(tables, columns.names, (*columns.texts, *columns.ids))
    _require_group_types(columns, types)
    require_id_types(columns.ids, types)
    first, second = (
        _keyed(engine, frame, table, columns) for frame, table in zip(frames, tables, strict=True)
    )
    return (first, second), types


def keyed_run(
    engine: Engine, frame: Frame, table: ExampleTable, ids: Sequence[str], order: Sequence[str] = ()
) -> KeyedRun:
    """Add the key of the columns `ids`, and drop rows in which any of these is null.

    Parameters
    ----------
    order : sequence of str
        Columns by which the rows of one key are ordered to number them; if empty, they are not numbered.
    """
    f = engine.functions
    frame = with_key(f, frame, ids)
    sizes = engine.collected(frame.select(f.len().alias("rows"), f.col(KEY).count().alias("keyed")))
    n_rows, n_keyed = map(int, sizes.row(0))
    if n_keyed < n_rows:
        frame = frame.filter(~f.col(KEY).is_null())
    if order:
        frame = frame.with_columns(f.lit(1, f.Int64).alias(NUMBER)).with_columns(
            f.col(NUMBER).cum_sum().over(KEY, order_by=[internal(name) for name in order]).cast(f.Int64)
        )
    return KeyedRun(frame, table, n_rows, n_keyed)


def _keyed(engine: Engine, frame: Frame, table: ExampleTable, columns: PairedColumns) -> KeyedRun:
    if columns.id is None:
        return KeyedRun(_numbered(frame), table, len(table), len(table))
    order = (columns.tie_breakers or columns.ids) if columns.repeats else ()
    return keyed_run(engine, frame, table, columns.ids, order)


def _numbered(frame: Frame) -> Frame:
    """Add the row number, from 0, as key; rows that are paired by position are always in memory."""
    rows = cast(pl.LazyFrame, frame)
    return cast(Frame, rows.with_row_index(KEY).with_columns(pl.col(KEY).cast(pl.Int64)))


def with_key(f: Functions, frame: Frame, ids: Sequence[str]) -> Frame:
    """Add the key of the columns `ids`.

    The key of several columns is their values separated by commas, such as ``7, 2``; it is null if any of
    them is null.
    """
    key = (
        f.col(internal(ids[0]))
        if len(ids) == 1
        else f.concat_str([_part_of_key(f, name) for name in ids], separator=", ")
    )
    return frame.with_columns(key.alias(KEY))


def keys_of(table: ExampleTable, ids: Sequence[str]) -> pl.Series:
    """Return the keys of all rows of a typed table in memory."""
    frame = table.frame.to_polars().select(pl.col(name).alias(internal(name)) for name in ids)
    keyed = cast(pl.LazyFrame, with_key(POLARS, cast(Frame, frame.lazy()), ids))
    return keyed.select(KEY).collect()[KEY]


def _part_of_key(f: Functions, name: str) -> nw.Expr:
    """Text of a column with its commas escaped, so that different values never make the same key."""
    text = f.col(internal(name)).cast(f.String)
    return text.str.replace_all("\\", "\\\\", literal=True).str.replace_all(",", "\\,", literal=True)


def _require_group_types(columns: PairedColumns, types: Mapping[str, ColumnType]) -> None:
    for name in columns.groups:
        if types[name] not in (ColumnType.INTEGER, ColumnType.TEXT, ColumnType.BOOLEAN):
            raise PairingError(
                f"column `{name}` is {types[name].value}; clusters, strata and classes must be integers,"
                " text or booleans"
            )


def require_id_types(ids: Sequence[str], types: Mapping[str, ColumnType]) -> None:
    """Refuse ids that are neither integers nor text."""
    for name in ids:
        if types[name] not in (ColumnType.INTEGER, ColumnType.TEXT):
            raise PairingError(
                f"column `{name}` is {types[name].value}; ids must be integers or text",
                hint="`--id NAME` names a column of integers or text.",
            )
