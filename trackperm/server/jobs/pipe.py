"""Messages between the server and a worker process: JSON and bytes, nothing to be executed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from multiprocessing.connection import Connection
from typing import Any

_MAX_FRAME = 2**26
_CHUNK = 2**20


class Pipe:
    """One end of a connection on which each message may be followed by a body.

    Parameters
    ----------
    connection : Connection
        To the other end.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def send(self, message: Mapping[str, Any]) -> None:
        """Send `message`, which JSON can hold."""
        self._connection.send_bytes(json.dumps(message).encode())

    def receive(self) -> dict[str, Any]:
        """Wait for the next message.

        Raises
        ------
        EOFError, OSError
            If the other end is gone.
        """
        message: dict[str, Any] = json.loads(self._connection.recv_bytes(_MAX_FRAME))
        return message

    def send_body(self, chunks: Iterable[bytes]) -> None:
        """Send bytes, in frames of about a mebibyte; an empty frame ends them."""
        gathered: list[bytes] = []
        size = 0
        for chunk in chunks:
            gathered.append(chunk)
            size += len(chunk)
            if size >= _CHUNK:
                self._send_frames(b"".join(gathered))
                gathered, size = [], 0
        self._send_frames(b"".join(gathered))
        self._connection.send_bytes(b"")

    def _send_frames(self, data: bytes) -> None:
        for start in range(0, len(data), _CHUNK):
            self._connection.send_bytes(data[start : start + _CHUNK])

    def body(self) -> Iterator[bytes]:
        """Receive what :meth:`send_body` sends."""
        while frame := self._connection.recv_bytes(_MAX_FRAME):
            yield frame

    def close(self) -> None:
        """Close this end."""
        self._connection.close()
