"""A reverse proxy before a real server that can refuse, drop and lose requests, as networks do."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Literal
from urllib.parse import urlsplit

Fate = Literal["pass", "challenge", "refuse", "cut", "lose", "break off"]
"""What becomes of a request: answered; 401; 403; never delivered; delivered, and its answer lost, or all of
its answer but the head."""


class FaultyProxy:
    """Passes requests on to `target`; `fate` may decide otherwise, seeing method and path.

    Attributes
    ----------
    fate : callable
        Called for every request, one at a time.
    writes : list of str
        Method and path of every request that would change something.
    """

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target).netloc
        self._lock = threading.Lock()
        self.fate: Callable[[str, str], Fate] = lambda method, path: "pass"
        self.writes: list[str] = []
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # headers and body are two packets, the second of which else waits

            def handle_any(self) -> None:
                proxy._handle(self)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.uri = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> FaultyProxy:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handle(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        with self._lock:
            if is_write(request.command, request.path):
                self.writes.append(f"{request.command} {request.path}")
            fate = self.fate(request.command, request.path)
        if fate == "cut":
            request.close_connection = True
            return
        if fate in ("challenge", "refuse"):
            status, said = (401, b"Who are you?") if fate == "challenge" else (403, b"Permission denied")
            self._answer(request, status, [("Content-Type", "text/plain")], said)
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
        self._answer(request, answer.status, answer.getheaders(), content)

    @staticmethod
    def _answer(
        request: BaseHTTPRequestHandler, status: int, headers: list[tuple[str, str]], content: bytes
    ) -> None:
        request.send_response(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                request.send_header(name, value)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)


def is_write(method: str, path: str) -> bool:
    """Whether a request changes something in MLflow: searches are POSTs too."""
    return method in ("PUT", "PATCH", "DELETE") or (method == "POST" and "/search" not in path)
