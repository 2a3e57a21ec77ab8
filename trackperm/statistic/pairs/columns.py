"""Values that expressions over pairs take on the examples of two runs, and on their pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import InputError
from trackperm.exact.pairwise import ranked_scores
from trackperm.statistic.expressions.frames import OUT_OF_RANGE, count_expression
from trackperm.statistic.expressions.functions import POLARS
from trackperm.statistic.expressions.tree import Expression, Literal, Name, Node
from trackperm.statistic.expressions.types import Checker
from trackperm.statistic.pairs.trees import LEFT, SCORE
from trackperm.tables.columns.types import ColumnType

Array = npt.NDArray[Any]


def example_column(column: str) -> str:
    """Name the column with a value of the examples."""
    return f"example.{column}"


def score_column(side: str) -> str:
    """Name the column with the scores of a run."""
    return f"{side}.score"


@dataclass(frozen=True)
class PairColumns:
    """Values of examples and pairs, computed from columns."""

    rows: pl.DataFrame
    read_columns: Mapping[str, str]
    types: Mapping[str, ColumnType]
    whole: Expression

    def ranked(self) -> PairColumns:
        """Replace the scores of each run by their mid-ranks."""
        sides = ("candidate", "baseline")
        scores = ranked_scores(*(self.rows[score_column(side)].to_numpy() for side in sides))
        ranks = [
            pl.Series(score_column(s), codes) for s, codes in zip(sides, (scores.u, scores.v), strict=True)
        ]
        types = {**self.types, self.read_columns[SCORE]: ColumnType.INTEGER}
        return replace(self, rows=self.rows.with_columns(ranks), types=types)

    def of_example(self, node: Node) -> Array:
        """Return the values of a part that reads one example, for each of them."""
        if isinstance(node, Name) and self.types[self.read_columns[node.name]] is ColumnType.TEXT:
            return self.rows[example_column(self.read_columns[node.name])].to_numpy()
        expression = replace(self.whole, tree=node)
        columns = {name.full: self.read_columns[name.name] for name in expression.names}
        values = _evaluated(expression, self.rows, columns, self.types, example_column)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise InputError(f"a value of an example is undefined or infinite in `{self.whole}`")
        if values.dtype.kind == "i" and (np.abs(values) >= OUT_OF_RANGE).any():
            raise InputError(f"a value of an example is beyond 64 bits in `{self.whole}`")
        return values

    def is_whole(self, term: Expression) -> bool:
        """Whether the term is an integer whatever the data."""
        checker = Checker(False, lambda _, node: self.types[self.read_columns[node.name]], "column")
        return checker.result(term, "the term") is not ColumnType.DECIMAL

    def on_pairs(self, term: Expression, left: Array, right: Array, own: bool, other: bool) -> Array:
        """Evaluate a term on pairs; `own` and `other` say whether scores are those of the candidate."""
        return np.asarray(self._on_pairs(term, left, right, own, other), dtype=np.float64)

    def condition(
        self, trees: tuple[Node, Node, Node]
    ) -> Callable[[Array, Array], npt.NDArray[np.bool_]] | None:
        """Return the condition on pairs, from the indices of their examples; None if all are pairs."""
        both = [replace(self.whole, tree=tree) for tree in trees[:2] if not isinstance(tree, Literal)]
        if not both:
            return None

        def holds(first: Array, second: Array) -> npt.NDArray[np.bool_]:
            found = np.ones(first.size, dtype=bool)
            for expression in both:
                found &= self._on_pairs(expression, first, second, True, True) == 1
            return found

        return holds

    def _on_pairs(self, expression: Expression, left: Array, right: Array, own: bool, other: bool) -> Array:
        series: dict[str, pl.Series] = {}
        for name in expression.names:
            index, is_candidate = (left, own) if name.scope == LEFT else (right, other)
            column = example_column(self.read_columns[name.name])
            if name.name == SCORE:
                column = score_column("candidate" if is_candidate else "baseline")
            series[name.full] = self.rows[column].gather(index)
        types = {name.full: self.types[self.read_columns[name.name]] for name in expression.names}
        frame = pl.DataFrame(series) if series else pl.DataFrame({"pair": left})
        return _evaluated(expression, frame, {name: name for name in types}, types, str)


def _evaluated(
    expression: Expression,
    frame: pl.DataFrame,
    columns: Mapping[str, str],
    types: Mapping[str, ColumnType],
    located: Callable[[str], str],
) -> Array:
    """Evaluate an expression on the rows of a frame; arguments are those of :func:`count_expression`."""
    compiled = count_expression(expression, columns, types, located, POLARS)
    values = frame.select(cast(pl.Expr, compiled).alias("value"))["value"].to_numpy()
    return np.broadcast_to(values, len(frame)) if len(values) == 1 else values
