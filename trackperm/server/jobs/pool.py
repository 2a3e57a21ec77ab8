"""The processes apart in which jobs run, so that the server answers others meanwhile."""

from __future__ import annotations

import logging
import multiprocessing
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from werkzeug.test import TestResponse

from trackperm.errors import CapacityError, TrackpermError
from trackperm.server.jobs.fair_queue import FairQueue
from trackperm.server.jobs.limits import Limits
from trackperm.server.jobs.pipe import Pipe
from trackperm.server.jobs.replay import Caller, ForbiddenRouteError
from trackperm.server.jobs.requests import JobRequest
from trackperm.server.jobs.store import Job
from trackperm.storage import temporary_files

_PROCESSES = 2
_IDLE_SECONDS = 600.0
_LOOK_SECONDS = 0.25
_ENDING_SECONDS = 30.0
_UNWANTED_SECONDS = 2.0
"""What ends by itself so soon costs less than a new process, which has to load MLflow."""

_GROWN_MEGABYTES = 1024
_SPOOLED = 2**23
_PART = 2**20
_INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH")
_LOGGER = logging.getLogger(__name__)

T = TypeVar("T")


class _QueuedJob(NamedTuple):
    job: Job
    caller: Caller
    order: JobRequest


class WorkerPool:
    """Runs jobs, at most two at the same time, in processes that stay warm; visitors take turns.

    Parameters
    ----------
    limits : Limits
        Of each job.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._tasks: FairQueue[_QueuedJob] = FairQueue()
        self._lock = threading.Lock()
        self._benches: list[WorkerThread] = []

    def submit(self, job: Job, caller: Caller, order: JobRequest) -> None:
        """Let `job` do what `order` says, as `caller`, when it is its turn and a process is free."""
        for task in self._tasks.remove(lambda task: not task.job.is_wanted):
            task.job.drop()
        with self._lock:
            self._benches = [bench for bench in self._benches if bench.is_alive()]
            busy = sum(bench.is_busy for bench in self._benches)
            if busy + len(self._tasks) >= len(self._benches) and len(self._benches) < _PROCESSES:
                bench = WorkerThread(self._tasks, self._limits)
                self._benches.append(bench)
                bench.start()
        self._tasks.put(_QueuedJob(job, caller, order), job.state.client, job.state.page)


class WorkerThread(threading.Thread):
    """A thread that has one process at most, and does one task after the other in it."""

    def __init__(self, tasks: FairQueue[_QueuedJob], limits: Limits) -> None:
        super().__init__(name="trackperm-pool", daemon=True)
        self.is_busy = False
        self._tasks = tasks
        self._limits = limits
        self._process: _Process | None = None

    def run(self) -> None:
        """Do tasks for ever; a process that has nothing to do for some time is ended."""
        while True:
            try:
                task = self._tasks.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                self._end()
                continue
            self.is_busy = True
            try:
                self._do(task)
            except Exception:
                _LOGGER.exception("a comparison failed")
                task.job.fail(
                    TrackpermError("a fault in trackperm itself", hint="the server's log says where.")
                )
                self._end()
            finally:
                self.is_busy = False
                self._tasks.done(task.job.state.client, task.job.state.page)

    def _do(self, task: _QueuedJob) -> None:
        if not task.job.is_wanted:
            task.job.drop()
            return
        if self._process is not None and not self._process.is_alive:
            self._end()
        try:
            if self._process is None:
                task.job.update(step="starting")
                self._process = _Process(self._limits, task.job.folder.parent)
            keep = _Run(self._process, task, self._limits).finish()
        except _DroppedError:
            self._end()
            task.job.drop()
            return
        except TrackpermError as error:
            self._end()
            task.job.fail(error)
            return
        if not keep:
            self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None


class _Process:
    """One process apart, with nothing of the server's environment but what Python needs."""

    def __init__(self, limits: Limits, jobs: Path) -> None:
        ours, theirs = multiprocessing.Pipe()
        environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        environment |= {
            name: value
            for name, value in os.environ.items()
            if name.startswith("TRACKPERM_") and not name.endswith("_SECRET")
        }
        environment |= {
            "DO_NOT_TRACK": "true",
            "HOME": tempfile.gettempdir(),
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
        }
        command = [sys.executable, "-m", "trackperm.server.jobs.process"]
        self._process = subprocess.Popen(  # noqa: S603 - the command is ours
            [*command, str(theirs.fileno()), str(limits.megabytes), str(jobs), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=environment,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,  # no signal of a terminal is for it
        )
        theirs.close()
        self.wire = Pipe(ours)

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it at once, with all that it has started."""
        self._process.terminate()  # its guard kills the worker

    def end(self) -> int:
        """End it, wait for that, and return its exit status."""
        self.kill()
        try:
            status = self._process.wait(timeout=_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        # not before: to the guard a standard input that closes is the end of the server
        if self._process.stdin is not None:
            self._process.stdin.close()
        self.wire.close()
        return status

    def status(self) -> int:
        """Wait for the end of a process whose wire is closed, and return its exit status."""
        try:
            return self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return self.end()


class _DroppedError(TrackpermError):
    """A job that nobody waited for any more was ended."""


def _part(chunks: Iterator[Any]) -> bytes:
    """Take about a mebibyte, or all that is left; nothing at the end."""
    gathered, size = [], 0
    for chunk in chunks:
        gathered.append(chunk.encode() if isinstance(chunk, str) else chunk)
        size += len(gathered[-1])
        if size >= _PART:
            break
    return b"".join(gathered)


class _Run:
    """One task in one process: answers its requests and keeps its record until it is done."""

    def __init__(self, process: _Process, task: _QueuedJob, limits: Limits) -> None:
        self._process = process
        self._wire = process.wire
        self._job, self._caller, self._order = task
        self._limits = limits
        self._is_late = self._is_dropped = self._is_left = False

    def finish(self) -> bool:
        """See the task through, and say whether the process can be used again.

        Raises
        ------
        TrackpermError
            If the process ended, or went beyond a limit, or nobody waited for it any more.
        """
        is_over = threading.Event()
        threading.Thread(target=self._watch, args=(is_over,), daemon=True).start()
        try:
            order = self._order.model_dump()
            self._wire.send({"base": self._caller.base, "folder": str(self._job.folder), "order": order})
            self._job.update(state="running")
            while True:
                message = self._wire.receive()
                if message["type"] == "request":
                    self._answer(message)
                elif message["type"] == "step":
                    del message["type"]
                    self._job.update(**message)
                elif message["type"] == "done":
                    total, flips = self._job.state.total, message["flips"]
                    self._job.update(state="done", step="done", done=total, flips=flips)
                elif message["type"] == "flips":
                    self._job.update(flips="ready")
                elif message["type"] == "failed":
                    self._job.fail(TrackpermError(message["error"]["message"], hint=message["error"]["hint"]))
                elif message["type"] == "finished":
                    return bool(message["grown"] < _GROWN_MEGABYTES)
        except TrackpermError:  # such as a full disk, which says nothing of the process
            raise
        except (EOFError, OSError) as error:
            raise self._ended() from error
        finally:
            is_over.set()

    def _watch(self, is_over: threading.Event) -> None:
        """End the process at its limit of time, or when nobody has waited for it for a moment."""
        begun = wanted = time.monotonic()
        while not is_over.wait(_LOOK_SECONDS):
            now = time.monotonic()
            if self._job.is_wanted:
                wanted = now
            self._is_late = now - begun > self._limits.seconds
            self._is_dropped = now - wanted > _UNWANTED_SECONDS
            if self._is_late or self._is_dropped:
                self._process.kill()
                return

    def _ended(self) -> TrackpermError:
        status = self._process.status()
        if self._is_dropped:
            return _DroppedError("nobody waits for this any more")
        if self._is_late:
            return CapacityError(
                f"the comparison takes longer than {self._limits.seconds:g} seconds, the limit of this"
                " server",
                hint="`trackperm` on the command line has no limit; `TRACKPERM_JOB_SECONDS` raises this one.",
            )
        how = f"signal {-status}" if status < 0 else f"status {status}"
        return TrackpermError(
            f"the process that computed this ended before it was done ({how}); a limit of"
            f" {self._limits.megabytes} MB of memory holds for it",
            hint="try again; if it needs more memory, `trackperm` on the command line has no limit, and"
            " `TRACKPERM_JOB_MB` raises this one.",
        )

    def _answer(self, message: dict[str, Any]) -> None:
        """Replay a request of the process as the caller, and send the answer back as it comes."""
        with temporary_files(), tempfile.SpooledTemporaryFile(_SPOOLED) as body:
            for chunk in self._wire.body():
                body.write(chunk)
            body.seek(0)
            try:
                asked = message["method"], message["target"], message["headers"], body
                answer = self._waited(partial(self._caller.send, *asked))
            except ForbiddenRouteError as error:
                self._wire.send({"status": 403, "reason": "FORBIDDEN", "headers": {}})
                self._wire.send_body([f"{error} is no route of MLflow".encode()])
                return
            try:
                headers = {"Content-Type": answer.headers.get("Content-Type", "")}
                reason = answer.status.partition(" ")[2]
                self._wire.send({"status": answer.status_code, "reason": reason, "headers": headers})
                self._wire.send_body(self._counted(answer))
            finally:
                if not self._is_left:
                    answer.close()

    def _waited(self, call: Callable[[], T]) -> T:
        """Let MLflow do something in a thread of its own, which is left alone where the process has ended.

        MLflow waits longer than any limit of a job for storage that does not answer, and perhaps for ever.

        Raises
        ------
        EOFError
            If the process has ended.
        """
        found: queue.SimpleQueue[Future[T]] = queue.SimpleQueue()

        def do() -> None:
            done: Future[T] = Future()
            try:
                done.set_result(call())
            except BaseException as error:
                done.set_exception(error)
            found.put(done)

        threading.Thread(target=do, name="trackperm-replay", daemon=True).start()
        while True:
            with suppress(queue.Empty):
                return found.get(timeout=_LOOK_SECONDS).result()
            if not self._process.is_alive:
                self._is_left = True
                raise EOFError

    def _counted(self, answer: TestResponse) -> Iterator[bytes]:
        """Pass an answer on, within the limit of what a job may read."""
        self._require_room(answer.content_length or 0)
        chunks = iter(answer.response)
        while data := self._waited(partial(_part, chunks)):
            self._require_room(len(data))
            self._job.update(bytes=self._job.state.bytes + len(data))
            yield data

    def _require_room(self, size: int) -> None:
        limit = self._limits.artifact_megabytes
        found = self._job.state.bytes + size
        if found > limit * 2**20:
            raise CapacityError(
                f"the artifacts have {found / 2**20:,.1f} MB at least, more than {limit} MB, the limit of"
                " this server",
                hint="`trackperm` on the command line has no limit; `TRACKPERM_ARTIFACT_MB` raises this one.",
            )
