"""Comma- and tab-separated text: every value is text, an empty field is null."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import narwhals as nw
import polars as pl

from trackperm.errors import SourceError
from trackperm.sources.encoding import decoded
from trackperm.tables import ExampleTable


def read_csv(path: Path, origin: str) -> ExampleTable:
    """Read comma-separated values under a header line.

    Raises
    ------
    SourceError
        If rows differ in length, quotes do not close, or two columns have the same name.
    """
    return _read(path, origin, ",")


def read_tsv(path: Path, origin: str) -> ExampleTable:
    """Read tab-separated values under a header line.

    Raises
    ------
    SourceError
        As :func:`read_csv` does.
    """
    return _read(path, origin, "\t")


def _read(path: Path, origin: str, separator: str) -> ExampleTable:
    data = path.read_bytes()
    frame = _fast(data, separator)
    if frame is None:
        frame = _exact(decoded(data, origin), origin, separator)
    texts = nw.from_native(frame, eager_only=True)
    empty_is_null = [nw.when(nw.col(name) != "").then(nw.col(name)).alias(name) for name in texts.columns]
    return ExampleTable(texts.select(empty_is_null), origin, untyped=True)


def _fast(data: bytes, separator: str) -> pl.DataFrame | None:
    """Polars' reading of `data` where it is beyond doubt, else None.

    Polars fills short rows and blank lines with nulls, renames columns of the same name, takes text after a
    closing quote and ends no line at a lone carriage return. No quote, no such name or byte and a value in
    every row of the last column rule that out.
    """
    if b'"' in data or data.count(b"\r") != data.count(b"\r\n"):
        return None
    try:
        frame = pl.read_csv(
            data if data.endswith(b"\n") else data + b"\n", separator=separator, infer_schema=False
        )
    except pl.exceptions.PolarsError:
        return None
    unsure = frame.is_empty() or any("_duplicated_" in name for name in frame.columns)
    return None if unsure or frame[:, -1].has_nulls() else frame


def _exact(text: str, origin: str, separator: str) -> pl.DataFrame:
    """Read record by record, to name the line of what is wrong."""
    limit = csv.field_size_limit(sys.maxsize)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    header: list[str] = []
    records: list[list[str]] = []
    try:
        for row in rows:
            if not row:
                continue
            if not header:
                header = row
            elif len(row) != len(header):
                raise SourceError(
                    f"`{origin}`, line {rows.line_num}: {len(row)} fields under a header of {len(header)}"
                )
            else:
                records.append(row)
    except csv.Error as error:
        raise SourceError(f"`{origin}`, line {rows.line_num}: {error}") from error
    finally:
        csv.field_size_limit(limit)
    if not header:
        raise SourceError(f"`{origin}` is empty")
    for name in header:
        if header.count(name) > 1:
            raise SourceError(f"`{origin}` has more than one column `{name}`", hint="rename all but one.")
    columns = zip(*records, strict=True) if records else [()] * len(header)
    return pl.DataFrame(
        [pl.Series(name, column, dtype=pl.String) for name, column in zip(header, columns, strict=True)]
    )
