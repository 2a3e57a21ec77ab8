"""Columns that may hold clusters of examples: their values repeat and are the same in both runs.

Five kinds of columns are considered:

- columns whose name means a cluster, such as ``document``, and of an id of several columns the first one and
  those with the name of an id, as in ``step,question_id``;
- other columns with the name of an id, such as ``task_id`` beside a number of each row in ``id``: rows of one
  value are then attempts at one example;
- columns of text with another name, if their values repeat and their name does not mean a category, as
  ``language`` does;
- identity columns, such as the hash of an input but not that of an answer, and columns with the name of an
  input, unless another part of the input distinguishes the examples;
- in a query, only columns whose name means a cluster or an id: a query has to compute a column before its
  size is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import InputTypeError
from trackperm.pairing.joined import KEY, keys_of
from trackperm.statistic import Statistic
from trackperm.tables.columns.names import (
    ATTEMPT,
    CONTEXTS,
    IDS,
    INPUTS,
    LABELS,
    PREDICTIONS,
    SCORES,
    names_categories,
    names_clusters,
    names_examples,
)
from trackperm.tables.columns.types import typed_columns
from trackperm.tables.lazy.table import LazyTable
from trackperm.tables.table import ExampleTable, id_columns

FEWEST = 5
"""Fewest clusters of several examples that are reported: fewer repeats may be accidents."""

FEWEST_OF_OTHERS = 20
"""Fewest clusters of a column whose name does not mean a cluster: with fewer it is rather a category."""

NEARLY_ALL = 0.9
"""Share of distinct values above which a column rather identifies examples than groups them."""

FEWEST_INPUTS = 0.05
"""Share of distinct values below which repeated inputs are rather templates than inputs."""

MOST_COLUMNS = 30
"""Most columns that are read, those whose name means a cluster first: a bound on the time of a wide table."""

MOST_BYTES = 2**25
"""Largest column that is read, in bytes: a bound on time and memory where columns hold long texts."""

MOST_BYTES_PER_ROW = 2**7
"""Mean size of values, in bytes, up to which a column of any number of rows is read."""

_FIRST = 1000  # rows that are read to judge the size and the type of a column
_NUMBER = r"^\s*-?[0-9.]+(?:[eE][+-]?[0-9]+)?\s*$"

Integers = npt.NDArray[np.int64]
Tables = tuple[ExampleTable, ExampleTable]


@dataclass(frozen=True, eq=False)
class ClusterColumn:
    """A column whose values may be clusters.

    Attributes
    ----------
    name : str
        Name of the column.
    clusters : ndarray of int64, shape (N,)
        Number of every example's cluster; the numbers run from 0 without gaps.
    is_called : bool
        Whether the name of the column means a cluster, or the id of an example.
    is_input : bool
        Whether the column holds the whole input of an example.
    """

    name: str
    clusters: Integers
    is_called: bool
    is_input: bool

    @cached_property
    def sizes(self) -> Integers:
        """Number of examples in every cluster."""
        return np.bincount(self.clusters)

    @property
    def n_shared(self) -> int:
        """Number of examples that share their cluster with another example."""
        return int(self.sizes[self.sizes > 1].sum())

    @property
    def is_grouping(self) -> bool:
        """Whether the column has enough clusters, with enough examples."""
        n_several = int((self.sizes > 1).sum())
        return is_grouping(
            self.clusters.size, self.sizes.size, n_several, is_called=self.is_called, is_input=self.is_input
        )


def is_grouping(n: int, k: int, n_several: int, *, is_called: bool, is_input: bool) -> bool:
    """Whether a column with k values on n examples has enough clusters; `n_several` have several examples."""
    if n_several < FEWEST:
        return False
    if is_input:
        return k >= FEWEST_INPUTS * n
    if is_called:
        return k <= NEARLY_ALL * n
    return FEWEST_OF_OTHERS <= k <= n / 2


def cluster_columns(
    baseline: ExampleTable,
    candidate: ExampleTable,
    statistic: Statistic,
    ids: pl.Series,
    *,
    by_position: bool = False,
) -> list[ClusterColumn]:
    """Return the columns of two runs that may hold clusters, those with the name of a cluster first.

    Columns that the statistic reads are not considered. `ids` are the ids of the examples, as the
    table of counts has them (``PairedCounts.frame``); `by_position`, they are the numbers of the rows.
    """
    tables = baseline, candidate
    id_names = () if by_position else id_columns(statistic.columns["id"], tables)
    names = list(candidate_names(tables, statistic, id_names))
    if not names:
        return []
    first, second = (table.only(dict.fromkeys((*id_names, *names))) for table in tables)
    rows = [_Rows.of(keys, ids) for keys in _keys((first, second), id_names)]
    inputs = input_names(tables)
    found, parts = [], []
    for name in names:
        values = _values((first, second), rows, name)
        if values is None:
            continue
        # Hashes of 64 bits are as distinct as the values in practice, and far cheaper to sort.
        clusters = np.unique(values.hash().to_numpy(), return_inverse=True)[1]
        is_called = is_cluster_name(name, id_names)
        found.append(ClusterColumn(name, clusters, is_called, name in inputs))
        if name in inputs or name in CONTEXTS:
            parts.append(clusters)
    if any(each.is_input for each in found):
        n_inputs = _n_distinct(parts)
        found = [replace(each, is_input=each.is_input and each.sizes.size == n_inputs) for each in found]
    return [each for each in found if each.is_grouping]


def _keys(tables: Tables, ids: tuple[str, ...]) -> list[pl.Series]:
    """Return the key of every row of both runs: its id, or its number where rows are paired by position."""
    if not ids:
        return [pl.int_range(len(table), dtype=pl.Int64, eager=True) for table in tables]
    *typed, _ = typed_columns(*tables, ids, text=ids)
    return [keys_of(table, ids) for table in typed]


def is_cluster_name(name: str, ids: tuple[str, ...]) -> bool:
    """Whether the name of a column means a cluster, or the id of examples with several rows."""
    return name in _wholes(ids) or names_clusters(name) or names_examples(name)


def _n_distinct(parts: Sequence[Integers]) -> int:
    """Count the examples that differ in any part of their input."""
    whole = np.zeros(1, dtype=np.int64)
    for part in parts:
        whole = np.unique(whole * (int(part.max()) + 1) + part, return_inverse=True)[1]
    return int(whole.max()) + 1


def candidate_names(tables: Tables, statistic: Statistic, ids: tuple[str, ...]) -> Iterator[str]:
    """Yield the columns that may hold clusters, judged by name, type and first rows, the likeliest first.

    `ids` are the columns of the id; none where rows are paired by position.
    """
    roles = {role: column for role, column in statistic.columns.items() if ids or role != "id"}
    taken = {*roles.values(), *statistic.used_columns, *statistic.slices}
    taken |= {*PREDICTIONS, *LABELS, *SCORES}
    taken |= {column for table in tables for column in table.metrics.values()}
    wholes = _wholes(ids)
    taken |= {name for name in ids if len(ids) == 1 or not names_clusters(name)}
    taken -= {*wholes}
    if "id" not in ids and statistic.columns["id"] != "id":
        taken.add("id")  # `--cluster id` means the id of the statistic
    inputs, schemas = input_names(tables), [table.schema for table in tables]
    is_query = any(isinstance(table.data, LazyTable) and table.data.is_query for table in tables)
    called: list[str] = []
    others: list[str] = []
    for name in schemas[0]:
        is_attempt = ATTEMPT.fullmatch(name) is not None and not names_examples(name)
        if name in taken or is_attempt or name not in schemas[1]:
            continue
        if any(name in table.unusable for table in tables):
            continue
        types = [schema[name] for schema in schemas]
        is_text = all(type_ in (nw.String, nw.Categorical, nw.Enum) for type_ in types)
        if is_cluster_name(name, ids):
            called += [name] if is_text or all(type_.is_integer() for type_ in types) else []
        elif is_query:
            continue
        elif is_text and (name in inputs or name in CONTEXTS):
            called.append(name)
        elif is_text and not names_categories(name) and not name.startswith("score."):
            others.append(name)
    names = (*called, *others)[:MOST_COLUMNS]
    first = [table.head(_FIRST).only(names) for table in tables]
    for name in names:
        is_large = any(_is_large(part, len(table), name) for part, table in zip(first, tables, strict=True))
        if not is_large and (name in called or not _holds_numbers(first[0], name)):
            yield name


def _wholes(ids: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns of an id of several columns that may name the whole that contains examples."""
    return () if len(ids) < 2 else (ids[0], *(name for name in ids[1:] if name in IDS))


def input_names(tables: Tables) -> set[str]:
    """Return the columns that hold or identify the input of an example: hashes of answers do not."""
    identity = {name for name in tables[0].identity if name in tables[1].identity}
    others = {name for name in identity if names_clusters(name) or names_categories(name)}
    return (identity - others) | set(INPUTS)


def _is_large(first: ExampleTable, n: int, name: str) -> bool:
    """Whether a column of n rows cannot be read, or is too large by an estimate from its first rows."""
    try:
        column = first.polars_column(name)
    except InputTypeError:
        return True
    return column.estimated_size() * n > max(MOST_BYTES, MOST_BYTES_PER_ROW * n) * len(column)


def _holds_numbers(table: ExampleTable, name: str) -> bool:
    """Whether a column holds numbers that its format stores as text."""
    if not table.is_untyped(name):
        return False
    return bool(table.polars_column(name).drop_nulls().str.contains(_NUMBER).all())


@dataclass(frozen=True, eq=False)
class _Rows:
    """Positions of the paired examples in a run.

    Attributes
    ----------
    first : Series of int, shape (N,), or None
        The first row of every example, null where the run lacks it; None if the run has exactly these
        examples in this order.
    of_same : Series of int or None
        For every row of the run the first row of its example; None if every example has one row.
    """

    first: pl.Series | None
    of_same: pl.Series | None

    @classmethod
    def of(cls, keys: pl.Series, ids: pl.Series) -> _Rows:
        if keys.equals(ids):
            return cls(None, None)
        frame = pl.DataFrame({KEY: keys}).with_row_index("row")
        of_same = None
        if keys.is_duplicated().any():
            frame = frame.with_columns(pl.col("row").min().over(KEY))
            of_same = frame["row"]
            frame = frame.unique()
        first = pl.DataFrame({KEY: ids}).join(frame, on=KEY, how="left", maintain_order="left")
        return cls(first["row"], of_same)

    def values(self, column: pl.Series) -> pl.Series | None:
        """Return the value of every example; None if rows of one example differ in it."""
        if self.of_same is not None and not column.equals(column.gather(self.of_same)):
            return None
        return column if self.first is None else column.gather(self.first)


def _values(tables: Tables, rows: Sequence[_Rows], name: str) -> pl.Series | None:
    """Return the values of a column by example; None if the runs differ in a value, or both lack it."""
    try:
        columns = [table.polars_column(name) for table in tables]
    except InputTypeError:
        return None
    type_ = pl.Int64 if all(column.dtype.is_integer() for column in columns) else pl.String
    sides = [own.values(column.cast(type_, strict=False)) for own, column in zip(rows, columns, strict=True)]
    first, second = sides
    if first is None or second is None:
        return None
    if first.null_count() or second.null_count():
        if (first != second).any():
            return None
        first = first.fill_null(second)
    elif not first.equals(second):
        return None
    return None if first.null_count() else first
