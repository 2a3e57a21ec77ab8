"""A reverse proxy before a real server that can refuse, drop and lose requests, as networks do."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal
from urllib.parse import urlsplit

from support.web_server import QuietHandler, serving

Fate = Literal["pass", "challenge", "refuse", "cut", "lose", "break off"]
"""What becomes of a request: answered; 401; 403; never delivered; delivered, and its answer lost, or all of
its answer but the head."""


class FaultyProxy:
    """Passes requests on to `target`, unless `fate` decides otherwise; notes what would change something."""

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target).netloc
        self._lock = threading.Lock()
        self.fate: Callable[[str, str], Fate] = lambda method, path: "pass"
        self.writes: list[str] = []
        self.uri = ""

    def handle(self, request: _Handler) -> None:
        body = request.content()
        with self._lock:
            if is_write(request.command, request.path):
                self.writes.append(f"{request.command} {request.path}")
            fate = self.fate(request.command, request.path)
        if fate == "cut":
            request.close_connection = True
            return
        if fate in ("challenge", "refuse"):
            status, said = (401, b"Who are you?") if fate == "challenge" else (403, b"Permission denied")
            request.answer(status, {"Content-Type": "text/plain"}, said)
            return
        connection = http.client.HTTPConnection(self._target, timeout=60)
        try:
            headers = {name: value for name, value in request.headers.items() if name.lower() != "host"}
            connection.request(request.command, request.path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if fate == "lose":
            request.close_connection = True
            return
        if fate == "break off":
            request.close_connection = True
            request.send_response(answer.status)
            request.send_header("Content-Length", str(len(content) + 2))
            request.end_headers()
            return
        own = ("content-length", "transfer-encoding", "connection", "date", "server")
        kept = {name: value for name, value in answer.getheaders() if name.lower() not in own}
        request.answer(answer.status, kept, content)


class _Handler(QuietHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two packets, the second of which else waits

    def __init__(self, proxy: FaultyProxy, *arguments: Any) -> None:
        self._proxy = proxy
        super().__init__(*arguments)

    def _pass(self) -> None:
        self._proxy.handle(self)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass


@contextmanager
def faulty_proxy(target: str) -> Iterator[FaultyProxy]:
    """Let a proxy before `target` answer."""
    proxy = FaultyProxy(target)
    with serving(_Handler, proxy) as proxy.uri:
        yield proxy


def is_write(method: str, path: str) -> bool:
    """Whether a request changes something in MLflow: searches are POSTs too."""
    return method in ("PUT", "PATCH", "DELETE") or (method == "POST" and "/search" not in path)
