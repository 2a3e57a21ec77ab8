"""Numbers without a header, such as the count files of Zmigrod, Vieira and Cotterell (2022).

Theirs have a line an example, with commas or tabs: two integers, which are the correct predictions of two
systems, or four, which are ``tp`` and ``incorrect`` of the one and then of the other.
"""

from __future__ import annotations

import re
from dataclasses import replace

import polars as pl

from trackperm.errors import SourceError
from trackperm.messages import listed
from trackperm.tables.formats.delimited import empty_is_null, exact, fast, require_width
from trackperm.tables.formats.header_detection import FirstRow, first_row, separator_of
from trackperm.tables.source import Source, SourceFile, decoded
from trackperm.tables.systems import of_system
from trackperm.tables.table import ExampleTable

_BLANKS = rb"[ \t]+"
_SYSTEMS = {"A": ("1", "2"), "B": ("3", "4")}
_COUNTS = ("tp", "incorrect")


def read_headerless(file: SourceFile) -> ExampleTable:
    """Read numbers that commas, tabs, semicolons or blanks separate; columns are called ``1``, ``2`` and on.

    ``FILE::2`` is the column ``2`` as one system of several. Of four columns of integers ``FILE::A`` has the
    first two as ``tp`` and ``incorrect``, and ``FILE::B`` the others.

    Raises
    ------
    SourceError
        If rows differ in length, there is no such column, or the first row may be a header of numbers.
    """
    if first_row(file) is FirstRow.UNCLEAR:
        raise SourceError(
            f"`{file.origin}`: the first row, {file.first_line.strip()[:40]!r}, may be a header or an example"
            ": it holds numbers alone, and such as stand above columns",
            hint="if it is an example, add a header line above it, such as"
            f" `{(_separator(file)).join('abcdefgh'[: len(_fields(file))])}`; if it is a header, remove it or"
            " call the columns by words.",
        )
    data, separator = file.path.read_bytes(), _separator(file)
    if separator == " ":
        lines = (re.sub(_BLANKS, b" ", line.strip()) for line in data.splitlines())
        data = b"\n".join(lines)
    require_width(data, separator, file.origin)
    names = [str(1 + i) for i in range(len(_fields(file)))]
    frame = fast(data, separator, names)
    if frame is None:
        frame = exact(decoded(data, file.origin), file.origin, separator, names)
    note = (
        "there is no header, as the first row holds numbers alone: the columns are called"
        f" {listed(names)}, from left to right"
    )
    frame = frame.select(pl.all().str.strip_chars())
    table = ExampleTable(empty_is_null(frame), file.origin, untyped=True, notes=(note,))
    if file.part is None or file.part in names:
        return table if file.part is None else replace(of_system(table, file.part), statistics=("mean",))
    if file.part not in _SYSTEMS or len(names) != 4:
        systems = ["A", "B"] if len(names) == 4 else []
        raise SourceError(
            f"`{file.origin}` has no column `{file.part}`",
            hint=f"it has no header, and {listed([*names, *systems])}.",
        )
    return _counts_of_system(table, file.part)


def _counts_of_system(table: ExampleTable, system: str) -> ExampleTable:
    frame = table.frame.to_polars()
    for name in frame.columns:
        odd = frame.filter(~pl.col(name).str.contains(r"^\d+$").fill_null(False))
        if len(odd):
            raise SourceError(
                f"`{table.origin}` has no counts in column `{name}`: {odd[name][0]!r}",
                hint="`A` and `B` are of tables of four integers: `tp` and `incorrect` of two systems.",
            )
    own = frame.select(
        pl.col(column).alias(count) for column, count in zip(_SYSTEMS[system], _COUNTS, strict=True)
    )
    note = (
        f"system {system}: columns `{_SYSTEMS[system][0]}` and `{_SYSTEMS[system][1]}`, taken as `tp` and"
        " `incorrect`"
    )
    return ExampleTable(
        empty_is_null(own), f"{table.origin}::{system}", untyped=True, notes=(*table.notes, note)
    )


def _separator(file: SourceFile) -> str:
    return separator_of(file) or " "


def _fields(file: SourceFile) -> list[str]:
    separator, line = _separator(file), file.first_line.strip(" ")
    return line.split() if separator == " " else line.split(separator)


def _recognises(file: SourceFile) -> bool:
    if b"\0" in file.head or file.is_json or sum(1 for line in file.lines if line.strip()) < 2:
        return False
    return first_row(file) in (FirstRow.EXAMPLE, FirstRow.UNCLEAR)


HEADERLESS = Source("headerless", "numbers without a header", _recognises, read_headerless, part="column")
