"""Files that are written whole or not at all, and what is said where a disk is full."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trackperm.errors import StorageError
from trackperm.messages import printable

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_full(error: BaseException) -> bool:
    """Whether a file could not be written for lack of room: of a disk, a quota, or the size of a file."""
    return isinstance(error, OSError) and error.errno in _FULL


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, all of it or nothing; what is no regular file, such as a pipe, is written to as it is.

    Raises
    ------
    StorageError
        If it cannot be written; what stood there before still does.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        target = path.resolve()
        draft = target.with_name(f".{target.name[:200]}.{os.getpid()}.draft")
        try:
            draft.write_bytes(content)
            if target.exists():
                shutil.copymode(target, draft)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise cannot_be_written(path, error) from error


def cannot_be_written(path: Path | str, error: OSError) -> StorageError:
    """Describe a file that could not be written."""
    hint = "name a file in a folder that is there and that you may write to."
    if is_full(error):
        hint = "its disk is full, or a limit on it is reached: make room, or name a file elsewhere."
    return StorageError(f"`{printable(path)}` cannot be written: {error.strerror or error}", hint=hint)


@contextmanager
def standard_output() -> Iterator[None]:
    """Say so where standard output takes no more; that its reader has ended is passed on.

    Raises
    ------
    StorageError
        If it takes no more.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(
            f"standard output cannot be written: {error.strerror or error}",
            hint="it is redirected to a file on a full disk perhaps.",
        ) from error


@contextmanager
def temporary_files() -> Iterator[None]:
    """Name the folder of temporary files where it has no room for what is written within.

    Raises
    ------
    StorageError
        If it has none.
    """
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        if not is_full(error):
            raise
        raise no_room_for_temporary_files(error) from error


def no_room_for_temporary_files(error: BaseException) -> StorageError:
    """Describe a temporary file for which there is no room."""
    return StorageError(
        f"temporary files in `{tempfile.gettempdir()}` cannot be written:"
        f" {getattr(error, 'strerror', None) or error}",
        hint="the environment variable `TMPDIR` names a folder that has room for them.",
    )
