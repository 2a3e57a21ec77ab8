"""Refuse rows that summarise the others, such as a last row with the id ``mean``: they are no examples."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from trackperm.errors import InputTypeError, PairingError
from trackperm.tables.table import ExampleTable, id_columns

# fmt: off
_SUMMARIES = (
    "mean", "average", "avg", "total", "sum", "std", "stdev", "stddev", "count", "min", "max", "median",
    "overall", "all", "aggregate", "summary", "25%", "50%", "75%", "macro avg", "micro avg", "weighted avg",
    "grand total",
)
# fmt: on

_MOST = 100_000
"""Most rows of a run that is searched: larger ones are not written by hand or by a spreadsheet."""


def require_no_summary(tables: Sequence[ExampleTable], id_: str) -> None:
    """Refuse an id that is the word for a summary, if every other id of the run has a digit.

    Raises
    ------
    PairingError
        If there is one; the message names its row.
    """
    for table in tables:
        for name in id_columns(id_, [table]):
            if name not in table.columns or len(table) > _MOST:
                continue
            try:
                ids = table.only((name,)).polars_column(name)
            except InputTypeError:
                continue  # the pairing reports the error
            if ids.dtype != pl.String:
                continue
            is_summary = ids.str.strip_chars().str.to_lowercase().is_in(_SUMMARIES).fill_null(False)
            others = ids.filter(~is_summary).drop_nulls()
            if not is_summary.any() or others.is_empty() or not others.str.contains(r"\d").all():
                continue
            row = int(is_summary.arg_max() or 0)
            raise PairingError(
                f"row {row + 1} of `{table.origin}` has the `{name}` {ids[row]!r}, which is the name of a"
                " summary of the other rows",
                hint="remove such rows, or give the example another id: each row has to be an example.",
            )
