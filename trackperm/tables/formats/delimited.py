"""Comma- and tab-separated text: every value is text, and an empty field is null."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import narwhals as nw
import polars as pl

from trackperm.errors import SourceError
from trackperm.messages import amount
from trackperm.tables.expansion import require_columns
from trackperm.tables.first_line import is_sentence
from trackperm.tables.formats.header_detection import (
    BAR,
    SEPARATORS,
    FirstRow,
    first_row,
    separator_of,
    whole_lines,
)
from trackperm.tables.lazy.scan import Scan
from trackperm.tables.lazy.text_parts import LARGE, scan_parts
from trackperm.tables.polars_code import of_lines
from trackperm.tables.program_output import way_to_table
from trackperm.tables.source import Source, SourceFile, decoded
from trackperm.tables.table import ExampleTable

_BRACKETED = re.compile(r"[\[{][A-Za-z][^\[\]{}\":]*[\]}][^\t,;]*[\t,;]")  # a name in brackets, not JSON
_NAMES = {"\t": "a tab", " ": "a blank"}
_SHOWN = 60  # characters of a first line in errors
_LINE = re.compile(rb"[\r\n ]*([^\r\n]*)")  # the first line that is not blank
_PROMPTFOO = {"Status", "Score", "Grader Reason"}  # columns that promptfoo writes for each provider


def read_delimited(file: SourceFile) -> ExampleTable:
    """Read values that are separated by commas, tabs, semicolons or vertical bars, below a header line.

    Raise SourceError if rows differ in length, quotes are not closed, or two columns have the same name or
    none.
    """
    separator = separator_of(file) or ","
    has_spaces = _has_spaces(file, separator)
    notes = []
    if first_row(file) is FirstRow.NUMERIC_HEADER:
        notes.append("the first row consists of numbers, and was read as the header")
    if file.path.stat().st_size > LARGE and not has_spaces and separator != BAR:
        scan = scan_delimited(file.path, separator, file.origin)
        if scan is not None:
            table = ExampleTable.from_scan(scan, file.origin)
            return replace(table, untyped=True, notes=tuple(notes))
    data = file.path.read_bytes()
    require_width(data, separator, file.origin)
    frame = None if has_spaces else fast(data, separator)
    if frame is None:
        text = decoded(data, file.origin)
        frame = empty_is_null(exact(text, file.origin, separator, has_spaces=has_spaces))
    if separator == BAR:
        frame = frame.select(pl.all().str.strip_chars().replace("", None).name.map(str.strip))
    if "" in frame.columns:
        frame, name = _named(frame, file.origin)
        notes.append(f"the column without a name was named `{name}`")
    rows = nw.from_native(frame, eager_only=True)
    return ExampleTable(rows, file.origin, untyped=True, notes=tuple(notes))


def _has_spaces(file: SourceFile, separator: str) -> bool:
    """Whether spaces behind separators are no part of the values: all lines have them, the header all."""
    _, *others = file.first_line.split(separator)
    if not others or not all(name.startswith(" ") for name in others):
        return False
    return all(f"{separator} " in line for line in whole_lines(file) if line.strip())


def scan_delimited(path: Path, separator: str, origin: str) -> Scan | None:
    """Copy a large file to temporary files, as :func:`fast` reads it.

    Return None if exact reading is not certain for the whole file, or a column has no name.
    """
    names: list[str] = []

    def read(data: bytes, is_first: bool) -> pl.DataFrame | None:
        if is_first:
            require_width(data, separator, origin)
        frame = fast(data, separator, names)
        if frame is None or "" in frame.columns:
            return None
        names[:] = frame.columns
        return frame

    return scan_parts(path, read, origin)


def _named(frame: pl.DataFrame, origin: str) -> tuple[pl.DataFrame, str]:
    """Name the column without a name, such as pandas writes for an index, by its position from 1."""
    name = f"column_{1 + frame.columns.index('')}"
    if name in frame.columns:
        raise SourceError(
            f"`{origin}` has a column without a name, and another is called `{name}`", hint="name the column."
        )
    return frame.rename({"": name}), name


def _recognises(file: SourceFile) -> bool:
    if not file.head or b"\0" in file.head:
        return False
    if file.is_json and (file.document is not None or not _BRACKETED.match(file.first_line)):
        return False
    return separator_of(file) is not None or sum(1 for line in file.lines if line.strip()) > 1


def require_width(data: bytes, separator: str, origin: str) -> None:
    """Refuse text with more columns than a table can have; its first line may be longer than the head.

    Raise SourceError if there are too many columns.
    """
    line = _LINE.match(data)
    require_columns(1 if line is None else 1 + line[1].count(separator.encode()), origin)


def empty_is_null(frame: pl.DataFrame) -> pl.DataFrame:
    """Convert empty fields to null, as polars does when it reads them."""
    return pl.DataFrame({column.name: column.set(column == "", None) for column in frame})


def fast(data: bytes, separator: str, names: Sequence[str] = ()) -> pl.DataFrame | None:
    """Read `data` with polars where its result is certain to be exact, else return None.

    Polars fills short rows and blank lines with nulls, renames columns of the same name, accepts text after a
    closing quote and does not end a line at a lone carriage return. None of this can happen to data without
    quotes, such names and such bytes, if every row has a value in the last column. A file without a header
    has the column names `names`.
    """
    if b'"' in data or data.count(b"\r") != data.count(b"\r\n"):
        return None
    try:
        frame = pl.read_csv(
            data if data.endswith(b"\n") else data + b"\n",
            separator=separator,
            has_header=not names,
            new_columns=names or None,
            infer_schema=False,
        )
        first = data.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].rstrip(b"\r").decode()
    except (pl.exceptions.PolarsError, UnicodeDecodeError):
        return None
    unsure = frame.is_empty() or any("_duplicated_" in name for name in frame.columns)
    unsure = unsure or (bool(names) and frame.width != len(names))
    header = first.split(separator)
    if not names and "" in header:  # polars invents a name for it
        unsure = unsure or header.count("") > 1 or len(header) != frame.width
        frame = frame if unsure else frame.rename(dict(zip(frame.columns, header, strict=True)))
    return None if unsure or frame[:, -1].has_nulls() else frame


def exact(
    text: str, origin: str, separator: str, names: Sequence[str] = (), *, has_spaces: bool = False
) -> pl.DataFrame:
    """Read record by record, so that errors name the line; `names` replace a missing header.

    `has_spaces` leaves out spaces behind a separator.
    """
    quoted = _NAMES.get(separator, f"`{separator}`")
    limit = csv.field_size_limit(sys.maxsize)
    rows = csv.reader(
        io.StringIO(text, newline=""), delimiter=separator, strict=True, skipinitialspace=has_spaces
    )
    header = list(names)
    records: list[list[str]] = []
    try:
        for row in rows:
            if not row:
                continue
            if not header:
                header = row
            elif len(row) != len(header):
                if not names:
                    _require_no_comments(text, origin, rows.line_num, len(row), len(header))
                    _require_no_prose(text, origin, rows.line_num, len(header))
                above = f"after a first row of {len(header)}" if names else f"under a header of {len(header)}"
                raise SourceError(
                    f"`{origin}`, line {rows.line_num}: {len(row)} fields {above}",
                    hint=f"write values that contain {quoted} in double quotes, so"
                    " that every line has as many fields as the first."
                    if len(row) > len(header)
                    else "every line has as many fields as the first: remove lines that are not rows, such as"
                    " a total at the end, and write values with a line end in double quotes.",
                )
            else:
                records.append(row)
    except csv.Error as error:
        if not names:
            _require_no_prose(text, origin, rows.line_num, len(header))
        raise SourceError(f"`{origin}`, line {rows.line_num}: {error}") from error
    finally:
        csv.field_size_limit(limit)
    if not header:
        raise SourceError(f"`{origin}` is empty")
    for name, times in Counter(header).items():
        if not name and times > 1:
            raise SourceError(f"`{origin}` has several columns without a name", hint="name the columns.")
        if times > 1:
            raise SourceError(
                f"`{origin}` has more than one column `{name}`", hint=_way_on(name, header, records)
            )
    columns = zip(*records, strict=True) if records else [()] * len(header)
    # A mapping, because polars would rename a series without a name in a list.
    return pl.DataFrame(
        {name: pl.Series(column, dtype=pl.String) for name, column in zip(header, columns, strict=True)}
    )


def _way_on(name: str, header: Sequence[str], records: Sequence[Sequence[str]]) -> str:
    """Say how a table with two columns of one name can be read."""
    if {*header} >= _PROMPTFOO:
        return (
            "it is promptfoo's table of several providers or prompts: `promptfoo eval -o results.json` or"
            " `promptfoo export eval ID -o results.json` writes results of which `results.json::PROVIDER` are"
            " those of one."
        )
    places = [i for i, above in enumerate(header) if above == name]
    if header[0].isdecimal() or any(row[i] == name for row in records for i in places):
        return (
            "the first line looks like an example and not like a header: write the names of the columns above"
            " it, such as `id`, `prediction` and `label`; if it is a header, rename all but one."
        )
    return "rename all but one."


def _require_no_comments(text: str, origin: str, line: int, n_fields: int, width: int) -> None:
    """Refuse a file that begins with comments, so that `line` has another number of fields than the first."""
    lines = [each for each in text.splitlines() if each.strip()]
    above = list(takewhile(lambda each: each.lstrip().startswith("#"), lines))
    if not above or len(above) == len(lines):
        return
    below = lines[len(above) :]
    last_is_header = any(1 < _width(above[-1:], each) == _width(below, each) for each in SEPARATORS)
    if n := len(above) - last_is_header:
        lines_above = "the first line, which begins" if n == 1 else f"the first {n} lines, which begin"
        raise SourceError(
            f"`{origin}`, line {line}: {amount(n_fields, 'field')} under a header of {width}",
            hint=f"remove {lines_above} with `#`, so that the names of the columns come first.",
        )


def _width(lines: Sequence[str], separator: str) -> int:
    """Return the commonest number of fields in lines."""
    return Counter(map(len, csv.reader(lines, delimiter=separator))).most_common(1)[0][0]


def _require_no_prose(text: str, origin: str, line: int, width: int) -> None:
    """Refuse a file of sentences, in which `line` has another number of fields than `width`."""
    first = text.lstrip("\r\n").partition("\n")[0].strip()
    if (way := way_to_table(origin, first)) is not None:
        raise SourceError(
            f"`{origin}` is text without columns: its first line is {first[:_SHOWN]!r}", hint=f"{way}."
        )
    if is_sentence(first, width):
        raise SourceError(
            f"`{origin}` is text without columns: its first line is {first[:_SHOWN]!r}, and line {line} has"
            " another number of fields",
            hint=f"`{of_lines(origin, 'prediction')}` of polars makes a table of its lines; write `label` in"
            " place of `prediction` for references, and name their table by `--labels`.",
        )


DELIMITED = Source("delimited", "CSV or TSV", _recognises, read_delimited)
