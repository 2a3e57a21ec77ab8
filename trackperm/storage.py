"""Atomic writing of files, and errors of full disks."""

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
    """Whether an error is a full disk, an exhausted quota or a limit on the size of a file."""
    return isinstance(error, OSError) and error.errno in _FULL


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically; other than regular files, such as pipes, are written directly.

    Raises
    ------
    StorageError
        If it cannot be written; an existing file stays unchanged.
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
    hint = "name a file in an existing folder in which you may write."
    if is_full(error):
        hint = "the disk is full, or a quota is exhausted: free space, or name a file on another disk."
    return StorageError(f"`{printable(path)}` cannot be written: {error.strerror or error}", hint=hint)


@contextmanager
def standard_output() -> Iterator[None]:
    """Replace errors of writing to standard output by a StorageError; a broken pipe is raised unchanged."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(
            f"standard output cannot be written: {error.strerror or error}",
            hint="it may be redirected to a file on a full disk.",
        ) from error


@contextmanager
def temporary_files() -> Iterator[None]:
    """Replace errors of a full disk by a StorageError that names the folder of temporary files."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        if not is_full(error):
            raise
        raise no_room_for_temporary_files(error) from error


def no_room_for_temporary_files(error: BaseException) -> StorageError:
    """Describe a temporary file that does not fit on its disk."""
    return StorageError(
        f"temporary files in `{tempfile.gettempdir()}` cannot be written:"
        f" {getattr(error, 'strerror', None) or error}",
        hint="set the environment variable `TMPDIR` to a folder with more space.",
    )
