"""HTTP side of the webhook receiver: one request per connection, bounded in size, time and number.

A connection costs its sender nothing, so it must not cost a thread here: one event loop reads all requests,
and a request takes a thread when all of it has arrived. The time until its head has arrived is bounded, and
so is the time until all of it has. When too many requests are arriving, the oldest one is answered with 408.

Other web servers that were tried bound the time between two bytes (waitress) or no time (uvicorn). A sender
of one byte per second then keeps a connection for ever. If the process may have few files open, 400 such
connections keep others waiting for seconds.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import resource
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from email.message import Message
from http import HTTPStatus
from http.client import HTTPException, parse_headers
from typing import Any

from trackperm.automation.webhooks.receive import MOST_BYTES, Receiver
from trackperm.errors import InputError, RefusedRequestError

MOST_ARRIVING = 512
"""Requests that are arriving, and requests that wait for a thread: a large team makes fewer at once."""

MOST_AT_ONCE = 128
"""Threads; each waits for SQLite most of the time."""

_HEAD_SECONDS = 2.0
_READ_SECONDS = 5.0
"""A request of W&B or MLflow arrives within milliseconds; seconds allow for a lost packet or two."""

_MOST_HEAD_BYTES = 32 * 1024
_BACKLOG = 512
_ANSWER_SECONDS = 3.0
_PAUSE_SECONDS = 0.1
_MOST_DISCARDED_BYTES = 2**20
_DISCARD_SECONDS = 1.0
_VERSION = re.compile(r"HTTP/1\.[01]")


class ReceiverServer:
    """HTTP server of a receiver; a context manager that closes its socket. Port 0 is any free port.

    Raise InputError if the address cannot be listened on.
    """

    def __init__(self, receiver: Receiver, host: str = "127.0.0.1", port: int = 0) -> None:
        self.receiver = receiver
        try:
            self._socket = socket.create_server((host, port), backlog=_BACKLOG)
        except (OSError, OverflowError) as error:
            raise InputError(
                f"`{host}:{port}` cannot be listened on: {getattr(error, 'strerror', None) or error}",
                hint="`--port` names another port; 0 takes any that is free.",
            ) from error
        self.port: int = self._socket.getsockname()[1]
        self._most_open = _most_files(4 * MOST_ARRIVING) // 4
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._is_over = threading.Event()
        self._arriving: dict[asyncio.Future[bool], None] = {}
        self._waiting = 0
        self._connections: set[asyncio.Task[None]] = set()
        self._threads = ThreadPoolExecutor(MOST_AT_ONCE, "trackperm-delivery")

    def __enter__(self) -> ReceiverServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._loop.close()

    def serve(self) -> None:
        """Answer requests until :meth:`shutdown`."""
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._is_over.set()

    def shutdown(self) -> None:
        """Stop accepting connections, and wait three seconds at most for the answers to accepted ones."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._is_over.wait()

    async def _serve(self) -> None:
        self._socket.setblocking(False)
        accepting = self._loop.create_task(self._accept())
        await self._stop.wait()
        accepting.cancel()
        for reading in list(self._arriving):
            reading.cancel()
        if self._connections:
            _, late = await asyncio.wait(self._connections, timeout=_ANSWER_SECONDS)
            for connection in late:
                connection.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.sleep(0)  # lets closed connections end

    async def _accept(self) -> None:
        """Accept connections, as long as half of the files that may be open are left for other things.

        `asyncio.start_server` accepts hundreds before one of them is read, and pauses for a second when it
        can open no more files.
        """
        while True:
            while len(self._connections) >= 2 * min(MOST_ARRIVING, self._most_open):
                await asyncio.wait(self._connections, return_when=asyncio.FIRST_COMPLETED)
            try:
                connection, _ = await self._loop.sock_accept(self._socket)
                await self._loop.connect_accepted_socket(self._protocol, connection)
            except OSError:  # the sender has gone, or others have opened too many files
                await asyncio.sleep(_PAUSE_SECONDS)

    def _protocol(self) -> asyncio.StreamReaderProtocol:
        reader = asyncio.StreamReader(_MOST_HEAD_BYTES, self._loop)
        return asyncio.StreamReaderProtocol(reader, self._connect, self._loop)

    def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = self._loop.create_task(self._converse(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one request, answer it, and close the connection."""
        request = _Request()
        try:
            if (answer := await self._answer(reader, request)) is not None:
                status, document = answer
                content = json.dumps(document).encode()
                head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\n"
                writer.write(f"{head}Content-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode())
                writer.write(content)
                await writer.drain()
                # closing with unread bytes would reset the connection, and discard the answer
                if not request.is_read and status != HTTPStatus.REQUEST_TIMEOUT:
                    writer.write_eof()
                    with suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(_discard(reader), _DISCARD_SECONDS)
        except OSError:
            self.receiver.log("delivery-broken-off")
        finally:
            writer.close()

    async def _answer(
        self, reader: asyncio.StreamReader, request: _Request
    ) -> tuple[int, dict[str, Any]] | None:
        """Return status and answer of the request; None if the sender closed without sending anything."""
        try:
            if not await self._arrive(reader, request):
                return None
            if request.method == "GET":
                is_known = request.path in ("/health", "/healthz")
                return (200, {"status": "ok"}) if is_known else (404, {"status": "not found"})
            if self._waiting >= min(MOST_ARRIVING, self._most_open):
                raise RefusedRequestError(503, "too many requests are waiting")
            self._waiting += 1
            try:
                delivery = request.path, request.headers, request.body
                return await self._loop.run_in_executor(self._threads, self.receiver.take, *delivery)
            finally:
                self._waiting -= 1
        except RefusedRequestError as error:
            return self.receiver.refused(request.path, error.status, error.message)
        except OSError:
            raise
        except Exception as error:
            self.receiver.log("delivery-failed", fault=type(error).__name__)
            return 500, {"status": "failed"}

    async def _arrive(self, reader: asyncio.StreamReader, request: _Request) -> bool:
        """Read a request in time; False if the sender closed without sending anything."""
        reading = asyncio.ensure_future(request.read(reader))
        self._arriving[reading] = None
        if len(self._arriving) > min(MOST_ARRIVING, self._most_open):
            oldest = next(iter(self._arriving))
            del self._arriving[oldest]
            oldest.cancel()
        try:
            await asyncio.wait([reading])
        finally:
            self._arriving.pop(reading, None)
        if reading.cancelled():
            raise RefusedRequestError(408, "the request did not arrive in time")
        return reading.result()


class _Request:
    """One request, as far as it has arrived."""

    def __init__(self) -> None:
        self.method = ""
        self.path = ""
        self.headers = Message()
        self.body = b""
        self.is_read = False

    async def read(self, reader: asyncio.StreamReader) -> bool:
        """Read the request; False if the sender closed without sending anything.

        Raise RefusedRequestError if it is not a valid request, or is too long or too late.
        """
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            is_there = await asyncio.wait_for(self._read_head(reader), min(_HEAD_SECONDS, _READ_SECONDS))
            if not is_there or self.method == "GET":
                self.is_read = True
                return is_there
            length = stated_length(self.headers)
            left = begun + _READ_SECONDS - loop.time()
            self.body = await asyncio.wait_for(reader.readexactly(length), left)
        except asyncio.TimeoutError:
            raise RefusedRequestError(408, "the request did not arrive in time") from None
        except asyncio.IncompleteReadError:
            self.is_read = True
            raise RefusedRequestError(400, "the body is shorter than its stated length") from None
        self.is_read = True
        return True

    async def _read_head(self, reader: asyncio.StreamReader) -> bool:
        """Read request line and headers; answers and decisions repeat no part of them."""
        line = await _read_line(reader, 414, "the address of the request is too long")
        if not line:
            return False
        words = line.decode("latin-1").rstrip("\r\n").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/"):
            raise RefusedRequestError(400, "the request line is not valid")
        if not _VERSION.fullmatch(words[2]):
            raise RefusedRequestError(505, "the version of HTTP is not supported; expected 1.0 or 1.1")
        if words[0] not in ("GET", "POST"):
            raise RefusedRequestError(501, "the method is not supported; expected GET or POST")
        self.method, self.path = words[0], words[1].partition("?")[0]
        head = b""
        while len(head) <= _MOST_HEAD_BYTES:
            line = await _read_line(reader, 431, "the head of the request is too long")
            head += line
            if line in (b"\r\n", b"\n", b""):
                break
        try:
            if len(head) > _MOST_HEAD_BYTES:
                raise HTTPException
            self.headers = parse_headers(io.BytesIO(head))
        except HTTPException:
            raise RefusedRequestError(431, "the head of the request is too long") from None
        return True


def stated_length(headers: Message) -> int:
    """Return the stated length of the body in bytes.

    Raise RefusedRequestError if no single length is stated, or it is beyond the limit.
    """
    stated = headers.get_all("Content-Length", [])
    if "Transfer-Encoding" in headers or not stated:
        raise RefusedRequestError(411, "the length of the body is not stated")
    if len(stated) != 1 or not (stated[0].isascii() and stated[0].isdecimal()):
        raise RefusedRequestError(400, "the stated length of the body is not a number")
    if len(stated[0]) > 9 or int(stated[0]) > MOST_BYTES:
        raise RefusedRequestError(413, f"the body is longer than {MOST_BYTES} bytes")
    return int(stated[0])


async def _read_line(reader: asyncio.StreamReader, status: int, problem: str) -> bytes:
    try:
        return await reader.readline()
    except ValueError:  # beyond the limit of the stream
        raise RefusedRequestError(status, problem) from None


async def _discard(reader: asyncio.StreamReader) -> None:
    left = _MOST_DISCARDED_BYTES
    while left > 0 and (part := await reader.read(65536)):
        left -= len(part)


def _most_files(wanted: int) -> int:
    """Return how many files this process may have open, after raising the limit to `wanted` if possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
