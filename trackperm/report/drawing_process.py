"""Process that draws charts as pictures, beside the one that asks for them.

vl-convert runs V8, whose background threads can end their process by a segmentation fault. In a process of
its own this costs one picture, which is drawn again, and not the training or the server that logs it.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import IO, Any, cast

from trackperm.errors import EngineError

_PROGRAM = """
import json, sys
import vl_convert

for line in sys.stdin.buffer:
    try:
        picture, error = vl_convert.vegalite_to_png(**json.loads(line)), ""
    except Exception as failure:
        picture, error = b"", (str(failure).splitlines() or [type(failure).__name__])[0]
    answer = json.dumps({"bytes": len(picture), "error": error}).encode()
    sys.stdout.buffer.write(answer + b"\\n" + picture)
    sys.stdout.buffer.flush()
"""

_ATTEMPTS = 2


class _Drawer:
    """The process, started when the first picture is drawn; it ends when its input does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def png(self, request: Mapping[str, Any]) -> bytes:
        line = json.dumps(request).encode() + b"\n"
        with self._lock:
            for _ in range(_ATTEMPTS):
                answer = self._answer(line)
                if answer is not None:
                    return answer
        raise EngineError(
            "the chart cannot be drawn: the process that draws it ended",
            hint="`python -c 'import vl_convert'` shows whether vl-convert works here.",
        )

    def _answer(self, line: bytes) -> bytes | None:
        """Return the picture; None if the process has ended."""
        process = self._running()
        requests, answers = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
        try:
            requests.write(line)
            requests.flush()
            head = answers.readline()
            if head.endswith(b"\n"):
                found = json.loads(head)
                if found["error"]:
                    raise EngineError(f"the chart cannot be drawn: {found['error']}")
                picture = answers.read(found["bytes"])
                if len(picture) == found["bytes"]:
                    return picture
        except OSError:
            pass
        self.close()
        return None

    def _running(self) -> subprocess.Popen[bytes]:
        # After a fork the process belongs to the parent.
        if self._process is None or self._owner != os.getpid():
            self._owner = os.getpid()
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self._process

    def close(self) -> None:
        """End the process, and wait for its end."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.kill()
            process.communicate()


_DRAWER = _Drawer()
atexit.register(_DRAWER.close)


def png(spec: Mapping[str, Any], *, vl_version: str, scale: float) -> bytes:
    """Draw a Vega-Lite specification as PNG, in another process.

    Raises
    ------
    EngineError
        If vl-convert refuses the specification, or its process ends twice.
    """
    return _DRAWER.png({"vl_spec": spec, "vl_version": vl_version, "scale": scale})
