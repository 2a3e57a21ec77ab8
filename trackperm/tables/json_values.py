"""Typed columns of JSON values; no other types are inferred than those of JSON."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

import narwhals as nw
import polars as pl

from trackperm.errors import SourceError, UnusableColumnError
from trackperm.messages import listed
from trackperm.tables.columns.names import IDS, LABELS, PREDICTIONS
from trackperm.tables.expansion import Expansion, require_columns
from trackperm.tables.named_frame import named_frame
from trackperm.tables.table import ExampleTable

_NAMES = {bool: "booleans", int: "integers", float: "decimals", str: "text", list: "lists", dict: "objects"}
_MOST_COLUMNS = 20  # an object with more members that have digits has ids, and is not a row of a table
_LARGEST_EXACT = 2**53 - 1
_NO_EXAMPLE = re.compile(r"(?<![a-z])(epoch|step|iter|iteration|round|model|checkpoint|ckpt)(?![a-z])", re.I)
"""Words in names of training steps and models, which are not examples."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ValueError(f"more than one value for `{twice}`")
    return result


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def parsed(text: str) -> Any:
    """Parse a JSON document, with integers of any size; NaN is allowed, because Python writes it.

    Raise ValueError if `text` is not exactly one JSON document, or an object has two members of the same
    name.
    """
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def member(value: object, *path: str) -> Any:
    """Return the member at a path of names in nested objects; None if it is missing."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def has_members(value: object, *names: str) -> bool:
    """Whether a value is an object with members of all these names."""
    return isinstance(value, dict) and value.keys() >= set(names)


def are_ids(names: Collection[str]) -> bool:
    """Whether the names of the members of an object are ids of examples, and not names of columns.

    All have a digit, and there are many of them or they differ in their numbers alone, as ``q1`` and ``q2``.
    """
    if len(names) < 2 or not all(any(map(str.isdigit, name)) for name in names):
        return False
    return len(names) > _MOST_COLUMNS or len({re.sub("[0-9]+", "0", name) for name in names}) == 1


def are_steps(names: Sequence[str]) -> bool:
    """Whether names count epochs or models, as ``epoch_3`` does, or rise in steps, as 0, 100, 200 do."""
    if all(map(str.isdecimal, names)):
        numbers = [int(name) for name in names]
        steps = {second - first for first, second in pairwise(numbers)}
        return len(numbers) > 2 and len(steps) == 1 and min(steps) > 1
    return all(_NO_EXAMPLE.search(name) for name in names)


def are_columns(lists: Mapping[str, Sequence[Any]]) -> bool:
    """Whether lists are columns of one table: equally long, with the names of columns."""
    if len(set(map(len, lists.values()))) != 1 or len(lists) < 2 or len(next(iter(lists.values()))) < 2:
        return False
    return name_columns(lists)


def name_columns(names: Iterable[str]) -> bool:
    """Whether names are those of columns of a table: of ids, or of predictions and labels.

    Others may be measurements, such as ``loss`` and ``accuracy`` of each epoch, or of each class.
    """
    known = {name.lower() for name in names}
    return not known.isdisjoint(IDS) or not any(map(known.isdisjoint, (PREDICTIONS, LABELS)))


def whole_number(value: object) -> int | None:
    """Return the value of a number that is an integer, such as 2 or 2.0; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if isinstance(value, int) or value.is_integer() else None


def is_score(value: object) -> bool:
    """Whether a value of a metric is a number or missing; some formats log tuples to be aggregated."""
    return value is None or isinstance(value, bool | int | float)


def member_names(rows: Sequence[Mapping[str, Any]], origin: str) -> list[str]:
    """List the names of all members of objects, in order of first appearance.

    Raise SourceError if there are too many names, or their table would be large but almost empty.
    """
    names = list(dict.fromkeys(chain.from_iterable(rows)))
    require_columns(len(names), origin)
    Expansion.of(origin).require_dense(len(rows), len(names), sum(map(len, rows)))
    return names


def table(columns: Mapping[str, Sequence[Any]], place: Callable[[int], str], origin: str) -> ExampleTable:
    """Build a table of typed columns; a column of several types is kept, but marked as unusable.

    `place` returns the name of a row in messages, such as ``line 3``, given its index. Raise SourceError if
    the name of a column is not text.
    """
    series, unusable = [], {}
    for name, values in columns.items():
        if _SURROGATE.search(name):
            raise SourceError(
                f"the column name {name!r} of `{origin}` is not valid Unicode: it has half a surrogate pair",
                hint="rename the column.",
            )
        try:
            series.append(_typed(name, values, place))
        except UnusableColumnError as error:
            series.append(pl.Series(name, values, dtype=pl.Object))
            unusable[name] = str(error)
    return ExampleTable(nw.from_native(named_frame(series), eager_only=True), origin, unusable=unusable)


def _typed(name: str, values: Sequence[Any], place: Callable[[int], str]) -> pl.Series:
    types = _types(values)
    if float in types and types != {float}:  # NaN is read as null, so that integers with NaN stay integers
        values = [None if value != value else value for value in values]
        types = _types(values)
    if not types:
        return pl.Series(name, values, dtype=pl.Null)
    if types == {bool}:
        return pl.Series(name, values, dtype=pl.Boolean)
    if types == {str}:
        return _texts(name, values, place)
    if types == {int}:
        return _integers(name, values, place)
    if types <= {int, float}:
        for index, value in enumerate(values):
            if type(value) is int and abs(value) > _LARGEST_EXACT:
                raise UnusableColumnError(f"mixes decimals with an integer above 2^53 ({place(index)})")
        return pl.Series(name, values, dtype=pl.Float64, strict=False)
    if types == {list}:
        return _lists(name, values)
    if types == {dict}:
        keys = next(value for value in values if value is not None)
        raise UnusableColumnError(
            f"holds lists or objects; the first one has the keys {listed(map(str, keys))}"
        )
    if types <= {list, dict}:
        raise UnusableColumnError("holds lists or objects")
    names = {type_: _NAMES.get(type_, f"values of type `{type_.__name__}`") for type_ in types}
    if len(names) == 1:
        raise UnusableColumnError(f"holds {names.popitem()[1]}")
    firsts = sorted((list(map(type, values)).index(type_), name) for type_, name in names.items())
    raise UnusableColumnError("mixes " + " and ".join(f"{kind} ({place(index)})" for index, kind in firsts))


def _types(values: Iterable[Any]) -> set[type]:
    return set(map(type, values)) - {type(None)}


def _texts(name: str, values: Sequence[Any], place: Callable[[int], str]) -> pl.Series:
    try:
        return pl.Series(name, values, dtype=pl.String)
    except UnicodeEncodeError as error:
        index = values.index(error.object)
        raise UnusableColumnError(
            f"is not valid Unicode: it has half a surrogate pair ({place(index)})"
        ) from error


def _lists(name: str, values: Sequence[Any]) -> pl.Series:
    dtypes: dict[type, Any] = {str: pl.String, int: pl.Int64, bool: pl.Boolean, float: pl.Float64}
    types = _types(chain.from_iterable(filter(None, values))) or {str}
    if types == {int, float}:
        values = [items and [None if item is None else float(item) for item in items] for items in values]
        types = {float}
    if len(types) > 1 or not types <= set(dtypes):
        raise UnusableColumnError("holds lists that are not of text alone or of numbers alone")
    try:
        return pl.Series(name, values, dtype=pl.List(dtypes[types.pop()]))
    except (UnicodeEncodeError, OverflowError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise UnusableColumnError(f"holds lists that cannot be read: {reason}") from error


def _integers(name: str, values: Sequence[Any], place: Callable[[int], str]) -> pl.Series:
    present = [value for value in values if value is not None]
    smallest, largest = min(present), max(present)
    if smallest >= -(2**63) and largest < 2**63:
        return pl.Series(name, values, dtype=pl.Int64)
    index = values.index(largest if largest >= 2**63 else smallest)
    raise UnusableColumnError(f"has an integer outside the range of int64 ({place(index)})")
