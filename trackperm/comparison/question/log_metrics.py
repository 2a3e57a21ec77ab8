"""Statistics from metrics that a log declares or a user names: the means of their columns."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import polars as pl

from trackperm.comparison.question.attacks import note_on_attacks
from trackperm.comparison.question.metric_directions import direction_of, is_open, known_direction, metrics_of
from trackperm.comparison.question.metric_names import names_in_spec
from trackperm.comparison.question.mixed_metrics import note_on_mixed_metrics
from trackperm.comparison.question.share_of_value import (
    ShareOfValue,
    option_of_column,
    true_of_column,
    values_of,
)
from trackperm.comparison.question.whole_log_metrics import notes_on_whole_logs, require_metric_of_examples
from trackperm.errors import InputError, TrackpermError
from trackperm.messages import did_you_mean, listed
from trackperm.pairing.columns.numbers_as_text import NUMBER
from trackperm.statistic import Statistic, load_statistic, read_statistic
from trackperm.statistic.document import dump
from trackperm.tables.columns.decimal_commas import require_decimal_points
from trackperm.tables.columns.missing_words import MissingWords
from trackperm.tables.columns.names import IDS, PASSED, SCORES
from trackperm.tables.columns.nested_fields import named_fields
from trackperm.tables.columns.truths import are_numbers_or_truths
from trackperm.tables.columns.types import FIRST_ROWS, NUMBER_TEXT, is_binary, is_number
from trackperm.tables.polars_code import rewriting, text_of, without_ending
from trackperm.tables.table import ExampleTable, have


def own_metrics(tables: Sequence[ExampleTable]) -> list[Statistic]:
    """Return the means of the metrics that all logs with metrics share; refuse logs that share none."""
    having = [(table, metrics) for table in tables if (metrics := metrics_of(table))]
    if not having:
        return []
    (_, first), *others = having
    shared = {
        name: column
        for name, column in first.items()
        if all(metrics.get(name) == column for _, metrics in others)
    }
    if not shared:
        listings = "\n".join(f"    `{table.origin}`: {listed(metrics)}" for table, metrics in having[:5])
        raise InputError(
            f"the logs of the runs have no metric in common\n\n{listings}",
            hint="name a statistic by `--statistic NAME`, or a column of scores by `--metric COLUMN`.",
        )
    alone = sorted({name for _, metrics in having for name in metrics} - set(shared))
    notes = [f"look: not in all runs, and not compared: {listed(alone)}"] if alone else []
    notes += notes_on_whole_logs(tables)
    known = {name: column for name, column in shared.items() if not is_open(name, column, tables)}
    if known and len(known) < len(shared):
        left = [name for name in shared if name not in known]
        notes.append(
            "look: not compared, because it is not known whether greater values are better:"
            f" {listed(left)}; declare it by `greater_is_better` in a spec"
        )
    why = "the metric of the log" if len(shared) == 1 else "one of the metrics of the log"
    found = [statistic_of_metric(name, column, tables, why) for name, column in (known or shared).items()]
    return [replace(found[0], found=(*notes, *found[0].found)), *found[1:]]


def lost_metrics(baseline: ExampleTable, candidate: ExampleTable) -> list[str]:
    """Return the metrics of the baseline that the candidate lacks, where both logs have metrics."""
    own, other = metrics_of(baseline), metrics_of(candidate)
    is_lost = {
        name: other.get(name) != column and not is_open(name, column, [baseline])
        for name, column in own.items()
    }
    return [name for name, lost in is_lost.items() if lost] if other else []


def named_metric(name: str, tables: Sequence[ExampleTable], *, allow_unseen: bool = False) -> Statistic:
    """Return the statistic of a metric or column that the user named, or of the value of a column."""
    is_name = any(name in table.columns or name in metrics_of(table) for table in tables)
    if "=" in name and not is_name:
        return ShareOfValue.parse(name, tables).statistic(tables, allow_unseen=allow_unseen)
    if (share := share_of_true(name, tables)) is not None:
        return replace(share, found=(*share.found, *note_on_attacks(tables, name)))
    column = column_of_metric(name, tables)
    found = statistic_of_metric(name, column, tables)
    notes = (*note_on_mixed_metrics(tables, column), *note_on_attacks(tables, column))
    return replace(found, found=(*found.found, *notes)) if notes else found


def share_of_true(column: str, tables: Sequence[ExampleTable], why: str = "") -> Statistic | None:
    """Return the share of ``True`` in a column that says true or false as text; None if it does not."""
    true = true_of_column(tables, column)
    if true is None:
        return None
    share = ShareOfValue(column, True, true).statistic(tables, allow_unseen=True, is_mean=True)
    return replace(share, chosen=why)


def statistic_of_metric(name: str, column: str, tables: Sequence[ExampleTable], why: str = "") -> Statistic:
    """Return pass@1 if the column `passed` says whether attempts pass; the mean of any other column.

    A number of tests that pass is averaged: its first rows hold others than 0 and 1. Without `why`, the user
    has named the metric.
    """
    if column == PASSED and all(is_binary(table, column) for table in tables if column in table.columns):
        is_greater, notes = known_direction(name, column, tables, is_named=not why)
        if is_greater is not False:
            return replace(load_statistic("pass_at_1"), chosen=why, found=notes)
    return mean_of_metric(name, column, why, *direction_of(name, column, tables, is_named=not why))


@lru_cache(maxsize=256)
def mean_of_metric(
    name: str, column: str, why: str, greater_is_better: bool, found: tuple[str, ...]
) -> Statistic:
    """Build the mean of a column of scores; `why` and `found` say how it was chosen."""
    document = {
        **names_in_spec(re.sub(r"[^A-Za-z0-9_.-]", "_", name), name),
        "description": f"Mean of `{name}`, a metric of the log.",
        "columns": {"score": column},
        "counts": {"total": "score", "n": 1},
        "score": "total / n",
        "greater_is_better": greater_is_better,
    }
    return replace(read_statistic(dump(document), f"metric {name}"), chosen=why, found=found)


def column_of_metric(name: str, tables: Sequence[ExampleTable]) -> str:
    """Return the score column of a metric that the user named; refuse unknown and not numeric ones."""
    require_metric_of_examples(name, tables)
    columns = {metrics_of(table).get(name, name) for table in tables}
    column = columns.pop()
    if columns or not have(tables, [column]):
        table = next((table for table in tables if column not in table.columns), tables[0])
        numbers = [each for each in table.columns if each not in IDS and is_number(each, [table])]
        known = [*metrics_of(table), *numbers]
        nested = named_fields(table, [name])
        raise InputError(
            f"`{table.origin}` has no metric `{name}`",
            hint=f"{nested}."
            if nested is not None
            else f"its scores are {listed(dict.fromkeys(known))}.{did_you_mean(name, known)}"
            if known
            else f"its columns are {listed(table.columns)}, and none of them holds scores.",
        )
    if not are_numbers_or_truths(column, tables):
        _require_no_missing_words(tables, column)
        _require_like_scores(tables, column)
        require_decimal_points(tables, [column])
        nested = next((said for table in tables if (said := named_fields(table, [column]))), None)
        value = option_of_column(tables, column)
        share = f"`--metric {shlex.quote(value or '')}` compares the shares of a good value."
        text = _other_text(tables, column)
        shown = "" if text is None else f", such as {text[1]!r} in `{text[0]}`"
        raise InputError(
            f"the metric `{name}` has values that are not numbers{shown}; expected numbers or booleans",
            hint=f"`{_as_numbers(text[0], column)}` reads them as numbers."
            if text is not None and re.match(NUMBER, text[1]) and not _is_beyond_floats(text[1])
            else share
            if value is not None
            else f"{nested}."
            if nested is not None
            else "write numbers, or true and false, in all rows, and leave missing values empty; or compare"
            " predictions with labels by `--statistic NAME`.",
        )
    return column


def _require_no_missing_words(tables: Sequence[ExampleTable], column: str) -> None:
    """Refuse words such as `None` beside numbers, or beside true and false."""
    if (found := MissingWords.of(tables, column)) is not None:
        raise InputError(found.message, hint=found.hint)


def _require_like_scores(tables: Sequence[ExampleTable], column: str) -> None:
    """Refuse a column of scores that is text in one run and numbers in another."""
    numbers = [table for table in tables if is_number(column, [table])]
    others = [table for table in tables if column in table.columns and table not in numbers]
    if not numbers or not others:
        return
    found = values_of(others[0], column)
    raise InputError(
        f"`{column}` of `{others[0].origin}` is text, {', '.join(found.shown())}, and that of"
        f" `{numbers[0].origin}` has numbers or booleans",
        hint="write its values in the same way in all runs, such as 1 and 0.",
    )


def texts_as_scores(tables: Sequence[ExampleTable]) -> str | None:
    """Say what a column holds that has the name of a score and text; refuse other text beside numbers."""
    for name in SCORES:
        if have(tables, [name]):
            _require_no_missing_words(tables, name)
            _require_like_scores(tables, name)
            if (text := _other_text(tables, name)) is not None:
                return f"`{name}` of `{text[0]}` holds text, such as {text[1]!r}, and no numbers"
    return None


def _other_text(tables: Sequence[ExampleTable], column: str) -> tuple[str, str] | None:
    """Return a run and its first text, if possible one that is not a number; None without text."""
    found = []
    for table in tables:
        try:
            texts = table.head(FIRST_ROWS).only((column,)).polars_column(column).drop_nulls()
        except TrackpermError:
            continue
        if texts.dtype == pl.String and len(texts):
            is_finite = ~texts.cast(pl.Float64, strict=False).is_infinite().fill_null(False)
            likeness = (texts.str.contains(NUMBER) & is_finite).cast(pl.Int8) + texts.str.contains(
                NUMBER_TEXT
            )
            place = likeness.arg_min() or 0
            found.append((likeness[place], (table.origin, str(texts[place]))))
    return min(found, key=lambda each: each[0])[1] if found else None


def _is_beyond_floats(text: str) -> bool:
    try:
        return math.isinf(float(text))
    except ValueError:
        return False


def _as_numbers(origin: str, column: str) -> str:
    """Return code that reads texts such as ``007`` as numbers."""
    change = f"with_columns(pl.col({text_of(column)}).str.strip_chars().cast(pl.Float64))"
    return rewriting(origin, change, f"{without_ending(origin)}-numbers")
