"""Data frame expressions of a statistic's counts, checked against the types of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import polars as pl

from trackperm.errors import InputError
from trackperm.statistic import counter_columns
from trackperm.statistic.counter_columns import types_by_class
from trackperm.statistic.counters.base import LabelCounts
from trackperm.statistic.definition import Outcome, Statistic
from trackperm.statistic.expressions.frames import (
    Decimals,
    count_expression,
    decimal_columns,
    is_computed_in_floats,
    may_be_in_integers,
)
from trackperm.statistic.expressions.functions import NARWHALS, FrameExpression, Functions
from trackperm.statistic.expressions.tree import Expression
from trackperm.statistic.expressions.types import Checker, of_columns
from trackperm.statistic.pairs.trees import SCORE
from trackperm.tables.columns.types import ColumnType


def count_expressions(
    statistic: Statistic,
    types: Mapping[str, ColumnType],
    located: Callable[[str], str] = str,
    functions: Functions = NARWHALS,
    decimals: Mapping[str, Decimals] | None = None,
) -> dict[str, FrameExpression]:
    """Return the expression of every count, of type int64, or float64 for decimals.

    The expressions read the columns of :func:`with_counters_of`, and
    :data:`~trackperm.statistic.definition.CLASS_COLUMN` where there are classes. A count whose arithmetic
    leaves 64 bits, divides by zero or meets NaN is :data:`~trackperm.statistic.OUT_OF_RANGE` on that example,
    or NaN if it is a decimal.

    Parameters
    ----------
    statistic : Statistic
        The statistic.
    types : mapping of str to ColumnType
        Types of the columns, at least of its `used_columns`.
    located : callable
        Maps the name of a column, or of a counter's column, to the column that is read.
    functions : Functions
        Builder of the expressions.
    decimals : mapping of str to Decimals, optional
        Columns whose values are decimals or integers in both runs; expressions of these are computed without
        rounding errors.

    Raises
    ------
    SpecError
        If types do not match, as in text compared with a number; the message shows the place in the spec.
    """
    known = tuple((decimals or {}).items())
    return dict(_count_expressions(statistic, tuple(types.items()), located, functions, known))


@lru_cache(maxsize=2**7)
def _count_expressions(
    statistic: Statistic,
    types: tuple[tuple[str, ColumnType], ...],
    located: Callable[[str], str],
    functions: Functions,
    decimals: tuple[tuple[str, Decimals], ...],
) -> dict[str, FrameExpression]:
    """Compile the counts once for the same types of columns."""
    counts = statistic._counts
    return _compiled(
        statistic, counts, "the count", dict(types), located, functions, dict(decimals), real=True
    )


def missing_count_expressions(
    statistic: Statistic,
    types: Mapping[str, ColumnType],
    outcome: Outcome = "missing",
    located: Callable[[str], str] = str,
    functions: Functions = NARWHALS,
    decimals: Mapping[str, Decimals] | None = None,
) -> dict[str, FrameExpression]:
    """Return the expression of every count of a missing prediction, of type int64.

    Arguments are those of :func:`count_expressions`; `types` has to contain the label if the statistic's
    `missing_reads_label`. It raises InputError if the spec does not define the `outcome` and it cannot be
    derived, and SpecError if types do not match.
    """
    if statistic.depends_on_both:
        raise InputError(
            f"`{statistic.name}` compares the scores of examples with each other, and a missing score cannot"
            " be compared",
            hint="`--missing drop` leaves such examples out.",
        )
    if not statistic.counts_missing:
        raise InputError(
            f"the statistic `{statistic.name}` does not define the counts of a missing prediction",
            hint="`--missing drop` leaves such examples out; a spec of your own can define `missing:`, as in"
            " `missing: {correct: 0, n: 1}`, with an expression in `label` for every count.",
        )
    substitute = statistic.substitute(outcome)
    if not substitute:
        example = f"`{outcome}: {{correct: {int(outcome == 'best')}, n: 1}}`"
        raise InputError(
            f"the statistic `{statistic.name}` does not define the counts of the {outcome} prediction",
            hint=f"`--missing drop` leaves such examples out; a spec of your own can define `{outcome}:`, as"
            f" in {example}, with an expression in `label` for every count.",
        )
    what = f"the {outcome} count"
    return _compiled(statistic, substitute, what, types, located, functions, decimals, real=False)


def pair_score_expression(
    statistic: Statistic, types: Mapping[str, ColumnType], located: Callable[[str], str], functions: Functions
) -> FrameExpression:
    """Return the expression of the score of an example in pairs.

    Arguments and what the expression reads are those of :func:`count_expressions`. It raises SpecError if
    types do not match.
    """
    score = None if statistic.pair_term is None else statistic.pair_term.score
    if score is None:
        return functions.col(located(statistic.columns[SCORE]))
    _checker(statistic, types, decimals=True).result(score, "the score")
    return count_expression(score, statistic.read_columns, types, located, functions)


def with_counters_of(
    frame: pl.DataFrame,
    statistic: Statistic,
    *,
    missing: Outcome | None = None,
    labels: LabelCounts | None = None,
) -> pl.DataFrame:
    """Add the columns of counters, which the counts or, with `missing`, those of a missing prediction read.

    The columns of `frame` have the types with which the expressions were compiled; `labels` are needed if the
    statistic's `looks_up_labels`. It raises UncountableError if a counter refuses an example: lists of
    different lengths, a null in a list, an invalid tag.
    """
    expressions = statistic._counts if missing is None else statistic.substitute(missing)
    return counter_columns.with_counters(
        frame, expressions.values(), statistic.read_columns, statistic.class_columns, labels
    )


def computed_decimals(statistic: Statistic, types: Mapping[str, ColumnType]) -> tuple[str, ...]:
    """Return the numeric columns of counts that compute with decimal columns, or compare them.

    Columns that are only read, and those of counts that can only be computed in floats, are not among them.
    """
    if ColumnType.DECIMAL not in types.values():
        return ()
    numeric = (ColumnType.DECIMAL, ColumnType.INTEGER)
    columns = statistic.read_columns
    found = [
        columns[node.full]
        for expression in statistic.expressions
        if decimal_columns(expression, columns, types) and may_be_in_integers(expression)
        for node in expression.names
    ]
    return tuple(dict.fromkeys(name for name in found if types.get(name) in numeric))


def computed_in_floats(
    statistic: Statistic, types: Mapping[str, ColumnType], decimals: Mapping[str, Decimals]
) -> frozenset[str]:
    """Return the counts that compute with decimal columns in floats, if `decimals` are all decimals."""
    return frozenset(
        name
        for name, expression in statistic._counts.items()
        if is_computed_in_floats(expression, statistic.read_columns, types, decimals)
    )


def _compiled(
    statistic: Statistic,
    expressions: Mapping[str, Expression],
    what: str,
    types: Mapping[str, ColumnType],
    located: Callable[[str], str],
    functions: Functions,
    decimals: Mapping[str, Decimals] | None,
    *,
    real: bool,
) -> dict[str, FrameExpression]:
    """Check and compile an expression for every count; `what` begins its name in messages.

    `real` allows counts that are decimals; the other arguments are those of :func:`count_expressions`.
    """
    checker = _checker(statistic, types, decimals=real)
    compiled = {}
    for name in statistic.count_names:
        checker.result(expressions[name], f"{what} `{name}`")
        compiled[name] = count_expression(
            expressions[name], statistic.read_columns, types, located, functions, decimals
        )
    return compiled


def _checker(statistic: Statistic, types: Mapping[str, ColumnType], *, decimals: bool) -> Checker:
    of_classes = types_by_class(statistic.columns, statistic.class_columns, types)
    column_type, _ = of_columns(statistic.read_columns, {**types, **of_classes})
    return Checker(
        True, column_type, "column", lambda name: statistic.columns.get(name, name), decimals=decimals
    )
