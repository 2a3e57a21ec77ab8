"""Decompressed sizes of Arrow IPC files, read from the metadata of their messages.

Metadata are FlatBuffers of the tables `Footer`, `Message` and `RecordBatch` of Arrow's format; only the
fields named here are read.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_MAGIC = b"ARROW1"
_CONTINUATION = 0xFFFFFFFF
_DICTIONARIES, _RECORD_BATCHES = 2, 3  # fields of a footer
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3  # of a message
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3  # types of its header
_DATA = 1  # of a dictionary batch
_BUFFERS, _COMPRESSION = 2, 3  # of a record batch
_BLOCK, _BUFFER = struct.Struct("<qixxxxq"), struct.Struct("<qq")


def held_bytes(path: Path) -> int:
    """Count the bytes of all batches of a file or stream after decompression.

    Raise ValueError if the file is broken.
    """
    left = path.stat().st_size  # if all metadata exceed the file, some overlap
    n_bytes = 0
    with path.open("rb") as file:
        try:
            for metadata, body in _messages(file):
                left -= len(metadata)
                if left < 0:
                    raise ValueError("its messages overlap")
                n_bytes += _of_message(file, metadata, body)
        except (struct.error, OverflowError) as error:
            raise ValueError("its metadata are cut") from error
    return n_bytes


def _messages(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Yield metadata and body of batches: those in the footer of a file, and all messages of a stream."""
    size = file.seek(0, 2)
    file.seek(0)
    if file.read(len(_MAGIC)) == _MAGIC:
        end = max(size - len(_MAGIC) - 4, 0)
        file.seek(end)
        (length,) = struct.unpack("<i", file.read(4))
        if not 0 <= length <= end:
            raise ValueError("its footer is cut")
        file.seek(end - length)
        footer = _Table.root(file.read(length))
        for number in (_DICTIONARIES, _RECORD_BATCHES):
            for start, _, _ in footer.structures(number, _BLOCK):
                yield _metadata(file, start)
        return
    start = 0
    while start + 8 <= size:
        metadata, body = _metadata(file, start)
        if not metadata:
            return
        yield metadata, body
        start = body + max(_Table.root(metadata).integer(_BODY_LENGTH, "<q"), 0)


def _metadata(file: BinaryIO, start: int) -> tuple[bytes, int]:
    """Return the metadata of a message, and the position of its body."""
    if start < 0:
        raise ValueError("a message starts before the file")
    file.seek(start)
    mark, length = struct.unpack("<Ii", file.read(8))
    if mark != _CONTINUATION:  # Arrow before 0.15 wrote none
        file.seek(start + 4)
        length = mark
    if not 0 <= length <= os.fstat(file.fileno()).st_size:
        raise ValueError("a message is longer than the file")
    metadata = file.read(length)
    return metadata, file.tell()


def _of_message(file: BinaryIO, metadata: bytes, body: int) -> int:
    message = _Table.root(metadata)
    kind, batch = message.integer(_HEADER_TYPE, "<B"), message.table(_HEADER)
    if kind == _DICTIONARY_BATCH and batch is not None:
        batch = batch.table(_DATA)
    if kind not in (_DICTIONARY_BATCH, _RECORD_BATCH) or batch is None:
        return 0
    is_compressed = batch.table(_COMPRESSION) is not None
    n_bytes = 0
    for offset, length in batch.structures(_BUFFERS, _BUFFER):
        if is_compressed and length >= 8:
            file.seek(body + max(offset, 0))
            (whole,) = struct.unpack("<q", file.read(8))
            n_bytes += length if whole < 0 else whole
        else:
            n_bytes += max(length, 0)
    return n_bytes


class _Table:
    """Table of a FlatBuffer, whose fields have numbers."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position
        self._fields = position - self._read("<i", position)

    @classmethod
    def root(cls, data: bytes) -> _Table:
        return cls(data, struct.unpack_from("<I", data)[0])

    def integer(self, number: int, layout: str) -> int:
        place = self._place(number)
        return self._read(layout, place) if place else 0

    def table(self, number: int) -> _Table | None:
        place = self._place(number)
        return _Table(self._data, place + self._read("<I", place)) if place else None

    def structures(self, number: int, layout: struct.Struct) -> Iterator[tuple[int, ...]]:
        place = self._place(number)
        if not place:
            return
        vector = place + self._read("<I", place)
        n = self._read("<I", vector)
        if vector + 4 + n * layout.size > len(self._data):
            raise ValueError("a list in its metadata is cut")
        for i in range(n):
            yield layout.unpack_from(self._data, vector + 4 + i * layout.size)

    def _place(self, number: int) -> int:
        """Return the position of a field, or 0 where the table lacks it."""
        entry = 4 + 2 * number
        if self._fields < 0 or entry >= self._read("<H", self._fields):
            return 0
        offset = self._read("<H", self._fields + entry)
        return self._position + offset if offset else 0

    def _read(self, layout: str, position: int) -> int:
        value: int
        (value,) = struct.unpack_from(layout, self._data, position)
        return value
