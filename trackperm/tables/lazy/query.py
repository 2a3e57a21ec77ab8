"""Query as a lazy table: a DuckDB relation, a Spark data frame or a lazy frame of polars."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import polars as pl

from trackperm.errors import SourceError, TrackpermError
from trackperm.storage import is_full, no_room_for_temporary_files
from trackperm.tables.lazy.scan import Scan
from trackperm.tables.lazy.spark_failures import spark_failure
from trackperm.tables.lazy.spark_session import stack_traces_unlogged
from trackperm.tables.lazy.table import COUNT, LazyTable
from trackperm.tables.lazy.type_representatives import type_representatives
from trackperm.tables.named_frame import named_frame
from trackperm.tables.panics import panics_unprinted

if TYPE_CHECKING:
    import duckdb

_N = "n"


@dataclass(frozen=True, eq=False)
class Query(LazyTable):
    """Query whose columns its own engine computes when they are used.

    Each use computes the rows anew, possibly in another order. Columns that belong together therefore have to
    be read in one call.

    Attributes
    ----------
    lazy : narwhals.LazyFrame
        A DuckDB relation, a Spark data frame or a lazy frame of polars.
    origin : str
        Name of the query in messages.
    """

    is_query = True
    lazy: nw.LazyFrame[Any]
    origin: str = "query"
    _dtypes: dict[str, pl.DataType] = field(default_factory=dict, repr=False)

    @cached_property
    def schema(self) -> nw.Schema:
        """Names of the columns and their types."""
        try:
            return self.lazy.collect_schema()
        except Exception as error:
            raise self._unreadable(error) from error

    @cached_property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._collected(self.lazy.select(nw.len())).item())

    @property
    def is_spark(self) -> bool:
        """Whether Spark holds the rows."""
        return bool(self.lazy.implementation.is_spark_like())

    @property
    def is_duckdb(self) -> bool:
        """Whether DuckDB holds the rows."""
        return bool(self.lazy.implementation.is_duckdb())

    def dtypes(self, names: Collection[str]) -> dict[str, pl.DataType]:
        """Types of the columns `names` once they are read."""
        if self.lazy.implementation.is_polars():
            schema = self.lazy.to_native().collect_schema()
            return {name: schema[name] for name in names}
        unknown = [name for name in names if name not in self._dtypes]
        if unknown:
            self._dtypes.update(self._read(self._anonymous.head(0), unknown).schema)
        return {name: self._dtypes[name] for name in names}

    def head(self, n: int) -> Query:
        """Take the first `n` rows of polars, or any `n` rows of other engines, which have no order."""
        return replace(self, lazy=_called(self._anonymous.head(n), list(self.schema)))

    def among(self, name: str, values: pl.Series) -> Query:
        """Keep the rows whose value in the column `name` is one of `values`."""
        kept = self._anonymous.filter(nw.col(self._place(name)).is_in(values.to_list()))
        return replace(self, lazy=_called(kept, list(self.schema)))

    def replaced(self, names: Collection[str], change: Callable[[str], nw.Expr]) -> Query:
        """Replace columns by the expressions that `change` returns for their names."""
        changed = self._anonymous.with_columns(change(self._place(name)) for name in names)
        return Query(_called(changed, list(self.schema)), self.origin)

    def renamed(self, names: Mapping[str, str]) -> Query:
        """Keep the columns that are keys of `names`, under new names."""
        kept = self._anonymous.select(list(map(self._place, names)))
        return Query(_called(kept, list(names.values())), self.origin)

    def read(self, names: Iterable[str]) -> nw.DataFrame[Any]:
        """Read the columns `names` into memory, all at once.

        Raise SourceError if the engine cannot compute them, and EngineError, MissingDependencyError,
        CapacityError if Spark fails: see :func:`~trackperm.tables.lazy.spark_failures.spark_failure`.
        """
        return nw.from_native(self._read(self._anonymous, list(names)), eager_only=True)

    def repeats(self, names: Sequence[str]) -> bool:
        """Whether two rows have the same values in all of the columns `names`."""
        sizes = self._anonymous.group_by(*map(self._place, names)).agg(nw.len().alias(_N))
        return len(self._collected(sizes.filter(nw.col(_N) > 1).select(_N).head(1))) > 0

    def value_counts(self, name: str, most: int) -> pl.DataFrame:
        """Count how often each value of the column `name` occurs, and return the most frequent values."""
        place = self._place(name)
        counts = self._anonymous.group_by(place).agg(nw.len().cast(nw.Int64).alias(_N))
        found = self._collected(counts.sort(_N, place, descending=[True, False]).head(most + 1))
        found.columns = [name, COUNT]
        return found

    def n_equal(self, first: str, second: str) -> tuple[int, int]:
        """Count the rows with a value in both columns, and the rows with the same number or text in both."""
        dtypes = self.dtypes([first, second])
        are_numbers = all(dtype.is_numeric() or dtype == pl.Boolean for dtype in dtypes.values())
        a, b = (
            values.cast(nw.Int64) if are_numbers and dtypes[name] == pl.Boolean else values
            for name in (first, second)
            for values in [nw.col(self._place(name))]
        )
        is_same = a == b if are_numbers else a.cast(nw.String) == b.cast(nw.String)
        conditions = ~a.is_null() & ~b.is_null(), is_same.fill_null(False)
        counts = [nw.when(condition).then(1).sum().alias(f"n_{i}") for i, condition in enumerate(conditions)]
        n_both, n_same = self._collected(self._anonymous.select(counts)).row(0)
        return int(n_both or 0), int(n_same or 0)

    def type_representatives(self, names: Collection[str], untyped: Collection[str] = ()) -> pl.DataFrame:
        """Return a few values that determine the types of columns, by aggregates in the engine."""
        if untyped:
            return type_representatives(self.read(names).to_polars(), untyped)
        dtypes = self.dtypes(names)
        expressions = {
            (name, i): values
            for name, dtype in dtypes.items()
            for i, values in enumerate(_aggregates(nw.col(self._place(name)), dtype))
        }
        selected = [values.alias(f"value_{n}") for n, values in enumerate(expressions.values())]
        found = self._collected(self._anonymous.select(selected)) if selected else pl.DataFrame()
        columns = {name: [pl.Series(name, [], dtype)] for name, dtype in dtypes.items()}
        for (name, _), value in zip(expressions, found, strict=True):
            columns[name].append(value.alias(name).cast(dtypes[name]).drop_nulls())
        together = [pl.concat(values) for values in columns.values()]
        n = max(map(len, together), default=0)
        return named_frame(values.extend_constant(None, n - len(values)) for values in together)

    def stored(self, names: Sequence[str], path: Path) -> Scan:
        """Write the columns `names` to a file, streamed by their engine, and return the scan of that file.

        Columns of Spark, and of a DuckDB connection that must not write files, are collected in memory first.
        Raise SourceError if the engine cannot compute them, and StorageError if the file cannot be written.
        """
        selected = self._anonymous.select(list(map(self._place, names)))
        try:
            with panics_unprinted():
                if self.lazy.implementation.is_polars():
                    selected.to_native().sink_parquet(path, compression="lz4")
                elif not (self.is_duckdb and _write(selected.to_native(), self.dtypes(names), path)):
                    self._collected(selected).write_parquet(path, compression="lz4")
        except (Exception, pl.exceptions.PanicException) as error:
            if str(path) in str(error) or is_full(error):
                raise no_room_for_temporary_files(error) from error
            raise self._unreadable(error) from error
        lazy = pl.scan_parquet(path).rename({self._place(name): name for name in names})
        return Scan(lazy, no_room_for_temporary_files, folder=path, parquet=(path,))

    @cached_property
    def _anonymous(self) -> nw.LazyFrame[Any]:
        """The rows with numbered columns: engines read some names as expressions, or as equal to others."""
        return _called(self.lazy, list(map(self._place, self.schema)))

    def _place(self, name: str) -> str:
        return f"column_{self._places[name]}"

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.schema)}

    def _read(self, lazy: nw.LazyFrame[Any], names: Collection[str]) -> pl.DataFrame:
        """Collect the columns `names` of rows whose columns are numbered."""
        found = self._collected(lazy.select(list(map(self._place, names)))) if names else pl.DataFrame()
        found.columns = list(names)
        return found

    def _collected(self, lazy: nw.LazyFrame[Any]) -> pl.DataFrame:
        try:
            with panics_unprinted(), stack_traces_unlogged() if self.is_spark else nullcontext():
                if self.is_duckdb:
                    return pl.DataFrame(ArrowStream(lazy.to_native()))
                return lazy.collect("polars").to_polars()
        except (Exception, pl.exceptions.PanicException) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: BaseException) -> TrackpermError:
        if isinstance(error, TrackpermError):
            return error
        if self.is_spark and (failure := spark_failure(error)) is not None:
            return failure
        return SourceError(f"`{self.origin}` cannot be read: {first_line(error)}")


class ArrowStream:
    """Arrow stream of a DuckDB relation, from which polars keeps the types.

    DuckDB's own conversion to polars is not used, because DuckDB reports its streams as leaks.
    """

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._relation = relation

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._relation.__arrow_c_stream__()


def _called(lazy: nw.LazyFrame[Any], names: Sequence[str]) -> nw.LazyFrame[Any]:
    """Rename all columns, by position."""
    native: Any = lazy.to_native()
    if lazy.implementation.is_polars():
        return lazy.rename(dict(zip(lazy.collect_schema(), names, strict=True)))
    if lazy.implementation.is_duckdb():
        native = native.project(", ".join(f"#{i} AS {quoted(name)}" for i, name in enumerate(names, 1)))
    else:
        native = native.toDF(*names)
    renamed: nw.LazyFrame[Any] = nw.from_native(native)
    return renamed


def quoted(name: str) -> str:
    """Quote the name of a column for SQL."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _aggregates(values: nw.Expr, dtype: pl.DataType) -> Iterator[nw.Expr]:
    """Yield aggregates whose values determine the type of a column."""
    if dtype.is_float():
        values = nw.when(~values.is_nan()).then(values)
    if dtype.is_float():
        yield nw.when(values % 1 != 0).then(values).min()
    if dtype.is_decimal():  # of which polars 1.40 has no remainders
        yield nw.when(values.floor() != values).then(values).min()
    if dtype.is_numeric():
        yield values.max()
    if isinstance(dtype, pl.List):
        yield nw.when(values.list.len() > 0).then(values).any_value(ignore_nulls=True)
        yield values.any_value(ignore_nulls=True)
    elif dtype != pl.Null:
        yield values.min()


def _write(relation: duckdb.DuckDBPyRelation, dtypes: Mapping[str, pl.DataType], path: Path) -> bool:
    """Write a relation to a Parquet file, with its Arrow types; return False if writing is not permitted.

    Columns are cast, because Parquet has neither 128-bit integers nor DuckDB's types that are text in Arrow.
    """
    import duckdb

    columns = ", ".join(
        f"CAST({name} AS {type_}) AS {name}" if (type_ := _duckdb_type(dtype)) else name
        for name, dtype in zip(relation.columns, dtypes.values(), strict=True)
    )
    try:
        relation.project(columns).write_parquet(str(path), compression="lz4")
    except duckdb.PermissionException:
        return False
    return True


def _duckdb_type(dtype: pl.DataType) -> str | None:
    if isinstance(dtype, pl.Decimal):
        return f"DECIMAL({dtype.precision}, {dtype.scale})"
    return "VARCHAR" if dtype in (pl.String, pl.Categorical, pl.Enum) else None


def first_line(error: BaseException) -> str:
    """Return the first line of an engine's error message; a plan and a stack trace may follow it."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
