"""Refusal of rows that are no examples: a summary of the other rows, or the only row of a run."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from trackperm.errors import InputTypeError, PairingError
from trackperm.tables.lazy.query import Query
from trackperm.tables.row_meaning import why_no_examples
from trackperm.tables.table import ExampleTable, id_columns

# fmt: off
_SUMMARIES = (
    "mean", "average", "avg", "total", "sum", "std", "stdev", "stddev", "count", "min", "max", "median",
    "overall", "all", "aggregate", "summary", "25%", "50%", "75%", "macro avg", "micro avg", "weighted avg",
    "samples avg", "grand total", "amean", "gmean", "hmean", "gm", "macro average", "micro average",
    "weighted average", "macro mean", "micro mean", "global",
)
"""Ids of rows that summarise the others, with spaces for `_` and `-`."""
# fmt: on

_MOST_ROWS = 100_000
"""Most rows of a run that is searched for such ids: larger ones come from no spreadsheet."""


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


def require_no_summary(tables: Sequence[ExampleTable], id_: str) -> None:
    """Refuse an id that is the word for a summary, once, if every other id of the run has a digit.

    Raises
    ------
    PairingError
        If there is one; the message names its row.
    """
    for table in tables:
        names = id_columns(id_, [table])
        for name in names if len(names) == 1 else ():
            if name not in table.columns or len(table) > _MOST_ROWS:
                continue
            try:
                ids = table.only((name,)).polars_column(name)
            except InputTypeError:
                continue  # the pairing reports the error
            if ids.dtype != pl.String:
                continue
            plain = ids.str.strip_chars().str.to_lowercase().str.replace_all("[_-]", " ")
            is_summary = plain.is_in(_SUMMARIES).fill_null(False)
            others = ids.filter(~is_summary).drop_nulls()
            repeats = ids.filter(is_summary).is_duplicated().any()
            if not is_summary.any() or repeats or not others.str.contains(r"\d").all() or others.is_empty():
                continue
            row = int(is_summary.arg_max() or 0)
            raise PairingError(
                f"row {row + 1} of `{table.origin}` has the `{name}` {ids[row]!r}, which is the name of a"
                " summary of the other rows",
                hint="remove such rows, or give the example another id: each row has to be an example.",
            )
