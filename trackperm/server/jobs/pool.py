"""Pool of worker processes that run jobs outside the server process."""

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

from trackperm.errors import CapacityError, DroppedJobError, ForbiddenRouteError, TrackpermError
from trackperm.server.jobs.fair_queue import FairQueue
from trackperm.server.jobs.limits import Limits
from trackperm.server.jobs.pipe import Pipe, gathered
from trackperm.server.jobs.replay import Caller
from trackperm.server.jobs.requests import JobRequest
from trackperm.server.jobs.store import Job
from trackperm.storage import temporary_files

_PROCESSES = 2
"""Worker processes; each may take the memory of a whole job, and a small server has about two processors."""

_IDLE_SECONDS = 600.0
_CHECK_SECONDS = 0.25
_ENDING_SECONDS = 30.0
_UNWANTED_SECONDS = 2.0
"""Time that an unwanted job has to end by itself: a new process, which loads MLflow, takes longer."""

_GROWN_MEGABYTES = 1024
"""Resident memory beyond which a worker is replaced: allocators do not return all of it."""

_SPOOLED = 2**23
_INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH")
_LOGGER = logging.getLogger(__name__)

T = TypeVar("T")


class _QueuedJob(NamedTuple):
    job: Job
    caller: Caller
    request: JobRequest


class WorkerPool:
    """Pool that runs at most two jobs at a time, in worker processes that are reused; visitors take turns."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._queue: FairQueue[_QueuedJob] = FairQueue()
        self._lock = threading.Lock()
        self._threads: list[WorkerThread] = []

    def submit(self, job: Job, caller: Caller, request: JobRequest) -> None:
        """Run `job` as `caller`, when it is its turn and a worker process is free."""
        for queued in self._queue.remove(lambda queued: not queued.job.is_wanted):
            queued.job.drop()
        with self._lock:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            busy = sum(thread.is_busy for thread in self._threads)
            if busy + len(self._queue) >= len(self._threads) and len(self._threads) < _PROCESSES:
                thread = WorkerThread(self._queue, self._limits)
                self._threads.append(thread)
                thread.start()
        self._queue.put(_QueuedJob(job, caller, request), job.state.client, job.state.page)


class WorkerThread(threading.Thread):
    """Thread that runs one job after another in at most one worker process."""

    def __init__(self, queued: FairQueue[_QueuedJob], limits: Limits) -> None:
        super().__init__(name="trackperm-worker", daemon=True)
        self.is_busy = False
        self._queue = queued
        self._limits = limits
        self._process: WorkerProcess | None = None

    def run(self) -> None:
        """Run jobs without end; a worker process that is idle for ten minutes is ended."""
        while True:
            try:
                queued = self._queue.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                self._end()
                continue
            self.is_busy = True
            try:
                self._run_job(queued)
            except Exception:
                _LOGGER.exception("a comparison failed")
                fault = TrackpermError("a fault in trackperm itself", hint="the server's log says where.")
                queued.job.fail(fault)
                self._end()
            finally:
                self.is_busy = False
                self._queue.done(queued.job.state.client, queued.job.state.page)

    def _run_job(self, queued: _QueuedJob) -> None:
        job = queued.job
        if not job.is_wanted:
            job.drop()
            return
        if self._process is not None and not self._process.is_alive:
            self._end()
        try:
            if self._process is None:
                job.update(step="starting")
                self._process = WorkerProcess(self._limits, job.folder.parent)
            if _Conversation(self._process, queued, self._limits).finish():
                return
        except DroppedJobError:
            job.drop()
        except TrackpermError as error:
            job.fail(error)
        self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None


class WorkerProcess:
    """Worker process with only the variables of the server's environment that Python needs."""

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
            start_new_session=True,  # signals of a terminal do not reach it
        )
        theirs.close()
        self.pipe = Pipe(ours)

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill the worker, and all processes that it started."""
        self._process.terminate()  # the guard of the worker receives it

    def end(self) -> int:
        """Kill the worker, wait for its end, and return its exit status."""
        self.kill()
        try:
            status = self._process.wait(timeout=_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        # not earlier: the guard takes a closed standard input for the end of the server
        if self._process.stdin is not None:
            self._process.stdin.close()
        self.pipe.close()
        return status

    def status(self) -> int:
        """Wait for the end of a worker that closed its pipe, and return its exit status."""
        try:
            return self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return self.end()


class _Conversation:
    """Conversation with a worker process about one job: answers its requests, and updates the record."""

    def __init__(self, process: WorkerProcess, queued: _QueuedJob, limits: Limits) -> None:
        self._process = process
        self._pipe = process.pipe
        self._job, self._caller, self._request = queued
        self._limits = limits
        self._is_late = self._is_dropped = self._is_left = False

    def finish(self) -> bool:
        """Run the job to its end, and return whether the process can be used again.

        Raise DroppedJobError if nobody waits for the job any more, and TrackpermError if the process ended,
        or exceeded a limit.
        """
        is_over = threading.Event()
        threading.Thread(target=self._watch, args=(is_over,), daemon=True).start()
        try:
            request = self._request.model_dump()
            self._pipe.send({"base": self._caller.base, "folder": str(self._job.folder), "request": request})
            self._job.update(state="running")
            while True:
                message = self._pipe.receive()
                if message["type"] == "request":
                    self._answer(message)
                elif message["type"] == "step":
                    del message["type"]
                    self._job.update(**message)
                elif message["type"] == "done":
                    total, table = self._job.state.total, message["changed_table"]
                    self._job.update(state="done", step="done", done=total, changed_table=table)
                elif message["type"] == "changed_table":
                    self._job.update(changed_table="ready")
                elif message["type"] == "failed":
                    self._job.fail(TrackpermError(message["error"]["message"], hint=message["error"]["hint"]))
                elif message["type"] == "finished":
                    return bool(message["grown"] < _GROWN_MEGABYTES)
        except TrackpermError:  # a full disk, which is an OSError too, does not mean that the process ended
            raise
        except (EOFError, OSError) as error:
            raise self._ended() from error
        finally:
            is_over.set()

    def _watch(self, is_over: threading.Event) -> None:
        """Kill the process at its time limit, or when nobody has waited for the job for two seconds."""
        begun = wanted = time.monotonic()
        while not is_over.wait(_CHECK_SECONDS):
            now = time.monotonic()
            if self._job.is_wanted:
                wanted = now
            self._is_late = now - begun > self._limits.seconds
            self._is_dropped = now - wanted > _UNWANTED_SECONDS
            if self._is_late or self._is_dropped:
                self._process.kill()
                return

    def _ended(self) -> TrackpermError:
        """Describe why the process ended."""
        status = self._process.status()
        if self._is_dropped:
            return DroppedJobError("nobody waits for this job any more")
        if self._is_late:
            return CapacityError(
                f"the comparison takes longer than {self._limits.seconds:g} seconds, the limit of this"
                " server",
                hint="`trackperm` on the command line has no limit; `TRACKPERM_JOB_SECONDS` raises this one.",
            )
        how = f"signal {-status}" if status < 0 else f"status {status}"
        return TrackpermError(
            f"the worker process ended before the job was done ({how}); its memory limit is"
            f" {self._limits.megabytes} MB",
            hint="try again; if it needs more memory, `trackperm` on the command line has no limit, and"
            " `TRACKPERM_JOB_MB` raises this one.",
        )

    def _answer(self, message: dict[str, Any]) -> None:
        """Replay a request of the worker as the caller, and stream the answer to the worker."""
        with temporary_files(), tempfile.SpooledTemporaryFile(_SPOOLED) as body:
            for chunk in self._pipe.body():
                body.write(chunk)
            body.seek(0)
            request = message["method"], message["target"], message["headers"], body
            try:
                answer = self._waited(partial(self._caller.send, *request))
            except ForbiddenRouteError as error:
                self._pipe.send({"status": 403, "reason": "FORBIDDEN", "headers": {}})
                self._pipe.send_body([error.message.encode()])
                return
            try:
                headers = {"Content-Type": answer.headers.get("Content-Type", "")}
                reason = answer.status.partition(" ")[2]
                self._pipe.send({"status": answer.status_code, "reason": reason, "headers": headers})
                self._pipe.send_body(self._counted(answer))
            finally:
                if not self._is_left:
                    answer.close()

    def _waited(self, call: Callable[[], T]) -> T:
        """Run a call to MLflow in a thread of its own, and abandon the thread if the worker has ended.

        MLflow may wait for storage longer than the limit of a job, perhaps without end. Raise EOFError if the
        worker has ended.
        """
        found: queue.SimpleQueue[Future[T]] = queue.SimpleQueue()

        def run() -> None:
            done: Future[T] = Future()
            try:
                done.set_result(call())
            except BaseException as error:
                done.set_exception(error)
            found.put(done)

        threading.Thread(target=run, name="trackperm-replay", daemon=True).start()
        while True:
            with suppress(queue.Empty):
                return found.get(timeout=_CHECK_SECONDS).result()
            if not self._process.is_alive:
                self._is_left = True
                raise EOFError

    def _counted(self, answer: TestResponse) -> Iterator[bytes]:
        """Yield the body of an answer, up to the limit on what a job reads."""
        self._require_room(answer.content_length or 0)
        chunks = gathered(answer.response)
        while data := self._waited(partial(next, chunks, b"")):
            self._require_room(len(data))
            self._job.update(bytes=self._job.state.bytes + len(data))
            yield data

    def _require_room(self, size: int) -> None:
        limit = self._limits.artifact_megabytes
        found = self._job.state.bytes + size
        if found > limit * 2**20:
            raise CapacityError(
                f"the artifacts have at least {found / 2**20:,.1f} MB; this server reads at most {limit} MB",
                hint="`trackperm` on the command line has no limit; `TRACKPERM_ARTIFACT_MB` raises this one.",
            )
