"""Per-example tables, which layers hand to each other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import narwhals as nw
import polars as pl

from trackperm.errors import InputError, InputTypeError, MissingDependencyError, SourceError
from trackperm.tables.lazy_table import COUNT, LazyTable
from trackperm.tables.named_frame import named_frame
from trackperm.tables.query import Query
from trackperm.tables.scan import Scan
from trackperm.tables.witnesses import has_witnesses, witnesses


@dataclass(frozen=True, eq=False)
class ExampleTable:
    """The per-example table of one run, one row an example.

    Attributes
    ----------
    data : narwhals.DataFrame or LazyTable
        The columns as they were read; or a file (:class:`~trackperm.tables.scan.Scan`) or a query
        (:class:`~trackperm.tables.query.Query`) of which those are read that are used.
    origin : str
        What messages call the table: a path, ``mlflow:<run id>`` or ``baseline``.
    untyped : bool or frozenset of str
        Whether every column is text because the format knows no types (CSV), or the columns of which that is
        so; see :meth:`is_untyped`.
    unusable : mapping of str to str
        Columns that were read but have no single type, and why: a use of one is refused with the reason.
    identity : tuple of str
        Columns that tell of an example's input, such as its hash: the same in every run on these examples.
    facts : mapping of str to str
        What the file says of the run as a whole, such as ``dataset`` or ``filter``: a hint, no proof.
    notes : tuple of str
        What a reader of a result should know of how the table was read.
    ordered : bool
        Whether the rows have an order: those of a query (DuckDB, Spark) come in any.
    metrics : mapping of str to str
        The log's own metrics: names, and the columns that score every example by them.
    statistics : tuple of str
        Built-in statistics that the columns of the format are made for.
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
    statistics: tuple[str, ...] = ()

    @classmethod
    def from_native(cls, frame: Any, origin: str) -> ExampleTable:
        """Take any data frame that narwhals accepts; the rows of a lazy one stay in its engine.

        Raises
        ------
        InputTypeError
            If `frame` is no data frame, or a column name is not text.
        InputError
            If two columns have the same name.
        SourceError
            If a name is a pattern, as :func:`require_plain_names` says.
        """
        try:
            table = nw.from_native(frame)
        except TypeError as error:
            raise InputTypeError(
                f"`{origin}` is of type `{type(frame).__qualname__}`, which is no data frame",
                hint="give a polars, pandas, pyarrow, DuckDB or Spark table, or the path of a file.",
            ) from error
        except nw.exceptions.DuplicateError as error:
            raise InputError(f"`{origin}` has columns of the same name: {error}") from error
        ordered = isinstance(table, nw.DataFrame) or table.implementation.is_polars()
        data = Query(table, origin) if isinstance(table, nw.LazyFrame) else table
        for name in data.schema:
            if not isinstance(name, str):
                raise InputTypeError(
                    f"`{origin}` has a column named {name!r}, which is not text",
                    hint="rename the columns, as in `frame.columns = ['id', 'prediction', 'label']`.",
                )
        found = cls(data, origin, ordered=ordered)
        require_plain_names(found)
        return found

    @classmethod
    def from_scan(cls, scan: Scan, origin: str) -> ExampleTable:
        """Take a file, of which the columns and the number of rows are read at once.

        Raises
        ------
        SourceError
            If it is broken.
        """
        table = cls(scan, origin)
        len(table.columns), len(table)
        return table

    @cached_property
    def frame(self) -> nw.DataFrame[Any]:
        """All columns; see :meth:`only`."""
        return self.data.read(self.columns) if isinstance(self.data, LazyTable) else self.data

    @property
    def schema(self) -> nw.Schema:
        """Names of the columns and their types."""
        return self.data.schema

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema)

    def is_untyped(self, name: str) -> bool:
        """Whether column `name` is text because its format knows no types."""
        return self.untyped if isinstance(self.untyped, bool) else name in self.untyped

    def only(self, names: Iterable[str]) -> ExampleTable:
        """Keep some columns, in memory; of a file or a query no other is read."""
        names = list(names)
        kept = self.data.read(names) if isinstance(self.data, LazyTable) else self.data.select(names)
        return replace(self, data=kept)

    def polars_column(self, name: str) -> pl.Series:
        """Take column `name` to polars, with the type that it has.

        Raises
        ------
        InputTypeError
            If its values are of several types, or cannot be used.
        """
        self._require_usable(name)
        return to_polars(self.only([name]).frame.get_column(name), f"column `{name}` of `{self.origin}`")

    def slices(self, names: Iterable[str], size: int) -> Iterator[pl.DataFrame]:
        """Read some columns `size` rows at a time, as polars holds them."""
        if isinstance(self.data, LazyTable):
            yield from self.data.slices(names, size)
        else:
            yield from self.data.select(list(names)).to_polars().iter_slices(size)

    def witnesses(self, names: Iterable[str]) -> pl.DataFrame:
        """Return few values of columns that tell their types, of those that have such.

        See :func:`~trackperm.tables.witnesses.witnesses`.
        """
        names = list(names)
        untyped = [name for name in names if self.is_untyped(name)]
        if isinstance(self.data, LazyTable):
            return self.data.witnesses(names, untyped)
        return witnesses(self.data.select(names).to_polars(), untyped)

    def has_witnesses(self, names: Iterable[str]) -> bool:
        """Whether few values of the columns `names` tell their types, and slices can be read of them."""
        names = list(names)
        if any(name in self.unusable for name in names):
            return False
        if isinstance(self.data, LazyTable):
            return self.data.has_witnesses(names)
        if not self.data.implementation.is_polars():
            return False
        schema = self.data.to_polars().schema
        return all(has_witnesses(schema[name]) for name in names)

    def repeats(self, names: Sequence[str]) -> bool:
        """Whether two rows have the same values in all of the columns `names`.

        Raises
        ------
        InputTypeError
            If the values of one cannot be used.
        """
        for name in names:
            self._require_usable(name)
        if isinstance(self.data, LazyTable):
            return self.data.repeats(names)
        columns = [self.polars_column(name) for name in names]
        rows = columns[0] if len(columns) == 1 else named_frame(columns)
        return bool(rows.is_duplicated().any())

    def value_counts(self, name: str, most: int) -> pl.DataFrame | None:
        """Count the values of a column; None where they are nested.

        Of more than `most` values of a file or a query `most` + 1 are returned, as
        :meth:`~trackperm.tables.lazy_table.LazyTable.value_counts` says.

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

    def _require_usable(self, name: str) -> None:
        if name in self.unusable:
            raise InputTypeError(
                f"column `{name}` of `{self.origin}` {self.unusable[name]}",
                hint="give every value the same type.",
            )

    def among(self, name: str, values: pl.Series) -> ExampleTable:
        """Keep the rows whose value in the column `name` is one of `values`, of :meth:`value_counts`."""
        if isinstance(self.data, LazyTable):
            return replace(self, data=self.data.among(name, values))
        kept = self.polars_column(name).is_in(values.implode()).fill_null(False)
        return replace(self, data=self.data.filter(kept.to_list()))

    def head(self, n: int) -> ExampleTable:
        """Keep the first `n` rows."""
        return replace(self, data=self.data.head(n))

    def loaded(self) -> ExampleTable:
        """Read all columns, for a file that will be gone."""
        return replace(self, data=self.frame)

    def __len__(self) -> int:
        return self.data.n_rows if isinstance(self.data, LazyTable) else len(self.data)


def require_plain_names(table: ExampleTable) -> None:
    """Refuse names that polars takes for several columns wherever one is named.

    Raises
    ------
    SourceError
        If there is one.
    """
    for name in table.columns:
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            raise SourceError(
                f"`{table.origin}` has a column `{name}`, which stands for several columns", hint="rename it."
            )


def id_columns(id_: str, tables: Collection[ExampleTable]) -> tuple[str, ...]:
    """Columns that `id_` names: one that is called so in all `tables`, or else those between its commas.

    Raises
    ------
    InputError
        If a name is empty, and no column is called so.
    """
    if all(id_ in table.columns for table in tables):
        return (id_,)
    names = tuple(dict.fromkeys(name.strip() for name in id_.split(",")))
    if not all(names):
        raise InputError(
            f"`--id {id_!r}` names no column" + (" beside a comma" if "," in id_ else ""),
            hint="`--id NAME` names the column of ids, `--id NAME,NAME` several.",
        )
    return (id_,) if len(names) == 1 else names


def to_polars(series: nw.Series[Any], where: str) -> pl.Series:
    """Return a column as polars holds it; `where` is what messages call it."""
    try:
        return series.to_polars()
    except ImportError as error:
        raise MissingDependencyError(
            f"{where} cannot be read: {error}", hint="pip install pyarrow"
        ) from error
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise InputTypeError(
            f"{where} mixes values of several types: {error}", hint="give every value the same type."
        ) from error
