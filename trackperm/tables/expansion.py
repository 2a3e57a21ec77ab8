"""Limits on the expanded size of files: a file of a few kilobytes can expand to terabytes."""

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
"""Environment variable with the limit for one file, in megabytes."""

MEGABYTES = 1024
"""Default limit, in megabytes."""

COLUMNAR_RATIO = 64
"""Largest ratio of expanded to stored size for large files of columns.

Parquet and Arrow store a repeated value at almost no cost, so that high ratios occur in ordinary files.
"""

TEXT_BYTES = 64
"""Approximate bytes of a Python string, which each text of a NumPy array becomes."""

CELL_BYTES = 24
"""Fewest bytes that a value of a table takes while it is read, even if an object lacks the member."""

MOST_COLUMNS = 100_000
"""Most columns of a text file: each takes at least a kilobyte of memory, even if it is almost empty."""

_CHUNK = 2**20
_MEMBER_CHUNK = 2**12  # bytes read at once: some compression methods expand a few bytes to any number


def require_columns(n_columns: int, origin: str) -> None:
    """Refuse a table of more than :data:`MOST_COLUMNS` columns.

    Raise SourceError if `n_columns` is larger.
    """
    if n_columns > MOST_COLUMNS:
        raise SourceError(
            f"`{origin}` has {n_columns:,} columns; expected at most {MOST_COLUMNS:,}",
            hint="is it a table with one row per example?",
        )


@dataclass(frozen=True)
class Expansion:
    """Limit on the expanded size of one file.

    Attributes
    ----------
    origin : str
        Name of the file in messages.
    most_bytes : int
        Largest expanded size, in bytes.
    """

    origin: str
    most_bytes: int

    @classmethod
    def of(cls, origin: str) -> Expansion:
        """Return the limit that the environment sets.

        Raise InputError if the environment variable is not a positive number.
        """
        return cls(origin, positive_setting(VARIABLE, MEGABYTES) * 2**20)

    @classmethod
    def of_columns(cls, origin: str, *paths: Path) -> Expansion:
        """Return the limit for columnar files, which is higher if the files themselves are large."""
        limit = cls.of(origin)
        size = sum(path.stat().st_size for path in paths)
        return cls(origin, max(limit.most_bytes, COLUMNAR_RATIO * size))

    def require(self, n_bytes: int) -> None:
        """Refuse a file whose expanded size exceeds the limit.

        Raise SourceError if `n_bytes` exceeds the limit; the hint names the variable that sets the limit.
        """
        if n_bytes > self.most_bytes:
            raise SourceError(
                f"`{self.origin}` has more than {self.most_bytes / 2**20:,.0f} MB after decompression",
                hint=f"`{VARIABLE}={2 * self.most_bytes // 2**20}` raises the limit, for example.",
            )

    def require_dense(self, n_rows: int, n_columns: int, n_values: int) -> None:
        """Refuse objects whose table would be large but almost empty, because each has different members.

        Raise SourceError if the table would exceed the limit, and most of its cells would be empty.
        """
        n_cells = n_rows * n_columns
        if n_cells * CELL_BYTES > self.most_bytes and n_cells > COLUMNAR_RATIO * n_values:
            raise SourceError(
                f"`{self.origin}` has {n_columns:,} different members in {n_rows:,} objects, on average"
                f" {n_values / n_rows:.0f} in each; their table, almost empty, takes more than"
                f" {self.most_bytes / 2**20:,.0f} MB",
                hint="give every object the same members; their names become column names.",
            )

    def inflated(self, compressed: BinaryIO) -> Iterator[bytes]:
        """Decompress gzip in chunks.

        Raise SourceError if the decompressed size exceeds the limit, and gzip.BadGzipFile, EOFError,
        zlib.error if the compressed data are broken.
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
            If its decompressed size exceeds the limit.
        Exception
            An error of the library that decompresses, if the member is broken.
        """
        parts, n_bytes = [], 0
        with archive.open(name) as stream:
            while chunk := stream.read(_MEMBER_CHUNK):
                n_bytes += len(chunk)
                self.require(n_bytes)
                parts.append(chunk)
        return b"".join(parts)
