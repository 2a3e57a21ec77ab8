"""Detection of the separator and of a header in the first rows of separated text."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import wraps
from itertools import islice
from typing import TypeVar
from weakref import WeakKeyDictionary

from trackperm.tables.source import SourceFile

SEPARATORS = ("\t", ",", ";")
_ROWS = 1_000  # rows that are examined, which bounds the time
_FEW = 20  # rows: among fewer, the first is the largest or smallest of a column by chance too often
_QUOTED = re.compile(r'(?m)(?:^|(?<=[\t,;]))"(?:[^"]|"")*"')
_FINITE = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_NUMBER = re.compile(rf"{_FINITE.pattern}|[+-]?(nan|inf|infinity)", re.IGNORECASE)
_INTEGER = re.compile(r"\d+")
_LONGEST_NAME = 18  # digits, which an int64 holds


class FirstRow(Enum):
    """Kind of the first row."""

    HEADER = "header"
    NUMERIC_HEADER = "header of numbers"
    EXAMPLE = "example"
    UNCLEAR = "either"


Answer = TypeVar("Answer")


def _once(question: Callable[[SourceFile], Answer]) -> Callable[[SourceFile], Answer]:
    """Cache the answer while the file object exists, as several formats need it."""
    answers: WeakKeyDictionary[SourceFile, Answer] = WeakKeyDictionary()

    @wraps(question)
    def answered(file: SourceFile) -> Answer:
        if file not in answers:
            answers[file] = question(file)
        return answers[file]

    return answered


@_once
def separator_of(file: SourceFile) -> str | None:
    """Return the separator of values: the one that occurs outside quotes equally often on the most lines.

    None where the first line contains neither tab, comma nor semicolon.
    """
    whole = whole_lines(file)
    if b'"' in file.head:
        whole = _QUOTED.sub('""', "\n".join(whole)).split("\n")
    lines = list(islice((line for line in whole if line.strip()), _ROWS))
    there = [separator for separator in SEPARATORS if lines and separator in lines[0].strip(" ")]
    if len(there) < 2:
        return there[0] if there else None

    def n_like_first(separator: str) -> int:
        n = lines[0].count(separator)
        return sum(line.count(separator) == n for line in lines)

    return max(there, key=n_like_first)


@_once
def first_row(file: SourceFile) -> FirstRow:
    """Classify the first row as a header or an example, from the rows in the first 64 KiB.

    A row with text is a header. A row of numbers (and perhaps empty fields) is a header if all values below
    one of them are text, or if it is the only quoted row. It is unclear in three cases: it numbers the
    columns (0, 1, 2 or 1, 2, 3); only its first field is empty; or it consists of distinct integers, and the
    values below are decimals or in a range far from it.
    """
    rows = _rows(file)
    try:
        first = next(rows, None)
        # Most first rows are text, and no other row is parsed then.
        if first is None or not _is_of_numbers(first):
            return FirstRow.HEADER
        below = [row for row in rows if len(row) == len(first)]
    except csv.Error:
        return FirstRow.HEADER
    columns = [[row[i] for row in below if row[i]] for i in range(len(first))]
    if any(column and not any(map(_NUMBER.fullmatch, column)) for column in columns):
        return FirstRow.NUMERIC_HEADER
    lines = [line for line in whole_lines(file) if line.strip()]
    if '"' in lines[0] and not any('"' in line for line in lines[1:]):
        return FirstRow.NUMERIC_HEADER
    return FirstRow.UNCLEAR if not first[0] or _could_be_names(first, columns) else FirstRow.EXAMPLE


def _could_be_names(first: Sequence[str], columns: Sequence[Sequence[str]]) -> bool:
    if not all(map(_INTEGER.fullmatch, first)) or max(map(len, first)) > _LONGEST_NAME:
        return False
    if len(set(first)) < len(first):
        return False
    names = [int(name) for name in first]
    n = len(names)
    if n > 1 and names in (list(range(n)), list(range(1, n + 1))):
        return True
    if not all(columns):
        return False
    if all(not _INTEGER.fullmatch(value.lstrip("+-")) for column in columns for value in column):
        return True
    ranges = [_range(column) for column in columns]
    if any(low <= name <= high for name, (low, high) in zip(names, ranges, strict=True)):
        return False
    is_consecutive = n > 1 and names == list(range(names[0], names[0] + n))
    is_far = all(
        max(low - name, name - high) > 10 * max(high - low, 1)
        for name, (low, high) in zip(names, ranges, strict=True)
    )
    return is_consecutive or is_far or (n > 1 and min(map(len, columns)) >= _FEW)


def _range(values: Sequence[str]) -> tuple[float, float]:
    numbers = [float(value) for value in values if _FINITE.fullmatch(value)] or [float("nan")]
    return min(numbers), max(numbers)


def _is_of_numbers(row: Sequence[str]) -> bool:
    return any(map(_NUMBER.fullmatch, row)) and all(not field or _NUMBER.fullmatch(field) for field in row)


def _rows(file: SourceFile) -> Iterator[list[str]]:
    lines = list(islice((line for line in whole_lines(file) if line.strip()), _ROWS))
    separator = separator_of(file)
    if separator is None:
        return ([field.strip('"') for field in line.split()] for line in lines)
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    return ([field.strip() for field in row] for row in rows)


def whole_lines(file: SourceFile) -> Sequence[str]:
    """Return the lines at the beginning of a file, without one that is cut there."""
    is_cut = file.path.stat().st_size > len(file.head) and len(file.lines) > 1
    return file.lines[:-1] if is_cut else file.lines
