"""What counters have in common: what they take, what they refuse, and items of lists end to end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import UncountableError
from trackperm.tables.column_types import ColumnType

Integers = npt.NDArray[np.int64]

TEXT = frozenset({ColumnType.TEXT})
TEXTS = TEXT | {ColumnType.TEXT_LIST}
ITEMS = TEXTS | {ColumnType.INTEGER_LIST}

_WORD = r"[^\s\x1c-\x1f]+"  # what str.split() leaves


@dataclass(frozen=True)
class Counter:
    """A function that expressions of counts may call.

    Attributes
    ----------
    function : callable
        From one polars Series without nulls for each column (int64, text, or lists of these) and the choice,
        if there is one, to an array of int64, or of float64 if `decimal`. Messages call a column as its
        Series is called.
    columns : tuple of frozenset of ColumnType
        The types that each column may have.
    choices : tuple of str or of int
        What a last argument, a text or integer that may be left out, can be; the first is the default.
    decimal : bool
        Whether it gives decimals.
    """

    function: Callable[..., npt.NDArray[Any]]
    columns: tuple[frozenset[ColumnType], ...]
    choices: tuple[str, ...] | tuple[int, ...] = ()
    decimal: bool = False

    @property
    def arity(self) -> tuple[int, int]:
        """Fewest and most arguments."""
        return len(self.columns), len(self.columns) + bool(self.choices)


@dataclass(frozen=True, eq=False)
class Items:
    """The items of a column of lists, end to end.

    Attributes
    ----------
    name : str
        Name of the column.
    values : polars.Series
        Items of all rows.
    offsets : ndarray of int64, shape (n + 1,)
        Where the items of each row begin, and where those of the last one end.
    """

    name: str
    values: pl.Series
    offsets: Integers

    @classmethod
    def read(cls, column: pl.Series) -> Items:
        """Take lists as they are, and text apart at whitespace.

        Raises
        ------
        UncountableError
            If there is a null in a list.
        """
        lists = column.str.extract_all(_WORD) if column.dtype == pl.String else column
        lengths = lists.list.len()
        values = lists.filter(lengths > 0).explode()
        offsets = np.zeros(len(lists) + 1, dtype=np.int64)
        np.cumsum(lengths.to_numpy(), out=offsets[1:])
        items = cls(column.name, values, offsets)
        if values.has_nulls():
            row = items.row_of(int(values.is_null().arg_true()[0]))
            raise UncountableError(row, f"the list in `{column.name}` has a null in it")
        return items

    @property
    def lengths(self) -> Integers:
        """Number of items of each row."""
        return np.diff(self.offsets)

    @property
    def rows(self) -> Integers:
        """The row of every item."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.lengths)

    def row_of(self, position: int) -> int:
        """Return the row of one item."""
        return int(np.searchsorted(self.offsets, position, side="right")) - 1

    def sums(self, values: npt.NDArray[Any]) -> Integers:
        """Add one number for every item up by row."""
        running = np.zeros(len(values) + 1, dtype=np.int64)
        np.cumsum(values, out=running[1:])
        return np.diff(running[self.offsets])

    def part(self, first: int, last: int) -> Items:
        """Return the items of rows from `first` up to, not including, `last`."""
        offsets = self.offsets[first : last + 1]
        values = self.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
        return Items(self.name, values, offsets - offsets[0])

    def require_same_lengths(self, other: Items) -> None:
        """Refuse rows of which `other` has another number of items.

        Raises
        ------
        UncountableError
            Naming the first such row.
        """
        differ = self.lengths != other.lengths
        if differ.any():
            row = int(differ.argmax())
            raise UncountableError(
                row,
                f"`{self.name}` has {self.lengths[row]} items and `{other.name}` has {other.lengths[row]}",
                "items are compared position by position: both columns must be of the same tokens.",
            )


def numbered(*columns: Items) -> tuple[list[Integers], int]:
    """Give equal items of several columns the same number from 0 on; return these, and what all are below."""
    values = pl.concat([column.values for column in columns])
    if values.dtype == pl.String:
        numbers = values.cast(pl.Categorical).to_physical().cast(pl.Int64).to_numpy()
    else:
        numbers = np.unique(values.to_numpy(), return_inverse=True)[1]
    ends = np.cumsum([len(column.values) for column in columns])
    return np.split(numbers, ends[:-1]), 1 + int(numbers.max(initial=-1))


def same_rows(first: Items, numbers: Integers, second: Items, others: Integers) -> npt.NDArray[np.bool_]:
    """Whether rows of two columns, with items numbered alike, have the same items in the same order."""
    same: npt.NDArray[np.bool_] = first.lengths == second.lengths
    rows = np.flatnonzero(same)
    lengths = first.lengths[rows]
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    here, there = (np.repeat(items.offsets[rows], lengths) + within for items in (first, second))
    same[np.repeat(rows, lengths)[numbers[here] != others[there]]] = False
    return same
