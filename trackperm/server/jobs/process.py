"""Worker process of the pool: takes one job at a time, and reaches MLflow only through the server.

It has no credentials: whatever it asks of MLflow goes over the wire to the server, which replays it as the
user whose job it is. It ends when the server does, whatever it is doing then. A process of its own watches
for that: a long call in C may hold the interpreter, and a thread of the worker would wait for it.
"""

from __future__ import annotations

import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, NoReturn, cast
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

from trackperm.errors import CapacityError, TrackpermError
from trackperm.server.jobs.pipe import Pipe
from trackperm.server.jobs.requests import read_request
from trackperm.server.jobs.store import SCRATCH, clear, error_values
from trackperm.storage import is_full, no_room_for_temporary_files

_ENDING_SECONDS = 10.0
_SPOOLED = 2**23
_CHUNK = 2**20


class ServerAdapter(BaseAdapter):
    """Sends requests over a wire instead of a network, one at a time.

    Parameters
    ----------
    wire : Pipe
        To the server.
    lock : Lock
        Held for as long as the wire is in use.
    """

    def __init__(self, wire: Pipe, lock: threading.Lock) -> None:
        super().__init__()
        self.base = ""
        self._wire = wire
        self._lock = lock

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        """Send `request` and return the answer; other hosts than the server are out of reach."""
        url = request.url or ""
        if not self.base or not url.startswith(f"{self.base}/"):
            raise requests.ConnectionError(f"{urlsplit(url).netloc} is out of reach", request=request)
        answer = requests.Response()
        spool = SpooledTemporaryFile(_SPOOLED)  # noqa: SIM115 - it belongs to the answer
        with self._lock:
            message = {
                "type": "request",
                "method": request.method,
                "target": url.removeprefix(self.base),
                "headers": dict(request.headers),
            }
            self._wire.send(message)
            self._wire.send_body(_content(request.body))
            head = self._wire.receive()
            body = self._wire.body()
            try:
                for chunk in body:
                    spool.write(chunk)
            except OSError:  # the disk is full: what is left would be taken for messages
                spool.close()
                deque(body, maxlen=0)
                raise
        spool.seek(0)
        answer.status_code = head["status"]
        answer.reason = head["reason"]
        answer.headers = CaseInsensitiveDict(head["headers"])
        answer.encoding = requests.utils.get_encoding_from_headers(answer.headers)
        answer.raw = spool
        answer.url, answer.request = url, request
        return answer

    def close(self) -> None:
        """Keep the wire open: it is that of the process."""


def _content(body: Any) -> Iterator[bytes]:
    if body is None:
        return
    if isinstance(body, str):
        yield body.encode()
    elif isinstance(body, bytes):
        yield body
    else:
        while chunk := body.read(_CHUNK):
            yield chunk


class _Steps:
    """Tells the server how far a job is."""

    def __init__(self, wire: Pipe, lock: threading.Lock) -> None:
        self._wire = wire
        self._lock = lock
        self._done, self._total = 0.0, 1.0

    def expect(self, total: int) -> None:
        """Say how many steps there will be."""
        self._done, self._total = -1.0, float(total)

    def begin(self, step: str) -> None:
        """End the step before, and begin another."""
        self._done = min(self._done + 1.0, self._total - 1.0)
        with self._lock:
            self._wire.send({"type": "step", "step": step, "done": self._done, "total": self._total})


def main() -> None:
    """Take jobs until the server ends.

    The arguments are the file descriptor of the wire, the memory limit in megabytes, the folder of the
    server's jobs and the server's process.
    """
    wire, megabytes, jobs, server = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    ended, alive = os.pipe()  # the worker alone holds `alive`, which closes when it ends
    # Every SIGTERM from here on is a byte to be read. It cannot be blocked: libraries have own threads.
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell)
    signal.signal(signal.SIGTERM, lambda *_: None)
    worker = os.fork()
    if worker:
        os.close(alive)
        os.close(wire)
        _guard(worker, ended, told, jobs, server)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for end in (ended, told, tell):
        os.close(end)
    os.setpgid(0, 0)
    _work(Pipe(Connection(wire)), megabytes)


def _guard(worker: int, ended: int, told: int, jobs: Path, server: int) -> NoReturn:
    """Kill the worker when the server says so by SIGTERM, or ends, which closes the standard input.

    Ends as the worker ends, and takes note of that: a container may have nobody else who does.
    """
    with suppress(OSError):  # which the worker has done by itself
        os.setpgid(worker, worker)
    ready, _, _ = select.select([0, ended, told], [], [])
    if 0 in ready or told in ready:
        os.killpg(worker, signal.SIGKILL)
    _, status = os.waitpid(worker, 0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    code = os.waitstatus_to_exitcode(status)
    if code == 0:  # it found the wire closed, perhaps before the standard input was
        ready, _, _ = select.select([0], [], [], _ENDING_SECONDS)
    if 0 in ready:
        clear(jobs, server)
    elif code < 0:
        os.kill(os.getpid(), -code)
    os._exit(abs(code))


def _work(wire: Pipe, megabytes: int) -> None:
    lock = threading.Lock()
    adapter = ServerAdapter(wire, lock)
    cast(Any, requests.Session).get_adapter = lambda *_, **__: adapter
    from trackperm.server.jobs.artifacts import use_public_artifacts

    use_public_artifacts()
    from trackperm.server.jobs import handlers

    _limit_memory(megabytes)
    try:
        while True:
            message = wire.receive()
            adapter.base = message["base"]
            for outcome in _outcomes(handlers, message, _Steps(wire, lock)):
                with lock:
                    wire.send(outcome)
            adapter.base = ""
            with lock:
                wire.send({"type": "finished", "grown": _resident_megabytes()})
    except (EOFError, OSError):
        return


def _outcomes(handlers: Any, message: dict[str, Any], steps: _Steps) -> Iterator[dict[str, Any]]:
    """Do a job in a folder of its own, and say what became of it: the result, then what takes longer."""
    folder = Path(message["folder"])
    scratch = folder / SCRATCH
    try:
        os.chdir(scratch)
        tempfile.tempdir = str(scratch)
        write_flips = handlers.run_job(read_request(message["order"]), message["base"], folder, steps)
        yield {"type": "done", "flips": "none" if write_flips is None else "writing"}
        if write_flips is not None:
            write_flips()
            yield {"type": "flips"}
    except TrackpermError as error:
        yield {"type": "failed", "error": error_values(error)}
    except MemoryError:
        limit = CapacityError(
            f"the comparison needs more than {sys.argv[2]} MB of memory, the limit of this server",
            hint="`trackperm compare` on the command line has no limit; `TRACKPERM_JOB_MB` raises this one.",
        )
        yield {"type": "failed", "error": error_values(limit)}
    except Exception as error:
        traceback.print_exc()
        fault = TrackpermError(
            f"a fault in trackperm itself: {type(error).__name__}", hint="the server's log says where."
        )
        if is_full(error):
            fault = no_room_for_temporary_files(error)
        yield {"type": "failed", "error": error_values(fault)}
    finally:
        os.chdir("/")
        tempfile.tempdir = None
        shutil.rmtree(scratch, ignore_errors=True)


def _limit_memory(megabytes: int) -> None:
    """Let this process write to so much memory beyond what it starts with; reservations do not count."""
    size = _pages()[5] * resource.getpagesize() + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def _resident_megabytes() -> int:
    return _pages()[1] * resource.getpagesize() // 2**20


def _pages() -> list[int]:
    """Return the pages of this process by their use, as proc(5) lists them; none where there is no /proc."""
    try:
        return [int(number) for number in Path("/proc/self/statm").read_text(encoding="ascii").split()]
    except FileNotFoundError:
        return [0] * 7


if __name__ == "__main__":
    main()
