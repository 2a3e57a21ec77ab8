"""Decision log of watchers, receivers and workers: one JSON object per line, without secrets."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime, timezone
from typing import Any, TextIO

from trackperm.messages import without_secrets
from trackperm.storage import standard_output

_LONGEST = 2000


class DecisionLog:
    """Writer of decisions, one line each.

    Parameters
    ----------
    stream : file, optional
        Stream to write to; by default standard output.
    broken : callable, optional
        Called when a line cannot be written, instead of raising the error.
    **always
        Facts that every line contains.

    Attributes
    ----------
    failure : Exception or None
        Error of the last failed write, if `broken` is given.

    Examples
    --------
    >>> log = DecisionLog(policy="nightly")
    >>> log("compared", outcome="pass")  # doctest: +ELLIPSIS
    {"time": "...", "event": "compared", "policy": "nightly", "outcome": "pass"}
    """

    def __init__(
        self, stream: TextIO | None = None, *, broken: Callable[[], object] | None = None, **always: Any
    ) -> None:
        self.failure: Exception | None = None
        self._stream = stream
        self._broken = broken
        self._always = always
        self._lock = threading.Lock()

    def __call__(self, event: str, **facts: Any) -> None:
        """Write one line, without facts that are None, and without secrets in text.

        Facts are text, numbers, and lists of these. If the encoding of the stream lacks a character, the line
        is written with escapes. Raise OSError or ValueError if the line cannot be written and `broken` is not
        given.
        """
        moment = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        stream = sys.stdout if self._stream is None else self._stream
        if stream is None:  # a process without standard output
            return
        said = {"time": moment, "event": event, **self._always, **facts}
        said = {name: _clean(value) for name, value in said.items() if value is not None}
        line = json.dumps(said, ensure_ascii=False)
        try:
            line.encode(stream.encoding or "utf-8")
        except UnicodeEncodeError:
            line = json.dumps(said)
        try:
            with self._lock, standard_output() if stream is sys.stdout else nullcontext():
                stream.write(f"{line}\n")
                stream.flush()
        except (OSError, ValueError) as error:  # ValueError if the stream is closed
            if self._broken is None:
                raise
            self.failure = error
            self._broken()


def scrubbed(text: str) -> str:
    """Return `text` without secrets, cut to 2,000 characters."""
    text = without_secrets(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return scrubbed(value)
    return [_clean(each) for each in value] if isinstance(value, list | tuple) else value
