"""Small stand-ins for web APIs that speak JSON."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Asked:
    """A request.

    Attributes
    ----------
    method, path : str
        Of the request; the path with its query.
    headers : Message
        Found in any case.
    data : object
        The body, decoded; an empty mapping where there is none.
    """

    method: str
    path: str
    headers: Message
    data: Any


Answer = tuple[int, Any] | tuple[int, Any, Mapping[str, str]]
"""Status, content and, if need be, headers."""


@contextmanager
def json_api(answer: Callable[[Asked], Answer]) -> Iterator[str]:
    """Answer on the loopback interface; yields the address."""

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = Asked(self.command, self.path, self.headers, json.loads(content or "{}"))
            status, data, *headers = answer(asked)
            body = json.dumps(data).encode()
            self.send_response(status)
            for name, value in {**dict(*headers), "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_PATCH = _handle

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(10)
