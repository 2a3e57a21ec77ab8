"""Pairs of a spec: which examples are the left and right ones, what a pair counts, and its sums over columns.

A term that depends on scores and on values of the examples by comparisons alone is tabulated
(:mod:`.table`), so that its sums take O(N log N) steps (:func:`~trackperm.exact.pairwise.ranked_pairs`).
Any other term is evaluated on all pairs. With classes, pairs are made for every class, which conditions and
scores may read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.exact.pairwise import (
    PairScores,
    PairSums,
    coded_scores,
    compared_pairs,
    ranked_pairs,
    ranked_scores,
    require_room,
)
from trackperm.statistic.counters import COUNTERS
from trackperm.statistic.expressions.frames import OUT_OF_RANGE
from trackperm.statistic.expressions.parts import CLASS
from trackperm.statistic.expressions.tree import IRRATIONAL, Binary, Call, Expression, Name, Node, with_names
from trackperm.statistic.expressions.tree import Literal as LiteralNode
from trackperm.statistic.expressions.types import Checker, constant_integer
from trackperm.statistic.pairs.columns import Array, PairColumns, score_column
from trackperm.statistic.pairs.table import PairTable, width_of
from trackperm.statistic.pairs.trees import (
    LEFT,
    RIGHT,
    SCORE,
    NotByOrderError,
    atoms_of,
    is_number,
    nodes,
    score_parts,
    steps_of,
    with_side,
)
from trackperm.tables.columns.types import ColumnType

SHARE = "share"
"""Name of the count of a statistic of pairs: the share of an example in the score of a run.

The baseline's score is divided equally among the examples. The shares of an example in both runs differ by
what exchanging its outputs changes in the difference of scores, halved.
"""


MOST_COMPARED = 10_000
"""Largest number of examples whose pairs are all evaluated: 10^8 pairs, which take about a minute."""


Scale = Literal["ranks", "raw"]
Average = Literal["macro", "weighted"]


@dataclass(frozen=True, eq=False)
class PairTerm:
    """Term of a statistic of pairs, and which examples are pairs: its score is the mean over all pairs.

    Attributes
    ----------
    left, right : Expression or None
        Conditions on the left and on the right example of a pair; None for all examples. The second may read
        values of the left example as ``left.NAME``.
    term : Expression
        What a pair counts, from ``left.NAME`` and ``right.NAME``.
    scale : {'ranks', 'raw'}
        Whether scores are replaced by their mid-ranks in each run before outputs are exchanged.
    resolution : Fraction or None
        Unit to whose multiples terms are rounded; None if they are taken as they are.
    score : Expression or None
        Score of an example, from columns of the run; None for the column `score`.
    has_classes : bool
        Whether pairs are made for every class, which the conditions and `score` may read.
    average : {'macro', 'weighted'}
        Weights of the classes: equal, or the number of left examples of each.
    """

    left: Expression | None
    right: Expression | None
    term: Expression
    scale: Scale
    resolution: Fraction | None = None
    score: Expression | None = None
    has_classes: bool = False
    average: Average = "macro"

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions that the spec has."""
        all_ = (self.left, self.right, self.term, self.score)
        return tuple(each for each in all_ if each is not None)

    @property
    def merged(self) -> Expression:
        """All expressions in one, with the names of columns and without the sides of a pair."""
        tree = self.term.tree
        for condition in (self.right, self.left):
            if condition is not None:
                tree = Call(tree.start, tree.end, "where", (condition.tree, tree, tree))
        tree = with_side(tree, "")
        if (score := self.score) is not None:
            tree = with_names(tree, lambda name: score.tree if name.name == SCORE else name)
        return replace(self.term, tree=tree)

    @property
    def example_names(self) -> tuple[str, ...]:
        """Names of columns that belong to the examples."""
        own = {SCORE, CLASS} if self.has_classes else {SCORE}
        names = (name.name for each in self.expressions if each is not self.score for name in each.names)
        return tuple(dict.fromkeys(name for name in names if name not in own))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of columns, those of the examples as well as those of the score."""
        found = [SCORE] if self.score is None else [name.full for name in self.score.names]
        own = {CLASS} if self.has_classes else set()
        return tuple(dict.fromkeys(name for name in (*self.example_names, *found) if name not in own))

    def of_class(self, value: int | str | bool) -> PairTerm:
        """Return the pairs of one class, whose conditions contain its value."""
        left, right = (
            None if each is None else each.bind({CLASS: value}) for each in (self.left, self.right)
        )
        return replace(self, left=left, right=right, has_classes=False)

    @property
    def trees(self) -> tuple[Node, Node, Node]:
        """Conditions and term as trees whose names all have a side; a condition may be True."""

        def sided(condition: Expression | None, side: str) -> Node:
            if condition is None:
                return LiteralNode(0, 0, True)
            return with_names(condition.tree, lambda name: name if name.scope else replace(name, scope=side))

        return sided(self.left, LEFT), sided(self.right, RIGHT), self.term.tree

    @property
    def largest_difference(self) -> Fraction | None:
        """Largest difference of two scores, whatever the data; None if the term alone does not bound it.

        A score is a mean of terms, and so is a weighted mean over strata: it is between the smallest and the
        largest term, and the difference of two is at most their distance. The term keeps its declared values
        on the scale of ranks, too.
        """
        return width_of(self.term.tree)

    def check(
        self,
        types: Callable[[Expression, Name], ColumnType | None],
        column: Callable[[str], str],
        attempt: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Check the expressions, with the types of names if the data are known; `attempt` may collect errors.

        Raises
        ------
        SpecError
            If a condition reads a score or is not a condition, a name lacks its side of the pair, the term
            does not read the scores of both examples, types do not match, or, on the scale of ranks, the term
            uses more of the scores than their order.
        """
        for key, condition in ((LEFT, self.left), (RIGHT, self.right)):
            if condition is None:
                continue
            with attempt():
                _check_names(condition, key)
                self._check_class(condition)
                found = Checker(True, types, "column", column).result(condition, f"the condition `{key}`")
                if found not in (ColumnType.BOOLEAN, None) or is_number(condition.tree):
                    hint = "compare it with a value, as in `event == 1`."
                    raise condition.error(condition.tree, f"`{key}` is not a condition", hint=hint)
        with attempt():
            _check_names(self.term, "term")
            self._check_class(self.term)
            Checker(False, types, "column", column).result(self.term, "the term")
            self._check_scores()

    def _check_class(self, expression: Expression) -> None:
        """Refuse the class as a value of one example of a pair."""
        for name in expression.names if self.has_classes else ():
            if name.name == CLASS and name.scope:
                hint = f"`{LEFT}` and `{RIGHT}` read the class as `{CLASS}`."
                raise expression.error(name, "the class is the same for both examples", hint=hint)

    def _check_scores(self) -> None:
        """Check that the term reads both scores, and on the scale of ranks their order alone."""
        if {name.scope for name in self.term.names if name.name == SCORE} != {LEFT, RIGHT}:
            hint = "a term compares two scores, as in `left.score > right.score`."
            raise self.term.error(
                self.term.tree, "the term does not read the scores of both examples", hint=hint
            )
        for node in score_parts(self.term.tree) if self.scale == "ranks" else ():
            found = steps_of(node)
            if found is None or found.step != 0:
                raise self.term.error(
                    node,
                    "on the scale of ranks, a term can only compare the two scores with each other",
                    hint="`scale: raw` uses differences of scores; it needs runs whose scores are on one"
                    " scale.",
                )

    def sums(
        self,
        rows: pl.DataFrame,
        read_columns: Mapping[str, str],
        types: Mapping[str, ColumnType],
        strata: npt.NDArray[np.int64],
    ) -> tuple[PairSums, Fraction, npt.NDArray[np.int64]]:
        """Sum the terms of all pairs within strata.

        Parameters
        ----------
        rows : polars.DataFrame
            A row for each example, with its values by :func:`example_column` and the scores of both runs by
            :func:`score_column`.
        read_columns : mapping of str to str
            Column of every name.
        types : mapping of str to ColumnType
            Types of the columns, and of the score.
        strata : ndarray of int64, shape (N,)
            Stratum of each example, numbered from 0.

        Returns
        -------
        sums : PairSums
            The sums, in integers of a unit.
        unit : Fraction
            The unit.
        kinds : ndarray of int64, shape (N,)
            Numbers from 0 of groups of examples that have the same roles in pairs.

        Raises
        ------
        InputError
            If a score is not finite, a value of an example cannot be computed, terms are not multiples of the
            resolution, or there are too many examples to evaluate all pairs.
        """
        data = PairColumns(rows, read_columns, types, self.term)
        try:
            table = PairTable.of(self.trees, data, strata)
        except NotByOrderError:
            return self._compared(data.ranked() if self.scale == "ranks" else data, strata)
        scores = self._scores(rows, table.steps)
        denominator = math.lcm(*(value.denominator for value in table.terms.flat))
        values = [int(value * denominator) for value in table.terms.flat]
        require_room(max(map(abs, values)), len(rows))
        terms = np.array(values, dtype=np.int64).reshape(table.terms.shape)
        sums = ranked_pairs(scores, table.roles, terms, table.is_pair)
        return sums, Fraction(1, denominator), table.kinds

    def _scores(self, rows: pl.DataFrame, steps: tuple[Fraction, ...]) -> PairScores:
        candidate, baseline = (rows[score_column(side)].to_numpy() for side in ("candidate", "baseline"))
        if self.scale == "ranks":
            return ranked_scores(candidate, baseline)
        return coded_scores(candidate, baseline, steps)

    def _compared(
        self, data: PairColumns, strata: npt.NDArray[np.int64]
    ) -> tuple[PairSums, Fraction, npt.NDArray[np.int64]]:
        """Evaluate the term on all pairs."""
        n = len(data.rows)
        if n > MOST_COMPARED:
            raise self.term.error(
                self.term.tree,
                f"this term is evaluated on all pairs, which takes at most {MOST_COMPARED:,} examples, not"
                f" {n:,}",
                hint="comparisons of scores, and of one value of both examples, take any number.",
            )
        pairs, is_whole = data.condition(self.trees), data.is_whole(self.term)
        unit = self.resolution or (Fraction(1) if is_whole else None)
        if unit is None:
            raise self.term.error(
                self.term.tree,
                "a term that is not an integer needs a `resolution`",
                hint="`resolution: 0.001` rounds what a pair counts to thousandths.",
            )

        def term(left: Array, right: Array, own: bool, other: bool) -> npt.NDArray[np.int64]:
            values = data.on_pairs(self.term, left, right, own, other)
            if not np.isfinite(values).all() or (np.abs(values) >= OUT_OF_RANGE).any():
                hint = "a term needs a finite value on every pair."
                raise self.term.error(
                    self.term.tree, "the term is undefined or infinite on a pair", hint=hint
                )
            return np.rint(values / float(unit)).astype(np.int64)

        def is_pair(left: Array, right: Array) -> npt.NDArray[np.bool_]:
            same = strata[left] == strata[right]
            return np.asarray(same if pairs is None else same & pairs(left, right))

        sums = compared_pairs(term, is_pair, n)
        return sums, unit, np.zeros(n, dtype=np.int64)


def by_order(term: PairTerm) -> bool:
    """Whether a term compares scores and values of examples only, as far as its expressions tell."""
    try:
        for tree in term.trees:
            atoms_of(tree)
    except NotByOrderError:
        return False
    return True


def _check_names(expression: Expression, key: str) -> None:
    """Check the sides of the names in an expression, and its functions."""
    for node in nodes(expression.tree):
        if isinstance(node, Call) and (node.function in COUNTERS or node.function in IRRATIONAL):
            hint = "pairs use comparisons, `+ - * /`, `abs`, `min`, `max` and `where`."
            raise expression.error(node, f"`{node.function}` cannot be used in `pairs`", hint=hint)
        if isinstance(node, Binary) and node.operator == "**" and (constant_integer(node.right) or 0) < 0:
            hint = "divide by a power, as in `1 / x ** 2`."
            raise expression.error(node.right, "a negative exponent cannot be used in `pairs`", hint=hint)
        if not isinstance(node, Name):
            continue
        if key == "term" and not node.scope:
            hint = (
                f"`left.{node.name}` is that of the left example, `right.{node.name}` that of the right one."
            )
            raise expression.error(node, f"`{node.name}` does not say of which example", hint=hint)
        if key != "term" and node.scope and (key, node.scope) != (RIGHT, LEFT):
            hint = f"write `{node.name}`; only `right` may read the other example, as `left.{node.name}`."
            raise expression.error(node, f"`{node.full}` cannot be used in `{key}`", hint=hint)
        if key != "term" and node.name == SCORE:
            hint = "which examples are pairs must be the same for both runs; a term may use the scores."
            raise expression.error(node, f"`{key}` reads the score", hint=hint)
