"""Per-example table of a run, which readers return and pairing takes."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from trackperm.errors import InputError, InputTypeError, MissingDependencyError, SourceError
from trackperm.tables.lazy.query import Query
from trackperm.tables.lazy.scan import Scan
from trackperm.tables.lazy.table import COUNT, LazyTable
from trackperm.tables.lazy.type_representatives import has_representatives, type_representatives
from trackperm.tables.named_frame import named_frame
from trackperm.tables.pandas_columns import convertible_frame, convertible_series


@dataclass(frozen=True, eq=False)
class ExampleTable:
    """The per-example table of one run, with one row per example.

    Attributes
    ----------
    data : narwhals.DataFrame or LazyTable
        The columns in memory; or a file (:class:`~trackperm.tables.lazy.scan.Scan`) or a query
        (:class:`~trackperm.tables.lazy.query.Query`), whose columns are read when they are used.
    origin : str
        Name of the table in messages: a path, ``mlflow:<run id>`` or ``baseline``.
    untyped : bool or frozenset of str
        Whether every column is text because the format has no types (CSV), or the set of such columns; see
        :meth:`is_untyped`.
    unusable : mapping of str to str
        Columns without a single type, and the reason, which the error gives when such a column is used.
    identity : tuple of str
        Columns that identify an example's input, such as its hash: equal in every run on the same examples.
    facts : mapping of str to str
        Statements of the file about the whole run, such as ``dataset`` or ``filter``. They are not verified.
    notes : tuple of str
        Remarks for readers of a result on how the table was read.
    ordered : bool
        Whether the rows have an order; those of a query (DuckDB, Spark) have none.
    metrics : mapping of str to str
        Metrics that the log itself names, with the columns that hold their scores of every example.
    greater_is_better : mapping of str to bool
        Columns of scores whose direction the log or its format declares: whether greater values are better.
    whole_log_metrics : mapping of str to str
        Metrics that the log computes over all examples together and not for each, with the built-in
        statistic that computes each from predictions and labels, or an empty text if there is none.
    rows_of_scores : mapping of str to (str, tuple of str)
        Columns of scores that only some rows have, as each belongs to some tasks of a benchmark: for each the
        column that tells these rows, and its values.
    statistics : tuple of str
        Built-in statistics that suit the columns of the format.
    is_in_program : bool
        Whether the rows are objects of a program, so that no command can read them.
    has_joined_labels : bool
        Whether the labels come from another file, so that they are the same for the same ids.
    """

    data: nw.DataFrame[Any] | LazyTable
    origin: str
    untyped: bool | frozenset[str] = False
    unusable: Mapping[str, str] = field(default_factory=dict)
    identity: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    ordered: bool = True
    metrics: Mapping[str, str] = field(default_factory=dict)
    greater_is_better: Mapping[str, bool] = field(default_factory=dict)
    whole_log_metrics: Mapping[str, str] = field(default_factory=dict)
    rows_of_scores: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    statistics: tuple[str, ...] = ()
    is_in_program: bool = False
    has_joined_labels: bool = False

    @classmethod
    def from_native(cls, frame: Any, origin: str) -> ExampleTable:
        """Build from any data frame that narwhals accepts; the rows of a lazy frame stay in its engine.

        A named index of pandas becomes columns, as in ``frame.set_index("id")``.

        Raises
        ------
        InputTypeError
            If `frame` is not a data frame, or the name of a column is not text.
        InputError
            If two columns have the same name.
        SourceError
            If the name of a column is a pattern; see :func:`require_plain_names`.
        """
        native = nw.to_native(frame, pass_through=True)
        if nw.dependencies.is_pandas_dataframe(native):
            frame = native
            names = list(frame.index.names)
            are_new = len({*names, *frame.columns}) == len(names) + len(frame.columns)
            if are_new and all(isinstance(name, str) for name in names):
                frame = frame.reset_index()
        try:
            table = nw.from_native(frame)
        except TypeError as error:
            raise InputTypeError(
                f"`{origin}` has the type `{type(frame).__qualname__}`; expected a data frame",
                hint="pass a polars, pandas, pyarrow, DuckDB or Spark table, or the path of a file.",
            ) from error
        except nw.exceptions.DuplicateError as error:
            raise InputError(f"`{origin}` has columns of the same name: {error}") from error
        unusable: dict[str, str] = {}
        if isinstance(table, nw.DataFrame) and table.implementation.is_pandas():
            if _has_pyarrow():
                table = nw.from_native(convertible_frame(table.to_native()))
            else:
                table, unusable = _without_pyarrow(table, origin)
        ordered = isinstance(table, nw.DataFrame) or table.implementation.is_polars()
        data = Query(table, origin) if isinstance(table, nw.LazyFrame) else table
        for name in data.schema:
            if not isinstance(name, str):
                raise InputTypeError(
                    f"`{origin}` has a column named {name!r}, which is not text",
                    hint="rename the columns, as in `frame.columns = ['id', 'prediction', 'label']`.",
                )
        found = cls(data, origin, ordered=ordered, unusable=unusable)
        require_plain_names(found)
        return found

    @classmethod
    def from_scan(cls, scan: Scan, origin: str) -> ExampleTable:
        """Build from a file, and read at once the names of its columns and the number of its rows.

        Raises
        ------
        SourceError
            If the file is broken.
        """
        table = cls(scan, origin)
        len(table.columns), len(table)
        return table

    @cached_property
    def frame(self) -> nw.DataFrame[Any]:
        """All columns, in memory; see :meth:`only`."""
        return self.data.read(self.columns) if isinstance(self.data, LazyTable) else self.data

    @cached_property
    def schema(self) -> nw.Schema:
        """Names of the columns and their types."""
        return self.data.schema

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema)

    def is_untyped(self, name: str) -> bool:
        """Whether column `name` is text because its format has no types."""
        return self.untyped if isinstance(self.untyped, bool) else name in self.untyped

    def only(self, names: Iterable[str]) -> ExampleTable:
        """Keep only the columns `names`, in memory; no others of a file or a query are read."""
        names = list(names)
        kept = self.data.read(names) if isinstance(self.data, LazyTable) else self.data.select(names)
        return replace(self, data=kept)

    def polars_column(self, name: str) -> pl.Series:
        """Return column `name` as a polars series, with its own type.

        Raises
        ------
        InputTypeError
            If its values are of several types, or cannot be used.
        """
        self._require_usable(name)
        frame = self.data.read([name]) if isinstance(self.data, LazyTable) else self.data
        return to_polars(frame.get_column(name), f"column `{name}` of `{self.origin}`")

    def slices(self, names: Iterable[str], size: int) -> Iterator[pl.DataFrame]:
        """Read the columns `names` as polars data frames, `size` rows at a time; at least one data frame."""
        if isinstance(self.data, LazyTable):
            yield from self.data.slices(names, size)
        else:
            frame = self.data.select(list(names)).to_polars()
            yield from frame.iter_slices(size) if len(frame) else [frame]

    def type_representatives(self, names: Iterable[str]) -> pl.DataFrame:
        """Return a few values that determine the types of columns; see :meth:`has_representatives`.

        :func:`~trackperm.tables.lazy.type_representatives.type_representatives` describes these values.
        """
        names = list(names)
        untyped = [name for name in names if self.is_untyped(name)]
        if isinstance(self.data, LazyTable):
            return self.data.type_representatives(names, untyped)
        return type_representatives(self.data.select(names).to_polars(), untyped)

    def has_representatives(self, names: Iterable[str]) -> bool:
        """Whether a few values determine the types of the columns `names`, which can be read in slices."""
        names = list(names)
        if any(name in self.unusable for name in names):
            return False
        if isinstance(self.data, LazyTable):
            return self.data.has_representatives(names)
        schema = self.data.schema
        return all(
            map(has_representatives, nw.Schema({name: schema[name] for name in names}).to_polars().values())
        )

    def repeats(self, names: Sequence[str]) -> bool:
        """Whether two rows have the same values in all of the columns `names`.

        Raises
        ------
        InputTypeError
            If the values of a column cannot be used.
        """
        for name in names:
            self._require_usable(name)
        if isinstance(self.data, LazyTable):
            return self.data.repeats(names)
        columns = [self.polars_column(name) for name in names]
        rows = columns[0] if len(columns) == 1 else named_frame(columns)
        return bool(rows.is_duplicated().any())

    def value_counts(self, name: str, most: int) -> pl.DataFrame | None:
        """Count how often each value of a column occurs; None if values are nested.

        If a file or a query has more than `most` distinct values, `most` + 1 are returned; see
        :meth:`~trackperm.tables.lazy.table.LazyTable.value_counts`.

        Raises
        ------
        InputTypeError
            If its values cannot be used.
        """
        self._require_usable(name)
        if isinstance(self.data, LazyTable):
            is_nested = self.data.dtypes([name])[name].is_nested()
            return None if is_nested else self.data.value_counts(name, most)
        values = self.polars_column(name)
        if values.dtype.is_nested() or values.dtype == pl.Object:
            return None
        return values.to_frame().group_by(name).agg(pl.len().cast(pl.Int64).alias(COUNT))

    def counts_of_few(self, name: str, most: int) -> pl.DataFrame | None:
        """Count values as :meth:`value_counts` does; None for more than `most`, or unusable ones."""
        try:
            counts = self.value_counts(name, most)
        except InputTypeError:
            return None
        return None if counts is None or len(counts) > most else counts

    def _require_usable(self, name: str) -> None:
        if name in self.unusable:
            raise InputTypeError(
                f"column `{name}` of `{self.origin}` {self.unusable[name]}",
                hint="give every value the same type.",
            )

    def among(self, name: str, values: pl.Series) -> ExampleTable:
        """Keep the rows whose value in the column `name` is one of `values`, from :meth:`value_counts`."""
        if isinstance(self.data, LazyTable):
            return replace(self, data=self.data.among(name, values))
        kept = self.polars_column(name).is_in(values.implode()).fill_null(False)
        return replace(self, data=self.data.filter(kept.to_list()))

    def for_scores(self, names: Iterable[str]) -> ExampleTable:
        """Keep the rows to which all columns of scores among `names` belong, also those that lack a value."""
        table = self
        for column, values in (self.rows_of_scores[name] for name in names if name in self.rows_of_scores):
            table = table.among(column, pl.Series(values))
        return table

    def head(self, n: int) -> ExampleTable:
        """Keep the first `n` rows."""
        if not isinstance(self.data, LazyTable) and len(self.data) <= n:
            return self
        return replace(self, data=self.data.head(n))

    def with_text(self, name: str) -> ExampleTable:
        """Return the table, in memory, with a column of integers or other plain values as text."""
        return replace(self, data=self.frame.with_columns(nw.col(name).cast(nw.String)))

    def with_rows(self, rows: pl.DataFrame) -> ExampleTable:
        """Replace all rows and columns by those of a data frame of polars."""
        return replace(self, data=nw.from_native(rows, eager_only=True))

    def loaded(self) -> ExampleTable:
        """Read all columns into memory, for a file that is about to be deleted."""
        return replace(self, data=self.frame)

    def __len__(self) -> int:
        return self.data.n_rows if isinstance(self.data, LazyTable) else len(self.data)


def holds_values(given: object) -> bool:
    """Whether an argument is an array, a series, a list, a tuple or a mapping, but not a data frame."""
    if isinstance(given, list | tuple | range | Mapping) or nw.dependencies.is_into_series(given):
        return True
    if is_arrow_array(given):
        return True
    return hasattr(given, "__array__") and hasattr(given, "shape") and not hasattr(given, "columns")


def is_arrow_array(given: object) -> bool:
    """Whether an argument is an array of pyarrow in one piece; narwhals knows chunked ones alone."""
    pyarrow = sys.modules.get("pyarrow")
    return pyarrow is not None and isinstance(given, pyarrow.Array)


def require_plain_names(table: ExampleTable) -> None:
    """Refuse names of columns that polars reads as patterns for several columns.

    Raises
    ------
    SourceError
        If a column has such a name.
    """
    for name in table.columns:
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            raise SourceError(
                f"`{table.origin}` has a column `{name}`, a name that polars reads as a pattern",
                hint="rename the column.",
            )


def rows_repeat(tables: Iterable[ExampleTable], names: Sequence[str], *, if_unknown: bool) -> bool:
    """Whether any table has two rows with the same values in all columns `names`.

    For a table whose values cannot be used it is `if_unknown`.
    """
    for table in tables:
        try:
            repeats = table.repeats(names)
        except InputTypeError:
            repeats = if_unknown
        if repeats:
            return True
    return False


def have(tables: Iterable[ExampleTable], names: Sequence[str]) -> bool:
    """Whether all tables have all the columns."""
    return all(name in table.columns for table in tables for name in names)


def may_write_truths(tables: Iterable[ExampleTable], names: Sequence[str]) -> bool:
    """Whether any of the columns is boolean, or may say true or false because its file has no types."""
    return any(
        table.is_untyped(name) or table.schema.get(name) == nw.Boolean for table in tables for name in names
    )


def id_columns(id_: str, tables: Collection[ExampleTable]) -> tuple[str, ...]:
    """Return the columns that `id_` names: a column of all `tables`, or else several separated by commas.

    Raises
    ------
    InputError
        If a name in the list is empty.
    """
    if all(id_ in table.columns for table in tables):
        return (id_,)
    names = tuple(dict.fromkeys(name.strip() for name in id_.split(",")))
    if not all(names):
        raise InputError(
            f"`--id {id_!r}` has an empty column name",
            hint="`--id NAME` names the column of ids, `--id NAME,NAME` several.",
        )
    return (id_,) if len(names) == 1 else names


def to_polars(series: nw.Series[Any], where: str) -> pl.Series:
    """Convert a column to polars; `where` is its name in messages."""
    try:
        if series.implementation.is_pandas() and not _has_pyarrow():
            return _of_pandas(series)
        if series.implementation.is_pandas():
            series = nw.from_native(convertible_series(series.to_native()), series_only=True)
        return series.to_polars()
    except ImportError as error:
        raise MissingDependencyError(
            f"{where} cannot be read: {error}", hint="pip install pyarrow"
        ) from error
    except NotImplementedError as error:  # pyarrow has no type for complex numbers, for example
        raise InputTypeError(f"{where} has values of a type that cannot be read: {error}") from error
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise InputTypeError(
            f"{where} mixes values of several types: {error}", hint="give every value the same type."
        ) from error


def _has_pyarrow() -> bool:
    """Whether PyArrow is installed, by which polars converts text of pandas."""
    return find_spec("pyarrow") is not None


def _of_pandas(series: nw.Series[Any]) -> pl.Series:
    """Convert a column of pandas without PyArrow: text, dates and nullable types value by value."""
    native = series.to_native()
    if native.dtype.kind in "biuf" and isinstance(native.dtype, np.dtype):
        return pl.Series(series.name, native.to_numpy())
    values = native.astype(object).where(native.notna(), None)
    return pl.Series(series.name, values.tolist(), strict=True)


def _without_pyarrow(table: nw.DataFrame[Any], origin: str) -> tuple[nw.DataFrame[Any], dict[str, str]]:
    """Convert a data frame of pandas to polars; return also the columns without a type, and why."""
    columns, unusable = [], {}
    for series in table.iter_columns():
        try:
            columns.append(to_polars(series, f"column `{series.name}` of `{origin}`"))
        except InputTypeError:
            unusable[series.name] = "mixes values of several types"
            columns.append(pl.Series(series.name, [None] * len(series)))
    return nw.from_native(named_frame(columns), eager_only=True), unusable


def shared_columns(tables: Sequence[ExampleTable]) -> list[str]:
    """Return the columns that all runs have, in the order of the first."""
    first, *others = (table.schema for table in tables)
    return [name for name in first if all(name in other for other in others)]
