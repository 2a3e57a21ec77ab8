"""Where jobs run: what becomes of them on a full disk, and of the processes that did them."""

from __future__ import annotations

import multiprocessing
import os
import resource
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from flask import Flask, Request
from support.processes import ROOT, descendants, python
from support.waiting import wait_until
from werkzeug.test import EnvironBuilder

from trackperm.errors import StorageError
from trackperm.server.jobs.limits import Limits
from trackperm.server.jobs.pipe import Pipe
from trackperm.server.jobs.pool import WorkerPool, WorkerProcess
from trackperm.server.jobs.process import ServerAdapter
from trackperm.server.jobs.replay import Caller
from trackperm.server.jobs.requests import read_request
from trackperm.server.jobs.store import STATE_FILE, JobStore
from trackperm.server.jobs.visitors import Visitor

REQUEST = Request(EnvironBuilder().get_environ())
SOMEBODY = Visitor.of(REQUEST, "somebody")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Refuse files of more than 64 bytes to this process; a record has more."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_on_a_full_disk_no_job_begins_and_the_folder_is_named(folder: Path, full_disk: None) -> None:
    with pytest.raises(StorageError, match=rf"temporary files in `{folder}` cannot be written"):
        JobStore().begin(SOMEBODY)


def test_nobody_waits_for_a_job_whose_end_cannot_be_recorded(request: pytest.FixtureRequest) -> None:
    """The disk fills while it waits: its record goes, and the thread that saw to it takes the next one."""
    store, pool = JobStore(), WorkerPool(Limits())
    caller = Caller.of(Flask(__name__), REQUEST, "")
    asked = read_request({"kind": "choices", "runs": ["a"]})
    jobs = [store.begin(SOMEBODY) for _ in range(3)]
    request.getfixturevalue("full_disk")
    for job in jobs:
        pool.submit(job, caller, asked)
    wait_until(lambda: not any(store.find(job.id) for job in jobs), 30.0)
    assert not any((job.folder / STATE_FILE).exists() for job in jobs)


def test_messages_after_an_answer_that_the_disk_cannot_hold_are_understood(full_disk: None) -> None:
    """Otherwise the rest of the answer is taken for messages, and nobody hears of the disk."""
    ours, theirs = multiprocessing.Pipe()
    server, worker = Pipe(ours), Pipe(theirs)

    def answer() -> None:
        server.receive()
        assert not list(server.body())
        server.send({"status": 200, "reason": "OK", "headers": {}})
        server.send_body(bytes(2**20) for _ in range(20))
        server.send({"type": "next"})

    threading.Thread(target=answer, daemon=True).start()
    adapter = ServerAdapter(worker, threading.Lock())
    adapter.base = "http://127.0.0.1"
    with pytest.raises(OSError, match="File too large"):
        adapter.send(requests.Request("GET", "http://127.0.0.1/get-artifact").prepare())
    assert worker.receive() == {"type": "next"}


ENDED = """\
import ctypes, os, sys, tempfile, time
from pathlib import Path
from support.processes import descendants
from trackperm.server.jobs.limits import Limits
from trackperm.server.jobs.pool import WorkerProcess

ctypes.CDLL(None).prctl(36, 1)  # what loses its parent becomes a child of this process, as in a container
process = WorkerProcess(Limits(), Path(tempfile.mkdtemp()))
while len(found := descendants(os.getpid())) < 2:
    time.sleep(0.01)
print(process.end(), len(found))
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("none is left")
"""


@pytest.mark.extended
def test_a_process_that_is_ended_leaves_none_behind() -> None:
    """Not even one that is dead and that nobody takes note of: a container may have no process for that."""
    assert python(ENDED, cwd=ROOT / "tests").splitlines() == ["-9 2", "none is left"]


def test_processes_of_jobs_have_no_secrets(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRACKPERM_MLFLOW_WEBHOOK_SECRET", "MLFLOW_TRACKING_PASSWORD", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "planted-secret")
    monkeypatch.setenv("TRACKPERM_EXPANDED_MB", "77")

    def shown() -> list[bytes]:
        return [Path(f"/proc/{each}/environ").read_bytes() for each in descendants(os.getpid())]

    process = WorkerProcess(Limits(), folder)
    try:
        # a program that has just begun shows no environment for an instant
        wait_until(lambda: any(b"TRACKPERM_EXPANDED_MB=77" in each for each in shown()))
        environments = shown()
    finally:
        process.end()
    assert not any(b"planted-secret" in each for each in environments)


@pytest.mark.extended
def test_a_store_that_does_not_answer_keeps_nobody_waiting() -> None:
    """Regression: jobs stayed as long as MLflow waited, late or cancelled, and so did all after them."""
    app, answers, asked = Flask(__name__), threading.Event(), []

    @app.route("/<path:path>", methods=["GET", "POST"])
    def answer(path: str) -> dict[str, str]:
        asked.append(path)
        if len(asked) <= 2:
            answers.wait()
        return {}

    store, pool, caller = JobStore(), WorkerPool(Limits()), Caller.of(app, REQUEST, "")
    stuck, another = [store.begin(SOMEBODY) for _ in range(2)], store.begin(SOMEBODY)

    try:
        for job in (*stuck, another):
            pool.submit(job, caller, read_request({"kind": "choices", "runs": ["a"]}))
        wait_until(lambda: len(asked) == 2)
        for job in stuck:
            job.cancel()
        wait_until(lambda: (found := store.find(another.id)) is not None and found.state.state == "done")
    finally:
        answers.set()
