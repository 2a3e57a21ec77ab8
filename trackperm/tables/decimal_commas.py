"""Numbers that are written with decimal commas, as spreadsheets in many languages do: ``4,7``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import polars as pl

from trackperm.errors import InputError, TrackpermError
from trackperm.tables.column_types import FIRST_ROWS
from trackperm.tables.table import ExampleTable

_NUMBER = r"^\s*[+-]?\d+(,\d+)?([eE][+-]?\d+)?\s*$"
_THOUSANDS = r"^\s*[+-]?[1-9]\d{0,2},\d{3}\s*$"

_DELIMITED = (".csv", ".tsv", ".txt")


def decimal_comma(table: ExampleTable, name: str) -> str | None:
    """Return the first text with a decimal comma in a column that holds such numbers alone; else None.

    The first rows decide. ``1,234`` may as well be one thousand: another text has to have a decimal comma.
    """
    if name not in table.columns:
        return None
    try:
        values = table.head(FIRST_ROWS).only((name,)).polars_column(name).drop_nulls()
    except TrackpermError:
        return None  # the pairing reports the error
    if values.dtype != pl.String or not values.str.contains(_NUMBER).all():
        return None
    found = values.filter(values.str.contains(",", literal=True) & ~values.str.contains(_THOUSANDS))
    return str(found[0]) if len(found) else None


def require_decimal_points(tables: Sequence[ExampleTable], names: Iterable[str | None]) -> None:
    """Refuse columns of numbers with decimal commas, which are text.

    Raises
    ------
    InputError
        If a run has such a column; the hint says how to read it as numbers.
    """
    for name in dict.fromkeys(names):
        for table in tables if name is not None else ():
            if (text := decimal_comma(table, str(name))) is not None:
                raise InputError(
                    f"`{name}` of `{table.origin}` holds text, such as {text!r}, and no numbers: its decimals"
                    " have commas",
                    hint=f"write decimals with points; {_reading(table.origin, str(name))} of polars reads"
                    " them as numbers.",
                )


def _reading(origin: str, name: str) -> str:
    """Return the code that reads decimal commas."""
    if origin.lower().endswith(_DELIMITED):
        return f'`pl.read_csv({json.dumps(origin, ensure_ascii=False)}, separator=";", decimal_comma=True)`'
    column = json.dumps(name, ensure_ascii=False)
    return f'`frame.with_columns(pl.col({column}).str.replace(",", ".").cast(pl.Float64))`'
