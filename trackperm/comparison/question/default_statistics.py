"""Check that a statistic suits the columns of runs, before it is used by default."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import polars as pl

from trackperm.errors import InputError, TrackpermError
from trackperm.pairing.checks.differences import shown
from trackperm.pairing.checks.label_values import are_scores
from trackperm.statistic import Statistic
from trackperm.tables.columns.decimal_commas import are_choices, decimal_comma
from trackperm.tables.columns.names import PREDICTIONS, REWARD, SCORE
from trackperm.tables.columns.types import FIRST_ROWS, LISTS, ColumnType, numbers_in_two_ways, typed_columns
from trackperm.tables.columns.written_lists import written_list
from trackperm.tables.lazy.query import Query
from trackperm.tables.table import ExampleTable, have

_REFERENCE = "reference"
"""Name of a column of labels that may hold the name of a reference."""

_NAME_OF_REFERENCE = re.compile(r"ref([A-Z0-9]+|[_-][A-Za-z0-9]+)?")
"""Pattern of the names of references: `refA`, `ref1`, `ref-B`."""

_BLOCK = 100_000
"""Rows of a block in which equal predictions and labels are searched.

Nearly every run has a correct prediction in the first block, so that the rest is not read.
"""


def why_no_accuracy(tables: Sequence[ExampleTable], prediction: str, label: str) -> str | None:
    """Return the reason why accuracy does not suit predictions and labels; None if it does."""
    if not have(tables, [prediction, label]):
        return None  # the pairing reports the error
    for table in tables:
        try:
            head = table.head(_BLOCK).only(dict.fromkeys((prediction, label)))
            _, _, types = typed_columns(head, head, [prediction, label])
            are_versions = numbers_in_two_ways(head, head, label) is not None
        except TrackpermError:
            return None  # the pairing reports the error
        if any(types[name] in LISTS for name in (prediction, label)):
            return f"`{label}` or `{prediction}` of `{table.origin}` holds lists"
        for name in (prediction, label):
            text = decimal_comma(table, name)
            if text is not None and not are_choices(table, prediction, label):
                return f"`{name}` of `{table.origin}` holds numbers with decimal commas, such as {text!r}"
            if (
                types[name] is ColumnType.TEXT
                and (text := written_list(head.polars_column(name))) is not None
            ):
                return (
                    f"`{name}` of `{table.origin}` holds lists that are written as text, such as {text!r},"
                    " which only `--statistic accuracy` compares as they are"
                )
        if types[label] is ColumnType.DECIMAL and not are_versions:
            return f"`{label}` of `{table.origin}` holds decimals, which predictions seldom equal"
        if are_scores(table, prediction, label):
            return f"`{prediction}` of `{table.origin}` holds decimals, and `{label}` does not"
    if any(_any_equal(table, prediction, label) for table in tables):
        return None
    said, meant = (_first(tables[0], name) for name in (prediction, label))
    return f"no `{prediction}` equals its `{label}`, as {said} and {meant}, so the accuracy of each run is 0"


def other_prediction(tables: Sequence[ExampleTable], prediction: str | None, label: str | None) -> str | None:
    """Return another column called as predictions are that accuracy suits, where it does not suit this one.

    Weka calls its confidence `prediction`, beside the class in `predicted`.
    """
    unusable = {name for table in tables for name in table.unusable}
    if prediction is None or label is None or {prediction, label} & unusable:
        return None
    if why_no_accuracy(tables, prediction, label) is None:
        return None
    others = [name for name in PREDICTIONS if name not in (prediction, label, *unusable)]
    others = [name for name in others if have(tables, [name])]
    return next((name for name in others if why_no_accuracy(tables, name, label) is None), None)


def is_name_of_reference(tables: Sequence[ExampleTable], label: str) -> bool:
    """Whether a column names the reference in all rows, as `refA` in scores of WMT.

    Any other text may be the only class of a test for false alarms, with scores of a detector.
    """
    if label != _REFERENCE or not have(tables, [label]):
        return False
    counts = [table.counts_of_few(label, 1) for table in tables]
    values = [[] if each is None else each[label].to_list() for each in counts]
    return all(
        len(each) == 1 and isinstance(each[0], str) and _NAME_OF_REFERENCE.fullmatch(each[0]) is not None
        for each in values
    )


def require_mean(tables: Sequence[ExampleTable], score: str, label: str) -> None:
    """Refuse a score that may be the output of a classifier or regressor, whose mean says nothing of quality.

    Beside labels that are numbers, or text of two classes, only a score of 0 and 1 is accepted, and beside
    labels of 0 and 1 none is.

    Raises
    ------
    InputError
        If the score may be an output.
    """
    for table in tables:
        try:
            head = table.head(_BLOCK).only((score, label))
            typed, _, types = typed_columns(head, head, [score, label])
        except TrackpermError:
            continue  # the pairing reports the error
        if types[label] in LISTS:
            continue
        scores, labels = (typed.frame.get_column(name).drop_nulls().to_list() for name in (score, label))
        classes = set(labels)
        are_answers = types[label] is ColumnType.TEXT and (len(classes) > 2 or len(classes) == len(labels))
        if are_answers or (set(scores) <= {0, 1} and not classes <= {0, 1}):
            continue
        ranked = (
            f"`--statistic roc_auc` with `--label {label}` compares how well it ranks labels of two classes"
            if len(classes) <= 2
            else f"`--statistic spearman` with `--label {label}` compares how well it ranks their values"
        )
        raise InputError(
            f"`{score}` of `{table.origin}` may be the score of each answer, or what a model computed for the"
            f" label in `{label}`",
            hint=f"`--metric {score}` compares means of `{score}`; {ranked}; `--prediction NAME` names a"
            " column of predictions.",
        )


def require_scores(tables: Sequence[ExampleTable], name: str) -> None:
    """Refuse a column of scores in which one negative number, such as -1, may mean that there is no score.

    Rewards may be negative, and a score of -1, 0 and 1 is a loss, a tie and a win.

    Raises
    ------
    InputError
        If one negative integer stands beside numbers that are not negative.
    """
    for table in () if name == REWARD else tables:
        try:
            head = table.head(_BLOCK).only((name,))
            typed, _, _ = typed_columns(head, head, [name])
        except TrackpermError:
            continue  # the pairing reports the error
        values = typed.frame.get_column(name).to_polars().cast(pl.Float64).drop_nulls()
        negative = values.filter(values < 0.0)
        if negative.n_unique() != 1 or not float(negative[0]).is_integer() or len(negative) == len(values):
            continue
        if name == SCORE and values.is_in([-1.0, 0.0, 1.0]).all():
            continue
        absent = int(negative[0])
        raise InputError(
            f"`{name}` of `{table.origin}` is {absent} in {len(negative):,} rows and not negative in others,"
            f" so {absent} may mean that there is no score",
            hint="leave the value empty where there is no score, and `--missing` says how that counts;"
            f" `--metric {name}` compares means of `{name}` as it is.",
        )


def _first(table: ExampleTable, name: str) -> str:
    values = table.head(FIRST_ROWS).only((name,)).polars_column(name).drop_nulls()
    return shown(values[0]) if len(values) else "no value"


def _any_equal(table: ExampleTable, prediction: str, label: str) -> bool:
    """Whether any prediction equals its label; True as well where no row has both values."""
    if prediction == label:
        return True
    n, whole = 0, table
    if isinstance(table.data, Query):
        table = table.head(_BLOCK)
    for part in table.slices([prediction, label], _BLOCK):
        both = part.drop_nulls()
        n += len(both)
        if (both[prediction].cast(pl.String) == both[label].cast(pl.String)).any():
            return True
        rows = table.with_rows(both)
        typed, _, types = typed_columns(rows, rows, [prediction, label])
        first, second = (typed.frame.get_column(name).to_polars() for name in (prediction, label))
        is_text = [types[name] is ColumnType.TEXT for name in (prediction, label)]
        if is_text[0] == is_text[1] and (first == second).any():
            return True
    if isinstance(whole.data, Query):
        n, n_same = whole.data.n_equal(prediction, label)
        return n_same > 0 or n == 0
    return n == 0


@lru_cache(maxsize=256)
def columns_of_numbers(statistic: Statistic) -> tuple[str, ...]:
    """Return the columns with which a statistic computes, rather than compares them or reads them as text."""
    texts = {statistic.cluster, statistic.strata, statistic.class_column, *statistic.compared_texts}
    return tuple(
        column
        for role, column in statistic.columns.items()
        if column in statistic.used_columns
        and column not in statistic.counter_columns
        and role not in texts
        and not statistic.equality(role).is_all
    )
