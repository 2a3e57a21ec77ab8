"""Tables of numbers without a header, such as the count files of Zmigrod, Vieira and Cotterell (2022).

These have one line per example with commas or tabs. Two integers are the correct predictions of two systems;
four are ``tp`` and ``incorrect`` of one system and then of the other.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice

import narwhals as nw
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
    """Read numbers separated by commas, tabs, semicolons or blanks, in columns called ``1``, ``2`` and so on.

    ``FILE::2`` is column ``2`` as one system of several. In a table of four columns of integers ``FILE::A``
    reads the first two as ``tp`` and ``incorrect``, and ``FILE::B`` the others. Raise SourceError if rows
    differ in length, the column does not exist, or the first row may be a header of numbers.
    """
    if first_row(file) is FirstRow.UNCLEAR:
        raise SourceError(
            f"`{file.origin}`: the first row, {file.first_line.strip()[:40]!r}, may be a header or an example"
            ", as it consists of numbers that can be names of columns",
            hint="if it is an example, add a header line above it, such as"
            f" `{(_separator(file)).join('abcdefgh'[: len(_fields(file))])}`; if it is a header, remove it or"
            " name the columns by words.",
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
        "the table has no header, as the first row consists of numbers; the columns were named"
        f" {listed(names)}, from left to right"
    )
    frame = empty_is_null(frame.select(pl.all().str.strip_chars()))
    table = ExampleTable(nw.from_native(frame, eager_only=True), file.origin, untyped=True, notes=(note,))
    if file.part is None or file.part in names:
        return table if file.part is None else replace(of_system(table, file.part), statistics=("mean",))
    if file.part not in _SYSTEMS or len(names) != 4:
        systems = ["A", "B"] if len(names) == 4 else []
        raise SourceError(
            f"`{file.origin}` has no column `{file.part}`",
            hint=f"it has no header; choose one of {listed([*names, *systems])}.",
        )
    return _counts_of_system(table, file.part)


def _counts_of_system(table: ExampleTable, system: str) -> ExampleTable:
    frame = table.frame.to_polars()
    for name in frame.columns:
        odd = frame.filter(~pl.col(name).str.contains(r"^\d+$").fill_null(False))
        if len(odd):
            raise SourceError(
                f"{odd[name][0]!r} in column `{name}` of `{table.origin}` is not a count",
                hint="`A` and `B` need four columns of integers: `tp` and `incorrect` of two systems.",
            )
    own = frame.select(
        pl.col(column).alias(count) for column, count in zip(_SYSTEMS[system], _COUNTS, strict=True)
    )
    note = (
        f"system {system}: columns `{_SYSTEMS[system][0]}` and `{_SYSTEMS[system][1]}` were read as `tp` and"
        " `incorrect`"
    )
    notes = (*table.notes, note)
    return replace(table.with_rows(own), origin=f"{table.origin}::{system}", notes=notes)


def _separator(file: SourceFile) -> str:
    return separator_of(file) or " "


def _fields(file: SourceFile) -> list[str]:
    separator, line = _separator(file), file.first_line.strip(" ")
    return line.split() if separator == " " else line.split(separator)


def _recognises(file: SourceFile) -> bool:
    lines = islice((line for line in file.lines if line.strip()), 2)
    if b"\0" in file.head or file.is_json or len(list(lines)) < 2:
        return False
    return first_row(file) in (FirstRow.EXAMPLE, FirstRow.UNCLEAR)


HEADERLESS = Source("headerless", "numbers without a header", _recognises, read_headerless, part="column")
