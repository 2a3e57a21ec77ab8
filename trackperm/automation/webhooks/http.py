"""The HTTP side of the webhook receiver: one request for each connection, within limits.

What a sender can make this process hold or wait for is bounded before anything that it says is believed. A
request gets a thread when all of it is there, or when it is too late for that (see
:mod:`trackperm.automation.webhooks.arrivals`), so that nobody is kept waiting by connections on which nothing
comes. Requests beyond those that are seen to at the same time wait their turn, and connections beyond those
that are read wait in the backlog of the socket.
"""

from __future__ import annotations

import io
import json
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from trackperm.automation.webhooks.arrivals import (
    MOST_ARRIVING,
    MOST_REQUEST_BYTES,
    Arrival,
    Arrivals,
    stated_length,
)
from trackperm.automation.webhooks.receive import Receiver
from trackperm.errors import InputError, RefusedRequestError

MOST_AT_ONCE = 128

_MOST_DISCARDED_BYTES = 2**20
_DISCARD_SECONDS = 1.0
_WRITE_SECONDS = 5.0
_ANSWER_SECONDS = 3.0
_BACKLOG = 512
_LOOK_SECONDS = 0.2
_PLACE_SECONDS = 0.02


class ReceiverServer(ThreadingHTTPServer):
    """Answers at an address for a receiver.

    Parameters
    ----------
    receiver : Receiver
        Decides.
    host : str
        Address to listen at.
    port : int
        0 takes any that is free.

    Raises
    ------
    InputError
        If it cannot be listened on.
    """

    daemon_threads = True
    request_queue_size = _BACKLOG

    def __init__(self, receiver: Receiver, host: str = "127.0.0.1", port: int = 0) -> None:
        self.receiver = receiver
        self._places = threading.BoundedSemaphore(MOST_AT_ONCE)
        self._is_ending = False
        self._is_over = threading.Event()
        self._is_over.set()
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise InputError(
                f"`{host}:{port}` cannot be listened on: {getattr(error, 'strerror', None) or error}",
                hint="`--port` names another port; 0 takes any that is free.",
            ) from error

    def serve_forever(self, poll_interval: float = _LOOK_SECONDS) -> None:
        """Read what arrives, and see to each request in a thread of its own, until :meth:`shutdown`."""
        self._is_over.clear()
        waiting: deque[Arrival] = deque()
        try:
            with Arrivals(self.socket) as arrivals:
                while not self._is_ending:
                    seconds = _PLACE_SECONDS if waiting else min(poll_interval, _LOOK_SECONDS)
                    waiting.extend(arrivals.wait(seconds, accept=len(waiting) < MOST_ARRIVING))
                    while waiting and self._places.acquire(blocking=False):
                        self._begin(waiting.popleft())
        finally:
            for arrival in waiting:
                arrival.connection.close()
            self._is_over.set()

    def _begin(self, arrival: Arrival) -> None:
        """See to a request in a thread, for which a place is taken."""
        request: Any = arrival
        try:
            self.process_request(request, arrival.address)
        except RuntimeError:  # the system has no thread left
            self._places.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """See to a request, and give its place to the next one."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def shutdown_request(self, request: Any) -> None:
        """End the connection of a request."""
        super().shutdown_request(request.connection)

    def shutdown(self) -> None:
        """Accept nothing any more, and wait a little for the answers to what was accepted."""
        self._is_ending = True
        self._is_over.wait()
        deadline = time.monotonic() + _ANSWER_SECONDS
        for _ in range(MOST_AT_ONCE):
            self._places.acquire(timeout=max(0.0, deadline - time.monotonic()))

    def handle_error(self, *_: Any) -> None:
        """Note that a sender went away, or a fault of our own, without a traceback."""
        error = sys.exc_info()[1]
        if isinstance(error, OSError):
            self.receiver.log("delivery-broken-off")
        else:
            self.receiver.log("delivery-failed", fault=type(error).__name__)


class _Handler(BaseHTTPRequestHandler):
    """One request, on a connection of its own, which is closed after the answer."""

    server: ReceiverServer
    timeout = _WRITE_SECONDS
    server_version = "trackperm"
    sys_version = ""
    default_request_version = request_version = "HTTP/1.0"
    requestline = ""
    path = ""
    _is_unread = True

    def setup(self) -> None:
        arrival: Arrival = self.request
        self.request = arrival.connection
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(_Incoming(arrival))

    def handle(self) -> None:
        try:
            self.handle_one_request()
        except RefusedRequestError as error:
            self._is_unread &= error.status != HTTPStatus.REQUEST_TIMEOUT
            self._refuse(error.status, error.message)
        except OSError:
            raise
        except Exception:
            self._answer(500, {"status": "failed"})
            raise

    def finish(self) -> None:
        """Close, after a moment for a sender in the middle of a body, who could not read the answer."""
        with suppress(OSError, ValueError):
            self.wfile.flush()
            if self._is_unread:
                self.connection.shutdown(socket.SHUT_WR)
                _discard(self.connection)
        super().finish()

    def do_POST(self) -> None:
        length = stated_length(self.headers)
        body = self.rfile.read(length)
        self._is_unread = False
        if len(body) < length:
            raise RefusedRequestError(400, "the body is shorter than its stated length")
        self._answer(*self.server.receiver.take(self._route, self.headers, body))

    def do_GET(self) -> None:
        self._is_unread = False
        is_known = self._route in ("/health", "/healthz")
        self._answer(200 if is_known else 404, {"status": "ok" if is_known else "not found"})

    @property
    def _route(self) -> str:
        return self.path.partition("?")[0]

    def _refuse(self, status: int, reason: str) -> None:
        self._answer(*self.server.receiver.refused(self._route, status, reason))

    def _answer(self, status: int, document: Mapping[str, Any]) -> None:
        content = json.dumps(document).encode()
        self.connection.settimeout(_WRITE_SECONDS)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def send_error(self, code: int, *_: Any, **__: Any) -> None:
        """Refuse what is no request, without repeating any of it."""
        self._refuse(code, HTTPStatus(code).phrase.lower())

    def log_message(self, *_: Any) -> None:
        """Say nothing: the receiver notes what matters, and addresses may hold secrets."""


class _Incoming(io.RawIOBase):
    """What has arrived on a connection, and what comes after it before the deadline and within the limit."""

    def __init__(self, arrival: Arrival) -> None:
        self._connection = arrival.connection
        self._deadline = arrival.deadline
        self._arrived = io.BytesIO(arrival.content)
        self._left = MOST_REQUEST_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is there.

        Raises
        ------
        RefusedRequestError
            If it is too late, or too much.
        """
        if self._left <= 0:
            raise RefusedRequestError(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the head of the request is too long"
            )
        part = memoryview(buffer)[: self._left]
        count = self._arrived.readinto(part) or self._received(part)
        self._left -= count
        return count

    def _received(self, part: memoryview) -> int:
        try:
            self._connection.settimeout(max(0.0, self._deadline - time.monotonic()))
            return self._connection.recv_into(part)
        except (TimeoutError, BlockingIOError):
            raise RefusedRequestError(408, "the request did not come in time") from None


def _discard(connection: socket.socket) -> None:
    """Read what is left, for a moment: closing with unread bytes would take back what was answered."""
    deadline, left = time.monotonic() + _DISCARD_SECONDS, _MOST_DISCARDED_BYTES
    while left > 0 and (seconds := deadline - time.monotonic()) > 0:
        connection.settimeout(seconds)
        part = connection.recv(65536)
        if not part:
            return
        left -= len(part)
