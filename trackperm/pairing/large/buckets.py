"""Two runs that are too large for memory: read slice by slice, and paired bucket by bucket.

A bucket holds the examples of both runs whose keys lie between two bounds, so that buckets in the order of
their bounds hold the examples in the order of their keys. Each is paired and counted as whole runs are, and
counts, differences and suspicions add up to the same result as that of :func:`~trackperm.pairing.pair.pair`.
In memory there are one bucket and what the result holds; the rows lie in temporary files.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import Lock
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from trackperm.choices import Missing
from trackperm.errors import StorageError, TrackpermError
from trackperm.pairing.checks.differences import Cases, RunDifferences
from trackperm.pairing.checks.suspicions import sampled_every
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.counting import counted
from trackperm.pairing.digest import DigestOfParts
from trackperm.pairing.frame_file import FrameFile, Place
from trackperm.pairing.keyed_run import KEY, KeyedRun, read_types, with_key
from trackperm.pairing.large.totals import Totals
from trackperm.pairing.pair import PairedRuns, pair, require_usable
from trackperm.pairing.report import OUTCOMES
from trackperm.statistic import Statistic
from trackperm.tables.column_types import ColumnType, cast_columns
from trackperm.tables.scan import copied, witnesses
from trackperm.tables.table import ExampleTable

IN_MEMORY = 2**27
"""Bytes of both runs up to which they are paired in memory."""

BUCKET = 2**25
"""Bytes of one run that are read, or sorted, at once."""

_OF_ROW = 64  # bytes that a row is taken to need beside its values
_FIRST = 1000  # rows by which it is judged how large a table is
_SAMPLED = 2**16  # keys of a run from which the bounds are taken

Tables = tuple[ExampleTable, ExampleTable]
Types = dict[str, ColumnType]


def paired(
    baseline: ExampleTable,
    candidate: ExampleTable,
    statistic: Statistic,
    *,
    missing: Missing = "error",
    by_position: bool = False,
    progress: Callable[[float], object] | None = None,
) -> PairedRuns:
    """Match the examples of two runs and count their outcomes, out of memory where they are large.

    In memory stay also runs that are not paired by id, statistics with repeats, clusters, strata or classes,
    decimal counts, columns of which a format knows no types or that tell of inputs, and ids that are not in
    Unicode normal form C.

    Parameters
    ----------
    baseline, candidate, statistic, missing, by_position
        As in :func:`~trackperm.pairing.pair.pair`, which says what is raised.
    progress : callable, optional
        Is told from time to time which part of the work is done, from 0 to 1, where it is done in buckets.

    Raises
    ------
    StorageError
        If temporary files cannot be written.
    """
    require_usable(baseline, candidate, missing, by_position=by_position)
    if not by_position:
        columns = PairedColumns.find(baseline, candidate, statistic, by_position, missing)
        tables = baseline, candidate
        if _adds_up(tables, columns, statistic):
            row_bytes = [_row_bytes(next(table.slices(columns.names, _FIRST))) for table in tables]
            if len(baseline) * row_bytes[0] + len(candidate) * row_bytes[1] > IN_MEMORY:
                work = _Work(3 * (len(baseline) + len(candidate)), progress)
                try:
                    found = _in_buckets(tables, columns, statistic, missing, _rows(max(row_bytes)), work)
                except OSError as error:
                    raise StorageError(
                        "runs that are too large for memory are sorted in temporary files, which cannot be"
                        f" written: {error}",
                        hint="the environment variable `TMPDIR` names a folder that has room for them.",
                    ) from error
                if found is not None:
                    return found
    return pair(baseline, candidate, statistic, missing=missing, by_position=by_position)


def _adds_up(tables: Tables, columns: PairedColumns, statistic: Statistic) -> bool:
    """Whether buckets add up to whole runs, as far as the names and types of columns tell."""
    is_grouped = columns.repeats or columns.groups or statistic.has_classes
    has_units = not isinstance(statistic.resolution, Fraction) and statistic.resolution
    return not (is_grouped or has_units or columns.identity) and all(
        table.has_witnesses(columns.names) for table in tables
    )


def _in_buckets(
    tables: Tables, columns: PairedColumns, statistic: Statistic, missing: Missing, size: int, work: _Work
) -> PairedRuns | None:
    """Pair runs, or return None where their values show that buckets do not add up."""
    every = max(1, max(map(len, tables)) // _SAMPLED)
    with ExitStack() as files, ThreadPoolExecutor(len(tables)) as pool:
        surveys = list(pool.map(lambda table: _Survey.of(table, columns, size, every, work), tables))
        if not all(survey.is_normal for survey in surveys):
            return None
        *_, types = read_types(surveys[0].witnesses, surveys[1].witnesses, columns)
        none = cast_columns(surveys[0].witnesses.frame.to_polars().clear(), types)
        if _counts_decimals(statistic, KeyedRun.of_keys(_with_key(none, columns), "", columns.ids), types):
            return None
        for outcome in OUTCOMES.get(missing, ()):
            statistic.missing_counts(types, outcome)
        n_bytes = sum(survey.n_bytes for survey in surveys)
        bounds = _bounds(surveys, columns, types, math.ceil(n_bytes / (2 * BUCKET)))
        size = _rows(n_bytes / sum(map(len, tables)))
        first, second = (_SortedRows(table.origin, columns, types, bounds, files) for table in tables)
        list(pool.map(lambda run, table: run.read(table, size, work), (first, second), tables))
        totals = Totals(
            (first.without_id, second.without_id),
            sampled_every(*tables, columns),
            columns,
            types,
            statistic,
            missing,
            files,
        )
        for bucket in range(len(bounds) + 1):
            baseline, candidate = pool.map(lambda run: run.keyed(bucket), (first, second))  # noqa: B023
            totals.add((baseline, candidate))
            work.advance(first.n_rows[bucket] + second.n_rows[bucket])
        totals.refuse()
        digests = pool.map(lambda run: run.digest.hexdigest(), (first, second))
        return totals.result(*digests)


class _Work:
    """What is to be done in all, in rows, and what of it is done."""

    def __init__(self, n: int, tell: Callable[[float], object] | None) -> None:
        self._n, self._n_done, self._tell = n, 0, tell
        self._lock = Lock()

    def advance(self, n: int) -> None:
        with self._lock:
            self._n_done += n
            if self._tell is not None:
                self._tell(self._n_done / self._n)


def _row_bytes(frame: pl.DataFrame) -> float:
    return frame.estimated_size() / max(1, len(frame)) + _OF_ROW


def _rows(row_bytes: float) -> int:
    return max(1, int(BUCKET / row_bytes))


@dataclass(frozen=True, eq=False)
class _Survey:
    """What has to be known of a whole run before its rows can be taken one by one.

    Attributes
    ----------
    witnesses : ExampleTable
        Values that tell the types of the columns as all do.
    ids : DataFrame
        The id columns of some rows.
    n_bytes : float
        What the rows need.
    is_normal : bool
        Whether all ids are in Unicode normal form C: others may be twins of ids in other buckets.
    """

    witnesses: ExampleTable
    ids: pl.DataFrame
    n_bytes: float
    is_normal: bool

    @classmethod
    def of(cls, table: ExampleTable, columns: PairedColumns, size: int, every: int, work: _Work) -> _Survey:
        """Look at a run, `size` rows at a time, and at the ids of one row of `every`."""
        found, ids, n_bytes, is_normal, start = [], [], 0.0, True, 0
        for part in table.slices(columns.names, size):
            found.append(witnesses(part))
            ids.append(copied(part.select(columns.ids)[-start % every :: every]))
            n_bytes += len(part) * _row_bytes(part)
            is_normal = is_normal and all(_is_normal(part[name]) for name in columns.ids)
            start += len(part)
            work.advance(len(part))
        values = nw.from_native(pl.concat(found), eager_only=True)
        return cls(replace(table, data=values), pl.concat(ids), n_bytes, is_normal)


def _is_normal(ids: pl.Series) -> bool:
    if ids.dtype != pl.String:
        return True
    beyond_ascii = ids.filter(ids.str.len_bytes() > ids.str.len_chars())
    return all(unicodedata.is_normalized("NFC", text) for text in beyond_ascii.to_list())


def _counts_decimals(statistic: Statistic, run: KeyedRun, types: Types) -> bool:
    """Whether a count is decimal, so that its unit depends on all values; `run` has the columns."""
    try:
        schema = counted(run, statistic, statistic.counts(types)).schema
    except TrackpermError:  # which the first bucket that is counted raises too
        return False
    return any(dtype.is_float() for dtype in schema.values())


def _with_key(part: pl.DataFrame, columns: PairedColumns) -> nw.DataFrame[Any]:
    return with_key(nw.from_native(part, eager_only=True), columns.ids)


def _bounds(surveys: list[_Survey], columns: PairedColumns, types: Types, n_buckets: int) -> pl.Series:
    """Return keys in ascending order between which there are about as many examples each."""
    of_ids = {name: types[name] for name in columns.ids}
    keys = pl.concat(
        [_with_key(cast_columns(survey.ids, of_ids), columns).to_polars()[KEY] for survey in surveys]
    )
    keys = keys.drop_nulls().sort()
    places = np.linspace(0, len(keys), n_buckets, endpoint=False)[1:].astype(np.int64)
    return keys.gather(places).unique(maintain_order=True)


class _SortedRows:
    """The rows of one run in a temporary file, those of each bucket by themselves.

    Attributes
    ----------
    without_id : RunDifferences
        Rows that are in no bucket.
    n_rows : list of int
        How many there are in each bucket.
    digest : DigestOfParts
        Of the buckets that were read again.
    """

    def __init__(
        self, origin: str, columns: PairedColumns, types: Types, bounds: pl.Series, files: ExitStack
    ) -> None:
        self.without_id = RunDifferences(origin)
        self.n_rows = [0] * (len(bounds) + 1)
        self.digest = DigestOfParts(types, files)
        self._columns, self._types, self._bounds = columns, types, bounds
        self._file = FrameFile(files)
        self._places: list[list[Place]] = [[] for _ in self.n_rows]
        self._none = pl.DataFrame()

    def read(self, table: ExampleTable, size: int, work: _Work) -> None:
        """Sort out the rows of `table`, `size` at a time, by how many bounds their key has reached."""
        start = 0
        for part in table.slices(self._columns.names, size):
            frame = _with_key(cast_columns(part, self._types), self._columns).to_polars()
            is_null = frame[KEY].is_null()
            if is_null.any():
                rows = Cases.of(nw.from_native(is_null.arg_true() + start, series_only=True))
                self.without_id += RunDifferences(table.origin, n_rows=rows.n, without_id=rows)
                frame = frame.filter(~is_null)
            self._put(frame, self._bounds.search_sorted(frame[KEY], side="right").to_numpy())
            start += len(part)
            work.advance(len(part))

    def _put(self, frame: pl.DataFrame, buckets: np.ndarray[Any, Any]) -> None:
        self._none = frame.clear()
        sorted_out = frame.rechunk()[
            np.argsort(buckets.astype(np.min_scalar_type(len(self.n_rows))), kind="stable")
        ]
        start = 0
        for bucket, n in enumerate(np.bincount(buckets, minlength=len(self.n_rows)).tolist()):
            if n:
                self._places[bucket].append(self._file.write(sorted_out.slice(start, n)))
                self.n_rows[bucket] += n
                start += n

    def keyed(self, bucket: int) -> KeyedRun:
        """Read the rows of a bucket again, in the order of their keys."""
        parts = [self._none, *map(self._file.read, self._places[bucket])]
        frame = nw.from_native(pl.concat(parts), eager_only=True)
        run = KeyedRun.of_keys(frame, self.without_id.origin, self._columns.ids)
        self.digest.add(run.frame)
        return run
