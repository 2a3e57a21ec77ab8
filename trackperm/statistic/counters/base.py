"""Counters as data, errors of counters, and lists of all rows concatenated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import UncountableError
from trackperm.tables.columns.types import ColumnType
from trackperm.tables.columns.written_lists import written_list

Integers = npt.NDArray[np.int64]

TEXT = frozenset({ColumnType.TEXT})
TEXTS = TEXT | {ColumnType.TEXT_LIST}
NUMBERS = frozenset({ColumnType.DECIMAL, ColumnType.INTEGER})
CLASSES = frozenset({ColumnType.TEXT, ColumnType.INTEGER, ColumnType.BOOLEAN})
RANKS = frozenset({ColumnType.TEXT, ColumnType.INTEGER})
ITEMS = TEXTS | {ColumnType.INTEGER_LIST}
PROBABILITIES = TEXT | {ColumnType.DECIMAL_LIST, ColumnType.INTEGER_LIST}

_LISTS = "give lists, as in JSON Lines or Parquet, or items that spaces separate."
_SEPARATOR = r"[^\s,;|][,;|][^\s,;|]"
_WORD = r"[^\s\x1c-\x1f]+"  # the words that str.split() returns
_SPACE = r"[\s\x1c-\x1f]"
_FEW = 10  # rows up to which all may have one item by chance


@dataclass(frozen=True)
class Counter:
    """A function that expressions of counts can call.

    Attributes
    ----------
    function : callable
        Function from one polars Series without nulls for each column (int64, float64, text, or lists), and
        the choice if there is one, to an array of int64, or of float64 if `decimal`. Messages call a column
        by the name of its Series.
    columns : tuple of frozenset of ColumnType
        Allowed types of each column.
    choices : tuple of str or of int
        Allowed values of an optional last argument; the first is the default.
    decimal : bool
        Whether the values are decimals.
    free : {ColumnType.TEXT, ColumnType.INTEGER} or None
        Type of an optional argument, before the choice, that may have any value: by default the empty text,
        or 0.
    by_class : bool
        Whether the first column may be several columns, one for each class. The function then gets a Series
        of structs, whose fields are the classes.
    objects : int or None
        Position of the column that may hold objects of numbers by name, as JSON text; None if none may.
    looks_up : bool
        Whether the last column is the label, of which the function gets the distinct values with their
        numbers of examples in the test, as :class:`LabelCounts`, in place of a Series.
    """

    function: Callable[..., npt.NDArray[Any]]
    columns: tuple[frozenset[ColumnType], ...]
    choices: tuple[str, ...] | tuple[int, ...] = ()
    decimal: bool = False
    free: ColumnType | None = None
    by_class: bool = False
    objects: int | None = None
    looks_up: bool = False

    @property
    def arity(self) -> tuple[int, int]:
        """Least and greatest number of arguments."""
        return len(self.columns), len(self.columns) + bool(self.choices) + (self.free is not None)

    def defaults(self) -> list[str | int]:
        """Return the values of the optional arguments where they are not given."""
        found: list[str | int] = []
        if self.free is not None:
            found.append("" if self.free is ColumnType.TEXT else 0)
        return [*found, *self.choices[:1]]

    @property
    def keeps_text(self) -> bool:
        """Whether columns of untyped files that it reads stay text, although they look like numbers."""
        return all(
            ColumnType.TEXT in allowed and ColumnType.INTEGER not in allowed for allowed in self.columns
        )


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """Distinct labels of the examples in the test, with the number of examples of each.

    Attributes
    ----------
    name : str
        Column of the labels.
    values : polars.Series
        The labels.
    sizes : ndarray of int64, shape (K,)
        Number of examples of each.
    """

    name: str
    values: pl.Series
    sizes: Integers


@dataclass(frozen=True, eq=False)
class Items:
    """Items of a column of lists, concatenated.

    Attributes
    ----------
    name : str
        Name of the column.
    values : polars.Series
        Items of all rows.
    offsets : ndarray of int64, shape (n + 1,)
        Position of the first item of each row, and the end of the last row.
    """

    name: str
    values: pl.Series
    offsets: Integers

    @classmethod
    def read(cls, column: pl.Series) -> Items:
        """Read lists as they are, and text as its words, separated by whitespace.

        Refuse a null in a list, and lists that are written as text.
        """
        require_no_written_lists(column, _LISTS)
        lists = column.str.extract_all(_WORD) if column.dtype == pl.String else column
        lengths = lists.list.len()
        values = lists.filter(lengths > 0).explode()
        offsets = np.zeros(len(lists) + 1, dtype=np.int64)
        np.cumsum(lengths.to_numpy(), out=offsets[1:])
        items = cls(column.name, values, offsets)
        if values.has_nulls():
            row = items.row_of(int(values.is_null().arg_true()[0]))
            raise UncountableError(row, f"the list in `{column.name}` contains a null")
        return items

    @property
    def lengths(self) -> Integers:
        """Number of items of each row."""
        return np.diff(self.offsets)

    @property
    def rows(self) -> Integers:
        """Row of every item."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.lengths)

    def row_of(self, position: int) -> int:
        """Return the row of one item."""
        return int(np.searchsorted(self.offsets, position, side="right")) - 1

    def sums(self, values: npt.NDArray[Any]) -> Integers:
        """Sum one number for every item by row."""
        running = np.zeros(len(values) + 1, dtype=np.int64)
        np.cumsum(values, out=running[1:])
        return np.diff(running[self.offsets])

    def part(self, first: int, last: int) -> Items:
        """Return the items of rows from `first` up to, not including, `last`."""
        offsets = self.offsets[first : last + 1]
        values = self.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
        return Items(self.name, values, offsets - offsets[0])

    def require_same_lengths(self, other: Items) -> None:
        """Refuse the first row with different numbers of items in `other`."""
        differ = self.lengths != other.lengths
        if differ.any():
            row = int(differ.argmax())
            raise UncountableError(
                row,
                f"`{self.name}` has {self.lengths[row]} items and `{other.name}` has {other.lengths[row]}",
                "items are compared position by position: both columns must have the same tokens.",
            )


def require_no_written_lists(column: pl.Series, hint: str, *, of_texts: bool = False) -> None:
    """Refuse a column of lists that are written as text; with `of_texts`, only lists of texts."""
    if column.dtype == pl.String and (text := written_list(column, of_texts=of_texts)) is not None:
        row = int((column == text).arg_max() or 0)
        raise UncountableError(row, f"`{column.name}` is {text!r}, a list that is written as text", hint)


def require_texts(*columns: pl.Series) -> None:
    """Refuse columns of lists of texts, such as several references, that are written as text."""
    for column in columns:
        require_no_written_lists(column, "write one text for each example, without a list.", of_texts=True)


def require_spaces(*columns: pl.Series) -> None:
    """Refuse texts of which none has several words, but most have parts between commas or bars."""
    texts = [column for column in columns if column.dtype == pl.String]
    if any(column.str.contains(r"\S\s+\S").any() for column in texts):
        return
    for column in texts:
        has_parts = column.str.contains(_SEPARATOR)
        if 2 * int(has_parts.sum()) > len(column):
            row = int(has_parts.arg_max() or 0)
            problem = f"`{column.name}` is {column[row]!r}, whose items are not separated by spaces"
            raise UncountableError(row, problem, _LISTS)


def require_same_items(
    prediction: pl.Series,
    label: pl.Series,
    hint: str = "write one text in each column, without a list, or the tokens of both columns as lists.",
) -> None:
    """Refuse a text beside a list that has an item with spaces, which no word of the text can equal."""
    for lists, texts in ((prediction, label), (label, prediction)):
        if lists.dtype != pl.List(pl.String) or texts.dtype != pl.String:
            continue
        items = Items.read(lists)
        has_space = items.values.str.contains(_SPACE)
        if has_space.any():
            position = int(has_space.arg_max() or 0)
            raise UncountableError(
                items.row_of(position),
                f"the list in `{lists.name}` has the item {items.values[position]!r}, which has spaces, and"
                f" `{texts.name}` is text, which is read as its words: no word can equal this item",
                hint,
            )


def require_tokens(*columns: pl.Series) -> None:
    """Refuse lists that all have one item, some of them a text of several words, such as a reference."""
    for column in columns:
        if not isinstance(column.dtype, pl.List) or len(column) <= _FEW or (column.list.len() > 1).any():
            continue
        items = Items.read(column)
        has_space = items.values.cast(pl.String).str.contains(_SPACE)
        if has_space.any():
            position = int(has_space.arg_max() or 0)
            raise UncountableError(
                items.row_of(position),
                f"the list in `{column.name}` has the one item {items.values[position]!r}, which has spaces,"
                " and no list of this column has more items",
                "write the text without a list, or its tokens as a list.",
            )


def numbered(*columns: Items) -> tuple[list[Integers], int]:
    """Assign numbers from 0 to the items of several columns, equal numbers to equal items.

    The numbers of each column are returned, and their exclusive upper bound.
    """
    values = pl.concat([column.values for column in columns])
    if values.dtype == pl.String:
        numbers = values.cast(pl.Categorical).to_physical().cast(pl.Int64).to_numpy()
    else:
        numbers = np.unique(values.to_numpy(), return_inverse=True)[1]
    ends = np.cumsum([len(column.values) for column in columns])
    return np.split(numbers, ends[:-1]), 1 + int(numbers.max(initial=-1))


def same_rows(first: Items, numbers: Integers, second: Items, others: Integers) -> npt.NDArray[np.bool_]:
    """Whether rows of two columns, whose items have common numbers, are equal lists."""
    same: npt.NDArray[np.bool_] = first.lengths == second.lengths
    rows = np.flatnonzero(same)
    lengths = first.lengths[rows]
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    here, there = (np.repeat(items.offsets[rows], lengths) + within for items in (first, second))
    same[np.repeat(rows, lengths)[numbers[here] != others[there]]] = False
    return same
