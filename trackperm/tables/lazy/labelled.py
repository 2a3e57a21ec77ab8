"""Lazy table whose rows are joined with reference answers; columns are read and joined when used."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import narwhals as nw
import polars as pl

from trackperm.tables.lazy.table import COUNT, LazyTable
from trackperm.tables.lazy.type_representatives import type_representatives


class Labelled(LazyTable):
    """Lazy table with reference answers, which are joined in memory to the columns that are used.

    When a further column is used, all columns are read again together: a query may return its rows in a
    different order each time. `join` reads the columns of given names and returns these and others, joined
    with the answers; `held` is its first result.
    """

    def __init__(
        self,
        join: Callable[[Collection[str]], pl.DataFrame],
        schema: nw.Schema,
        held: pl.DataFrame,
        *,
        is_query: bool,
    ) -> None:
        self._join, self._schema, self._held = join, schema, held
        self.is_query = is_query

    @property
    def schema(self) -> nw.Schema:
        """Names of the columns and their types."""
        return self._schema

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self._held)

    def dtypes(self, names: Collection[str]) -> dict[str, pl.DataType]:
        """Types of the columns `names`."""
        return dict(self._with(names).select(names).schema)

    def head(self, n: int) -> Labelled:
        """Take the first `n` rows of all columns, including those that are read later."""
        return self._changed(lambda names: self._with(names).head(n))

    def among(self, name: str, values: pl.Series) -> Labelled:
        """Keep the rows whose value in the column `name` is one of `values`, which are of its type."""

        def kept(names: Collection[str]) -> pl.DataFrame:
            return self._with({*names, name}).filter(pl.col(name).is_in(values.implode()))

        return self._changed(kept)

    def replaced(self, names: Collection[str], change: Callable[[str], nw.Expr]) -> Labelled:
        """Replace columns by the expressions that `change` returns for their names."""

        def changed(wanted: Collection[str]) -> pl.DataFrame:
            rows = nw.from_native(self._with(wanted))
            return rows.with_columns(change(name) for name in names if name in rows.columns).to_native()

        own = nw.from_native(changed(names).select(names)).schema
        schema = nw.Schema({**self._schema, **own})
        return Labelled(changed, schema, changed(()), is_query=self.is_query)

    def read(self, names: Iterable[str]) -> nw.DataFrame[Any]:
        """Return the columns `names`."""
        names = list(names)
        return nw.from_native(self._with(names).select(names), eager_only=True)

    def repeats(self, names: Sequence[str]) -> bool:
        """Whether two rows have the same values in all of the columns `names`."""
        return bool(self._with(names).select(names).is_duplicated().any())

    def value_counts(self, name: str, most: int) -> pl.DataFrame:  # noqa: ARG002
        """Count how often each value of the column `name` occurs."""
        return self._with([name]).group_by(name).agg(pl.len().cast(pl.Int64).alias(COUNT))

    def type_representatives(self, names: Collection[str], untyped: Collection[str]) -> pl.DataFrame:
        """Return a few values of each of the columns `names` that determine its type."""
        return type_representatives(self._with(names).select(names), untyped)

    def _changed(self, join: Callable[[Collection[str]], pl.DataFrame]) -> Labelled:
        return Labelled(join, self._schema, join(()), is_query=self.is_query)

    def _with(self, names: Collection[str]) -> pl.DataFrame:
        if not set(names) <= set(self._held.columns):
            self._held = self._join({*self._held.columns, *names})
        return self._held
