"""Columns with the values of counters, added to a data frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import polars as pl

from trackperm.errors import InputError, UncountableError
from trackperm.messages import listed
from trackperm.statistic.counters import COUNTERS
from trackperm.statistic.counters.base import LabelCounts
from trackperm.statistic.counters.probabilities import class_names
from trackperm.statistic.expressions.frames import counter_column
from trackperm.statistic.expressions.tree import Call, Expression, Literal, Name, children
from trackperm.tables.columns.types import ColumnType

_OF_SETS = ("set_overlap", "set_size")


def with_counters(
    frame: pl.DataFrame,
    expressions: Iterable[Expression],
    columns: Mapping[str, str],
    class_columns: Mapping[str, Mapping[str, str]],
    labels: LabelCounts | None = None,
) -> pl.DataFrame:
    """Add the columns of the counters in checked expressions, read by :func:`~.frames.count_expression`.

    `columns` has the column of every name, and `class_columns` the columns by class of those names that have
    several; `labels` are those of the test, which some counters look up. Where a column is null, so is the
    count. It raises UncountableError if a counter refuses an example.
    """
    found = {counter_column(call): call for expression in expressions for call in _calls(expression)}
    for name, call in found.items():
        names = [argument.full for argument in call.arguments if isinstance(argument, Name)]
        names = names[:-1] if COUNTERS[call.function].looks_up else names
        given = [
            _by_class(frame, columns[each], class_columns[each])
            if each in class_columns
            else frame[columns[each]]
            for each in names
        ]
        frame = frame.with_columns(_counted(call, given, labels).alias(name))
    return frame


def names_by_class(expressions: Iterable[Expression]) -> dict[str, tuple[str, ...]]:
    """Return the names that may have one column for each class, with the classes that the counters list.

    Raise InputError if counters list different classes for one name.
    """
    found: dict[str, tuple[str, ...]] = {}
    for call in (call for expression in expressions for call in _calls(expression)):
        if COUNTERS[call.function].by_class and isinstance(name := call.arguments[0], Name):
            choices = [argument.value for argument in call.arguments if isinstance(argument, Literal)]
            own = tuple(class_names(str(choices[0]))) if choices else ()
            others = found.get(name.full, ())
            if own and others and own != others:
                raise InputError(
                    f"`{name.full}` is read with the classes {listed(others)} and {listed(own)};"
                    " expected the same classes in the same order"
                )
            found[name.full] = own or others
    return found


def look_up_labels(expressions: Iterable[Expression]) -> bool:
    """Whether counters look up the labels of all examples."""
    return any(COUNTERS[call.function].looks_up for expression in expressions for call in _calls(expression))


def has_counters(expressions: Iterable[Expression]) -> bool:
    """Whether expressions call counters."""
    return any(True for expression in expressions for _ in _calls(expression))


def text_columns_of_counters(expressions: Iterable[Expression]) -> list[str]:
    """Return the names that counters of texts and lists read."""
    calls = (call for expression in expressions for call in _calls(expression))
    calls = (call for call in calls if COUNTERS[call.function].keeps_text)
    names = (argument.full for call in calls for argument in call.arguments if isinstance(argument, Name))
    return list(dict.fromkeys(names))


def names_of_objects(expressions: Iterable[Expression]) -> list[str]:
    """Return the names that may be columns of objects of numbers, as counters read them."""
    calls = (call for expression in expressions for call in _calls(expression))
    read = ((call.arguments, COUNTERS[call.function].objects) for call in calls)
    found = (arguments[place] for arguments, place in read if place is not None)
    return list(dict.fromkeys(argument.full for argument in found if isinstance(argument, Name)))


def names_of_sets(expressions: Iterable[Expression]) -> list[str]:
    """Return the names of sets of items, whose empty sets are values."""
    calls = (call for expression in expressions for call in _calls(expression) if call.function in _OF_SETS)
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


def types_by_class(
    columns: Mapping[str, str],
    class_columns: Mapping[str, Mapping[str, str]],
    types: Mapping[str, ColumnType],
) -> dict[str, ColumnType]:
    """Return the type of the lists that consist of columns by class, by their patterns in `columns`.

    Raise InputError if one of these columns is not a number.
    """
    for name, own in class_columns.items():
        for class_, column in own.items():
            if types[column] not in (ColumnType.DECIMAL, ColumnType.INTEGER):
                raise InputError(
                    f"column `{column}` is {types[column].value}; expected the probability of the class"
                    f" `{class_}`",
                    hint=f"`--column {name}=PATTERN` names other columns, with a star in place of the class.",
                )
    return {columns[name]: ColumnType.DECIMAL_LIST for name in class_columns}


def _by_class(frame: pl.DataFrame, name: str, columns: Mapping[str, str]) -> pl.Series:
    """Return structs of the values of all classes, which are null where one of the values is null."""
    values = pl.DataFrame({class_: frame[column].cast(pl.Float64) for class_, column in columns.items()})
    known = values.select(pl.all_horizontal(pl.all().is_not_null())).to_series()
    return values.to_struct(name).set(~known, None)


def _counted(call: Call, given: Sequence[pl.Series], labels: LabelCounts | None) -> pl.Series:
    counter = COUNTERS[call.function]
    choices = [argument.value for argument in call.arguments if isinstance(argument, Literal)]
    choices += counter.defaults()[len(choices) :]
    looked_up = [labels] if counter.looks_up else []
    known = pl.DataFrame([column.is_not_null().alias(str(i)) for i, column in enumerate(given)]).select(
        pl.all_horizontal(pl.all())
    )
    rows = known.to_series().arg_true()
    dtype = pl.Float64 if counter.decimal else pl.Int64
    if not len(rows):
        return pl.Series([None] * len(known), dtype=dtype)
    try:
        values = counter.function(*(column.gather(rows) for column in given), *looked_up, *choices)
    except UncountableError as error:
        raise UncountableError(int(rows[error.row]), error.problem, error.hint) from None
    if len(rows) == len(known):
        return pl.Series(values, dtype=dtype)
    result = pl.Series([None] * len(known), dtype=dtype)
    return result.scatter(rows, pl.Series(values, dtype=dtype))
