"""Types of columns, and the conversion of a column of two runs to one type."""

from __future__ import annotations

import enum
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import polars as pl

from trackperm.errors import InputTypeError, TrackpermError
from trackperm.tables.columns.nested_fields import named_fields
from trackperm.tables.lazy.table import LazyTable
from trackperm.tables.table import ExampleTable, have, to_polars

_INTEGER_TEXT = r"^(?:0|-?[1-9][0-9]*)$"
NUMBER_TEXT = (
    r"^(?:-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[nN]a[nN]|-?[iI]nf(?:inity)?)$"
)
"""Pattern of texts that are numbers in files without types."""

FIRST_ROWS = 1000
"""Number of rows that show what a column holds."""

_LARGEST_EXACT = 2**53 - 1  # largest integer such that no other integer rounds to the same float64


class ColumnType(enum.Enum):
    """Type of a column's values, after its conversion to one type in both runs."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    TEXT = "text"
    TEXT_LIST = "list of text"
    INTEGER_LIST = "list of integers"
    DECIMAL_LIST = "list of decimals"


LISTS = (ColumnType.TEXT_LIST, ColumnType.INTEGER_LIST, ColumnType.DECIMAL_LIST)

_LISTS_OF_NUMBERS = {ColumnType.INTEGER_LIST, ColumnType.DECIMAL_LIST}

_DTYPES: dict[ColumnType, Any] = {
    ColumnType.INTEGER: pl.Int64,
    ColumnType.DECIMAL: pl.Float64,
    ColumnType.BOOLEAN: pl.Boolean,
    ColumnType.TEXT: pl.String,
    ColumnType.TEXT_LIST: pl.List(pl.String),
    ColumnType.INTEGER_LIST: pl.List(pl.Int64),
    ColumnType.DECIMAL_LIST: pl.List(pl.Float64),
}


def unusable(table: ExampleTable, name: str) -> str | None:
    """Return the reason why the values of column `name` cannot be used; None if they can be used."""
    try:
        _require_types(table, [name])
        if isinstance(table.data, LazyTable) and table.has_representatives([name]):
            table = table.with_rows(table.type_representatives([name]))
        _Column.read(table.only([name]), name)
    except InputTypeError as error:
        return error.message
    return None


def is_number(name: str, tables: Sequence[ExampleTable]) -> bool:
    """Whether a column has numbers or booleans in the first rows of all tables."""
    return _are(name, tables, (ColumnType.INTEGER, ColumnType.DECIMAL, ColumnType.BOOLEAN))


def are_integers(name: str, tables: Sequence[ExampleTable]) -> bool:
    """Whether a column has integers in the first rows of all tables."""
    return _are(name, tables, (ColumnType.INTEGER,))


def may_be_ids(name: str, tables: Sequence[ExampleTable]) -> bool:
    """Whether a column has integers or texts in the first rows of all tables, as ids are."""
    return _are(name, tables, (ColumnType.INTEGER, ColumnType.TEXT))


def are_decimals(name: str, tables: Sequence[ExampleTable]) -> bool:
    """Whether a column has decimals in the first rows of all tables."""
    return _are(name, tables, (ColumnType.DECIMAL,))


def is_binary(table: ExampleTable, name: str) -> bool:
    """Whether the first values of a column are 0, 1, true, false, yes, no or missing."""
    head = table.head(FIRST_ROWS).only((name,))
    try:
        typed, _, types = typed_columns(head, head, [name])
    except TrackpermError:
        return True  # the pairing reports the error
    values = typed.frame.get_column(name).to_polars().drop_nulls()
    if types[name] is ColumnType.TEXT:
        return bool(values.str.to_lowercase().is_in(["true", "false", "yes", "no"]).all())
    return types[name] not in LISTS and bool(values.cast(pl.Float64).is_in([0.0, 1.0]).all())


def _are(name: str, tables: Sequence[ExampleTable], types: Collection[ColumnType]) -> bool:
    if not have(tables, [name]):
        return False
    try:
        heads = [table.head(FIRST_ROWS) for table in tables]
        for head in heads:
            _require_types(head, [name])
        return all(_read(head, name).type_alone in types for head in heads)
    except InputTypeError:
        return False


def typed_columns(
    baseline: ExampleTable, candidate: ExampleTable, columns: Collection[str], text: Collection[str] = ()
) -> tuple[ExampleTable, ExampleTable, dict[str, ColumnType]]:
    """Convert columns of two runs to polars, and each column to one type in both runs.

    If both runs have types, these are kept, except that booleans become integers if the other run has
    integers, and decimals become integers if every value of both runs is integral. A column of an untyped
    table is integer, decimal or text, decided by all values of both runs together. Therefore ``1.10`` and
    ``1.1`` are the same number unless the column is in `text`; :func:`numbers_in_two_ways` finds such values.
    NaN becomes null. Lists hold text, integers or decimals; booleans in lists become integers, and integers
    become decimals if the lists of the other run hold decimals. Objects of numbers in JSON files become JSON
    text.

    Parameters
    ----------
    baseline, candidate : ExampleTable
        Tables that have all `columns`.
    columns : collection of str
        Names of the columns to keep.
    text : collection of str
        Columns among `columns`, such as ids and classes with names like ``1.10``, that stay text if a table
        is untyped; integers of a typed partner then become text too.

    Returns
    -------
    baseline, candidate : ExampleTable
        Tables that contain only `columns`.
    types : dict of str to ColumnType
        Type of each column.

    Raises
    ------
    InputTypeError
        If a column's values cannot be used, or its types in the two runs are not compatible.
    """
    types: dict[str, ColumnType] = {}
    values: tuple[dict[str, pl.Series], dict[str, pl.Series]] = ({}, {})
    names = list(dict.fromkeys(columns))
    for table in (baseline, candidate):
        _require_types(table, names)
    baseline, candidate = (
        table.only(names) if isinstance(table.data, LazyTable) else table for table in (baseline, candidate)
    )
    for name in names:
        pair = (_read(baseline, name), _read(candidate, name))
        pair = _as_written(pair) if name in text else _by_values(pair)
        types[name] = _common_type(pair)
        for series, column in zip(values, pair, strict=True):
            series[name] = column.cast(types[name]).values
    first, second = map(pl.DataFrame, values)
    return baseline.with_rows(first), candidate.with_rows(second), types


def numbers_in_two_ways(
    baseline: ExampleTable, candidate: ExampleTable, name: str
) -> tuple[str, str, str] | None:
    """Find two texts in a column of one run that :func:`typed_columns` would read as the same number.

    Returns
    -------
    origin, first, second : str
        The run and both texts, such as ``1.1`` and ``1.10``. The result is None if no such texts exist,
        if column `name` is not read as numbers, or if one of the runs has a type for it.
    """
    tables = (baseline, candidate)
    if not all(table.is_untyped(name) and name not in table.unusable for table in tables):
        return None
    columns = [_Column.read(table.only([name]), name) for table in tables]
    columns = [column for column in columns if column.type is not None]
    if not columns or not all(column.untyped for column in columns):
        return None
    if all(_canonical_integers(column.values) is not None for column in columns):
        return None
    written = [column.values.drop_nulls().unique() for column in columns]
    if _numbers(pl.concat(written)) is None:
        return None
    for column, texts in zip(columns, written, strict=True):
        frame = pl.DataFrame({"text": texts, "number": texts.cast(pl.Float64).fill_nan(None)}).drop_nulls()
        again = frame.filter(pl.col("number").is_duplicated()).sort("number", "text")
        if len(again):
            return column.origin, again["text"][0], again["text"][1]
    return None


def _require_types(table: ExampleTable, names: Collection[str]) -> None:
    """Refuse column types whose values cannot be used, before a file or a query is read.

    Raise InputTypeError if a column has such a type.
    """
    if isinstance(table.data, LazyTable):
        for name, dtype in table.data.dtypes(names).items():
            if name not in table.unusable:
                _normalised(pl.Series(name, [], dtype), f"column `{name}` of `{table.origin}`")


@dataclass(frozen=True, eq=False)
class _Column:
    """One column of one run; `type` is None if all its values are null."""

    values: pl.Series
    type: ColumnType | None
    origin: str
    untyped: bool

    @classmethod
    def read(cls, table: ExampleTable, name: str) -> _Column:
        where = f"column `{name}` of `{table.origin}`"
        if name in table.unusable:
            texts = _objects_of_numbers(table.frame.get_column(name).to_list())
            if texts is None:
                fields = None if table.has_joined_labels else named_fields(table, [name])
                raise InputTypeError(
                    f"{where} {table.unusable[name]}",
                    hint="give every value the same type: text or a number."
                    if fields is None
                    else f"{fields}.",
                )
            return cls(pl.Series(name, texts, pl.String), ColumnType.TEXT, table.origin, False)
        values, type_ = _normalised(to_polars(table.frame.get_column(name), where), where)
        if values.null_count() == len(values):
            values, type_ = pl.Series(name, [None] * len(values), dtype=pl.Null), None
        untyped = table.is_untyped(name) and type_ is ColumnType.TEXT
        return cls(values.alias(name), type_, table.origin, untyped)

    @cached_property
    def type_alone(self) -> ColumnType:
        """Type that the column has beside itself in :func:`typed_columns`."""
        return _common_type(_by_values((self, self)))

    def cast(self, type_: ColumnType) -> _Column:
        if self.type is ColumnType.INTEGER and type_ is ColumnType.DECIMAL and not self.is_exact():
            raise InputTypeError(
                f"column `{self.values.name}` of `{self.origin}` has integers above 2^53, and decimals in"
                " the other run: comparing them would round"
            )
        return replace(self, values=self.values.cast(_DTYPES[type_]), type=type_)

    def is_exact(self) -> bool:
        """Whether every value is an integer that both int64 and float64 represent exactly."""
        values = self.values.drop_nulls()
        return bool(
            values.is_between(-_LARGEST_EXACT, _LARGEST_EXACT).all() and (values == values.round()).all()
        )

    def example(self) -> object:
        """Return the least value; :mod:`~trackperm.tables.lazy.type_representatives` contain it too."""
        values = self.values.drop_nulls()
        return values.head(1).to_list()[0] if self.type in LISTS else values.min()


_READ: WeakKeyDictionary[ExampleTable, dict[str, _Column]] = WeakKeyDictionary()


def _read(table: ExampleTable, name: str) -> _Column:
    """Read a column; one of few rows in memory only once, as its type is asked for again and again."""
    if isinstance(table.data, LazyTable) or len(table) > FIRST_ROWS:
        return _Column.read(table.only([name]), name)
    columns = _READ.setdefault(table, {})
    if name not in columns:
        columns[name] = _Column.read(table, name)
    return columns[name]


def _objects_of_numbers(values: Iterable[Any]) -> list[str | None] | None:
    """Write objects that map names to numbers, such as classes to probabilities, as JSON; None for others."""
    found: list[str | None] = []
    for value in values:
        if value is None:
            found.append(None)
        elif isinstance(value, dict) and all(type(each) in (int, float) for each in value.values()):
            found.append(json.dumps(value, ensure_ascii=False))
        else:
            return None
    return found if any(found) else None


def _normalised(values: pl.Series, where: str) -> tuple[pl.Series, ColumnType | None]:
    """Convert values to int64, float64 without NaN, boolean or text."""
    dtype = values.dtype
    if dtype == pl.Null:
        return values, None
    if dtype == pl.Boolean:
        return values, ColumnType.BOOLEAN
    if dtype.is_integer() or (isinstance(dtype, pl.Decimal) and not dtype.scale):
        integers = values.cast(pl.Int64, strict=False)
        if integers.null_count() > values.null_count():
            raise InputTypeError(
                f"{where} has integers outside the range of int64 (largest: {values.max()!s})",
                hint="store identifiers of this size as text.",
            )
        return integers, ColumnType.INTEGER
    if dtype.is_float() or dtype.is_decimal():
        decimals = values.cast(pl.Float64).fill_nan(None)
        if decimals.is_infinite().any():
            raise InputTypeError(f"{where} has infinite values")
        return decimals, ColumnType.DECIMAL
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return values.cast(pl.String), ColumnType.TEXT
    if isinstance(dtype, pl.List | pl.Array):
        lists = values.arr.to_list() if isinstance(dtype, pl.Array) else values
        return _normalised_lists(lists, where)
    kind = "lists or objects" if dtype.is_nested() or dtype == pl.Object else f"values of type {dtype}"
    raise InputTypeError(
        f"{where} holds {kind}",
        hint="convert them to text; ids can be integers or text, other values also decimals or booleans.",
    )


def _normalised_lists(lists: pl.Series, where: str) -> tuple[pl.Series, ColumnType]:
    """Convert lists to lists of int64, of float64 or of text; to text if all are empty."""
    items = lists.filter(lists.list.len() > 0).explode()
    _, type_ = _normalised(items, f"{where}, inside its lists,")
    allowed = {
        None: ColumnType.TEXT_LIST,
        ColumnType.TEXT: ColumnType.TEXT_LIST,
        ColumnType.INTEGER: ColumnType.INTEGER_LIST,
        ColumnType.BOOLEAN: ColumnType.INTEGER_LIST,
        ColumnType.DECIMAL: ColumnType.DECIMAL_LIST,
    }
    if type_ not in allowed:
        raise InputTypeError(f"{where} holds lists of {items.dtype}", hint="lists hold text or numbers.")
    found = allowed[type_]
    lists = lists.cast(_DTYPES[found])
    if found is ColumnType.DECIMAL_LIST:
        lists = lists.list.eval(pl.element().fill_nan(None))
    return lists, found


def _as_written(pair: tuple[_Column, _Column]) -> tuple[_Column, _Column]:
    """Keep untyped columns as text, and convert a typed partner's integers to text."""
    if not any(column.untyped and column.type for column in pair):
        return pair
    first, second = (
        column.cast(ColumnType.INTEGER).cast(ColumnType.TEXT)
        if column.type is ColumnType.INTEGER or (column.type is ColumnType.DECIMAL and column.is_exact())
        else column
        for column in pair
    )
    return first, second


def _by_values(pair: tuple[_Column, _Column]) -> tuple[_Column, _Column]:
    """Read untyped columns as numbers if all their values are numbers and no typed partner is text."""
    untyped = [column for column in pair if column.untyped and column.type]
    if not untyped or any(column.type is ColumnType.TEXT and not column.untyped for column in pair):
        return pair
    numbers = _numbers(pl.concat([column.values for column in untyped]))
    if numbers is None:
        return pair
    read, type_ = numbers
    result, start = [], 0
    for column in pair:
        if column.untyped and column.type:
            part = read.slice(start, len(column.values))
            start += len(column.values)
            if part.is_infinite().any():
                raise InputTypeError(f"column `{part.name}` of `{column.origin}` has infinite values")
            has_value = part.null_count() < len(part)
            column = replace(column, values=part, type=type_ if has_value else None)
        result.append(column)
    return result[0], result[1]


def _numbers(text: pl.Series) -> tuple[pl.Series, ColumnType] | None:
    """Convert `text` to int64 or float64; return None if this would change the meaning of a value."""
    if (canonical := _canonical_integers(text)) is not None:
        return canonical, ColumnType.INTEGER
    is_integer = text.str.contains(_INTEGER_TEXT)
    integers = text.filter(is_integer).cast(pl.Int64, strict=False)
    if integers.has_nulls():
        return None
    if is_integer.all():
        return text.cast(pl.Int64), ColumnType.INTEGER
    if (
        not text.str.contains(NUMBER_TEXT).all()
        or not integers.is_between(-_LARGEST_EXACT, _LARGEST_EXACT).all()
    ):
        return None
    decimals = text.cast(pl.Float64).fill_nan(None)
    return None if decimals.null_count() == len(decimals) else (decimals, ColumnType.DECIMAL)


def _canonical_integers(text: pl.Series) -> pl.Series | None:
    """Convert texts to int64 if each is written as Python writes its integer, as most columns are."""
    if text.dtype != pl.String:
        return None
    integers = text.cast(pl.Int64, strict=False)
    is_whole = integers.null_count() == text.null_count() < len(text)
    return integers if is_whole and (integers.cast(pl.String) == text).all() else None


def _common_type(pair: tuple[_Column, _Column]) -> ColumnType:
    types = {column.type for column in pair if column.type}
    if not types:
        return ColumnType.TEXT
    if ColumnType.DECIMAL in types and all(
        column.is_exact() for column in pair if column.type is ColumnType.DECIMAL
    ):
        types = types - {ColumnType.DECIMAL} | {ColumnType.INTEGER}
    if ColumnType.TEXT_LIST in types and types <= set(LISTS) and len(types) > 1:
        # Lists that are all empty are those of text.
        types = {column.type for column in pair if column.type and column.values.list.len().sum()} or types
    if len(types) == 1:
        return types.pop()
    if types == _LISTS_OF_NUMBERS:
        return ColumnType.DECIMAL_LIST
    for clash in ({ColumnType.TEXT}, *({lists} for lists in LISTS), {ColumnType.BOOLEAN, ColumnType.DECIMAL}):
        if clash <= types:
            raise InputTypeError(
                f"column `{pair[0].values.name}` is "
                + " but ".join(
                    f"{column.type.value} in `{column.origin}` (such as {column.example()!r})"
                    for column in pair
                    if column.type
                ),
                hint="store the column with the same type in both runs.",
            )
    return ColumnType.DECIMAL if ColumnType.DECIMAL in types else ColumnType.INTEGER
