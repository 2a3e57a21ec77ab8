"""Health of a watcher, for supervisors: a file, or an endpoint on the loopback interface."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from trackperm.errors import HealthError, InputError

_READ_SECONDS = 10


class Health:
    """Last state that a watcher reported, also in a `file` whose age shows whether the watcher runs.

    A watcher is unhealthy after `patience` seconds without a report, or with reports of failures only.
    """

    def __init__(self, patience: float, file: Path | None = None) -> None:
        self._patience = patience
        self._file = file
        self._lock = threading.Lock()
        self._alive = self._good = time.monotonic()
        self._facts: dict[str, Any] = {}

    def beat(self, *, is_good: bool, **facts: Any) -> None:
        """Record a report: whether every tracker answered, and further facts.

        Raise HealthError if the file cannot be written.
        """
        with self._lock:
            self._alive = time.monotonic()
            if is_good:
                self._good = self._alive
            self._facts = facts
        if self._file is not None:
            draft = self._file.with_name(f".{self._file.name}.draft")
            try:
                draft.write_text(json.dumps(self.report()) + "\n", encoding="utf-8")
                draft.replace(self._file)
            except OSError as error:
                raise HealthError(
                    f"the health file `{self._file}` cannot be written: {error.strerror or error}",
                    hint="`--health FILE` names another.",
                ) from error

    def report(self) -> dict[str, Any]:
        """Return the last report with its state: ``ok``, ``failing`` (trackers fail) or ``stalled``."""
        now = time.monotonic()
        with self._lock:
            state = "ok" if now - self._good <= self._patience else "failing"
            state = state if now - self._alive <= self._patience else "stalled"
            moment = datetime.now(timezone.utc).isoformat(timespec="seconds")
            return {"state": state, "time": moment, **self._facts}


@contextmanager
def endpoint(health: Health, port: int) -> Iterator[int]:
    """Answer ``GET /health`` on the loopback interface: 200 if healthy, else 503; yields the port.

    Raise InputError if the port is in use.
    """

    class Handler(BaseHTTPRequestHandler):
        timeout = _READ_SECONDS

        def do_GET(self) -> None:
            report = health.report()
            body = json.dumps(report).encode()
            known = self.path.partition("?")[0] in ("/health", "/healthz")
            self.send_response((200 if report["state"] == "ok" else 503) if known else 404)
            body = body if known else b"{}"
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Log nothing: probes come every few seconds."""

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise InputError(
            f"port {port} cannot be listened on: {error.strerror or error}",
            hint="`--health-port` names another; 0 takes any that is free.",
        ) from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="trackperm-health", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)
