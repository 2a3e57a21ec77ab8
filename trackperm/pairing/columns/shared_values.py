"""Columns whose values the runs share, so that they may identify the examples."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

import narwhals as nw
import polars as pl

from trackperm.errors import TrackpermError
from trackperm.tables.columns.names import (
    ANSWERS,
    LABELS,
    PREDICTIONS,
    SCORES,
    VALUES,
    has_output_word,
    names_categories,
    names_clusters,
    names_examples,
    names_id,
    names_individuals,
    names_input,
    names_rows,
    words_of,
)
from trackperm.tables.columns.types import are_integers, may_be_ids
from trackperm.tables.lazy.table import LazyTable
from trackperm.tables.named_frame import named_frame
from trackperm.tables.table import ExampleTable, rows_repeat, shared_columns

_MOST_VALUES = 1_000_000
"""Most values of a column that are compared between runs."""

_SLICE = 2**18
"""Rows whose values are hashed at once."""

_MOST_ROWS = 100_000
"""Most rows of runs whose columns are searched for ids: a bound on the time of an error message."""

_MOST_COLUMNS = 30
"""Most columns that are searched."""

MOST_IN_PAIRS = 8
"""Most columns that are tried in pairs."""

_FIRST = 64
"""Rows whose texts tell whether those of a column are long."""

_LONG = 200
"""Bytes of a text that is too long for an id, such as a path or a title."""

_NOT_OF_EXAMPLES = {*PREDICTIONS, *ANSWERS, *LABELS, *SCORES, *VALUES}
"""Names of columns that identify no example, even if their values are different and the same in all runs."""

# fmt: off
_OF_RUNS = frozenset((
    "rank", "order", "position", "place", "percentile", "quantile", "timestamp", "time", "date", "at",
    "latency", "duration", "cost", "price", "tokens", "token", "length", "len", "count", "worker", "gpu",
    "device", "process", "shard", "batch", "node", "host", "attempts", "rating", "grade", "points", "scores",
))
"""Words in names of columns that a run or a model numbers anew, by which no two columns identify an example.
"""
# fmt: on


def share_values(tables: Sequence[ExampleTable], name: str) -> bool:
    """Whether any value of a column is in all runs; true where that is not known."""
    values = _distinct(tables, name)
    if values is None:
        return True
    shared = values[0]
    for other in values[1:]:
        shared = shared.filter(shared.is_in(other.implode()))
    return len(shared) > 0


def have_same_values(tables: Sequence[ExampleTable], name: str, *, if_unknown: bool = True) -> bool:
    """Whether all runs have the same set of values in a column; `if_unknown` where that is not known."""
    if _have_equal_hashes(tables, name):
        return True
    values = _distinct(tables, name)
    if values is None:
        return if_unknown
    return {*map(len, values)} == {len(values[0])} and _are_in_largest(values)


def have_values_of_one(tables: Sequence[ExampleTable], name: str) -> bool:
    """Whether one run has the values of all others in a column; true where that is not known.

    So it is with inputs, if some runs lack examples.
    """
    if _have_equal_hashes(tables, name):
        return True
    values = _distinct(tables, name)
    return values is None or _are_in_largest(values)


def agreeing_ids(tables: Sequence[ExampleTable], taken: Collection[str] = ()) -> list[str]:
    """Return the columns without repeats that have the same values in all runs, likeliest ids first.

    Columns of integers count if they have the name of an id, and of text if not that of answers. Empty
    for large runs, and for a single one.
    """
    return [
        name
        for name in _possible_ids(tables, taken)
        if not rows_repeat(tables, [name], if_unknown=True) and have_same_values(tables, name)
    ]


def agreeing_pair(tables: Sequence[ExampleTable], taken: Collection[str] = ()) -> tuple[str, str] | None:
    """Return two columns that identify the rows together and have the same pairs of values in all runs.

    None if a single column does, for large runs, and for a single one.
    """
    if _are_too_large(tables):
        return None
    names = [name for name in possible_keys(tables, taken) if have_same_values(tables, name)]
    if any(not rows_repeat(tables, [name], if_unknown=True) for name in names):
        return None
    for pair in combinations(names[:MOST_IN_PAIRS], 2):
        if not may_be_key(tables, pair) or rows_repeat(tables, pair, if_unknown=True):
            continue
        first, *others = (
            named_frame([table.polars_column(name).cast(pl.String) for name in pair]) for table in tables
        )
        if all(len(first.join(other, on=pair, how="semi")) == len(first) for other in others):
            return pair
    return None


def possible_keys(tables: Sequence[ExampleTable], taken: Collection[str]) -> list[str]:
    """Return the columns that may identify the examples, alone or in pairs, likeliest ids first.

    Their names are not those of outputs, answers, scores, quantities or numbers that each run gives anew, and
    have no comma, which separates columns of ids. Long texts, as those of traces, identify examples only if
    they are inputs, and texts of queries, which may be long, only by their names.
    """
    names = [name for name in shared_columns(tables)[:_MOST_COLUMNS] if name not in taken and "," not in name]
    found = [
        name
        for name in names
        if _may_name_key(name)
        and (_names_part_of_id(name) or not _may_be_long(tables[0], name))
        and may_be_ids(name, tables)
    ]
    return sorted(found, key=_likelihood)


def may_be_key(tables: Sequence[ExampleTable], names: Sequence[str]) -> bool:
    """Whether possible keys may identify examples: one of them is text, or one of several is called an id."""
    are_ids = [not are_integers(name, tables) or (len(names) > 1 and _names_key(name)) for name in names]
    return any(are_ids)


def _are_too_large(tables: Sequence[ExampleTable]) -> bool:
    """Whether runs have different sizes, are too large for a search, or are a single one."""
    return len(tables) < 2 or {*map(len, tables)} != {len(tables[0])} or len(tables[0]) > _MOST_ROWS


def _possible_ids(tables: Sequence[ExampleTable], taken: Collection[str]) -> list[str]:
    if _are_too_large(tables):
        return []
    found = [
        name
        for name in shared_columns(tables)[:_MOST_COLUMNS]
        if name not in taken
        and (_names_key(name) or _NOT_OF_EXAMPLES.isdisjoint((name.lower(), *words_of(name))))
        and may_be_ids(name, tables)
        and (_names_key(name) or not are_integers(name, tables))
    ]
    return sorted(found, key=_likelihood)


def _names_part_of_id(name: str) -> bool:
    """Whether a name means an id, an input, or a group or category of examples: ``doc``, ``question``."""
    return names_individuals(name) or names_input(name) or names_clusters(name) or names_categories(name)


def _may_be_long(table: ExampleTable, name: str) -> bool:
    """Whether a column may have long values: its first ones are neither integers nor short texts alone."""
    if table.schema[name].is_integer():
        return False
    if isinstance(table.data, LazyTable) and table.data.is_query:
        return True
    try:
        values = table.head(_FIRST).only([name]).polars_column(name)
    except TrackpermError:
        return True
    return values.dtype != pl.String or bool((values.str.len_bytes() > _LONG).any())


def _may_name_key(name: str) -> bool:
    words = {name.lower(), *words_of(name)}
    return (
        not names_rows(name) and not has_output_word(name) and words.isdisjoint(_NOT_OF_EXAMPLES | _OF_RUNS)
    )


def _names_key(name: str) -> bool:
    """Whether a name means an id or the number of a row: ``doc_id``, ``userID``, ``row``."""
    return names_id(name) or words_of(name)[-1:] in (["id"], ["row"], ["idx"], ["index"])


def _likelihood(name: str) -> int:
    """Return the place of a column among possible ids: ids of examples, other ids, inputs, and others."""
    kinds = (names_examples(name), _names_key(name), names_input(name))
    return kinds.index(True) if any(kinds) else len(kinds)


def _have_equal_hashes(tables: Sequence[ExampleTable], name: str) -> bool:
    """Whether all runs have the same texts or integers in any order, by their hashes.

    Hashes of long texts are far less work than distinct texts. False for queries, whose columns may be too
    large to read, and for columns that cannot be read.
    """
    is_query = any(isinstance(table.data, LazyTable) and table.data.is_query for table in tables)
    if is_query or any(name in table.unusable for table in tables):
        return False
    kinds = {(table.schema[name], len(table)) for table in tables}
    dtype, n_rows = next(iter(kinds))
    if len(kinds) > 1 or not n_rows or not (dtype == nw.String or dtype.is_integer()):
        return False
    first, *others = (
        pl.concat([part[name].hash() for part in table.slices([name], _SLICE)]).sort() for table in tables
    )
    return all(other.equals(first) for other in others)


def _are_in_largest(values: Sequence[pl.Series]) -> bool:
    largest, *others = sorted(values, key=len, reverse=True)
    return all(each.is_in(largest.implode()).all() for each in others)


def _distinct(tables: Sequence[ExampleTable], name: str) -> list[pl.Series] | None:
    """Return the distinct values of each run as text; None if there are too many, or they cannot be read."""
    found = []
    for table in tables:
        counts = table.counts_of_few(name, _MOST_VALUES)
        if counts is None:
            return None
        found.append(counts[name].cast(pl.String).drop_nulls())
    return found
