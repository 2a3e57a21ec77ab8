"""Worker process of the pool: runs one job at a time, and reaches MLflow only through the server.

It has no credentials. Its requests to MLflow go through a pipe to the server, which replays the request
as the user of the job. The worker ends when the server ends, whatever it is doing. A separate process watches
for that, because a long call in C may hold the interpreter, and would block a thread of the worker.
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
    """Transport adapter of ``requests`` that sends one request at a time through a pipe to the server."""

    def __init__(self, pipe: Pipe, lock: threading.Lock) -> None:
        super().__init__()
        self.base = ""
        self._pipe = pipe
        self._lock = lock

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        """Send `request` and return the answer; hosts other than the server cannot be reached."""
        url = request.url or ""
        if not self.base or not url.startswith(f"{self.base}/"):
            raise requests.ConnectionError(f"{urlsplit(url).netloc} cannot be reached", request=request)
        answer = requests.Response()
        spool = SpooledTemporaryFile(_SPOOLED)  # noqa: SIM115 - the answer owns it
        with self._lock:
            message = {
                "type": "request",
                "method": request.method,
                "target": url.removeprefix(self.base),
                "headers": dict(request.headers),
            }
            self._pipe.send(message)
            self._pipe.send_body(_content(request.body))
            head = self._pipe.receive()
            body = self._pipe.body()
            try:
                for chunk in body:
                    spool.write(chunk)
            except OSError:  # the disk is full; the rest of the body must not be taken for messages
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
        """Keep the pipe open; it belongs to the process."""


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
    """Progress of a job, reported to the server."""

    def __init__(self, pipe: Pipe, lock: threading.Lock) -> None:
        self._pipe = pipe
        self._lock = lock
        self._done, self._total = 0.0, 1.0

    def expect(self, total: int) -> None:
        """Set the number of steps."""
        self._done, self._total = -1.0, float(total)

    def begin(self, step: str) -> None:
        """End the current step, and begin another one."""
        self._done = min(self._done + 1.0, self._total - 1.0)
        with self._lock:
            self._pipe.send({"type": "step", "step": step, "done": self._done, "total": self._total})


def main() -> None:
    """Run jobs until the server ends.

    The arguments are the file descriptor of the pipe, the memory limit in megabytes, the folder of the
    server's jobs, and the id of the server process.
    """
    pipe, megabytes, jobs, server = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    ended, alive = os.pipe()  # only the worker holds `alive`, which closes when the worker ends
    # From here on every SIGTERM is a byte in `told`. It cannot be blocked, as libraries start threads.
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell)
    signal.signal(signal.SIGTERM, lambda *_: None)
    worker = os.fork()
    if worker:
        os.close(alive)
        os.close(pipe)
        _guard(worker, ended, told, jobs, server)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for end in (ended, told, tell):
        os.close(end)
    os.setpgid(0, 0)
    _work(Pipe(Connection(pipe)), megabytes)


def _guard(worker: int, ended: int, told: int, jobs: Path, server: int) -> NoReturn:
    """Kill the worker on SIGTERM, or when standard input closes, which means that the server ended.

    The guard waits for the worker and ends with its exit status: a container may have no other process that
    reaps it.
    """
    with suppress(OSError):  # the worker may have done so itself
        os.setpgid(worker, worker)
    ready, _, _ = select.select([0, ended, told], [], [])
    if 0 in ready or told in ready:
        os.killpg(worker, signal.SIGKILL)
    _, status = os.waitpid(worker, 0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    code = os.waitstatus_to_exitcode(status)
    if code == 0:  # the worker found the pipe closed, perhaps before standard input was
        ready, _, _ = select.select([0], [], [], _ENDING_SECONDS)
    if 0 in ready:
        clear(jobs, server)
    elif code < 0:
        os.kill(os.getpid(), -code)
    os._exit(abs(code))


def _work(pipe: Pipe, megabytes: int) -> None:
    lock = threading.Lock()
    adapter = ServerAdapter(pipe, lock)
    cast(Any, requests.Session).get_adapter = lambda *_, **__: adapter
    from trackperm.server.jobs.artifacts import use_public_artifacts

    use_public_artifacts()
    from trackperm.server.jobs import handlers

    _limit_memory(megabytes)
    try:
        while True:
            message = pipe.receive()
            adapter.base = message["base"]
            for outcome in _outcomes(handlers, message, _Steps(pipe, lock)):
                with lock:
                    pipe.send(outcome)
            adapter.base = ""
            with lock:
                pipe.send({"type": "finished", "grown": _resident_megabytes()})
    except (EOFError, OSError):
        return


def _outcomes(handlers: Any, message: dict[str, Any], steps: _Steps) -> Iterator[dict[str, Any]]:
    """Run a job in its scratch folder; yield a message for the result, and one for the slower table."""
    folder = Path(message["folder"])
    scratch = folder / SCRATCH
    try:
        os.chdir(scratch)
        tempfile.tempdir = str(scratch)
        write_table = handlers.run_job(read_request(message["request"]), message["base"], folder, steps)
        yield {"type": "done", "changed_table": "none" if write_table is None else "writing"}
        if write_table is not None:
            write_table()
            yield {"type": "changed_table"}
    except TrackpermError as error:
        yield _failed(error)
    except MemoryError:
        yield _failed(
            CapacityError(
                f"the comparison needs more than {sys.argv[2]} MB of memory, the limit of this server",
                hint="`trackperm` on the command line has no limit; `TRACKPERM_JOB_MB` raises this one.",
            )
        )
    except Exception as error:
        traceback.print_exc()
        fault = TrackpermError(
            f"a fault in trackperm itself: {type(error).__name__}", hint="the server's log says where."
        )
        yield _failed(no_room_for_temporary_files(error) if is_full(error) else fault)
    finally:
        os.chdir("/")
        tempfile.tempdir = None
        shutil.rmtree(scratch, ignore_errors=True)


def _failed(error: TrackpermError) -> dict[str, Any]:
    return {"type": "failed", "error": error_values(error)}


def _limit_memory(megabytes: int) -> None:
    """Limit the memory that this process may write to, beyond what it has now; reservations do not count."""
    size = _pages()[5] * resource.getpagesize() + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def _resident_megabytes() -> int:
    return _pages()[1] * resource.getpagesize() // 2**20


def _pages() -> list[int]:
    """Return the memory pages of this process by use, as in proc(5); zeros on systems without /proc."""
    try:
        return [int(number) for number in Path("/proc/self/statm").read_text(encoding="ascii").split()]
    except FileNotFoundError:
        return [0] * 7


if __name__ == "__main__":
    main()
