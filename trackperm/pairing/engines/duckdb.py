"""Pairing by DuckDB, out of memory: rows are stored in a temporary database."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import TYPE_CHECKING

import narwhals as nw
import polars as pl
from polars import selectors

from trackperm.errors import StorageError
from trackperm.pairing.engines.base import INTEGER_TEXT, TEXT_DIGITS, Frame, Types
from trackperm.pairing.engines.casts import cast_frame, stored, types_of
from trackperm.pairing.engines.sql import SqlEngine
from trackperm.pairing.internal_names import internal
from trackperm.tables.columns.types import ColumnType
from trackperm.tables.lazy.query import ArrowStream, quoted
from trackperm.tables.lazy.scan import Scan
from trackperm.tables.table import ExampleTable

if TYPE_CHECKING:
    import duckdb

_SLICE = 2**18  # rows that are written or read at once
_MEMORY = 2**32  # most bytes of memory for DuckDB, which gets at most half of the machine's memory


class DuckDB(SqlEngine):
    """DuckDB engine on a temporary database, which is deleted at the end.

    Raises
    ------
    StorageError
        If temporary files cannot be written.
    """

    name = "duckdb"

    def __init__(self) -> None:
        import duckdb  # imported late: it takes a tenth of a second, and most pairings do not use it

        self._error = duckdb.Error
        try:
            self._folder = Path(mkdtemp(prefix="trackperm-"))
        except OSError as error:
            raise _no_room(error) from error
        self._numbers = count()
        try:
            self._connection = duckdb.connect(
                self._folder / "pairing.duckdb",
                config={
                    "memory_limit": f"{_memory()}B",
                    "temp_directory": str(self._folder),
                    "preserve_insertion_order": False,
                    "autoinstall_known_extensions": False,
                    "autoload_known_extensions": False,
                },
            )
            # DuckDB mistakes `python -c` for an interactive session, and draws progress bars in its output.
            self._connection.execute("SET enable_progress_bar = false")
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def typed(
        self, tables: Sequence[ExampleTable], columns: Sequence[str], texts: Sequence[str]
    ) -> tuple[list[Frame], Types]:
        """Convert each of `columns` to one type in both tables."""
        # Queries are copied: joined in place, they would leave pairing's tables in the user's database.
        tables = [stored(table, columns, self._new_path()) for table in tables]
        types = types_of(tables, columns, texts)
        return [cast_frame(self._source(table, types), types) for table in tables], types

    def _new_path(self) -> Path:
        return self._folder / f"{next(self._numbers)}.parquet"

    def _source(self, table: ExampleTable, types: Types) -> Frame:
        """Return the columns of `types` under their internal names."""
        if isinstance(table.data, Scan) and table.data.parquet:
            with self._storing():
                paths = [str(path) for path in table.data.parquet]
                relation = self._connection.read_parquet(paths, hive_partitioning=False)
            return _renamed(relation, table.columns, table.schema, types)
        frame = self._written(table.slices(types, _SLICE))
        return _renamed(frame.to_native(), list(types), table.schema, types)

    def _written(self, parts: Iterator[pl.DataFrame]) -> Frame:
        """Write a table slice by slice to files, and return the table that reads them."""
        paths = []
        for part in parts:
            paths.append(str(self._new_path()))
            try:
                part.write_parquet(paths[-1], compression="lz4")
            except OSError as error:
                raise _no_room(error) from error
        with self._storing():
            return nw.from_native(self._connection.read_parquet(paths, hive_partitioning=False))

    def local(self, frame: pl.DataFrame) -> Frame:
        """Hand a small table over to DuckDB."""
        return self._written(iter([frame]))

    def with_sql(self, frame: Frame, *steps: Mapping[str, str]) -> Frame:
        """Add columns of SQL expressions."""
        relation: duckdb.DuckDBPyRelation = frame.to_native()
        for columns in steps:
            relation = relation.project(
                ", ".join(["*", *(f"{sql} AS {name}" for name, sql in columns.items())])
            )
        return nw.from_native(relation)

    def is_integer_text(self, name: str) -> str:
        """Return the SQL condition that a text is written as an integer."""
        pattern = INTEGER_TEXT.removeprefix("^").removesuffix("$")
        return f"regexp_full_match({name}, '{pattern}')"

    def text_hash(self, name: str) -> str:
        """Return the SQL expression of the first bits of MD5 of a text."""
        return f"CAST('0x' || md5({name})[:{TEXT_DIGITS}] AS BIGINT)"

    def mapped(self, frame: Frame, function: Callable[[pl.DataFrame], pl.DataFrame]) -> Frame:
        """Apply `function`, which adds columns, to batches of rows."""
        relation: duckdb.DuckDBPyRelation = frame.to_native()
        path = str(self._new_path())
        with self._storing():
            relation.write_parquet(path, compression="lz4")
        lazy = pl.scan_parquet(path)
        n_rows = int(lazy.select(pl.len()).collect().item())
        starts = range(0, max(1, n_rows), _SLICE)
        return self._written(function(lazy.slice(start, _SLICE).collect()) for start in starts)

    def kept(self, frame: Frame) -> Frame:
        """Compute a table and store it in the database."""
        relation: duckdb.DuckDBPyRelation = frame.to_native()
        name = f"kept_{next(self._numbers)}"
        with self._storing():
            relation.create(name)
            return nw.from_native(self._connection.table(name))

    def collected(self, frame: Frame) -> pl.DataFrame:
        """Collect a table of few rows into memory."""
        relation: duckdb.DuckDBPyRelation = frame.to_native()
        with self._storing():
            found = _frame(relation)
        return found.with_columns(selectors.decimal().cast(pl.Int64))  # sums are integers of 128 bits

    def beyond_ascii(self, frame: Frame, name: str) -> Frame:
        """Keep the rows whose text in a column has characters beyond ASCII."""
        relation: duckdb.DuckDBPyRelation = frame.to_native()
        return nw.from_native(relation.filter(f"strlen({quoted(name)}) > length({quoted(name)})"))

    def sampled(self, frame: Frame, n: int) -> Frame:
        """Keep about `n` rows at random; each reading draws different rows."""
        relation: duckdb.DuckDBPyRelation = frame.to_native()
        with self._storing():
            n_rows = int(_frame(relation.aggregate("count(*) AS n"))["n"].item())
        return nw.from_native(relation.filter(f"random() * {n_rows} < {n}"))

    def n_distinct(self, frame: Frame, name: str) -> int:
        """Estimate the number of distinct values of a column, to within a fifth."""
        relation: duckdb.DuckDBPyRelation = frame.to_native()
        counted = relation.aggregate(f"approx_count_distinct({quoted(name)}) AS n")
        with self._storing():
            return int(_frame(counted)["n"].item())

    @contextmanager
    def _storing(self) -> Iterator[None]:
        try:
            yield
        except self._error as error:
            if _is_of_storage(error):
                raise _no_room(error) from error
            raise


def _renamed(
    relation: duckdb.DuckDBPyRelation, names: Sequence[str], schema: nw.Schema, types: Types
) -> Frame:
    """Select columns under their internal names; convert floats to integers where the type is integral.

    CAST, unlike TRY_CAST, fails if the dictionary of a column holds NaN, even if no row has it.

    Parameters
    ----------
    names : sequence of str
        Columns of the relation, in order; DuckDB renames one of two that differ only in case.
    """
    integral = (ColumnType.INTEGER, ColumnType.TEXT)
    places = {name: f"#{place}" for place, name in enumerate(names, 1)}
    columns = ", ".join(
        f"TRY_CAST({places[name]} AS BIGINT) AS {internal(name)}"
        if schema[name].is_float() and type_ in integral
        else f"{places[name]} AS {internal(name)}"
        for name, type_ in types.items()
    )
    return nw.from_native(relation.project(columns))


def _frame(relation: duckdb.DuckDBPyRelation) -> pl.DataFrame:
    return pl.DataFrame(ArrowStream(relation))


def _is_of_storage(error: Exception) -> bool:
    return type(error).__name__ in ("IOException", "OutOfMemoryException")


def _no_room(error: BaseException) -> StorageError:
    return StorageError(
        "runs that are too large for memory are paired in temporary files, which cannot be written:"
        f" {str(error).splitlines()[0]}",
        hint="the environment variable `TMPDIR` names a folder that has room for them.",
    )


def _memory() -> int:
    """Return the bytes of memory that DuckDB may use: at most half of the machine's memory."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return _MEMORY
    return min(_MEMORY, physical // 2)
