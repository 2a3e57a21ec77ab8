"""Columns of probabilities, one for each class, that a statistic reads as one list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from trackperm.errors import InputError
from trackperm.messages import listed
from trackperm.statistic.definition import Statistic
from trackperm.tables.columns.names import CLASS_PROBABILITIES
from trackperm.tables.table import ExampleTable, have

_STAR = "*"
_OTHER_COLUMNS = "`--column probabilities='score_*'` names other columns, with a star in place of the class."
_EVERY_RUN = "log the probability of every class in every run; `--set labels=cat,dog` names the classes."


def patterns_of_classes(statistic: Statistic, tables: Sequence[ExampleTable]) -> Iterator[tuple[str, str]]:
    """Yield name and pattern for each list of probabilities that the tables have as columns of classes.

    Where the spec lists the classes, columns may also be named by the classes alone.
    """
    for name, classes in statistic.names_by_class.items():
        if statistic.columns[name] != name or have(tables, [name]):
            continue
        complete = [
            pattern
            for pattern in (*CLASS_PROBABILITIES, _STAR)
            if len(classes) > 1 and have(tables, [pattern.replace(_STAR, each) for each in classes])
        ]
        patterns = complete or [pattern for pattern in CLASS_PROBABILITIES if _are_several(pattern, tables)]
        if patterns:
            yield name, patterns[0]


def with_class_columns(statistic: Statistic, tables: Sequence[ExampleTable]) -> Statistic:
    """Find the columns of patterns such as ``probability_*``, whose star is the place of the class.

    Raises
    ------
    InputError
        If a table lacks the column of a class, or fewer than two columns match a pattern.
    """
    found = {
        name: _columns_by_class(statistic.columns[name], classes, tables)
        for name, classes in statistic.names_by_class.items()
        if statistic.columns[name].count(_STAR) == 1 and not have(tables, [statistic.columns[name]])
    }
    return statistic if found == statistic.class_columns else reading_class_columns(statistic, found)


def reading_class_columns(statistic: Statistic, found: Mapping[str, Mapping[str, str]]) -> Statistic:
    """Let counts read columns by class in place of the columns that are patterns for them."""
    patterns = {statistic.columns[name]: columns for name, columns in found.items()}
    used = [
        column
        for each in statistic.used_columns
        for column in (patterns[each].values() if each in patterns else [each])
    ]
    return replace(statistic, class_columns=found, used_columns=tuple(dict.fromkeys(used)))


def classes_of(pattern: str, columns: Sequence[str]) -> dict[str, str]:
    """Return the columns that match a pattern, by class, in the order of the classes."""
    start, _, end = pattern.partition(_STAR)
    found = {
        column[len(start) : len(column) - len(end)]: column
        for column in columns
        if len(column) > len(start) + len(end) and column.startswith(start) and column.endswith(end)
    }
    # Integers are ordered by value, whose order is that of their lengths first.
    return dict(sorted(found.items(), key=lambda each: (len(each[0]) if each[0].isdecimal() else 0, each[0])))


def has_class_columns(name: str, column: str, columns: Sequence[str]) -> bool:
    """Whether `columns` have several columns for the pattern `column`, or for a usual one if it is `name`."""
    patterns = CLASS_PROBABILITIES if column == name else [column] * (column.count(_STAR) == 1)
    return any(len(classes_of(pattern, columns)) > 1 for pattern in patterns)


def _are_several(pattern: str, tables: Sequence[ExampleTable]) -> bool:
    return all(len(classes_of(pattern, table.columns)) > 1 for table in tables)


def _columns_by_class(pattern: str, classes: Sequence[str], tables: Sequence[ExampleTable]) -> dict[str, str]:
    own = {class_: pattern.replace(_STAR, class_) for class_ in classes} or classes_of(
        pattern, tables[0].columns
    )
    if pattern == _STAR and not classes:
        raise InputError(
            "the pattern `*` matches every column, so that the classes are unknown",
            hint="`--set labels=cat,dog` names the classes.",
        )
    if len(own) < 2:
        matching = listed(own.values()) if own else "no column"
        raise InputError(
            f"`{tables[0].origin}` has {matching} for the pattern `{pattern}`; expected a column for each of"
            f" several classes; its columns are {listed(tables[0].columns)}",
            hint="the star is the place of the class, as in `--column probabilities=probability_*`.",
        )
    for table in tables:
        lacking = [column for column in own.values() if column not in table.columns]
        if lacking:
            raise InputError(
                f"`{table.origin}` has no column {listed(lacking)}, although the classes of `{pattern}` are"
                f" {listed(own)}" + ("" if classes else f" in `{tables[0].origin}`"),
                hint=_OTHER_COLUMNS if classes else _EVERY_RUN,
            )
        others = {} if classes else classes_of(pattern, table.columns)
        if added := [column for class_, column in others.items() if class_ not in own]:
            raise InputError(
                f"`{tables[0].origin}` has no column {listed(added)}, which `{table.origin}` has",
                hint=_EVERY_RUN,
            )
    return own
