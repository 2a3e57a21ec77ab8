"""Columns with the values of counters, added to a data frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import polars as pl

from trackperm.errors import UncountableError
from trackperm.statistic.counters import COUNTERS
from trackperm.statistic.counters.base import LabelCounts
from trackperm.statistic.expressions.frames import counter_column
from trackperm.statistic.expressions.tree import Call, Expression, Literal, Name, children


def with_counters(
    frame: pl.DataFrame,
    expressions: Iterable[Expression],
    columns: Mapping[str, str],
    labels: LabelCounts | None = None,
) -> pl.DataFrame:
    """Add the columns of the counters in checked expressions, read by :func:`~.frames.count_expression`.

    `columns` has the column of every name; `labels` are those of the test, which some counters look up. Where
    a column is null, so is the count. It raises UncountableError if a counter refuses an example.
    """
    found = {counter_column(call): call for expression in expressions for call in _calls(expression)}
    for name, call in found.items():
        frame = frame.with_columns(_counted(call, frame, columns, labels).alias(name))
    return frame


def look_up_labels(expressions: Iterable[Expression]) -> bool:
    """Return whether counters look up the labels of all examples."""
    return any(COUNTERS[call.function].looks_up for expression in expressions for call in _calls(expression))


def has_counters(expressions: Iterable[Expression]) -> bool:
    """Return whether expressions call counters."""
    return any(True for expression in expressions for _ in _calls(expression))


def text_columns_of_counters(expressions: Iterable[Expression]) -> list[str]:
    """Return the names that counters of texts and lists read."""
    calls = (call for expression in expressions for call in _calls(expression))
    calls = (call for call in calls if COUNTERS[call.function].keeps_text)
    names = (argument.full for call in calls for argument in call.arguments if isinstance(argument, Name))
    return list(dict.fromkeys(names))


def _calls(expression: Expression) -> Iterator[Call]:
    pending = [expression.tree]
    while pending:
        node = pending.pop()
        if isinstance(node, Call) and node.function in COUNTERS:
            yield node
        else:
            pending += children(node)


def _counted(
    call: Call, frame: pl.DataFrame, columns: Mapping[str, str], labels: LabelCounts | None
) -> pl.Series:
    counter = COUNTERS[call.function]
    names = [argument.full for argument in call.arguments if isinstance(argument, Name)]
    names = names[:-1] if counter.looks_up else names
    given = [frame[columns[name]] for name in names]
    choices = [argument.value for argument in call.arguments if isinstance(argument, Literal)]
    choices += counter.defaults()[len(choices) :]
    looked_up = [labels] if counter.looks_up else []
    known = pl.DataFrame([column.is_not_null().alias(str(i)) for i, column in enumerate(given)]).select(
        pl.all_horizontal(pl.all())
    )
    rows = known.to_series().arg_true()
    dtype = pl.Float64 if counter.decimal else pl.Int64
    try:
        values = counter.function(*(column.gather(rows) for column in given), *looked_up, *choices)
    except UncountableError as error:
        raise UncountableError(int(rows[error.row]), error.problem, error.hint) from None
    if len(rows) == len(known):
        return pl.Series(values, dtype=dtype)
    result = pl.Series([None] * len(known), dtype=dtype)
    return result.scatter(rows, pl.Series(values, dtype=dtype))
