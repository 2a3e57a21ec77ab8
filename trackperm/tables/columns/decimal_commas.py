"""Numbers that are written with decimal commas, as spreadsheets in many languages do: ``4,7``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import polars as pl

from trackperm.errors import InputError, TrackpermError
from trackperm.tables.columns.label_shares import are_classes
from trackperm.tables.columns.types import FIRST_ROWS
from trackperm.tables.polars_code import text_of
from trackperm.tables.table import ExampleTable

_NUMBER = r"^\s*[+-]?\d+(,\d+)?([eE][+-]?\d+)?\s*$"
_THOUSANDS = r"^\s*[+-]?[1-9]\d{0,2},\d{3}\s*$"

_DELIMITED = (".csv", ".tsv", ".txt")
_SEPARATORS = ("\t", ";", ",")


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


def are_choices(table: ExampleTable, prediction: str, label: str) -> bool:
    """Whether texts such as ``1,3`` list choices or positions, rather than decimals.

    Labels repeat, most predictions are labels, and all commas stand between different whole numbers from 1
    on: in ascending order, or in every text. Ratings such as ``4,0`` or of half steps are decimals.
    """
    try:
        columns = [table.head(FIRST_ROWS).only((name,)).polars_column(name) for name in (prediction, label)]
    except TrackpermError:
        return False  # the pairing reports the error
    texts = pl.DataFrame(dict(zip(("prediction", "label"), columns, strict=True)))
    texts = texts.drop_nulls().select(pl.all().cast(pl.String).str.strip_chars())
    if not are_classes(texts):
        return False
    values = pl.concat([texts["prediction"], texts["label"].alias("prediction")])
    parts = values.str.extract_groups(r"^([1-9]\d?),([1-9][1-9]?)$").struct.unnest().drop_nulls()
    with_comma = values.str.contains(",", literal=True)
    if len(parts) < with_comma.sum() or parts["2"].n_unique() < 2:
        return False
    first, second = (parts[name].cast(pl.Int64) for name in ("1", "2"))
    return bool((first < second).all() or with_comma.all())


def require_decimal_points(
    tables: Sequence[ExampleTable], names: Iterable[str | None], outputs: Collection[str | None] = ()
) -> None:
    """Refuse columns of numbers with decimal commas, which are text.

    `outputs` are columns of predictions and labels, which accuracy compares as they are.

    Raises
    ------
    InputError
        If a run has such a column; the hint says how to read it as numbers.
    """
    for name in dict.fromkeys(names):
        for table in tables if name is not None else ():
            if (text := decimal_comma(table, str(name))) is not None:
                as_text = "; `--statistic accuracy` compares them as they are" if name in outputs else ""
                raise InputError(
                    f"`{name}` of `{table.origin}` holds text, such as {text!r}, and no numbers: its decimals"
                    " have commas",
                    hint=f"write decimals with points; {_reading(table.origin, str(name))} of polars reads"
                    f" them as numbers{as_text}.",
                )


def _reading(origin: str, name: str) -> str:
    """Return the code that reads decimal commas; polars has an option for files without other commas."""
    separator = separator_of(origin)
    options = {";": ', separator=";"', "\t": r', separator="\t"'}.get(separator or "")
    if options is not None:
        return f"`pl.read_csv({text_of(origin)}{options}, decimal_comma=True)`"
    frame = f"pl.read_csv({text_of(origin)})" if separator == "," else "frame"
    return f'`{frame}.with_columns(pl.col({text_of(name)}).str.replace(",", ".").cast(pl.Float64))`'


def separator_of(origin: str) -> str | None:
    """Return what separates values in the first line of a file; None for other runs."""
    if not origin.lower().endswith(_DELIMITED):
        return None
    try:
        with Path(origin).open(encoding="utf-8-sig") as file:
            first = file.readline()
    except (OSError, ValueError):
        return None
    return max(_SEPARATORS, key=first.count) if any(each in first for each in _SEPARATORS) else None
