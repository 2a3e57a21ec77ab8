"""Suppression of the messages that polars prints when it panics, before Python gets the exception."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

_STDERR = 2  # file descriptor of the process, to which `sys.stderr` may not write
_PANIC = re.compile(
    rb"\n?thread '[^'\n]*' (?:\(\d+\) )?panicked at .*?"
    rb"(?:\nnote: [^\n]*RUST_BACKTRACE[^\n]*\n|(?=\n?thread '|\Z))",
    re.DOTALL,
)


class _Redirection:
    """Redirection of the process's standard error to a temporary file during reads, if it can be created."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._kept = -1
        self._written: BinaryIO | None = None

    def enter(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth > 1:
                return
            with suppress(OSError):  # standard error or the folder for temporary files is missing
                written = tempfile.TemporaryFile(prefix="trackperm-")  # noqa: SIM115  # closed by `leave`
                try:
                    self._kept = os.dup(_STDERR)
                except OSError:
                    written.close()
                    raise
                self._written = written
                _flush()
                os.dup2(written.fileno(), _STDERR)

    def leave(self) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth or self._written is None:
                return
            _flush()
            os.dup2(self._kept, _STDERR)
            os.close(self._kept)
            with self._written as written:
                written.seek(0)
                rest = _PANIC.sub(b"", written.read())
            self._written = None
            with suppress(OSError):  # the reader of standard error has gone
                while rest:
                    rest = rest[os.write(_STDERR, rest) :]


def _flush() -> None:
    if sys.stderr is not None:
        with suppress(OSError, ValueError):  # it is full, or closed
            sys.stderr.flush()


_REDIRECTION = _Redirection()


@contextmanager
def panics_unprinted() -> Iterator[None]:
    """Suppress messages of panics; all other output to standard error is written at the end."""
    _REDIRECTION.enter()
    try:
        yield
    finally:
        _REDIRECTION.leave()
