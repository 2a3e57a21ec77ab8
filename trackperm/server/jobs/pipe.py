"""Messages between the server and a worker process: JSON and bytes, so that nothing received is executed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from multiprocessing.connection import Connection
from typing import Any

_MAX_FRAME = 2**26
_CHUNK = 2**20


class Pipe:
    """One end of a connection between the server and a worker; a body may follow each message."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message of JSON values."""
        self._connection.send_bytes(json.dumps(message).encode())

    def receive(self) -> dict[str, Any]:
        """Wait for the next message.

        Raise EOFError, OSError if the other end is closed.
        """
        message: dict[str, Any] = json.loads(self._connection.recv_bytes(_MAX_FRAME))
        return message

    def send_body(self, chunks: Iterable[bytes]) -> None:
        """Send bytes in frames of about a mebibyte; an empty frame marks the end."""
        for chunk in gathered(chunks):
            for start in range(0, len(chunk), _CHUNK):
                self._connection.send_bytes(chunk[start : start + _CHUNK])
        self._connection.send_bytes(b"")

    def body(self) -> Iterator[bytes]:
        """Receive the frames that :meth:`send_body` sent."""
        while frame := self._connection.recv_bytes(_MAX_FRAME):
            yield frame

    def close(self) -> None:
        """Close this end."""
        self._connection.close()


def gathered(chunks: Iterable[bytes | str]) -> Iterator[bytes]:
    """Join small chunks into chunks of at least a mebibyte, except for the last one."""
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        parts.append(chunk.encode() if isinstance(chunk, str) else chunk)
        size += len(parts[-1])
        if size >= _CHUNK:
            yield b"".join(parts)
            parts, size = [], 0
    if size:
        yield b"".join(parts)
