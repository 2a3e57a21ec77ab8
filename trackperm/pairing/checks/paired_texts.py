"""Texts of the rows that two runs pair: all of them, or of large runs a sample."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import polars as pl

from trackperm.errors import InputTypeError
from trackperm.pairing.joined import KEY
from trackperm.tables.lazy.table import LazyTable
from trackperm.tables.table import ExampleTable, to_polars

MOST_ROWS = 2**14
"""Most rows whose inputs are compared, a bound on the time and memory for large runs."""

_PARTS = 16
"""Stretches of a large run that are compared, at regular distances."""

_MATCHED = 0.9
"""Share of rows that have to be in the same stretches of the other run; otherwise they are searched."""

MOST_OF_QUERY = 2**11
"""Most rows of a query, which has to find their ids in its other rows."""

_SLICE = 2**16
"""Rows that are read at once."""

_NUMBER = r"^\s*-?[0-9.]+(?:[eE][+-]?[0-9]+)?\s*$"


def paired_texts(
    tables: tuple[ExampleTable, ExampleTable], name: str, ids: Sequence[str]
) -> pl.DataFrame | None:
    """Return key and text, ``a`` and ``b``, of rows that are paired by `ids`; None if they hold no text.

    Without `ids`, rows are paired in their order. An example of several rows is one row if all of them have
    the same text, and is left out otherwise.
    """
    read = _paired_rows(tables, [name], ids)
    if read is None or not all(each[name].dtype == pl.String for each in read):
        return None
    pairs = _pairs(read, ids, [each[name] for each in read])
    are_numbers = pairs["a"].head(1000).str.contains(_NUMBER).all()
    return None if are_numbers else pairs.drop_nulls()


def paired_ids(
    tables: tuple[ExampleTable, ExampleTable], names: Sequence[str], ids: Sequence[str]
) -> dict[str, pl.DataFrame]:
    """Return key and other ids as text, ``a`` and ``b``, of paired rows, for each column that can be read.

    The columns are read together, because each reading of a query is a query.
    """
    read = _paired_rows(tables, names, ids)
    if read is None:
        return {}
    return {name: _pairs(read, ids, [as_ids(each, [name]) for each in read]).drop_nulls() for name in names}


def _paired_rows(
    tables: tuple[ExampleTable, ExampleTable], names: Sequence[str], ids: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """Read rows of the baseline, and those of the candidate with their ids; None if they cannot be read."""
    baseline, candidate = tables
    most = MOST_OF_QUERY if any(map(is_query, tables)) else MOST_ROWS
    try:
        first = read_rows(baseline, (*ids, *names), most)
        second = read_rows(candidate, (*ids, *names), most)
        if ids and len(candidate) > most:
            wanted = first[ids[0]].cast(second[ids[0]].dtype, strict=False).drop_nulls().unique()
            n_matched = int(wanted.is_in(second[ids[0]].implode()).sum())
            if n_matched < _MATCHED * len(wanted):
                second = read_rows(candidate.among(ids[0], wanted), (*ids, *names), None)
    except (InputTypeError, pl.exceptions.PolarsError):
        return None
    return first, second


def _pairs(
    read: tuple[pl.DataFrame, pl.DataFrame], ids: Sequence[str], values: Sequence[pl.Series]
) -> pl.DataFrame:
    """Pair the values of two runs by the ids in their rows."""
    sides = [
        _one_row_of_each(pl.DataFrame({KEY: as_ids(rows, ids), side: of_run}))
        for side, rows, of_run in zip(("a", "b"), read, values, strict=True)
    ]
    if sides[0][KEY].equals(sides[1][KEY]):  # as they mostly are: a join would copy the texts
        return sides[0].with_columns(sides[1]["b"])
    return sides[0].join(sides[1], on=KEY, how="inner", maintain_order="left")


def is_query(table: ExampleTable) -> bool:
    """Whether the rows are those of a query, which are not read as a whole."""
    return isinstance(table.data, LazyTable) and table.data.is_query


def read_rows(table: ExampleTable, names: Sequence[str], most: int | None) -> pl.DataFrame:
    """Read columns of at most `most` rows, in stretches at regular distances; any rows of a query."""
    n = len(table)
    size, starts = n, [0]
    if most is not None and n > most:
        size = max(1, most // _PARTS)
        starts = [part * (n - size) // (_PARTS - 1) for part in range(_PARTS)]
    if isinstance(table.data, LazyTable):
        if table.data.is_query:
            read = table.data.head(most) if size < n and most is not None else table.data
            return _texts(read.read(names).to_polars())
        parts = table.data.slices(names, _SLICE) if most is None else table.data.parts(names, starts, size)
        found = list(parts)
        return _texts(pl.concat(found) if found else table.data.read(names).to_polars())
    data = table.data.select(list(names))
    if size < n:
        data = nw.concat([data[start : start + size] for start in starts])
    columns = []
    for name in names:
        values = data.get_column(name)
        if name in table.unusable:  # objects of a JSON file
            columns.append(pl.Series(name, list(map(_as_json, values.to_list())), pl.String))
        else:
            columns.append(to_polars(values, f"column `{name}` of `{table.origin}`").alias(name))
    return _texts(pl.DataFrame(columns))


def _texts(rows: pl.DataFrame) -> pl.DataFrame:
    """Write categories as text, and lists and objects as JSON."""
    columns = []
    for values in rows.get_columns():
        if values.dtype in (pl.Categorical, pl.Enum):
            values = values.cast(pl.String)
        elif values.dtype.is_nested() or values.dtype == pl.Object:
            values = pl.Series(values.name, list(map(_as_json, values.to_list())), pl.String)
        columns.append(values)
    return pl.DataFrame(columns)


def _as_json(value: Any) -> str | None:
    """Return text as it is and other values as JSON; half surrogate pairs, which no text has, are escaped."""
    if value is None:
        return None
    if isinstance(value, Mapping) and isinstance(value.get("sha256"), str):
        return str(value["sha256"])  # a file in a table of W&B, beside boxes or masks that a model predicted
    text = (
        value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    )
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def as_ids(rows: pl.DataFrame, ids: Sequence[str]) -> pl.Series:
    """Return the ids of rows as text, which is the same for integers and whole decimals; null without id."""
    if not ids:
        return pl.int_range(len(rows), dtype=pl.Int64, eager=True).cast(pl.String)
    parts = []
    for name in ids:
        whole = rows[name].dtype.is_float() and bool((rows[name] % 1 == 0).all())
        parts.append((rows[name].cast(pl.Int64) if whole else rows[name]).cast(pl.String))
    return pl.DataFrame(parts).select(pl.concat_str(pl.all(), separator=", ").alias(KEY))[KEY]


def _one_row_of_each(rows: pl.DataFrame) -> pl.DataFrame:
    rows = rows.drop_nulls(KEY)
    if not rows[KEY].is_duplicated().any():
        return rows
    text = pl.col(rows.columns[1])
    texts = rows.group_by(KEY, maintain_order=True).agg(text.first(), n=text.n_unique())
    return texts.filter(pl.col("n") == 1).drop("n")
