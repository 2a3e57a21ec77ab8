"""Job records: who may wait for how many, what expires, whose folder it is."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest
from flask import Request
from werkzeug.test import EnvironBuilder

from trackperm.errors import TooManyJobsError, TrackpermError
from trackperm.server.jobs import store as store_module
from trackperm.server.jobs.limits import (
    PENDING_IN_ALL,
    PENDING_PER_ADDRESS,
    PENDING_PER_PAGE,
    PENDING_PER_USER,
)
from trackperm.server.jobs.store import RESULT_FILE, STATE_FILE, Job, JobStore
from trackperm.server.jobs.visitors import Visitor


def page_at(name: str, address: str = "198.51.100.1", user: str | None = None) -> Visitor:
    """Return the visitor of a page at an address."""
    token = hashlib.sha256(name.encode()).hexdigest()
    environ = {"REMOTE_ADDR": address, "HTTP_X_TRACKPERM_PAGE": token}
    return Visitor.of(Request(EnvironBuilder().get_environ() | environ), user)


SOMEBODY = page_at("somebody")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def rewrite(job: Job, **changes: object) -> None:
    path = job.folder / STATE_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_another_process_sees_it() -> None:
    job = JobStore().begin(SOMEBODY)
    job.update(state="running", step="reading", done=0.5)
    found = JobStore().find(job.id)
    assert found.state == job.state
    assert found.state.is_pending


def test_pending_jobs_of_a_page_and_of_an_address_and_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "PENDING_PER_ADDRESS", 40)
    monkeypatch.setattr(store_module, "PENDING_IN_ALL", 50)
    store = JobStore()
    for _ in range(PENDING_PER_PAGE):
        store.begin(page_at("one"))
    with pytest.raises(TooManyJobsError, match=f"{PENDING_PER_PAGE} comparisons of this page"):
        store.begin(page_at("one"))
    for number in range(40 - PENDING_PER_PAGE):
        store.begin(page_at(f"made up {number}"))
    with pytest.raises(TooManyJobsError, match="from your network address"):
        store.begin(page_at("made up once more"))
    for number in range(10):
        store.begin(page_at(f"honest {number}", address=f"203.0.113.{number}"))
    with pytest.raises(TooManyJobsError, match="on this server"):
        store.begin(page_at("another", address="192.0.2.1"))


def test_fifty_visitors_behind_one_address_find_room() -> None:
    """With five jobs each, and one more about what there is to choose from."""
    assert 50 * 6 <= PENDING_PER_ADDRESS < PENDING_IN_ALL


def test_pending_jobs_of_a_user() -> None:
    store = JobStore()
    for number in range(PENDING_PER_USER):
        store.begin(page_at(f"tab {number}", user="ann"))
    with pytest.raises(TooManyJobsError, match=f"{PENDING_PER_USER} comparisons of yours"):
        store.begin(page_at("one more tab", user="ann", address="192.0.2.7"))
    assert store.begin(page_at("tab", user="bob")).state.is_pending


def test_job_that_is_over_makes_room() -> None:
    store = JobStore()
    jobs = [store.begin(page_at("one")) for _ in range(PENDING_PER_PAGE)]
    jobs[0].fail(TrackpermError("what was wrong", hint="do better."))
    jobs[1].cancel()
    assert store.begin(page_at("one")).state.is_pending
    assert store.begin(page_at("one")).state.is_pending
    with pytest.raises(TooManyJobsError):
        store.begin(page_at("one"))
    found = store.find(jobs[0].id)
    assert found is not None
    assert found.state.error == {"message": "what was wrong", "hint": "do better."}


def test_job_of_a_page_that_is_gone_is_dropped(folder: Path) -> None:
    """Not so where it logs, has its result, or the page is heard of again."""
    store = JobStore()
    waits, logs, done = (store.begin(page_at("gone"), is_lasting=lasting) for lasting in (False, True, False))
    done.update(state="done")
    (heard,) = folder.glob("trackperm-server-*/pages/*")
    os.utime(heard, (time.time() - 65.0,) * 2)  # as often as browsers let a page in the background ask
    assert waits.is_wanted
    os.utime(heard, (0, 0))
    assert [job.is_wanted for job in (waits, logs, done)] == [False, True, True]
    found = [store.find(job.id) for job in (waits, logs, done)]
    assert [None if job is None else job.state.state for job in found] == ["dropped", "waiting", "done"]
    store.hear(page_at("gone"))
    assert waits.is_wanted
    os.utime(heard, (0, 0))
    waits.drop()
    store.begin(page_at("another"))
    assert not heard.exists()  # nobody has heard of it for an hour
    assert [path.name for path in waits.folder.iterdir()] == [STATE_FILE]


def test_job_of_a_process_that_is_gone_has_failed() -> None:
    store = JobStore()
    ended = subprocess.Popen(["true"])
    ended.wait(timeout=10)
    job = store.begin(SOMEBODY)
    rewrite(job, process=ended.pid, state="running")
    found = store.find(job.id)
    assert found.state.state == "failed"
    assert "has ended" in str(found.state.error["message"])


def test_result_stays_though_what_follows_fails() -> None:
    job = JobStore().begin(SOMEBODY)
    job.update(state="done", changed_table="writing")
    job.fail(TrackpermError("too large"))
    assert (job.state.state, job.state.changed_table, job.state.error) == ("done", "failed", None)


def test_old_results_expire() -> None:
    store = JobStore()
    jobs = [store.begin(SOMEBODY) for _ in range(2)]
    for job in jobs:
        job.update(state="done")
        (job.folder / RESULT_FILE).write_text("{}")
    rewrite(jobs[0], changed=0.0)
    store.begin(SOMEBODY)
    assert store.find(jobs[0].id) is None
    assert not jobs[0].folder.exists()
    assert store.find(jobs[1].id) is not None


def test_folders_of_servers_that_ended_are_removed(folder: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait(timeout=10)
    old = folder / f"trackperm-server-{os.getuid()}-{ended.pid}"
    other = folder / f"trackperm-server-{os.getuid()}-{os.getpid()}"
    for path in (old, other):
        path.mkdir()
    JobStore().begin(SOMEBODY)
    assert not old.exists()
    assert other.exists()


def test_folder_of_somebody_else_is_not_used(folder: Path) -> None:
    target = folder / "elsewhere"
    target.mkdir(mode=0o700)
    (folder / f"trackperm-server-{os.getuid()}-{os.getppid()}").symlink_to(target)
    with pytest.raises((TrackpermError, FileExistsError)):
        JobStore().begin(SOMEBODY)
    assert not list(target.iterdir())


def test_folder_that_others_can_read_is_not_used(folder: Path) -> None:
    (folder / f"trackperm-server-{os.getuid()}-{os.getppid()}").mkdir(mode=0o755)
    with pytest.raises(TrackpermError, match="is owned by another user"):
        JobStore().begin(SOMEBODY)


def test_clearing_leaves_what_is_of_others(folder: Path) -> None:
    store = JobStore()
    jobs = [store.begin(SOMEBODY) for _ in range(3)]
    for job in jobs[:2]:
        job.update(state="done")
    rewrite(jobs[1], process=os.getppid())
    store.clear()
    assert not jobs[0].folder.exists()
    assert [path.name for path in jobs[2].folder.iterdir()] == [STATE_FILE]
    jobs[2].update(state="failed")
    assert jobs[1].folder.exists()
    rewrite(jobs[1], process=os.getpid())
    store.clear()
    assert not list(folder.iterdir())


def test_a_process_that_ends_takes_the_folder_from_none_that_begins_a_job() -> None:
    store = JobStore()
    with store.locked() as folder:
        ending = threading.Thread(target=store_module.clear, args=(folder, os.getpid()))
        ending.start()
        ending.join(0.3)
        assert ending.is_alive()
        assert folder.is_dir()
    ending.join()
    assert not folder.exists()


def test_who_waits_for_a_folder_that_goes_gets_another_that_is_private() -> None:
    """Regression: it began its job in a folder that was made on the way, for everybody to read."""
    store, begun = JobStore(), []
    with store.locked() as folder:
        waiting = threading.Thread(target=lambda: begun.append(store.begin(SOMEBODY)))
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        shutil.rmtree(folder)
    waiting.join()
    assert store.find(begun[0].id) is not None
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
