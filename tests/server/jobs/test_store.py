"""Job records: who may wait for how many, what expires, whose folder it is."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from trackperm.errors import TrackpermError
from trackperm.server.jobs.limits import PENDING_IN_ALL, PENDING_PER_CALLER
from trackperm.server.jobs.store import RESULT_FILE, STATE_FILE, Job, JobStore, TooManyJobsError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def rewrite(job: Job, **changes: object) -> None:
    path = job.folder / STATE_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_another_process_sees_it() -> None:
    job = JobStore().begin("somebody")
    job.update(state="running", step="reading", done=0.5)
    found = JobStore().find(job.id)
    assert found is not None
    assert found.state == job.state
    assert found.state.is_pending


def test_pending_jobs_of_one_caller_and_of_all() -> None:
    store = JobStore()
    for number in range(PENDING_IN_ALL):
        store.begin(f"caller {number // PENDING_PER_CALLER}")
    with pytest.raises(TooManyJobsError, match="of yours"):
        store.begin("caller 0")
    with pytest.raises(TooManyJobsError, match="on this server"):
        store.begin("another")


def test_job_that_is_over_makes_room() -> None:
    store = JobStore()
    jobs = [store.begin("somebody") for _ in range(PENDING_PER_CALLER)]
    jobs[0].fail(TrackpermError("what was wrong", hint="do better."))
    assert store.begin("somebody").state.is_pending
    found = store.find(jobs[0].id)
    assert found is not None
    assert found.state.error == {"message": "what was wrong", "hint": "do better."}


def test_job_of_a_process_that_is_gone_has_failed() -> None:
    store = JobStore()
    ended = subprocess.Popen(["true"])
    ended.wait(timeout=10)
    job = store.begin("somebody")
    rewrite(job, process=ended.pid, state="running")
    found = store.find(job.id)
    assert found is not None
    assert found.state.state == "failed"
    assert found.state.error is not None
    assert "has ended" in str(found.state.error["message"])


def test_result_stays_though_what_follows_fails() -> None:
    job = JobStore().begin("somebody")
    job.update(state="done", flips="writing")
    job.fail(TrackpermError("too large"))
    assert (job.state.state, job.state.flips, job.state.error) == ("done", "failed", None)


def test_old_results_expire() -> None:
    store = JobStore()
    jobs = [store.begin("somebody") for _ in range(2)]
    for job in jobs:
        job.update(state="done")
        (job.folder / RESULT_FILE).write_text("{}")
    rewrite(jobs[0], changed=0.0)
    store.begin("somebody")
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
    JobStore().begin("somebody")
    assert not old.exists()
    assert other.exists()


def test_folder_of_somebody_else_is_not_used(folder: Path) -> None:
    target = folder / "elsewhere"
    target.mkdir(mode=0o700)
    (folder / f"trackperm-server-{os.getuid()}-{os.getppid()}").symlink_to(target)
    with pytest.raises((TrackpermError, FileExistsError)):
        JobStore().begin("somebody")
    assert not list(target.iterdir())


def test_folder_that_others_can_read_is_not_used(folder: Path) -> None:
    (folder / f"trackperm-server-{os.getuid()}-{os.getppid()}").mkdir(mode=0o755)
    with pytest.raises(TrackpermError, match="belongs to somebody else"):
        JobStore().begin("somebody")


def test_clearing_leaves_what_is_of_others(folder: Path) -> None:
    store = JobStore()
    jobs = [store.begin("somebody") for _ in range(3)]
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
