"""Frames that are kept in a temporary file until they are needed."""

from __future__ import annotations

import io
import tempfile
from contextlib import ExitStack
from typing import IO

import polars as pl

Place = tuple[int, int]
"""Where a frame begins, and its length."""


def temporary_file(files: ExitStack) -> IO[bytes]:
    """Open a file that is gone when `files` are closed."""
    return files.enter_context(tempfile.TemporaryFile())


class FrameFile:
    """Frames in a temporary file that is gone when `files` are closed."""

    def __init__(self, files: ExitStack) -> None:
        self._file = temporary_file(files)

    def write(self, frame: pl.DataFrame) -> Place:
        """Append a frame."""
        start = self._file.seek(0, io.SEEK_END)
        frame.write_ipc_stream(self._file)
        return start, self._file.tell() - start

    def read(self, place: Place) -> pl.DataFrame:
        """Read what was written at `place`."""
        start, length = place
        self._file.seek(start)
        return pl.read_ipc_stream(io.BytesIO(self._file.read(length)))
