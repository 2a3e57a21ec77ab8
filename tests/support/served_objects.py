"""A web server for tests, which serves what object stores do: whole objects, and ranges of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.web_server import QuietHandler, serving

Served = tuple[str, dict[str, bytes]]
"""The address of the server, and what it serves by path."""


@contextmanager
def served_objects() -> Iterator[Served]:
    """Serve objects on the loopback interface."""
    served: dict[str, bytes] = {}
    with serving(_Objects, served) as url:
        yield url, served


class _Objects(QuietHandler):
    """Answers reads of whole objects and of ranges, as web servers and object stores do."""

    def __init__(self, objects: dict[str, bytes], *arguments: Any) -> None:
        self.objects = objects
        super().__init__(*arguments)

    def read(self) -> None:
        data = self.objects.get(self.path.partition("?")[0])
        if data is None:
            self.send_error(404)
            return
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        start, end = 0, len(data)
        if wanted:
            start = int(wanted[1]) if wanted[1] else max(0, len(data) - int(wanted[2]))
            end = min(int(wanted[2]) + 1, len(data)) if wanted[1] and wanted[2] else len(data)
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(end - start))
        self.send_header("Last-Modified", "Sat, 01 Jan 2022 00:00:00 GMT")
        self.send_header("ETag", '"1"')
        self.send_header("Accept-Ranges", "bytes")
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data[start:end])

    do_GET = do_HEAD = read
