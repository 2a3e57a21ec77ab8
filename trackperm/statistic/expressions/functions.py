"""Functions that build data frame expressions: those of narwhals, or those of polars itself.

narwhals takes its names and their meaning from polars. Code with only these functions, and methods that
frames of both have, runs on polars with or without narwhals in between. Without it, a query of many
expressions over few rows takes half the time.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Protocol, cast

import narwhals as nw
import polars as pl

if TYPE_CHECKING:
    from narwhals.functions import When


FrameExpression = nw.Expr
"""Expression over the columns of a data frame."""


class Functions(Hashable, Protocol):
    """Functions in use from the module ``narwhals``, or from ``polars`` in its place."""

    Float64: Any
    Int64: Any
    String: Any

    def col(self, *names: str) -> FrameExpression:
        """Return columns by their names."""

    def lit(self, value: Any, dtype: Any = None) -> FrameExpression:
        """Return a column that repeats one value."""

    def len(self) -> FrameExpression:
        """Return the number of rows."""

    def when(self, *predicates: FrameExpression) -> When:
        """Choose between two values of each row."""

    def coalesce(self, exprs: Any, *more_exprs: Any) -> FrameExpression:
        """Take the first value that is not null."""

    def concat_str(self, exprs: Any, *, separator: str = "") -> FrameExpression:
        """Join texts."""

    def min_horizontal(self, *exprs: Any) -> FrameExpression:
        """Take the least of several values of a row."""

    def max_horizontal(self, *exprs: Any) -> FrameExpression:
        """Take the greatest of several values of a row."""


NARWHALS: Functions = nw
POLARS = cast(Functions, pl)
