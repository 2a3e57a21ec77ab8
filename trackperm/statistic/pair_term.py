"""Pairs of a spec: which examples are the left and right ones, what a pair counts, and its sums over columns.

A term that depends on scores and on values of the examples by comparisons alone is tabulated, so that its
sums take O(N log N) steps (:func:`~trackperm.exact.pairwise.ranked_pairs`). Parts of an expression that read
one example only are computed for each example; their distinct values are its kinds. Comparisons between the
two examples are replaced by their outcomes, and the term is evaluated for all outcomes and kinds. Any other
term is evaluated on all pairs.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import InputError
from trackperm.exact.pairwise import (
    PairScores,
    PairSums,
    Roles,
    coded_scores,
    compared_pairs,
    ranked_pairs,
    ranked_scores,
    require_room,
)
from trackperm.statistic.counters import COUNTERS
from trackperm.statistic.expressions.frames import OUT_OF_RANGE, count_expression
from trackperm.statistic.expressions.functions import POLARS
from trackperm.statistic.expressions.tree import (
    COMPARISONS,
    IRRATIONAL,
    Binary,
    Call,
    Expression,
    Name,
    Node,
    Unary,
    children,
    transform,
)
from trackperm.statistic.expressions.tree import Literal as LiteralNode
from trackperm.statistic.expressions.types import Checker, constant_integer
from trackperm.tables.column_types import ColumnType

SCORE = "score"
"""Name of the scores of a run; all other names in pairs are values of the examples."""

SHARE = "share"
"""Name of the count of a statistic of pairs: the share of an example in the score of a run."""

LEFT, RIGHT = "left", "right"

MOST_COMPARED = 10_000
"""Largest number of examples whose pairs are all evaluated: 10^8 pairs, which take about a minute."""

MOST_KINDS = 64
"""Largest number of kinds of left or right examples that are tabulated; more are rarely needed."""

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}

Scale = Literal["ranks", "raw"]
Array = npt.NDArray[Any]


class _NotByOrderError(Exception):
    """A part of a term that depends on more than comparisons."""


@dataclass(frozen=True)
class _Steps:
    """A comparison of the difference of both scores: its outcome by the sign of difference - step."""

    step: Fraction
    compare: Callable[[Any, Any], bool]
    absolute: bool

    @property
    def steps(self) -> tuple[Fraction, ...]:
        return (-self.step, self.step) if self.absolute else (self.step,)


@dataclass(frozen=True)
class _Axis:
    """A comparison of a value of the left example with one of the right example."""

    left: Node
    right: Node
    compare: Callable[[Any, Any], bool]


@dataclass(frozen=True, eq=False)
class PairTerm:
    """What a statistic of pairs counts: its score is the mean of `term` over all pairs.

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
    """

    left: Expression | None
    right: Expression | None
    term: Expression
    scale: Scale
    resolution: Fraction | None = None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions that the spec has."""
        return tuple(each for each in (self.left, self.right, self.term) if each is not None)

    @property
    def merged(self) -> Expression:
        """All expressions in one, with the names of columns and without the sides of a pair."""
        tree = self.term.tree
        for condition in (self.right, self.left):
            if condition is not None:
                tree = Call(tree.start, tree.end, "where", (condition.tree, tree, tree))
        return replace(self.term, tree=_with_side(tree, ""))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of columns, those of the examples as well as the score."""
        return tuple(dict.fromkeys(name.name for each in self.expressions for name in each.names))

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
                found = Checker(True, types, "column", column).result(condition, f"the condition `{key}`")
                if found not in (ColumnType.BOOLEAN, None) or _is_number(condition.tree):
                    hint = "compare it with a value, as in `event == 1`."
                    raise condition.error(condition.tree, f"`{key}` is not a condition", hint=hint)
        with attempt():
            _check_names(self.term, "term")
            Checker(False, types, "column", column).result(self.term, "the term")
            self._check_scores()

    def _check_scores(self) -> None:
        """Check that the term reads both scores, and on the scale of ranks their order alone."""
        if {name.scope for name in self.term.names if name.name == SCORE} != {LEFT, RIGHT}:
            hint = "a term compares two scores, as in `left.score > right.score`."
            raise self.term.error(
                self.term.tree, "the term does not read the scores of both examples", hint=hint
            )
        for node in _score_parts(self.term.tree) if self.scale == "ranks" else ():
            found = _steps_of(node)
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
        data = _Columns(rows, read_columns, types, self.term)
        try:
            table = _Table.of(self, data, strata)
        except _NotByOrderError:
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
        self, data: _Columns, strata: npt.NDArray[np.int64]
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
        pairs, is_whole = data.condition(self), data.is_whole(self.term)
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


def example_column(column: str) -> str:
    """Name the column with a value of the examples."""
    return f"example.{column}"


def score_column(side: str) -> str:
    """Name the column with the scores of a run."""
    return f"{side}.score"


def by_order(term: PairTerm) -> bool:
    """Whether a term compares scores and values of examples only, as far as its expressions tell."""
    try:
        for tree in _trees(term):
            _atoms(tree)
    except _NotByOrderError:
        return False
    return True


def _check_names(expression: Expression, key: str) -> None:
    """Check the sides of the names in an expression, and its functions."""
    for node in _nodes(expression.tree):
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


def _is_number(node: Node) -> bool:
    """Whether a part is a number whatever the types of columns."""
    match node:
        case Unary(operator=sign):
            return sign in ("-", "+")
        case Binary(operator=sign):
            return sign in ("+", "-", "*", "/", "//", "%", "**")
        case Call(function=function):
            return function != "where"
    return False


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from _nodes(child)


def _score_parts(node: Node) -> Iterator[Node]:
    """Yield the comparisons that read a score, or the names of scores outside of comparisons."""
    if isinstance(node, Binary) and node.operator in COMPARISONS:
        if any(isinstance(part, Name) and part.name == SCORE for part in _nodes(node)):
            yield node
    elif isinstance(node, Name):
        if node.name == SCORE:
            yield node
    else:
        for child in children(node):
            yield from _score_parts(child)


def _steps_of(node: Node) -> _Steps | None:
    """Read a comparison of the difference of both scores with a number; None for another node."""
    if not isinstance(node, Binary) or node.operator not in COMPARISONS:
        return None
    for left, right, sign in (
        (node.left, node.right, node.operator),
        (node.right, node.left, _MIRRORED[node.operator]),
    ):
        if _is_score(left, LEFT) and _is_score(right, RIGHT):
            return _Steps(Fraction(0), COMPARISONS[sign], absolute=False)
        step = _constant(right)
        if step is None:
            continue
        if isinstance(left, Call) and left.function == "abs" and _orientation(left.arguments[0]):
            return _Steps(step, COMPARISONS[sign], absolute=True) if step >= 0 else None
        direction = _orientation(left)
        if direction:
            sign = sign if direction > 0 else _MIRRORED[sign]
            return _Steps(direction * step, COMPARISONS[sign], absolute=False)
    return None


def _orientation(node: Node) -> int:
    """Return 1 for left score - right score, -1 for the reverse, 0 for another node."""
    if not isinstance(node, Binary) or node.operator != "-":
        return 0
    if _is_score(node.left, LEFT) and _is_score(node.right, RIGHT):
        return 1
    return -1 if _is_score(node.left, RIGHT) and _is_score(node.right, LEFT) else 0


def _is_score(node: Node, side: str) -> bool:
    return isinstance(node, Name) and node.name == SCORE and node.scope == side


def _with_side(node: Node, side: str) -> Node:
    return transform(node, lambda part: replace(part, scope=side) if isinstance(part, Name) else part)


def _constant(node: Node) -> Fraction | None:
    if isinstance(node, Unary) and node.operator in ("-", "+"):
        value = _constant(node.operand)
        return None if value is None else (-value if node.operator == "-" else value)
    if isinstance(node, LiteralNode) and not isinstance(node.value, str | bool):
        return Fraction(node.value)
    return None


def _sides(node: Node) -> set[str]:
    return {part.scope for part in _nodes(node) if isinstance(part, Name)}


def _reads_score(node: Node) -> bool:
    return any(isinstance(part, Name) and part.name == SCORE for part in _nodes(node))


def _trees(term: PairTerm) -> tuple[Node, Node, Node]:
    """Return the conditions and the term as trees whose names all have a side; a condition may be True."""

    def sided(condition: Expression | None, side: str) -> Node:
        if condition is None:
            return LiteralNode(0, 0, True)
        return transform(
            condition.tree,
            lambda node: replace(node, scope=side) if isinstance(node, Name) and not node.scope else node,
        )

    return sided(term.left, LEFT), sided(term.right, RIGHT), term.term.tree


def _atoms(node: Node) -> dict[Node, _Steps | _Axis | str]:
    """Return the parts whose values determine that of a tree: comparisons, and parts of one side.

    Raises
    ------
    _NotByOrderError
        If the tree depends on more than these.
    """
    sides = _sides(node)
    if not sides:
        return {}
    if len(sides) == 1 and not _reads_score(node):
        return {node: next(iter(sides))}
    if isinstance(node, Binary) and node.operator in COMPARISONS:
        if _reads_score(node):
            steps = _steps_of(node)
            if steps is None:
                raise _NotByOrderError
            return {node: steps}
        own, other = _sides(node.left), _sides(node.right)
        if len(own) == len(other) == 1:
            if own == {LEFT}:
                return {node: _Axis(node.left, node.right, COMPARISONS[node.operator])}
            return {node: _Axis(node.right, node.left, COMPARISONS[_MIRRORED[node.operator]])}
    if not children(node):
        raise _NotByOrderError
    found: dict[Node, _Steps | _Axis | str] = {}
    for child in children(node):
        found |= _atoms(child)
    return found


_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    **COMPARISONS,
}


def _value(node: Node, known: Mapping[Node, Any]) -> Any:
    """Evaluate a tree exactly, given the values of its parts."""
    if node in known:
        return known[node]
    match node:
        case LiteralNode(value=value):
            return value
        case Unary(operator="~" | "not"):
            return not _value(node.operand, known)
        case Unary(operator=sign):
            value = _value(node.operand, known)
            return -value if sign == "-" else +value
        case Binary(operator="&" | "and"):
            return bool(_value(node.left, known)) and bool(_value(node.right, known))
        case Binary(operator="|" | "or"):
            return bool(_value(node.left, known)) or bool(_value(node.right, known))
        case Binary(operator="/"):
            return Fraction(_value(node.left, known)) / Fraction(_value(node.right, known))
        case Binary(operator="**"):
            return Fraction(_value(node.left, known)) ** int(_value(node.right, known))
        case Binary():
            return _ARITHMETIC[node.operator](_value(node.left, known), _value(node.right, known))
        case Call(function="where"):
            condition, yes, no = node.arguments
            return _value(yes if _value(condition, known) else no, known)
        case Call(function="abs"):
            return abs(_value(node.arguments[0], known))
        case Call():
            values = [_value(argument, known) for argument in node.arguments]
            return min(values) if node.function == "min" else max(values)
    raise TypeError(f"not a part of a term: {node!r}")


@dataclass(frozen=True)
class _Columns:
    """Values of examples and pairs, computed from columns."""

    rows: pl.DataFrame
    read_columns: Mapping[str, str]
    types: Mapping[str, ColumnType]
    whole: Expression

    def ranked(self) -> _Columns:
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

    def condition(self, term: PairTerm) -> Callable[[Array, Array], npt.NDArray[np.bool_]] | None:
        """Return the condition on pairs, from the indices of their examples; None if all are pairs."""
        left, right, _ = _trees(term)
        both = [replace(term.term, tree=tree) for tree in (left, right) if not isinstance(tree, LiteralNode)]
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


@dataclass(frozen=True)
class _Table:
    """Term and pairs by kinds, order of places and region of the difference of scores."""

    roles: Roles
    terms: Array
    is_pair: npt.NDArray[np.bool_]
    steps: tuple[Fraction, ...]
    kinds: npt.NDArray[np.int64]

    @classmethod
    def of(cls, term: PairTerm, data: _Columns, strata: npt.NDArray[np.int64]) -> _Table:
        """Tabulate a term.

        Raises
        ------
        _NotByOrderError
            If it depends on more than comparisons and few kinds of examples.
        """
        left, right, tree = _trees(term)
        atoms = {**_atoms(left), **_atoms(right), **_atoms(tree)}
        steps = {node: atom for node, atom in atoms.items() if isinstance(atom, _Steps)}
        axes: dict[tuple[Node, Node], int] = {}
        for atom in atoms.values():
            if isinstance(atom, _Axis):
                axes.setdefault((atom.left, atom.right), len(axes))
        values = sorted({value for atom in steps.values() for value in atom.steps})
        kinds = {side: _kinds(side, atoms, data) for side in (LEFT, RIGHT)}
        n_regions = 2 * len(values) + 1
        shape = (len(kinds[LEFT][1]), len(kinds[RIGHT][1]), *[3] * len(axes), n_regions)
        if len(axes) > 3 or math.prod(shape) > 2**16:
            raise _NotByOrderError
        terms = np.full(shape, Fraction(0), dtype=object)
        is_pair = np.zeros(shape[:-1], dtype=bool)
        for place in product(*map(range, shape[:-1])):
            known: dict[Node, Any] = {**kinds[LEFT][1][place[0]], **kinds[RIGHT][1][place[1]]}
            signs = dict(zip(axes, (sign - 1 for sign in place[2:]), strict=True))
            known |= {
                node: atom.compare(signs[atom.left, atom.right], 0)
                for node, atom in atoms.items()
                if isinstance(atom, _Axis)
            }
            if not (_value(left, known) and _value(right, known)):
                continue
            is_pair[place] = True
            for region in range(n_regions):
                outcomes = {node: _outcome(atom, values, region) for node, atom in steps.items()}
                try:
                    terms[(*place, region)] = Fraction(_value(tree, {**known, **outcomes}))
                except (ZeroDivisionError, OverflowError):
                    raise InputError(
                        "the term of a pair is undefined", hint="it divides by 0 on some pairs."
                    ) from None
        return cls._with_places(data, strata, kinds, list(axes), terms, is_pair, tuple(values))

    @classmethod
    def _with_places(
        cls,
        data: _Columns,
        strata: npt.NDArray[np.int64],
        kinds: Mapping[str, tuple[npt.NDArray[np.int64], Any]],
        axes: list[tuple[Node, Node]],
        terms: Array,
        is_pair: npt.NDArray[np.bool_],
        steps: tuple[Fraction, ...],
    ) -> _Table:
        """Make groups of the values that have to be equal in pairs, and places of the one that is ordered."""
        groups = [(strata, strata)]
        ordered: list[int] = []
        for i, axis in enumerate(axes):
            unequal = np.delete(np.moveaxis(is_pair, 2 + i, 0), 1, axis=0)
            if unequal.any():
                ordered.append(i)
            else:
                groups.append(_coded(data, axis))
        if len(ordered) > 1:
            raise _NotByOrderError
        n = strata.size
        places = _coded(data, axes[ordered[0]]) if ordered else (np.zeros(n, dtype=np.int64),) * 2
        for i in reversed(range(len(axes))):
            if i not in ordered:
                terms = np.take(terms, 1, axis=2 + i)
                is_pair = np.asarray(np.take(is_pair, 1, axis=2 + i))
        if not ordered:
            terms = np.repeat(np.expand_dims(terms, 2), 3, axis=2)
            is_pair = np.repeat(np.expand_dims(is_pair, 2), 3, axis=2)
        left, right = kinds[LEFT][0], kinds[RIGHT][0]
        sides = [
            np.where(np.asarray(is_pair.any(axis=unused))[kind], kind, -1)
            for kind, unused in ((left, (1, 2)), (right, (0, 2)))
        ]
        group = _numbered([np.concatenate(pair) for pair in groups])
        roles = Roles(sides[0], sides[1], places[0], places[1], group[:n], group[n:])
        return cls(roles, terms, is_pair, steps, _numbered([left, right]))


def _kinds(
    side: str, atoms: Mapping[Node, object], data: _Columns
) -> tuple[npt.NDArray[np.int64], list[dict[Node, Any]]]:
    """Return the kind of each example on a side, and the values of its parts for each kind."""
    parts = [node for node, atom in atoms.items() if atom == side]
    if not parts:
        return np.zeros(len(data.rows), dtype=np.int64), [{}]
    columns = [_distinct(data.of_example(node)) for node in parts]
    kinds = _numbered([codes for _, codes in columns])
    n_kinds = int(kinds.max(initial=-1)) + 1
    if n_kinds > MOST_KINDS:
        raise _NotByOrderError
    examples = np.zeros(n_kinds, dtype=np.int64)
    examples[kinds] = np.arange(kinds.size)
    known = [
        {node: _exact(values[codes[i]]) for node, (values, codes) in zip(parts, columns, strict=True)}
        for i in examples
    ]
    return kinds, known


def _distinct(values: Array) -> tuple[Array, npt.NDArray[np.int64]]:
    """Return the distinct values in order, and the number of each entry's value among them."""
    low = int(values.min(initial=0)) if values.dtype.kind in "iu" else 0
    if values.dtype.kind not in "iu" or int(values.max(initial=0)) - low >= max(2 * values.size, 2**10):
        distinct, codes = np.unique(values, return_inverse=True)
        return distinct, codes.astype(np.int64)
    (present,) = np.nonzero(np.bincount(values - low))
    numbers = np.zeros(int(present.max(initial=-1)) + 1, dtype=np.int64)
    numbers[present] = np.arange(present.size)
    return present + low, numbers[values - low]


def _exact(value: Any) -> Any:
    """Return a value of an array as a Python number; a float by its shortest digits, or text."""
    item = value.item() if isinstance(value, np.generic) else value
    return Fraction(repr(item)) if isinstance(item, float) else item


def _coded(data: _Columns, axis: tuple[Node, Node]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return codes, in one order, of a value of the left and of the right examples."""
    if axis[0] == _with_side(axis[1], LEFT):
        codes = _distinct(data.of_example(axis[0]))[1]
        return codes, codes
    values = [data.of_example(node) for node in axis]
    codes = _distinct(np.concatenate(values))[1]
    return codes[: len(values[0])], codes[len(values[0]) :]


def _numbered(codes: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return numbers from 0 of the distinct combinations of codes."""
    found = codes[0]
    for other in codes[1:]:
        found = _distinct(found * (int(other.max(initial=0)) + 1) + other)[1]
    return found


def _outcome(atom: _Steps, steps: list[Fraction], region: int) -> bool:
    """Return the outcome of a comparison in a region of the difference, in ascending order of regions."""

    # Twice the place of a difference: odd between two steps, even on one.
    def side(step: Fraction) -> int:
        place = 2 * steps.index(step) + 1
        return (region > place) - (region < place)

    if not atom.absolute:
        return bool(atom.compare(side(atom.step), 0))
    above, below = side(atom.step), side(-atom.step)
    size = 1 if above > 0 or below < 0 else 0 if above == 0 or below == 0 else -1
    return bool(atom.compare(size, 0))
