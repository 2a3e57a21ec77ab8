"""Refusal of rows that are no examples: a summary of the other rows, or the only row of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import polars as pl

from trackperm.errors import InputTypeError, PairingError
from trackperm.messages import listed
from trackperm.tables.columns.names import ANSWERS, LABELS, has_output_word, names_input
from trackperm.tables.columns.types import is_number
from trackperm.tables.lazy.query import Query
from trackperm.tables.row_meaning import why_no_examples
from trackperm.tables.table import ExampleTable, id_columns

# fmt: off
_ONLY_SUMMARIES = (
    "macro avg", "micro avg", "weighted avg", "samples avg", "macro average", "micro average",
    "weighted average", "macro mean", "micro mean", "grand total", "*** overall ***",
)
"""Ids that no example has, with spaces for `_` and `-`."""

_ACCURACY = "accuracy"
"""Id of the row of `classification_report` that has one number in all columns."""

_SUMMARIES = (
    *_ONLY_SUMMARIES, _ACCURACY, "mean", "average", "avg", "total", "sum", "std", "stdev", "stddev", "count",
    "min", "max", "median", "overall", "all", "aggregate", "summary", "25%", "50%", "75%", "amean", "gmean",
    "hmean", "gm", "global", "combined",
)
"""Ids of rows that summarise the others, likewise."""
# fmt: on

_MOST_ROWS = 100_000
"""Most rows of a run that is searched for such ids: larger ones come from no spreadsheet."""

_FEWEST_EQUAL = 3
"""Fewest columns that have one number in the row `accuracy`: two are equal by chance."""


def require_no_only_row(tables: Sequence[ExampleTable]) -> None:
    """Refuse runs that are paired by position if the only row of each is a summary, or holds the examples.

    Raises
    ------
    PairingError
        If they are; the hint says what to compare.
    """
    if any(isinstance(table.data, Query) or len(table) != 1 for table in tables):
        return
    if (reason := why_no_examples(tables)) is not None:
        raise PairingError(f"each run has only one row, as `{tables[0].origin}`", hint=f"{reason}.")


def require_no_summary(tables: Sequence[ExampleTable], id_: str | None) -> None:
    """Refuse rows whose id is the word for a summary of the others.

    Words such as `all` may be ids of examples. They are refused if they occur once and every other id of the
    run has a digit, or if the numbers of their row are the means or sums of the others. `id_` is None for
    rows that are paired by position, whose names are in the first column of different texts.

    Raises
    ------
    PairingError
        If there is one; the message names its row.
    """
    for table in tables:
        if len(table) > _MOST_ROWS:
            continue
        names = _names_of_rows(table) if id_ is None else id_columns(id_, [table])
        for name in names if len(names) == 1 else ():
            ids = _texts(table, name)
            row = None if ids is None else _first_summary(table, name, ids)
            if ids is None or row is None:
                continue
            others = ids.filter(_is_in(ids, _SUMMARIES)).unique(maintain_order=True)
            several = f" ({listed(others)})" if len(others) > 1 else ""
            raise PairingError(
                f"row {row + 1} of `{table.origin}` has the `{name}` {ids[row]!r}, which is the name of a"
                " summary of the other rows",
                hint=f"remove such rows{several}, or give the example another id: each row has to be an"
                " example.",
            )


def _names_of_rows(table: ExampleTable) -> tuple[str, ...]:
    """Return the first column of texts that are all different, and no answers or inputs."""
    for name in table.columns:
        if name.lower() in (*ANSWERS, *LABELS) or names_input(name) or has_output_word(name):
            continue
        if (texts := _texts(table, name)) is not None and texts.n_unique() == len(texts):
            return () if is_number(name, [table]) else (name,)
    return ()


def _texts(table: ExampleTable, name: str) -> pl.Series | None:
    """Return a column of text; None for others, and for those whose error the pairing reports."""
    if name not in table.columns:
        return None
    try:
        values = table.only((name,)).polars_column(name)
    except InputTypeError:
        return None
    return values if values.dtype == pl.String else None


def _first_summary(table: ExampleTable, name: str, ids: pl.Series) -> int | None:
    """Return the first row that is a summary; None without one."""
    if (is_only := _is_in(ids, _ONLY_SUMMARIES)).any():
        return int(is_only.arg_max() or 0)
    is_summary = _is_in(ids, _SUMMARIES)
    others = ids.filter(~is_summary).drop_nulls()
    repeats = ids.filter(is_summary).is_duplicated().any()
    if not is_summary.any() or repeats or others.is_empty():
        return None
    if others.str.contains(r"\d").all():
        return int(is_summary.arg_max() or 0)
    numbers = list(_numbers(table, name))
    for row in is_summary.arg_true():
        is_accuracy = _is_in(ids, (_ACCURACY,))[row]
        if _is_one_number(numbers, row) if is_accuracy else _summarises(numbers, row, ~is_summary):
            return int(row)
    return None


def _is_in(ids: pl.Series, words: Sequence[str]) -> pl.Series:
    plain = ids.str.strip_chars().str.to_lowercase().str.replace_all("[_-]", " ")
    return plain.is_in(words).fill_null(False)


def _numbers(table: ExampleTable, id_: str) -> Iterator[pl.Series]:
    """Yield the columns of numbers other than the ids."""
    for name in table.columns:
        if name != id_ and is_number(name, [table]):
            yield table.only((name,)).polars_column(name).cast(pl.Float64, strict=False)


def _is_one_number(numbers: Sequence[pl.Series], row: int) -> bool:
    """Whether a row has the same number with decimals in all columns, which other rows have not."""
    value = numbers[0][row] if len(numbers) >= _FEWEST_EQUAL else None
    if value is None or value == round(value) or any(each[row] != value for each in numbers):
        return False
    return any(not each.equals(numbers[0], check_names=False) for each in numbers[1:])


def _summarises(numbers: Sequence[pl.Series], row: int, is_other: pl.Series) -> bool:
    """Whether at least half of the numbers of a row are the means or the sums of the other rows.

    A single whole number that another row has as well, such as 0 or 1, may be equal by chance.
    """
    own = [(each[row], each.filter(is_other).drop_nulls()) for each in numbers]
    vary = [(value, others) for value, others in own if value is not None and others.n_unique() > 1]
    found = [
        (value, others)
        for value, others in vary
        if any(_is_rounded(value, total) for total in (math.fsum(others) / len(others), math.fsum(others)))
    ]
    if len(found) == 1 and found[0][0] == round(found[0][0]) and found[0][0] in found[0][1]:
        return False
    return bool(found) and 2 * len(found) >= len(vary)


def _is_rounded(value: float, exact: float) -> bool:
    """Whether a number with decimals is another one, rounded to as many decimals."""
    _, _, decimals = repr(value).partition(".")
    is_decimal = decimals.isdecimal() and value != round(value)
    rounding = 0.5 * 10.0 ** -len(decimals) if is_decimal else 0.0
    return math.isclose(value, exact, rel_tol=1e-9, abs_tol=rounding)
