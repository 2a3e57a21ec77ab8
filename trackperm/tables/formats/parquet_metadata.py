"""Decompressed sizes of the columns of Parquet files, and their indices of pandas, read from their metadata.

Footers and page headers are the structures `FileMetaData` and `PageHeader` of parquet-format in Thrift's
compact encoding; only the fields named here are read.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

_KEY_VALUES = 5
_NAMED_RANGE = re.compile(rb'"kind": ?"range", ?"name": ?"')
_ROW_GROUPS, _COLUMNS, _N_ROWS, _META_DATA = 4, 1, 3, 3
_PATH, _N_VALUES, _UNCOMPRESSED, _DATA_PAGE, _DICTIONARY_PAGE = 3, 5, 6, 9, 11
_PAGE_UNCOMPRESSED, _PAGE_COMPRESSED = 2, 3
_HEADERS_OF_DATA, _HEADER_OF_DICTIONARY, _PAGE_VALUES = (5, 8), 7, 1
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 11, 12
_INTEGERS = (4, 5, 6)
_DEEPEST = 20  # `FileMetaData` has 8 levels at most
_NUMBER = 16  # bytes of a value in polars at most, without the content of texts
_PEEK = 2**12  # bytes, in which most headers of pages end
_LONGEST_HEADER = 2**24  # bytes; statistics in a header contain values, which may be long texts

Groups = list[dict[int, Any]]
"""Row groups of a footer: values by the numbers of their fields."""


def row_groups(path: Path) -> Groups:
    """Read the footer of a file.

    Raise ValueError if the footer is broken.
    """
    try:
        groups: Groups = _Compact(_footer(path)).structure(0)[_ROW_GROUPS]
    except (KeyError, IndexError) as error:
        raise ValueError("the footer is not that of a Parquet file") from error
    return groups


def named_range_index(path: Path) -> tuple[str, range] | None:
    """Return the name and the values of an index of pandas that is stored as the description of a range.

    None without such an index, without a name of it, and for a footer that cannot be read.
    """
    try:
        footer = _footer(path)
        if _NAMED_RANGE.search(footer) is None:
            return None
        texts = {pair[1]: pair[2] for pair in _Compact(footer).structure(0)[_KEY_VALUES]}
        (index,) = json.loads(texts[b"pandas"])["index_columns"]
        name, values = index["name"], range(index["start"], index["stop"], index["step"])
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError):
        return None
    return (name, values) if isinstance(name, str) else None


def _footer(path: Path) -> bytes:
    """Read the bytes of a footer; raise ValueError if it is longer than the file."""
    with path.open("rb") as file:
        file.seek(-8, 2)
        length = int.from_bytes(file.read(4), "little")
        if length + 8 > file.tell():
            raise ValueError("the footer is longer than the file")
        file.seek(-8 - length, 2)
        return file.read(length)


def held_bytes(path: Path, groups: Groups, names: Iterable[str]) -> int:
    """Count the bytes of columns after decompression, except for one value per row.

    These bytes are the content of pages, and the items of lists and members of structures, which a page can
    repeat at no cost. Raise ValueError if the footer or the header of a page is broken; polars would abort
    the process on invalid numbers.
    """
    names = set(names)
    n_bytes = 0
    try:
        with path.open("rb") as file:
            for group in groups:
                n_values: Counter[str] = Counter()
                for column in (chunk[_META_DATA] for chunk in group[_COLUMNS]):
                    name = column[_PATH][0].decode()
                    if name in names:
                        n_bytes += max(column[_UNCOMPRESSED], sum(_pages(file, column)))
                        n_values[name] += column[_N_VALUES]
                n_bytes += sum(_NUMBER * max(n - group[_N_ROWS], 0) for n in n_values.values())
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError("the footer is not that of a Parquet file") from error
    return n_bytes


def _pages(file: BinaryIO, column: dict[int, Any]) -> Iterator[int]:
    """Yield the decompressed sizes of the pages of a column in a row group; refuse invalid numbers."""
    position, left = column[_DATA_PAGE], column[_N_VALUES]
    if 0 < column.get(_DICTIONARY_PAGE, 0) < position:
        position = column[_DICTIONARY_PAGE]
    while left > 0:
        header, n = _page_header(file, position)
        whole, compressed = header[_PAGE_UNCOMPRESSED], header[_PAGE_COMPRESSED]
        of_data = next((header[kind] for kind in _HEADERS_OF_DATA if kind in header), None)
        of_dictionary = header.get(_HEADER_OF_DICTIONARY)
        numbers = [value for value in (of_data or {}).values() if type(value) is int]
        n_values = 0 if of_data is None else of_data[_PAGE_VALUES]
        n_entries = 0 if of_dictionary is None else of_dictionary[_PAGE_VALUES]
        if min(whole, compressed, *numbers, left - n_values, whole - n_entries, n_entries) < 0:
            raise ValueError("the header of a page has invalid numbers")
        yield whole
        left -= n_values
        position += n + compressed


def _page_header(file: BinaryIO, position: int) -> tuple[dict[int, Any], int]:
    """Read a header, which may contain long texts in its statistics, and its length."""
    if position < 0:
        raise ValueError("a page starts before the file")
    peek = _PEEK
    while True:
        file.seek(position)
        header = _Compact(file.read(peek))
        try:
            return header.structure(0), header.position
        except (IndexError, ValueError) as error:
            if len(header.data) < peek or peek > _LONGEST_HEADER:
                raise ValueError("the header of a page is broken") from error
            peek *= 16


class _Compact:
    """Reader of values in Thrift's compact encoding."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def structure(self, depth: int) -> dict[int, Any]:
        """Read a structure: values by the numbers of their fields."""
        found: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            kind = head & 15
            found[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError("the footer is nested too deeply")
        if kind in _INTEGERS:
            return self._zigzag()
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind == _STRUCT:
            return self.structure(depth + 1)
        if kind in (_LIST, _SET):
            head = self._byte()
            n = head >> 4 if head >> 4 < 15 else self._varint()
            return [self._value(head & 15, depth + 1) for _ in range(self._require(n))]
        if kind == _MAP:
            n = self._require(self._varint())
            kinds = self._byte() if n else 0
            return [
                (self._value(kinds >> 4, depth + 1), self._value(kinds & 15, depth + 1)) for _ in range(n)
            ]
        if kind in (_TRUE, _FALSE, _BYTE):  # a boolean in a list is a byte
            return self._byte()
        if kind == _DOUBLE:
            return self._bytes(8)
        raise ValueError(f"the footer has a value of the unknown type {kind}")

    def _require(self, n: int) -> int:
        """Refuse a number of items that is greater than the number of bytes left."""
        if n > len(self.data) - self.position:
            raise ValueError("the footer is truncated")
        return n

    def _bytes(self, n: int) -> bytes:
        self.position += self._require(n)
        return self.data[self.position - n : self.position]

    def _byte(self) -> int:
        self.position += 1
        return self.data[self.position - 1]

    def _varint(self) -> int:
        byte = self.data[self.position]
        self.position += 1
        value, shift = byte & 0x7F, 7
        while byte >= 0x80 and shift < 64:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
        return value

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
