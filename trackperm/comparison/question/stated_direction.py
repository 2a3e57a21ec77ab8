"""Direction of a score that a log states in every row: its metric, or whether higher is better."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from trackperm.comparison.question.own_scores import OF_CALLS
from trackperm.errors import InputError
from trackperm.messages import listed
from trackperm.statistic.direction import (
    direction_word,
    greater_is_better_by_name,
    is_known_metric,
    is_metric,
    lower_is_better_by_name,
    word_of_value,
)
from trackperm.tables.columns.directions import (
    lower_is_better_by,
    may_be_setting,
    may_state_direction,
    states_by_truth,
)
from trackperm.tables.columns.names import EVALUATORS, METRICS, SCORE, SCORES, VALUES
from trackperm.tables.columns.types import is_number
from trackperm.tables.polars_code import rewriting, text_of
from trackperm.tables.table import ExampleTable

_NAME = "name"
"""Name of a column that may hold the name of a metric, of a run, or of anything else."""

_SCORERS = (*EVALUATORS, _NAME)
"""Names of columns that state a direction only if their value is clearly the name of a metric."""

_BY_PRECEDENCE = ((SCORE,), VALUES, SCORES)
"""Names of score columns by precedence: a stated direction applies to the first group that a run has."""

_BETWEEN = re.compile("[,;|]")
"""Separators in a list of metrics."""

_MOST_VALUES = 20
"""Most values of a column that states directions: the spellings of two, and others."""


class StatedDirection(NamedTuple):
    """Direction that follows from a column with one value in all rows of the runs.

    `is_lower` is whether lower is better; None if the value leaves it open. `reason` names the column and its
    value.
    """

    is_lower: bool | None
    reason: str


def stated_direction(tables: Sequence[ExampleTable], score: str, *, is_named: bool) -> StatedDirection | None:
    """Return the direction that the runs state for a column; None if they state none.

    Columns such as `lower_is_better` or `mode` state it, and those that name an error as the metric. The name
    of another metric states none. `is_named` is whether the user has named the column:
    then the direction may be open.

    Raises
    ------
    InputError
        If columns, runs or rows contradict each other, or it is unclear which column they are about; and if
        the direction is open, or two runs state different metrics, and the user has not named the column.
    """
    names = [name for table in tables for name in table.columns]
    usual = {*METRICS, *_SCORERS}
    if not any(name.lower() in usual or may_state_direction(name) for name in names):
        return None
    columns = [name for name in (*SCORES, *VALUES) if name == score or is_number(name, tables)]
    first = next((names for names in _BY_PRECEDENCE if set(names) & set(columns)), ())
    if score in columns and score not in first:
        return None
    if score in columns:
        found = [*_by_statements(tables, score), *_by_metrics(tables, score, is_named=is_named)]
    else:
        # The values of an error have their direction from its name, and those of `bleu` are not of `wer`.
        found = [] if columns or lower_is_better_by_name(score) else list(_by_statements(tables, score))
    _require_agreement(found, score)
    stated = next((each for each in found if each.is_lower is not None), found[0] if found else None)
    if stated is None or stated.is_lower is False:
        return stated
    if stated.is_lower and len(rivals := [name for name in columns if name in first]) > 1:
        raise InputError(
            f"{stated.reason}, and each of {listed(rivals)} could be its score",
            hint=_spec(score),
        )
    if stated.is_lower is None and not is_named:
        raise InputError(
            f"{stated.reason}, which does not show whether greater values of `{score}` are better",
            hint=f"`--metric {score}` takes greater values as better; for lower ones {_spec(score)}",
        )
    return stated


def _require_agreement(stated: Sequence[StatedDirection], score: str) -> None:
    """Raise an error if one column states that lower is better, and another that greater is."""
    lower = next((each for each in stated if each.is_lower), None)
    greater = next((each for each in stated if each.is_lower is False), None)
    if lower is not None and greater is not None:
        raise InputError(
            f"{lower.reason}, so lower values of `{score}` are better, but {greater.reason}",
            hint=f"leave out the column that is wrong, or {_spec(score)}",
        )


def _by_statements(tables: Sequence[ExampleTable], score: str) -> Iterator[StatedDirection]:
    """Yield the directions that columns such as `lower_is_better` or `mode` state.

    A `mode`, `goal` or `objective` states none for what is right by its name, such as `correct`: it may be a
    setting of the run or a property of the example. Nor do words if a run has none that state a direction.
    """
    names = (name.lower() for table in tables for name in table.columns if may_state_direction(name))
    for usual in dict.fromkeys(names):
        column = _spelled(tables, usual)
        if may_be_setting(column) and _names_what_is_right(score):
            continue
        if not states_by_truth(column) and any(_has_no_direction(table, column) for table in tables):
            continue
        of_all = all(_own(table, column) for table in tables)
        first: dict[bool, tuple[str, str]] = {}
        for table in tables:
            if (found := _statement(table, column, score)) is not None:
                first.setdefault(found[1], (table.origin, found[0]))
        if len(first) > 1:
            raise _differ(dict(first.values()), column, score, _spec(score))
        for is_lower, (run, value) in first.items():
            yield StatedDirection(is_lower, _reason(column, value, "" if of_all else run))


def _names_what_is_right(score: str) -> bool:
    """Whether the name of a score says that greater is better, and more than `score` or `success` does."""
    is_good = score not in OF_CALLS and word_of_value(score) == "good"
    return is_good or (is_metric(score) and greater_is_better_by_name(score))


def _has_no_direction(table: ExampleTable, column: str) -> bool:
    """Whether a run has values in a column, none of which states a direction."""
    own = _own(table, column)
    if own is None:
        return False
    counts = table.counts_of_few(own, _MOST_VALUES)
    values = [] if counts is None else [value for value in counts[own].to_list() if value is not None]
    return counts is None or (
        bool(values) and all(lower_is_better_by(own, value) is None for value in values)
    )


def _statement(table: ExampleTable, column: str, score: str) -> tuple[str, bool] | None:
    """Return the value of a column in all rows that states a direction, and whether lower is better.

    Raise InputError if rows state both directions, or only some rows that lower is better.
    """
    own = _own(table, column)
    counts = None if own is None else table.counts_of_few(own, _MOST_VALUES)
    if own is None or counts is None:
        return None
    values = counts[own].to_list()
    known = {value: said for value in values if (said := lower_is_better_by(own, value)) is not None}
    others = [value for value in values if value not in known]
    if not known or (any(value is not None for value in others) and not states_by_truth(own)):
        return None
    if True in known.values() and (others or False in known.values()):
        raise _mixed(table.origin, own, sorted(known, key=str), others, score)
    value, is_lower = next(iter(known.items()))
    return None if others else (str(value), is_lower)


def _mixed(
    origin: str, column: str, values: Sequence[object], others: Sequence[object], score: str
) -> InputError:
    """Return the error about rows that state several directions by `values`, or by some rows alone."""
    said = listed(str(value) for value in (*values, *(value for value in others if value is not None)))
    missing = " or missing" if None in others else ""
    first = text_of(values[0]) if isinstance(values[0], str) else repr(values[0])
    keep = rewriting(origin, f"filter(pl.col({text_of(column)}) == {first})", "one_direction")
    return InputError(
        f"`{score}` of `{origin}` holds values of different directions: `{column}` is {said}{missing}",
        hint=f"keep the rows of one direction in each run, as `{keep}` of polars does; if `{column}` is not"
        f" the direction of `{score}`, {_spec(score)}",
    )


def _by_metrics(tables: Sequence[ExampleTable], score: str, *, is_named: bool) -> Iterator[StatedDirection]:
    """Yield the directions of the metrics that columns name: errors, and metrics of open direction."""
    for usual in (*METRICS, *_SCORERS):
        column = _spelled(tables, usual)
        stated = dict(_stated(tables, column))
        if usual in _SCORERS and not any(map(is_known_metric, stated.values())):
            continue
        of_all = all(_own(table, column) for table in tables)
        if len({value.casefold() for value in stated.values()}) > 1:
            of_all = False
            if usual == _NAME:
                continue
            if not is_named:
                hint = f"compare runs with the same metric; `--metric {score}` compares `{score}` as it is."
                raise _differ(stated, column, score, hint)
        directions = {_is_lower(value) for value in stated.values()}
        if directions and directions != {False}:
            run, value = next((run, value) for run, value in stated.items() if _is_lower(value) is not False)
            is_lower = directions.pop() if len(directions) == 1 else None
            yield StatedDirection(is_lower, _reason(column, value, "" if of_all else run))


def _differ(stated: Mapping[str, str], column: str, score: str, hint: str) -> InputError:
    first, second = list({value.casefold(): run for run, value in stated.items()}.values())[:2]
    return InputError(
        f"`{column}` is `{stated[first]}` in every row of `{first}` and `{stated[second]}` in every"
        f" row of `{second}`, so their `{score}` may be values of different metrics",
        hint=hint,
    )


def _reason(column: str, value: str, run: str) -> str:
    """Name the column and its value, and the run if another one does not state it."""
    return f"`{column}` is `{value}` in every row" + (f" of `{run}`" if run else "")


def spec_of_lower(column: str) -> str:
    """Return the advice to write a spec by which lower means of a column are better, with its lines."""
    name = column if column.isidentifier() else json.dumps(column, ensure_ascii=False)
    return (
        f"write a spec: `counts: {{total: score, n: 1}}`, `columns: {{score: {name}}}`, `score: total / n`"
        " and `greater_is_better: false`"
    )


def _spec(score: str) -> str:
    return f"{spec_of_lower(score)}, or `true`."


def _is_lower(metric: str) -> bool | None:
    """Whether lower is better for a metric, or for all metrics in a list; None if the direction is open."""
    names = filter(None, map(str.strip, _BETWEEN.split(metric)))
    said = {lower_is_better_by_name(name) or (None if direction_word(name) else False) for name in names}
    return said.pop() if len(said) == 1 else None if said else False


def _stated(tables: Sequence[ExampleTable], column: str) -> Iterator[tuple[str, str]]:
    """Yield each run with the only value of its column, if it is text."""
    for table in tables:
        if isinstance(value := _only_value(table, column), str):
            yield table.origin, value


def _spelled(tables: Sequence[ExampleTable], usual: str) -> str:
    """Return a usual name in the spelling of the first run that has such a column."""
    return next(filter(None, (_own(table, usual) for table in tables)), usual)


def _own(table: ExampleTable, column: str) -> str | None:
    """Return the column with this name in any case; None without one."""
    return next((name for name in table.columns if name.lower() == column.lower()), None)


def _only_value(table: ExampleTable, column: str) -> object:
    """Return the only value of a column; None if its rows have several values, or it is missing."""
    own = _own(table, column)
    if own is None:
        return None
    counts = table.counts_of_few(own, 1)
    return counts[own][0] if counts is not None and len(counts) else None
