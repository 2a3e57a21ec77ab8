"""Digest of a run's data, whatever the order of its rows and the engine that held it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import IO, Any, NamedTuple

import narwhals as nw
import numpy as np
import polars as pl

from trackperm.pairing.frame_file import temporary_file
from trackperm.tables.column_types import LISTS, ColumnType

_SLICE = 2**18  # texts that are joined at once
_READ = 2**22  # bytes that are read at once, a multiple of eight
_BYTES = {ColumnType.INTEGER: "<i8", ColumnType.DECIMAL: "<f8", ColumnType.BOOLEAN: "u1"}


def digest(frame: nw.DataFrame[Any], types: Mapping[str, ColumnType]) -> str:
    """SHA-256 of the typed columns of `frame`, whose rows are in canonical order."""
    sha = _begun(len(frame), types)
    for name in sorted(types):
        for section in _sections(frame.get_column(name).to_polars(), types[name]):
            for part in section.parts:
                sha.update(section.written(part))
    return sha.hexdigest()


class DigestOfParts:
    """The same digest of rows that come in parts, which stay in temporary files until all are there.

    Parameters
    ----------
    types : mapping of str to ColumnType
        Types of the columns.
    files : ExitStack
        Closes the files.
    """

    def __init__(self, types: Mapping[str, ColumnType], files: ExitStack) -> None:
        self._types = types
        self._stack = files
        self._n_rows = 0
        self._files: dict[tuple[str, int], tuple[_Section, IO[bytes]]] = {}

    def add(self, frame: nw.DataFrame[Any]) -> None:
        """Add rows that follow those before in canonical order."""
        self._n_rows += len(frame)
        for name in sorted(self._types):
            for i, section in enumerate(_sections(frame.get_column(name).to_polars(), self._types[name])):
                if (name, i) not in self._files:
                    self._files[name, i] = section._replace(parts=()), temporary_file(self._stack)
                for part in section.parts:
                    self._files[name, i][1].write(part)

    def hexdigest(self) -> str:
        """Return the digest of all rows."""
        sha = _begun(self._n_rows, self._types)
        for section, file in self._files.values():
            file.seek(0)
            while part := file.read(_READ):
                sha.update(section.written(part))
        return sha.hexdigest()


class _Section(NamedTuple):
    """Bytes of one kind, those of later rows behind those of earlier ones."""

    parts: Iterable[bytes]
    is_flags: bool = False  # each byte is 0 or 1, and eight are written as one

    def written(self, part: bytes) -> bytes:
        return np.packbits(np.frombuffer(part, dtype=np.uint8)).tobytes() if self.is_flags else part


def _begun(n_rows: int, types: Mapping[str, ColumnType]) -> hashlib._Hash:
    header = [n_rows, *([name, types[name].value] for name in sorted(types))]
    return hashlib.sha256(json.dumps(header).encode())


def _sections(values: pl.Series, type_: ColumnType) -> list[_Section]:
    if type_ is ColumnType.TEXT:
        return _texts(values)
    if type_ not in LISTS:
        return _numbers(values, _BYTES[type_])
    lengths = values.list.len()
    items = values.filter(lengths > 0).explode()
    of_items = _texts(items) if items.dtype == pl.String else _numbers(items, "<i8")
    return [_lengths(lengths), *of_items]


def _lengths(lengths: pl.Series) -> _Section:
    """Lengths, -1 where there is nothing to be long."""
    return _Section([lengths.cast(pl.Int64).fill_null(-1).to_numpy().astype("<i8").tobytes()])


def _texts(texts: pl.Series) -> list[_Section]:
    """How long texts are, and then the texts end to end."""
    joined = (
        str(part.to_series().str.join("").item()).encode() for part in texts.to_frame().iter_slices(_SLICE)
    )
    return [_lengths(texts.str.len_bytes()), _Section(joined)]


def _numbers(values: pl.Series, dtype: str) -> list[_Section]:
    """Which values are null, and then the others."""
    present = values.drop_nulls().to_numpy().astype(dtype)
    if dtype == "<f8":
        present = present + 0  # -0.0 is 0.0
    return [_Section([values.is_null().to_numpy().tobytes()], is_flags=True), _Section([present.tobytes()])]
