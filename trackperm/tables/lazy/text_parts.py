"""Large text files: they are copied in parts to temporary Parquet files, which are read by column."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import polars as pl

from trackperm.errors import SourceError
from trackperm.storage import temporary_files
from trackperm.tables.lazy.scan import Scan

LARGE = 2**25
"""Bytes of a text file above which it is copied: reading it at once takes about ten times as much memory."""

_PART = (
    2**23
)  # bytes read at once, up to the end of their last line: few enough for the cache, and 40 ms of work


def scan_parts(path: Path, read: Callable[[bytes, bool], pl.DataFrame | None], origin: str) -> Scan | None:
    """Copy a text file, part by part, to temporary Parquet files, which are removed with the last reference.

    Every row ends at the end of a line. `read` receives the bytes of a part and whether it is the first, and
    returns its rows, with the same columns for each part. If it returns None, because it cannot read them, so
    does this function. Raise StorageError if the disk of temporary files is full.
    """
    folder = _Folder()
    parts: list[Path] = []
    for data in _parts(path):
        frame = read(data, not parts)
        if frame is None:
            return None
        parts.append(folder.path / f"{len(parts)}.parquet")
        with temporary_files():
            frame.write_parquet(parts[-1], compression="lz4")
    return scan_copied(parts, folder, origin)


def scan_copied(parts: list[Path], folder: object, origin: str) -> Scan:
    """Scan Parquet files that were written to a temporary folder."""
    lazy = pl.scan_parquet(parts, glob=False, hive_partitioning=False)
    return Scan(lazy, partial(_unreadable, origin), folder, parquet=tuple(parts))


class _Folder:
    """A temporary folder, removed with the last reference to it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="trackperm-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _parts(path: Path) -> Iterator[bytes]:
    """Yield parts of a file, each of which ends at the end of a line."""
    with path.open("rb") as file:
        while data := file.read(_PART):
            yield data + file.readline()


def _unreadable(origin: str, error: BaseException) -> SourceError:
    return SourceError(
        f"the temporary copy of `{origin}` cannot be read: {error}",
        hint="something removed it from the folder of temporary files; run the command again.",
    )
