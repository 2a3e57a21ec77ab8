"""Footers of Parquet files, which say what columns hold before anything of them is decompressed.

A footer is Thrift's compact encoding of the structure `FileMetaData` of parquet-format; of its fields only
those are kept that are named here.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

_ROW_GROUPS, _COLUMNS, _N_ROWS, _META_DATA = 4, 1, 3, 3
_PATH, _N_VALUES, _UNCOMPRESSED = 3, 5, 6
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 11, 12
_INTEGERS = (4, 5, 6)
_DEEPEST = 20  # `FileMetaData` is no deeper than 8
_NUMBER = 16  # bytes of a value in polars, at most, but for what a text holds


def held_bytes(path: Path) -> Counter[str]:
    """Count the bytes that each column of a file comes to, decompressed, apart from one value for every row.

    That is what its pages hold, and the items of its lists and the members of its structures, which pages
    may repeat at no cost.

    Raises
    ------
    ValueError
        If the footer is broken.
    """
    with path.open("rb") as file:
        file.seek(-8, 2)
        length = int.from_bytes(file.read(4), "little")
        if length + 8 > file.tell():
            raise ValueError("the footer is longer than the file")
        file.seek(-8 - length, 2)
        footer = _Compact(file.read(length))
    held: Counter[str] = Counter()
    try:
        for group in footer.structure(0)[_ROW_GROUPS]:
            n_values: Counter[str] = Counter()
            for chunk in group[_COLUMNS]:
                column = chunk[_META_DATA]
                name = column[_PATH][0].decode()
                held[name] += column[_UNCOMPRESSED]
                n_values[name] += column[_N_VALUES]
            for name, n in n_values.items():
                held[name] += _NUMBER * max(n - group[_N_ROWS], 0)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError("the footer is not that of a Parquet file") from error
    return held


class _Compact:
    """Values in Thrift's compact encoding, one after the other."""

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
        if kind in (_TRUE, _FALSE, _BYTE):  # booleans are bytes within lists
            return self._byte()
        if kind == _DOUBLE:
            return self._bytes(8)
        raise ValueError(f"the footer has a value of the unknown type {kind}")

    def _require(self, n: int) -> int:
        """Refuse more items than there are bytes."""
        if n > len(self.data) - self.position:
            raise ValueError("the footer is cut")
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
