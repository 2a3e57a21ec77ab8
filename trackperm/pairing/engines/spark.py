"""Pairing by Spark: rows stay in its executors; only aggregates and a few rows reach this process."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import TYPE_CHECKING

import narwhals as nw
import polars as pl
from polars import selectors

from trackperm import errors
from trackperm.errors import TrackpermError
from trackperm.pairing.engines.base import INTEGER_TEXT, TEXT_DIGITS, Frame, Types
from trackperm.pairing.engines.casts import cast_frame, stored, types_of
from trackperm.pairing.engines.sql import SqlEngine
from trackperm.pairing.internal_names import internal
from trackperm.storage import no_room_for_temporary_files
from trackperm.tables.lazy.query import Query
from trackperm.tables.lazy.scan import Scan
from trackperm.tables.lazy.spark_failures import spark_failure
from trackperm.tables.lazy.spark_session import spark_session, stack_traces_unlogged
from trackperm.tables.table import ExampleTable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_SLICE = 2**18
"""Largest table that is handed over in memory; larger ones are written to files that executors read."""

_REFUSAL = "refusal_of_batch"
_PATTERN = set("*?[]{}\\:")  # characters of paths that Spark takes for patterns and addresses


class Spark(SqlEngine):
    """Spark engine, in the session of the tables, else in the active one, else in a new local one.

    Executors keep rows that several queries read, in memory and on disk, until the end.

    Parameters
    ----------
    tables : iterable of ExampleTable
        Tables to pair; a frame of Spark determines the session.

    Raises
    ------
    MissingDependencyError
        If PySpark or Java is not installed.
    StorageError
        If temporary files cannot be written.
    EngineError
        If the session cannot be started. Other failures of Spark are raised as errors of one line at the end
        of the context: see :func:`~trackperm.tables.lazy.spark_failures.spark_failure`.
    """

    name = "spark"

    def __init__(self, tables: Iterable[ExampleTable] = ()) -> None:
        self._session = _session(tables)
        # A session of Spark Connect has no context, and may run on another machine.
        context = getattr(self._session, "sparkContext", None)
        self._is_local = context is not None and context.master.startswith("local")
        self._quiet = ExitStack()
        self._kept: list[DataFrame] = []
        self._numbers = count()
        try:
            self._folder = Path(mkdtemp(prefix="trackperm-"))
        except OSError as error:
            raise no_room_for_temporary_files(error) from error

    def __enter__(self) -> Spark:
        self._quiet.enter_context(stack_traces_unlogged())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failure = None if error is None else spark_failure(error)
        with suppress(Exception) if failure else nullcontext():  # a process that has ended keeps nothing
            for frame in self._kept:
                frame.unpersist()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._quiet.close()
        if failure is not None:
            raise failure from None

    def typed(
        self, tables: Sequence[ExampleTable], columns: Sequence[str], texts: Sequence[str]
    ) -> tuple[list[Frame], Types]:
        """Convert each of `columns` to one type in both tables."""
        tables = [
            table if _is_of_spark(table) else stored(table, columns, self._new_path()) for table in tables
        ]
        types = types_of(tables, columns, texts)
        return [cast_frame(self._source(table, list(types)), types) for table in tables], types

    def _new_path(self) -> Path:
        return self._folder / f"{next(self._numbers)}.parquet"

    def _source(self, table: ExampleTable, names: Sequence[str]) -> Frame:
        """Return columns of a table under their internal names."""
        data = table.data
        if isinstance(data, Query):
            return _renamed(data.lazy.to_native(), list(data.schema), names)
        if isinstance(data, Scan) and self._can_read(data):
            return _renamed(self._read(data.parquet), list(data.schema), names)
        renamed = {name: internal(name) for name in names}
        parts = (part.rename(renamed) for part in table.slices(names, _SLICE))
        is_written = self._is_local and len(table) > _SLICE
        return self._written(parts) if is_written else self.local(pl.concat(parts))

    def _can_read(self, scan: Scan) -> bool:
        """Whether Spark can read the Parquet files of a table directly.

        Remote executors do not see temporary files. Spark ignores the case of column names, hides files whose
        names begin with an underscore or a dot, and takes a few characters of paths for patterns.
        """
        is_seen = scan.folder is None or self._is_local
        is_plain = not any(path.name.startswith(("_", ".")) for path in scan.parquet)
        is_plain = is_plain and not any(_PATTERN & set(str(path)) for path in scan.parquet)
        columns = [name.lower() for name in scan.schema]
        return bool(scan.parquet) and is_seen and is_plain and len(set(columns)) == len(columns)

    def _written(self, parts: Iterable[pl.DataFrame]) -> Frame:
        """Write a table to files, slice by slice, which executors on this machine read."""
        folder = self._folder / str(next(self._numbers))
        paths = []
        try:
            folder.mkdir()
            for i, part in enumerate(parts):
                paths.append(folder / f"{i}.parquet")
                _signed(part).write_parquet(paths[-1], compression="snappy")
        except OSError as error:
            raise no_room_for_temporary_files(error) from error
        return _lazy(self._read(paths))

    def _read(self, paths: Sequence[Path]) -> DataFrame:
        """Read Parquet files of this machine, whatever the default file system of Spark is."""
        return self._session.read.parquet(*(f"file://{path.absolute().as_posix()}" for path in paths))

    def local(self, frame: pl.DataFrame) -> Frame:
        """Hand a small table over to Spark."""
        return _lazy(self._session.createDataFrame(_signed(frame).to_arrow()))

    def with_sql(self, frame: Frame, *steps: Mapping[str, str]) -> Frame:
        """Add columns of SQL expressions; Spark lets an expression read the columns before it."""
        own: DataFrame = frame.to_native()
        columns = (f"{sql} AS {name}" for columns in steps for name, sql in columns.items())
        return _lazy(own.selectExpr("*", *columns))

    def is_integer_text(self, name: str) -> str:
        """Return the condition that a text is written as an integer; `$` would allow a line break."""
        return f"{name} RLIKE '(?s){INTEGER_TEXT.removesuffix('$')}(?!.)'"

    def text_hash(self, name: str) -> str:
        """Return the SQL of the first bits of MD5 of a text."""
        return f"CAST(conv(left(md5({name}), {TEXT_DIGITS}), 16, 10) AS BIGINT)"

    def mapped(self, frame: Frame, function: Callable[[pl.DataFrame], pl.DataFrame]) -> Frame:
        """Apply `function`, which adds columns, to batches of rows in Python processes of the executors.

        An error of `function` is returned as a value, because Spark repeats a failed process and logs it.
        """
        from pyspark.sql.types import StructType

        own: DataFrame = frame.to_native()
        rows = pl.DataFrame(schema=frame.collect_schema().to_polars())
        added = function(rows).drop(rows.columns).with_columns(pl.lit(None, pl.String).alias(_REFUSAL))
        of_added: DataFrame = self.local(added).to_native()
        schema = StructType([*own.schema.fields, *of_added.schema.fields])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about versions of pandas, which is not used
            mapped = own.mapInArrow(partial(_mapped, function=function, added=added), schema)
        kept = self.kept(_lazy(mapped))
        refusal = self.collected(kept.select(nw.col(_REFUSAL).min())).item()
        if refusal is not None:
            kind, message, hint = json.loads(refusal)
            raise getattr(errors, kind)(message, hint=hint)
        return kept.drop(_REFUSAL)

    def kept(self, frame: Frame) -> Frame:
        """Mark a table that several queries read; the first of them computes and stores it."""
        own: DataFrame = frame.to_native()
        self._kept.append(own.persist())
        return _lazy(self._kept[-1])

    def collected(self, frame: Frame) -> pl.DataFrame:
        """Collect a table of few rows into memory."""
        return frame.collect("polars").to_polars()

    def beyond_ascii(self, frame: Frame, name: str) -> Frame:
        """Keep the rows whose text in a column has characters beyond ASCII."""
        own: DataFrame = frame.to_native()
        return _lazy(own.where(f"octet_length({name}) > char_length({name})"))

    def sampled(self, frame: Frame, n: int) -> Frame:
        """Keep about `n` rows at random, or all if there are fewer."""
        own: DataFrame = frame.to_native()
        return _lazy(own.sample(fraction=min(1.0, n / max(1, own.count())), seed=0))

    def n_distinct(self, frame: Frame, name: str) -> int:
        """Estimate the number of distinct values of a column, to within a fifth."""
        own: DataFrame = frame.to_native()
        return int(self.collected(_lazy(own.selectExpr(f"approx_count_distinct({name}) AS n"))).item())


def _mapped(
    batches: Iterable[pa.RecordBatch], function: Callable[[pl.DataFrame], pl.DataFrame], added: pl.DataFrame
) -> Iterator[pa.RecordBatch]:
    """Add the columns `added` that a function computes from batches, or its error as a value."""
    import pyarrow as pa

    for batch in batches:
        rows = pl.DataFrame(batch)
        try:
            columns = (
                function(rows)
                .select(added.columns[:-1])
                .with_columns(pl.lit(None, pl.String).alias(_REFUSAL))
            )
        except TrackpermError as error:
            refusal = json.dumps([type(error).__name__, error.message, error.hint])
            columns = added.clear(len(rows)).with_columns(pl.lit(refusal).alias(_REFUSAL))
        arrays = [column.to_arrow() for column in columns]
        yield pa.RecordBatch.from_arrays([*batch.columns, *arrays], [*batch.schema.names, *added.columns])


def _session(tables: Iterable[ExampleTable]) -> SparkSession:
    """Return the session of the first frame of Spark, else the active one, else a new one."""
    for table in tables:
        if isinstance(table.data, Query) and table.data.is_spark:
            frame: DataFrame = table.data.lazy.to_native()
            return frame.sparkSession
    return spark_session()


def _lazy(frame: DataFrame) -> Frame:
    lazy: Frame = nw.from_native(frame)
    return lazy


def _is_of_spark(table: ExampleTable) -> bool:
    return isinstance(table.data, Query) and table.data.is_spark


def _renamed(frame: DataFrame, columns: Sequence[str], names: Sequence[str]) -> Frame:
    """Select columns by position: Spark takes some names for expressions, or for equal names."""
    places = {name: f"column_{place}" for place, name in enumerate(columns)}
    numbered = frame.toDF(*places.values())
    return _lazy(numbered.selectExpr(*(f"{places[name]} AS {internal(name)}" for name in names)))


def _signed(frame: pl.DataFrame) -> pl.DataFrame:
    """Convert types that Spark lacks: unsigned integers and categories."""
    return frame.with_columns(
        selectors.unsigned_integer().cast(pl.Int64),
        selectors.by_dtype(pl.Categorical, pl.Enum, pl.Null).cast(pl.String),
    )
