"""Rows of two runs: each with its key, joined by key, and marked by whether they are in the test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import and_
from typing import cast

import narwhals as nw
import polars as pl

from trackperm.choices import Missing
from trackperm.pairing.columns.roles import PairedColumns, require_group_types, require_id_types
from trackperm.pairing.engines.base import HALVES, Engine, Frame, Types
from trackperm.pairing.internal_names import internal
from trackperm.pairing.report import OUTCOMES
from trackperm.statistic.expressions.functions import POLARS, Functions
from trackperm.tables.columns.types import LISTS
from trackperm.tables.table import ExampleTable

KEY = "row_key"
"""Internal name of the column of keys."""

NUMBER = "row_number"
"""Internal name of the column that numbers the rows of one key, from 1."""

SIDES = ("baseline", "candidate")
IN_TEST = "in_test"
MATCHED = "is_matched"
SIZE = "n_grouped"
KEY_HASH = "key_hash"
HASHES_OF_KEY = tuple(f"{KEY_HASH}_{half}" for half in HALVES)

_FEW = 2**13  # rows in memory up to which grouping equal rows takes longer than it saves
_FIRST = 2**10  # rows that are read to judge whether rows repeat
_KEY_WORD = "key_word"


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

    The types are those of the columns that are read, without columns that may hold clusters.

    Raises
    ------
    InputTypeError
        If a column cannot be used, or its types in the two runs are not compatible.
    PairingError
        If ids are neither integers nor text, or clusters, strata or classes are decimals.
    """
    tables = baseline, candidate
    texts = (*columns.texts, *columns.ids, *columns.clusters)
    frames, all_types = engine.typed(tables, columns.carried, texts)
    types = {name: all_types[name] for name in columns.names}
    require_group_types(columns, types)
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


def of(side: str, name: str) -> str:
    """Name the column of one run in the joined rows."""
    return internal(side, name)


def count_of(side: str, name: str) -> str:
    """Name the column of a run's count."""
    return internal("count", side, name)


def real_of(name: str) -> str:
    """Return the column of a count of the candidate before decimals became integers of a unit."""
    return internal("real", name)


def count_columns(names: Iterable[str]) -> list[str]:
    """Name the columns of all counts, those of the candidate first."""
    names = list(names)
    return [count_of(side, name) for side in reversed(SIDES) for name in names]


COLUMN_OF: Mapping[str, Callable[[str], str]] = {side: partial(of, side) for side in SIDES}
"""Functions that name the columns of each run: always the same ones, for which compiled counts are kept."""


def _has_row(side: str) -> str:
    return f"has_row_{side}"


def _has_key(side: str) -> str:
    return f"has_key_{side}"


@dataclass(frozen=True, eq=False)
class JoinedRows:
    """Rows of two runs after a full join by key.

    Attributes
    ----------
    engine : Engine
        The engine that holds the rows.
    runs : (KeyedRun, KeyedRun)
        Baseline and candidate.
    columns : PairedColumns
        Roles of the columns.
    types : dict of str to ColumnType
        Types of the columns.
    missing : Missing
        Treatment of examples without a partner or a value.
    rows : narwhals.LazyFrame
        One row per joined row: the key, :data:`NUMBER` where an example may have several rows, the columns of
        both runs under the names of :func:`of`, whether each run has the row and its example, whether both
        have the example (:data:`MATCHED`) and whether it is in the test (:data:`IN_TEST`).
    frame : narwhals.LazyFrame
        The same rows, grouped: rows that differ only in their keys are one row, with one of their keys, their
        number (:data:`SIZE`) and the sums of the hashes of their keys (:data:`KEY_HASH`). Rows are not
        grouped if clusters or repeats need every key, nor in memory if they are few or mostly distinct.
    """

    engine: Engine
    runs: tuple[KeyedRun, KeyedRun]
    columns: PairedColumns
    types: Types
    missing: Missing
    rows: Frame
    frame: Frame

    @classmethod
    def of(
        cls,
        engine: Engine,
        runs: tuple[KeyedRun, KeyedRun],
        columns: PairedColumns,
        types: Types,
        missing: Missing,
    ) -> JoinedRows:
        """Join two runs."""
        frame = _full_join(engine.functions, [run.frame for run in runs], columns)
        joined = cls(engine, runs, columns, types, missing, frame, frame)
        is_keyed = bool(columns.repeats or columns.clusters) or columns.cluster is not None
        if not engine.is_local and not is_keyed:
            grouped = joined._grouped(with_key_hash(engine, frame))
            return replace(joined, rows=joined._with_status(frame), frame=grouped)
        rows = engine.kept(with_key_hash(engine, joined._with_status(frame)))
        rows = rows.with_columns(joined.functions.lit(1, joined.functions.Int64).alias(SIZE))
        has_many = not is_keyed and max(run.n_rows for run in runs) > _FEW
        grouped = joined._grouped(rows) if has_many and joined._repeat(rows) else rows
        return replace(joined, rows=rows, frame=grouped)

    @classmethod
    def of_many(
        cls,
        engine: Engine,
        runs: tuple[KeyedRun, KeyedRun],
        columns: PairedColumns,
        types: Types,
        missing: Missing,
        *,
        by: str,
        beside: Sequence[str],
    ) -> JoinedRows:
        """Join a run that has hashes of its keys with many runs that are concatenated in one table.

        Parameters
        ----------
        by : str
            Column of the table with the number of the run. Equal rows are grouped within each run.
        beside : sequence of str
            Columns of the first run that are kept under their own names.
        """
        kept = (by, *beside, *HASHES_OF_KEY)
        frame = engine.kept(_full_join(engine.functions, [run.frame for run in runs], columns, kept))
        joined = cls(engine, runs, columns, types, missing, frame, frame)
        return replace(joined, rows=joined._with_status(frame), frame=joined._grouped(frame, by))

    def _grouped(self, frame: Frame, *by: str) -> Frame:
        """Group rows that differ only in their keys, within each value of the columns `by`."""
        columns, f = self.columns, self.functions
        ids = [name for name in columns.ids if name not in columns.used]
        names = [of(side, name) for side in SIDES for name in self._not_ids]
        flags = [flag(side) for side in SIDES for flag in (_has_row, _has_key)]
        keys = [of(side, name) for side in SIDES for name in ids]
        grouped = frame.group_by(*by, *names, *flags).agg(
            f.len().cast(f.Int64).alias(SIZE),
            f.col(KEY).min(),
            *(f.col(key).min() for key in keys),
            *(f.col(half).sum().cast(f.Int64).alias(half) for half in HASHES_OF_KEY),
        )
        return self.engine.kept(self._with_status(self.engine.kept(grouped)))

    @property
    def _not_ids(self) -> list[str]:
        """Columns whose values are the same in all rows of a group."""
        columns = self.columns
        return [name for name in columns.names if name not in columns.ids or name in columns.used]

    def _repeat(self, rows: Frame) -> bool:
        """Whether most of the first rows have the same values as another row."""
        if any(self.types[name] in LISTS for name in self._not_ids):
            return False
        names = [of(side, name) for side in SIDES for name in self._not_ids]
        different = rows.head(_FIRST).select(*names).unique().select(self.functions.len())
        return int(self.engine.collected(different).item()) < _FIRST // 2

    def _with_status(self, frame: Frame) -> Frame:
        columns, f = self.columns, self.functions
        if self.counts_missing:
            frame = frame.with_columns(
                f.when(self.keyed(side))
                .then(f.col(of(side, name)))
                .otherwise(f.col(of(other, name)))
                .alias(of(side, name))
                for side, other in (SIDES, reversed(SIDES))
                for name in columns.of_examples
            )
        if columns.repeats:
            # Padding takes the values of the run's own rows of the example.
            frame = frame.with_columns(
                f.when(self.padding(side))
                .then(f.col(of(side, name)).min().over(KEY))
                .otherwise(f.col(of(side, name)))
                .alias(of(side, name))
                for side in SIDES
                for name in columns.agreeing
                if self.types[name] not in LISTS
            )
        needed = columns.needed(self.missing)
        complete = reduce(and_, ((self.padding(side) | self.present(side, needed)) for side in SIDES))
        is_matched = (
            ~f.col(KEY).is_null() if self.counts_missing else self.keyed("baseline") & self.keyed("candidate")
        )
        frame = frame.with_columns(complete.alias(IN_TEST), is_matched.alias(MATCHED))
        if columns.repeats:
            frame = frame.with_columns(f.col(IN_TEST).cast(f.Int64).min().over(KEY) == 1)
        return frame.with_columns((f.col(IN_TEST) & f.col(MATCHED)).alias(IN_TEST))

    def with_keys_up_to(self, last: object) -> Frame:
        """Join only the rows whose keys are at most `last`: the first of :attr:`rows`."""
        frames = [run.frame.filter(self.functions.col(KEY) <= last) for run in self.runs]
        return self._with_status(_full_join(self.functions, frames, self.columns))

    @property
    def functions(self) -> Functions:
        """Functions that build expressions over the rows."""
        return self.engine.functions

    def there(self, side: str) -> nw.Expr:
        """Whether the run has the row."""
        return self.functions.col(_has_row(side))

    def keyed(self, side: str) -> nw.Expr:
        """Whether the run has the row's example."""
        return self.functions.col(_has_key(side))

    def padding(self, side: str) -> nw.Expr:
        """Whether the run has the example, but only the other run has this row of it."""
        return self.keyed(side) & ~self.there(side)

    def example(self, name: str) -> nw.Expr:
        """Return the value of an example's column from the baseline, or else from the candidate."""
        return self.functions.coalesce(*(of(side, name) for side in SIDES))

    def present(self, side: str, names: Sequence[str]) -> nw.Expr:
        """Whether a run has a value in each of the columns `names`."""
        columns = [KEY, *(of(side, name) for name in names)]
        return reduce(and_, (~self.functions.col(column).is_null() for column in columns))

    def disagree(self, name: str) -> nw.Expr:
        """Whether a column differs; in labels that are not read for counts, a null differs from a value."""
        sides = [self.functions.col(of(side, name)) for side in SIDES]
        differ = (sides[0] != sides[1]).fill_null(False)
        if name == self.columns.label and name not in self.columns.used:
            differ = differ | (sides[0].is_null() != sides[1].is_null())
        return self.keyed("baseline") & self.keyed("candidate") & differ

    def n_rows(self, condition: nw.Expr) -> nw.Expr:
        """Count the rows on which a condition holds, as an expression over :attr:`frame`."""
        return (condition.cast(self.functions.Int64) * self.functions.col(SIZE)).sum()

    @property
    def counts_missing(self) -> bool:
        """Whether predictions that are missing are counted."""
        return self.missing in OUTCOMES

    @property
    def keys(self) -> list[str]:
        """Columns by which rows were joined."""
        return [KEY, NUMBER] if self.columns.repeats else [KEY]

    @property
    def in_test(self) -> Frame:
        """The rows of :attr:`frame` that are in the test."""
        return self.frame.filter(self.functions.col(IN_TEST))

    @property
    def rows_in_test(self) -> Frame:
        """The rows of :attr:`rows` that are in the test."""
        return self.rows.filter(self.functions.col(IN_TEST))

    @property
    def examples(self) -> Frame:
        """The rows in the test that are counted: single rows in memory, grouped rows in other engines."""
        return self.rows_in_test if self.engine.is_local else self.in_test

    def is_first(self) -> nw.Expr:
        """Whether a row is the first of its example."""
        return self.functions.col(NUMBER) == 1 if self.columns.repeats else ~self.functions.col(KEY).is_null()

    def counted(self, **conditions: nw.Expr) -> dict[str, int]:
        """Count the rows on which each of the conditions holds, in one query."""
        found = self.engine.collected(
            self.frame.select(
                self.n_rows(condition).alias(f"n_{i}") for i, condition in enumerate(conditions.values())
            )
        )
        return {name: int(value or 0) for name, value in zip(conditions, found.row(0), strict=True)}

    def first(self, condition: nw.Expr, n: int, *names: str, frame: Frame | None = None) -> pl.DataFrame:
        """Return key and columns of the first rows, by their keys, on which a condition holds."""
        rows = (self.rows if frame is None else frame).filter(condition)
        return self.engine.collected(rows.sort(*self.keys).head(n).select(KEY, *names))


def has_beyond_ascii(engine: Engine, run: KeyedRun) -> bool:
    """Whether a key of a run is text with characters beyond ASCII."""
    if run.frame.collect_schema()[KEY] != engine.functions.String:
        return False
    return len(engine.collected(engine.beyond_ascii(run.frame, KEY).select(KEY).head(1))) > 0


def _full_join(
    f: Functions, frames: Sequence[Frame], columns: PairedColumns, beside: Sequence[str] = ()
) -> Frame:
    keys = [KEY, NUMBER] if columns.repeats else [KEY]
    sides = [
        frame.select(
            *keys,
            f.lit(True).alias(_has_row(side)),
            *(f.col(internal(name)).alias(of(side, name)) for name in columns.carried),
            *(name for name in beside if name in frame.collect_schema()),
        )
        for side, frame in zip(SIDES, frames, strict=True)
    ]
    frame = sides[0].join(sides[1], on=keys, how="full")
    frame = frame.with_columns(
        *(f.coalesce(key, f"{key}_right").alias(key) for key in keys),
        *(f.col(_has_row(side)).fill_null(False) for side in SIDES),
    ).drop(*(f"{key}_right" for key in keys))
    return frame.with_columns(
        (
            f.col(_has_row(side)).cast(f.Int64).max().over(KEY) == 1
            if columns.repeats
            else f.col(_has_row(side))
        ).alias(_has_key(side))
        for side in SIDES
    )


def with_key_hash(engine: Engine, frame: Frame) -> Frame:
    """Add the hash of every row's key."""
    if frame.collect_schema()[KEY] == engine.functions.String:
        return engine.with_row_hash(engine.with_text_words(frame, {_KEY_WORD: KEY}), [_KEY_WORD], KEY_HASH, 1)
    return engine.with_row_hash(frame, [KEY], KEY_HASH, 1)
