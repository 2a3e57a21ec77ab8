"""Limits on what files may hold once they are expanded: a few kilobytes can be made to hold terabytes."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from trackperm.errors import SourceError
from trackperm.settings import positive_setting

VARIABLE = "TRACKPERM_EXPANDED_MB"
"""Environment variable with the megabytes that one file may hold."""

MEGABYTES = 1024
"""What it is by default."""

COLUMNAR_RATIO = 64
"""Times its own size that a large file of columns may hold: Parquet and Arrow repeat a value at no cost."""

TEXT_BYTES = 64
"""What a text of a NumPy array takes as an object of Python."""

CELL_BYTES = 24
"""What a value of a table takes while it is read, at least, also where an object lacks the member."""

MOST_COLUMNS = 100_000
"""Columns of a text, each of which takes a kilobyte, however little it holds."""

_CHUNK = 2**20
_MEMBER_CHUNK = 2**12  # compressed bytes, of which some methods make any number at once


def require_columns(n_columns: int, origin: str) -> None:
    """Refuse a table of more columns than any has.

    Raises
    ------
    SourceError
        If `n_columns` are too many.
    """
    if n_columns > MOST_COLUMNS:
        raise SourceError(
            f"`{origin}` has {n_columns:,} columns, and at most {MOST_COLUMNS:,} can be read",
            hint="is it a table with one row an example?",
        )


@dataclass(frozen=True)
class Expansion:
    """The limit for one file.

    Attributes
    ----------
    origin : str
        What messages call the file.
    most_bytes : int
        What it may hold.
    """

    origin: str
    most_bytes: int

    @classmethod
    def of(cls, origin: str) -> Expansion:
        """Return the limit that the environment sets.

        Raises
        ------
        InputError
            If the environment variable is not a positive number.
        """
        return cls(origin, positive_setting(VARIABLE, MEGABYTES) * 2**20)

    @classmethod
    def of_columns(cls, origin: str, *paths: Path) -> Expansion:
        """Return the limit for files of columns, which is greater where the files themselves are large."""
        limit = cls.of(origin)
        size = sum(path.stat().st_size for path in paths)
        return cls(origin, max(limit.most_bytes, COLUMNAR_RATIO * size))

    def require(self, n_bytes: int) -> None:
        """Refuse a file that holds more.

        Raises
        ------
        SourceError
            If `n_bytes` are too many; the message says the limit and what raises it.
        """
        if n_bytes > self.most_bytes:
            raise SourceError(
                f"`{self.origin}` is compressed, and holds more than {self.most_bytes / 2**20:,.0f} MB",
                hint=f"`{VARIABLE}={2 * self.most_bytes // 2**20}` in the environment raises the limit, for"
                " example.",
            )

    def require_dense(self, n_rows: int, n_columns: int, n_values: int) -> None:
        """Refuse objects whose table would be large, and almost empty, since each has members of its own.

        Raises
        ------
        SourceError
            If it is.
        """
        n_cells = n_rows * n_columns
        if n_cells * CELL_BYTES > self.most_bytes and n_cells > COLUMNAR_RATIO * n_values:
            raise SourceError(
                f"`{self.origin}` has {n_columns:,} names of members in {n_rows:,} objects, of which one has"
                f" {n_values / n_rows:.0f}: their table, almost empty, takes more than"
                f" {self.most_bytes / 2**20:,.0f} MB",
                hint="give every object the same members; a name is that of a column, and no value.",
            )

    def inflated(self, compressed: BinaryIO) -> Iterator[bytes]:
        """Decompress gzip in chunks.

        Raises
        ------
        SourceError
            If there is more than the limit.
        gzip.BadGzipFile, EOFError, zlib.error
            If it is broken.
        """
        n_bytes = 0
        with gzip.open(compressed) as stream:
            while chunk := stream.read(_CHUNK):
                n_bytes += len(chunk)
                self.require(n_bytes)
                yield chunk

    def member(self, archive: zipfile.ZipFile, name: str) -> bytes:
        """Read one member of an archive.

        Raises
        ------
        SourceError
            If it holds more than the limit.
        Exception
            Of whichever library decompresses, if the member is broken.
        """
        parts, n_bytes = [], 0
        with archive.open(name) as stream:
            while chunk := stream.read(_MEMBER_CHUNK):
                n_bytes += len(chunk)
                self.require(n_bytes)
                parts.append(chunk)
        return b"".join(parts)
