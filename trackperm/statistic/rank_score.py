"""Rank statistic of a spec: its function of two whole columns, and the labels that it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import InputError
from trackperm.exact.rank_statistics import RANK_STATISTICS
from trackperm.exact.types import IntArray
from trackperm.statistic.counters import COUNTERS
from trackperm.statistic.expressions.tree import IRRATIONAL, Call, Expression, Name
from trackperm.statistic.expressions.types import Checker
from trackperm.statistic.pairs.columns import PairColumns
from trackperm.statistic.pairs.trees import SCORE, nodes
from trackperm.tables.columns.types import ColumnType

RANK, TARGET, STRATUM, CLUSTER = "rank", "target", "stratum", "cluster"
"""Counts of a rank statistic: codes of score, label, stratum and cluster of an example.

A score is coded by twice its mid-rank among those of its run, or by its place among the scores of both runs,
a label by its place among the labels. The test computes scores from all rows of codes, not from sums.
"""

Scale = Literal["ranks", "raw"]


def no_sum(_totals: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Refuse to evaluate a rank statistic at sums of counts: its h."""
    raise InputError("a rank statistic is not a function of sums over examples")


@dataclass(frozen=True, eq=False)
class RankScore:
    """Score of a run that is a rank statistic of its scores and of the labels.

    Attributes
    ----------
    function : str
        Name of the rank statistic, one of :data:`~trackperm.exact.rank_statistics.RANK_STATISTICS`.
    label : Expression
        Label of an example, from its columns except the score.
    scale : {'ranks', 'raw'}
        Whether scores are replaced by their mid-ranks in each run before outputs are exchanged.
    """

    function: str
    label: Expression
    scale: Scale

    @property
    def is_binary(self) -> bool:
        """Whether the label is a condition."""
        return RANK_STATISTICS[self.function].is_binary

    @property
    def score(self) -> Expression:
        """The score of a run."""
        return replace(self.label, tree=Name(0, 0, SCORE))

    @property
    def text(self) -> str:
        """The score as it is written, such as ``spearman(score, label)``."""
        return f"{self.function}({SCORE}, {self.label})"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of columns, the score first."""
        return tuple(dict.fromkeys((SCORE, *(node.full for node in self.label.names))))

    @property
    def example_names(self) -> tuple[str, ...]:
        """Names of columns that belong to the examples."""
        return tuple(name for name in self.names if name != SCORE)

    def check(
        self,
        types: Callable[[Expression, Name], ColumnType | None],
        column: Callable[[str], str],
        attempt: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Check the label, with the types of names if the data are known; `attempt` may collect errors.

        Raises
        ------
        SpecError
            If it reads the score or calls another function than those of expressions, if types do not match,
            or if the function needs a condition and the label is not one.
        """
        with attempt():
            for node in nodes(self.label.tree):
                if isinstance(node, Call) and (node.function in COUNTERS or node.function in IRRATIONAL):
                    hint = "it uses comparisons, `+ - * /`, `abs`, `min`, `max` and `where`."
                    raise self.label.error(node, f"`{node.function}` cannot be used in a label", hint=hint)
                if isinstance(node, Name) and (node.scope or node.name == SCORE):
                    hint = "the label is the same for both runs, as in `label: label == positive`."
                    raise self.label.error(node, f"`{node.full}` cannot be used in a label", hint=hint)
            found = Checker(True, types, "column", column, decimals=True).result(self.label, "the label")
            if self.is_binary and found not in (ColumnType.BOOLEAN, None):
                hint = "write a condition, as in `label: label == 1`."
                raise self.label.error(
                    self.label.tree, f"`{self.function}` needs a label that is true or false", hint=hint
                )

    def labels(
        self, rows: pl.DataFrame, read_columns: Mapping[str, str], types: Mapping[str, ColumnType]
    ) -> IntArray:
        """Return the labels of examples as codes in their order; 0 and 1 for a condition.

        Parameters
        ----------
        rows : polars.DataFrame
            A row for each example, with its values by :func:`~.pairs.columns.example_column`.
        read_columns : mapping of str to str
            Column of every name.
        types : mapping of str to ColumnType
            Types of the columns.

        Raises
        ------
        InputError
            If a label cannot be computed, or is not finite.
        """
        values = PairColumns(rows, read_columns, types, self.label).of_example(self.label.tree)
        if self.is_binary:
            return values.astype(np.int64)
        return np.unique(values, return_inverse=True)[1].astype(np.int64)
