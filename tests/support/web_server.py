"""Web servers of tests, on the loopback interface."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class QuietHandler(BaseHTTPRequestHandler):
    """Handles requests and writes no line about them."""

    def log_message(self, *_: object) -> None:
        pass

    def content(self) -> bytes:
        """Read the body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, status: int, headers: Mapping[str, str], body: bytes, cut: int = 0) -> None:
        """Answer with a body, of which the last bytes may be cut."""
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[: len(body) - cut])


@contextmanager
def serving(handler: type[QuietHandler], *state: Any) -> Iterator[str]:
    """Let a handler, which is made with `state`, answer in threads; yields the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, *state)) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(10)
