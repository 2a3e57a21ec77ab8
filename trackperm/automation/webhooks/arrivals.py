"""Requests that are still arriving: one thread reads them all, so that none takes a place until it is whole.

A connection costs its sender nothing, so it must not cost a thread here. What is bounded: how many requests
arrive at the same time, the bytes of each, the seconds until its head is there, and until all of it is.
"""

from __future__ import annotations

import io
import math
import re
import resource
import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from email.message import Message
from http.client import HTTPException, parse_headers
from typing import Any

from trackperm.automation.webhooks.receive import MOST_BYTES
from trackperm.errors import RefusedRequestError

MOST_ARRIVING = 512
MOST_REQUEST_BYTES = 32 * 1024 + MOST_BYTES

_HEAD_SECONDS = 2.0
_READ_SECONDS = 5.0
_HEAD_END = re.compile(rb"\n\r?\n")
_PART = 65536


def _most_files(wanted: int) -> int:
    """Return how many files this process may have open, `wanted` if the system lets it have so many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def stated_length(headers: Message) -> int:
    """Return the stated length of the body, in bytes.

    Raises
    ------
    RefusedRequestError
        If there is none, or too many, or it is beyond the limit.
    """
    stated = headers.get_all("Content-Length", [])
    if "Transfer-Encoding" in headers or not stated:
        raise RefusedRequestError(411, "the length of the body is not stated")
    if len(stated) != 1 or not (stated[0].isascii() and stated[0].isdecimal()):
        raise RefusedRequestError(400, "the stated length of the body is no number")
    if len(stated[0]) > 9 or int(stated[0]) > MOST_BYTES:
        raise RefusedRequestError(413, f"the body is longer than {MOST_BYTES} bytes")
    return int(stated[0])


class Arrival:
    """A connection, and what has arrived on it.

    Parameters
    ----------
    connection : socket
        From the sender.
    address : object
        Of the sender.
    """

    def __init__(self, connection: socket.socket, address: Any) -> None:
        self.connection = connection
        self.address = address
        self.content = bytearray()
        self._begun = time.monotonic()
        self._needed: int | None = None
        self._is_over = False

    @property
    def deadline(self) -> float:
        """When it is too late, on the clock of `time.monotonic`: for its head, and then for all of it."""
        seconds = _READ_SECONDS if self._needed is not None else min(_HEAD_SECONDS, _READ_SECONDS)
        return self._begun + seconds

    @property
    def is_whole(self) -> bool:
        """Whether no more of it has to be waited for: it is there, or too long, or its sender has ended."""
        there = len(self.content)
        return self._is_over or there >= MOST_REQUEST_BYTES or (self._needed or MOST_REQUEST_BYTES) <= there

    def give_up(self) -> None:
        """Let it be too late by now."""
        self._begun = -math.inf

    def read(self) -> None:
        """Read what is there.

        Raises
        ------
        OSError
            If the sender went away.
        """
        before = len(self.content)
        try:
            part = self.connection.recv(min(_PART, MOST_REQUEST_BYTES - before))
        except (BlockingIOError, InterruptedError):
            return
        self._is_over = not part
        self.content += part
        if self._needed is None and (end := _HEAD_END.search(self.content, max(0, before - 2))):
            self._needed = end.end() + _body_length(bytes(self.content[: end.end()]))


def _body_length(head: bytes) -> int:
    """Return how many bytes of a body the answer depends on: none where it is refused by its head."""
    try:
        return stated_length(parse_headers(io.BytesIO(head.partition(b"\n")[2])))
    except (RefusedRequestError, HTTPException):
        return 0


class Arrivals:
    """All requests that are still arriving, in the order of their connections.

    A context manager, which closes what is left.

    Parameters
    ----------
    listener : socket
        Where connections come in.
    """

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._arriving: dict[int, Arrival] = {}
        self._most_open = _most_files(4 * MOST_ARRIVING) // 2
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)

    def __enter__(self) -> Arrivals:
        return self

    def __exit__(self, *_: object) -> None:
        for arrival in self._arriving.values():
            arrival.connection.close()
        self._selector.close()

    def wait(self, seconds: float, *, accept: bool) -> Iterator[Arrival]:
        """Wait for a moment, and take those out that need no more waiting: whole, broken off, or too late.

        Beyond :data:`MOST_ARRIVING`, or half of the files that this process may have open, the oldest of them
        is too late.

        Parameters
        ----------
        seconds : float
            How long, at most.
        accept : bool
            Whether new connections are taken.
        """
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._listener:
                if accept:
                    self._accept()
                continue
            arrival: Arrival = key.data
            try:
                arrival.read()
            except OSError:
                self._take(arrival)
                arrival.connection.close()
                continue
            if arrival.is_whole:
                yield self._take(arrival)
        now = time.monotonic()
        n_too_many = len(self._arriving) - min(MOST_ARRIVING, self._most_open)
        for number, arrival in enumerate(list(self._arriving.values())):
            if number < n_too_many:
                arrival.give_up()
            if arrival.deadline <= now:
                yield self._take(arrival)

    def _accept(self) -> None:
        try:
            connection, address = self._listener.accept()
        except OSError:  # it went away again
            return
        connection.setblocking(False)
        arrival = Arrival(connection, address)
        self._arriving[connection.fileno()] = arrival
        self._selector.register(connection, selectors.EVENT_READ, arrival)

    def _take(self, arrival: Arrival) -> Arrival:
        self._selector.unregister(arrival.connection)
        del self._arriving[arrival.connection.fileno()]
        return arrival
