"""Small stand-ins for web APIs that speak JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from typing import Any

from support.web_server import QuietHandler, serving


@dataclass(frozen=True)
class Asked:
    """A request; `path` has its query, and `data` is the decoded body."""

    method: str
    path: str
    headers: Message
    data: Any


Answer = tuple[int, Any] | tuple[int, Any, Mapping[str, str]]
"""Status, content and, if need be, headers."""


@contextmanager
def json_api(answer: Callable[[Asked], Answer]) -> Iterator[str]:
    """Answer on the loopback interface; yields the address."""

    class Handler(QuietHandler):
        def _handle(self) -> None:
            asked = Asked(self.command, self.path, self.headers, json.loads(self.content() or "{}"))
            status, data, *headers = answer(asked)
            self.answer(status, dict(*headers), json.dumps(data).encode())

        do_GET = do_POST = do_PUT = do_PATCH = _handle

    with serving(Handler) as url:
        yield url
