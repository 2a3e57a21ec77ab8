"""Rows that another engine holds: a DuckDB relation or a Spark data frame."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw


@dataclass(frozen=True, eq=False)
class Query:
    """Rows of a relation that its own engine computes, column by column, when they are needed.

    Attributes
    ----------
    lazy : narwhals.LazyFrame
        A DuckDB relation or a Spark data frame.
    """

    lazy: nw.LazyFrame[Any]

    @cached_property
    def schema(self) -> nw.Schema:
        """Names of the columns and their types."""
        return self.lazy.collect_schema()

    @cached_property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.lazy.select(nw.len()).collect("polars").item())

    @property
    def is_spark(self) -> bool:
        """Whether Spark holds the rows, and not DuckDB."""
        return bool(self.lazy.implementation.is_spark_like())

    def head(self, n: int) -> Query:
        """Take `n` rows, in no certain order."""
        return Query(self.lazy.head(n))

    def read(self, names: Iterable[str]) -> nw.DataFrame[Any]:
        """Read the columns `names` into memory."""
        return self.lazy.select(list(names)).collect("polars")
