"""One run's columns under the key that its rows are matched by."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import narwhals as nw
import numpy as np
import numpy.typing as npt

from trackperm.errors import PairingError
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.text_order import text_order
from trackperm.tables.column_types import ColumnType, typed_columns
from trackperm.tables.table import ExampleTable

KEY = "trackperm.key"
"""Name of the key beside a run's own columns."""

PADDING = "trackperm.padding"
"""Name of the column that marks rows which stand in for attempts that a run did not make."""


@dataclass(frozen=True, eq=False)
class KeyedRun:
    """Typed columns of one run, in ascending order of the key.

    Attributes
    ----------
    frame : narwhals.DataFrame
        The key, which is never null, and the columns.
    origin : str
        What messages call the run.
    n_rows : int
        Number of rows that the run has, with those that have no id; of examples, where these have several
        rows.
    rows_without_id : tuple of int
        Which these are, counted from 0.
    """

    frame: nw.DataFrame[Any]
    origin: str
    n_rows: int
    rows_without_id: tuple[int, ...] = ()

    @classmethod
    def by_id(cls, table: ExampleTable, ids: Sequence[str], tie_breakers: Collection[str] = ()) -> KeyedRun:
        """Take the columns `ids` as key; rows with the same are ordered by `tie_breakers`."""
        frame = with_key(table.frame, ids)
        keys = frame.get_column(KEY)
        n_rows, rows_without_id = len(keys), tuple(keys.is_null().arg_true().to_list())
        if rows_without_id:
            frame = frame.filter(~keys.is_null())
        return cls.of_keys(frame, table.origin, ids, tie_breakers, n_rows, rows_without_id)

    @classmethod
    def of_keys(
        cls,
        frame: nw.DataFrame[Any],
        origin: str,
        ids: Sequence[str],
        tie_breakers: Collection[str] = (),
        n_rows: int | None = None,
        rows_without_id: tuple[int, ...] = (),
    ) -> KeyedRun:
        """Order rows that :func:`with_key` gave a key, none of them null."""
        run = cls(frame, origin, len(frame) if n_rows is None else n_rows, rows_without_id)
        ordered = run.ordered(tie_breakers)
        if len(ids) > 1:
            return ordered
        return replace(ordered, frame=ordered.frame.with_columns(nw.col(KEY).alias(ids[0])))

    @classmethod
    def by_position(cls, table: ExampleTable) -> KeyedRun:
        """Take the number of the row, from 0, as key."""
        frame = table.frame.with_row_index(KEY).with_columns(nw.col(KEY).cast(nw.Int64))
        return cls(frame, table.origin, len(frame))

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def keys(self) -> nw.Series[Any]:
        """Keys of all rows."""
        return self.frame.get_column(KEY)

    def of_examples(self) -> KeyedRun:
        """Count examples in place of rows."""
        return replace(self, n_rows=self.keys.n_unique() + len(self.rows_without_id))

    @property
    def is_padding(self) -> nw.Series[Any]:
        """Whether a row stands in for an attempt that the run did not make, by row."""
        if PADDING in self.frame.columns:
            return self.frame.get_column(PADDING)
        return nw.new_series(PADDING, np.zeros(len(self), dtype=np.bool_), nw.Boolean, backend="polars")

    @property
    def n_own_rows(self) -> int:
        """Number of rows without those that stand in for others."""
        return len(self) - (int(self.frame.get_column(PADDING).sum()) if PADDING in self.frame.columns else 0)

    def filter(self, rows: nw.Series[Any]) -> KeyedRun:
        """Keep some rows."""
        return KeyedRun(self.frame.filter(rows), self.origin, self.n_rows)

    def ordered(self, columns: Collection[str]) -> KeyedRun:
        """Sort rows by the key, and by `columns` where it is the same."""
        if columns:
            return replace(self, frame=self.frame.sort(KEY, *columns))
        if self.keys.is_sorted():
            return self
        if self.keys.dtype != nw.String:
            return replace(self, frame=self.frame.sort(KEY))
        return replace(self, frame=_taken(self.frame, text_order(self.keys.to_polars())))

    def join(self, other: KeyedRun, how: Literal["semi", "anti"]) -> KeyedRun:
        """Keep the rows whose key `other` has (`semi`) or lacks (`anti`)."""
        frame = self.frame.join(other.frame.select(KEY), on=KEY, how=how)
        return KeyedRun(frame, self.origin, self.n_rows).ordered(())

    def is_complete(self, columns: Collection[str]) -> nw.Series[Any]:
        """Whether all of `columns` have a value, by row."""
        has_value = (~nw.col(name).is_null() for name in (KEY, *columns))
        return self.frame.select(nw.all_horizontal(*has_value, ignore_nulls=False).alias(KEY)).get_column(KEY)


def with_key(frame: nw.DataFrame[Any], ids: Sequence[str]) -> nw.DataFrame[Any]:
    """Add the key of the columns `ids`, in place of one of them where it is alone.

    The key of several columns is their values with commas between them, such as ``7, 2``; one that lacks any
    of them is null.
    """
    key = nw.col(ids[0]) if len(ids) == 1 else nw.concat_str(map(_part_of_key, ids), separator=", ")
    keys = frame.select(key.alias(KEY)).get_column(KEY)
    return (frame.drop(ids[0]) if len(ids) == 1 else frame).with_columns(keys)


def _taken(frame: nw.DataFrame[Any], rows: npt.NDArray[np.int64]) -> nw.DataFrame[Any]:
    return nw.from_native(frame.to_polars().rechunk()[rows], eager_only=True)


def _part_of_key(name: str) -> nw.Expr:
    """Text of a column with a backslash before its commas, so that no two keys are composed alike."""
    text = nw.col(name).cast(nw.String)
    return text.str.replace_all("\\", "\\\\", literal=True).str.replace_all(",", "\\,", literal=True)


def keyed_runs(
    baseline: ExampleTable, candidate: ExampleTable, columns: PairedColumns
) -> tuple[tuple[KeyedRun, KeyedRun], dict[str, ColumnType]]:
    """Bring the columns of both runs to one type each and their rows in order.

    Raises
    ------
    InputTypeError
        If a column cannot be used, or its types in the two runs do not go together.
    PairingError
        If ids are neither integers nor text, or clusters, strata or classes are decimals.
    """
    baseline, candidate, types = read_types(baseline, candidate, columns)
    if columns.id is None:
        return (KeyedRun.by_position(baseline), KeyedRun.by_position(candidate)), types
    ids, ties = columns.ids, columns.tie_breakers
    first = KeyedRun.by_id(baseline, ids, ties)
    del baseline  # whose columns are copied: one run at a time is in memory twice
    runs = first, KeyedRun.by_id(candidate, ids, ties)
    return (runs[0].of_examples(), runs[1].of_examples()) if columns.repeats else runs, types


def read_types(
    baseline: ExampleTable, candidate: ExampleTable, columns: PairedColumns
) -> tuple[ExampleTable, ExampleTable, dict[str, ColumnType]]:
    """Bring the columns of both runs to one type each.

    As :func:`~trackperm.tables.column_types.typed_columns` does.

    Raises
    ------
    InputTypeError
        If a column cannot be used, or its types in the two runs do not go together.
    PairingError
        If ids are neither integers nor text, or clusters, strata or classes are decimals.
    """
    texts = (*columns.texts, *columns.ids)
    baseline, candidate, types = typed_columns(baseline, candidate, columns.names, text=texts)
    for name in columns.groups:
        if types[name] not in (ColumnType.INTEGER, ColumnType.TEXT, ColumnType.BOOLEAN):
            raise PairingError(
                f"column `{name}` is {types[name].value}, which names no clusters, strata or classes",
                hint="they are integers, text or booleans.",
            )
    require_id_types(columns.ids, types)
    return baseline, candidate, types


def require_id_types(ids: Sequence[str], types: Mapping[str, ColumnType]) -> None:
    """Refuse ids that are neither integers nor text.

    Raises
    ------
    PairingError
        If a column of `ids` is something else.
    """
    for name in ids:
        if types[name] not in (ColumnType.INTEGER, ColumnType.TEXT):
            raise PairingError(
                f"column `{name}` is {types[name].value}, which identifies no examples",
                hint="`--id NAME` names a column of integers or text.",
            )
