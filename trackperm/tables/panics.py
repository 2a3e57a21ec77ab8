"""Panics of polars, which Rust prints before Python sees them."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STDERR = 2  # of the process, which `sys.stderr` need not be
_PANIC = re.compile(
    rb"\n?thread '[^'\n]*' (?:\(\d+\) )?panicked at .*?"
    rb"(?:\nnote: [^\n]*RUST_BACKTRACE[^\n]*\n|(?=\n?thread '|\Z))",
    re.DOTALL,
)


class _Redirection:
    """Standard error of the process, in a file for as long as somebody reads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._kept = self._written = -1
        self._name = ""

    def enter(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth > 1:
                return
            try:
                self._kept = os.dup(_STDERR)
            except OSError:  # there is none
                return
            self._written, self._name = tempfile.mkstemp(prefix="trackperm-")
            if sys.stderr is not None:
                sys.stderr.flush()
            os.dup2(self._written, _STDERR)

    def leave(self) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth or self._written < 0:
                return
            if sys.stderr is not None:
                sys.stderr.flush()
            os.dup2(self._kept, _STDERR)
            os.close(self._kept)
            os.close(self._written)
            rest = _PANIC.sub(b"", Path(self._name).read_bytes())
            Path(self._name).unlink()
            self._written = -1
            while rest:
                rest = rest[os.write(_STDERR, rest) :]


_REDIRECTION = _Redirection()


@contextmanager
def panics_unprinted() -> Iterator[None]:
    """Keep what is printed of a panic from the user; all else on standard error comes a moment later."""
    _REDIRECTION.enter()
    try:
        yield
    finally:
        _REDIRECTION.leave()
