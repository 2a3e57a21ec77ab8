"""Columns that say true or false, or yes or no, as text, as pandas writes booleans into CSV files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import narwhals as nw

from trackperm.tables.columns.types import FIRST_ROWS, is_number
from trackperm.tables.lazy.table import COUNT, LazyTable
from trackperm.tables.polars_code import rewriting, text_of, without_ending
from trackperm.tables.table import ExampleTable

TRUTHS = ({"true", "false"}, {"yes", "no"})
"""Words of one column that are booleans, in any case."""

_TEXTS = (nw.String, nw.Categorical, nw.Enum)
_NUMBERS = {"0", "1", "0.0", "1.0"}
_MOST = 16
"""Most spellings of such words in a column: those of ``true`` alone are 16."""


def with_truths(table: ExampleTable, names: Iterable[str]) -> ExampleTable:
    """Read columns as booleans if every row says true or false, or yes or no; leave others as they are."""
    found = [name for name in names if _says_truths(table, name)]
    if not found:
        return table
    if isinstance(table.data, LazyTable):
        data: nw.DataFrame[Any] | LazyTable = table.data.replaced(found, _truth)
    else:
        data = table.data.with_columns(_truth(name) for name in found)
    untyped = frozenset(name for name in table.columns if table.is_untyped(name) and name not in found)
    return replace(table, data=data, untyped=untyped)


def _truth(name: str) -> nw.Expr:
    """Whether a column says true or yes; null where it is null."""
    words = nw.col(name).cast(nw.String).str.to_lowercase()
    return nw.when(~words.is_null()).then(words.is_in(["true", "yes"])).alias(name)


def with_like_truths(tables: Sequence[ExampleTable], names: Sequence[str]) -> list[ExampleTable]:
    """Read columns as booleans if all are, or say true and false, and these are written in different ways.

    Formats write booleans as ``true``, ``True`` or ``TRUE``, or have a type for them; within a table all
    texts have to be written in one way, as an answer of a model may be written in another way.
    """
    ways: set[object] = set()
    if _may_differ(tables, names):
        for table in tables:
            own = {_way_of_truths(table, name) for name in names}
            if len(own - {bool}) > 1 or None in own:
                return list(tables)
            ways |= own
    return [with_truths(table, names) for table in tables] if len(ways) > 1 else list(tables)


def _may_differ(tables: Sequence[ExampleTable], names: Sequence[str]) -> bool:
    """Whether columns are texts, some of files without types, or texts and booleans."""
    if not names or any(name not in table.columns for table in tables for name in names):
        return False
    columns = [(table.schema[name], table.is_untyped(name)) for table in tables for name in names]
    are_booleans = [dtype == nw.Boolean for dtype, _ in columns]
    are_possible = all(dtype == nw.Boolean or dtype in _TEXTS for dtype, _ in columns)
    has_untyped = any(is_untyped for _, is_untyped in columns)
    return are_possible and not all(are_booleans) and (has_untyped or any(are_booleans))


def _way_of_truths(table: ExampleTable, name: str) -> Callable[[str], str] | type[bool] | None:
    """Return the function that writes true and false as a column does; None for other columns."""
    if table.schema[name] == nw.Boolean:
        return bool
    if not _says_truths(table, name):
        return None
    counts = table.counts_of_few(name, _MOST)
    words = [] if counts is None else [str(word) for word in counts[name].drop_nulls()]
    ways = (str.lower, str.title, str.upper)
    are_booleans = {word.lower() for word in words} <= TRUTHS[0]
    return next((way for way in ways if are_booleans and all(word == way(word) for word in words)), None)


def are_numbers_or_truths(name: str, tables: Iterable[ExampleTable]) -> bool:
    """Whether a column has numbers or booleans in each table, or says true or false as text."""
    return all(is_number(name, [table]) or _says_truths(table, name) for table in tables)


class TruthsAsNumbers(NamedTuple):
    """Column `words` of true and false beside a column `numbers` of 0 and 1; `code` makes them alike."""

    words: str
    numbers: str
    code: str

    @classmethod
    def of(cls, table: ExampleTable, first: str, second: str) -> TruthsAsNumbers | None:
        """Find it among two columns of which one is text; None for other columns."""
        for words, numbers in ((first, second), (second, first)):
            is_boolean = table.schema[words] == nw.Boolean
            is_text = table.schema[numbers] in _TEXTS and not table.is_untyped(numbers)
            if not (is_boolean and is_text) and not _says_truths(table, words):
                continue
            counts = table.counts_of_few(numbers, _MOST)
            values = set() if counts is None else {str(each) for each in counts[numbers].drop_nulls()}
            if not values or not values <= _NUMBERS:
                continue
            truth = "" if is_boolean else '.str.to_lowercase().is_in(["true", "yes"])'
            cast = f".cast(pl.Int64){'.cast(pl.String)' if is_text else ''}"
            change = f"with_columns(pl.col({text_of(words)}){truth}{cast})"
            name = f"{without_ending(table.origin)}-numbers"
            return cls(words, numbers, rewriting(table.origin, change, name))
        return None


def _says_truths(table: ExampleTable, name: str) -> bool:
    if name not in table.columns or name in table.unusable or table.schema[name] not in _TEXTS:
        return False
    return _are_truths(table.head(FIRST_ROWS), name) and _are_truths(table, name)


def _are_truths(table: ExampleTable, name: str) -> bool:
    counts = table.counts_of_few(name, _MOST)
    if counts is None:
        return False
    words = {str(text).lower() for text in counts.drop(COUNT).to_series().drop_nulls()}
    return bool(words) and any(words <= pair for pair in TRUTHS)
