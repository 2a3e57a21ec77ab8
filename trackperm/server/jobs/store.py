"""Job records in a private folder that all processes of one server share: each answers about any job."""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from trackperm.errors import TooManyJobsError, TrackpermError
from trackperm.option_names import on_pages
from trackperm.server.jobs.limits import (
    GONE_SECONDS,
    PENDING_IN_ALL,
    PENDING_PER_ADDRESS,
    PENDING_PER_PAGE,
    PENDING_PER_USER,
)
from trackperm.server.jobs.visitors import Visitor
from trackperm.storage import temporary_files

STATE_FILE, RESULT_FILE, CHANGED_FILE, SCRATCH = "state.json", "result.json", "changed.sqlite", "scratch"

_NAME = "trackperm-server"
_PAGES, _CANCELLED, _LOCK = "pages", "cancelled", "lock"
_ID = re.compile(r"[0-9a-f]{32}")
_EXPIRY_SECONDS = 3600.0
_MOST_KEPT = 256
"""Results on disk; the oldest is removed when another one is made."""

_BETWEEN_WRITES = 0.1
"""Seconds between two writes of the progress; pages read it every two seconds."""

Error = dict[str, str | None]


def error_values(error: TrackpermError) -> Error:
    """Return message and hint as a page shows them, with labels of its fields in place of options."""
    return {"message": on_pages(error.message), "hint": error.hint and on_pages(error.hint)}


@dataclass(frozen=True)
class State:
    """State of a job.

    Attributes
    ----------
    owner, client, page : str
        Digests of the visitor, as in :class:`Visitor`.
    process : int
        Id of the server process that runs the job.
    reads : list of [str, str, str]
        Permissions that reading the result requires: route of MLflow, parameter and value.
    is_lasting : bool
        Whether the job is finished even if its page is closed.
    state : {'waiting', 'running', 'done', 'failed', 'dropped'}
        Progress. A job is dropped when its page cancels it, or is closed before there is a result.
    step : str
        The current step, in words.
    done, total : float
        Steps done and all steps; a step may be done in part.
    bytes : int
        Bytes that were read from the server.
    changed : float
        Unix time of the last change.
    error : dict or None
        Message and hint of a failed job.
    changed_table : {'none', 'writing', 'ready', 'failed'}
        State of the table of changed examples, which is written after the result.
    """

    owner: str
    client: str
    page: str
    process: int
    reads: list[list[str]] = field(default_factory=list)
    is_lasting: bool = False
    state: Literal["waiting", "running", "done", "failed", "dropped"] = "waiting"
    step: str = "waiting"
    done: float = 0.0
    total: float = 1.0
    bytes: int = 0
    changed: float = 0.0
    error: Error | None = None
    changed_table: Literal["none", "writing", "ready", "failed"] = "none"

    @property
    def is_pending(self) -> bool:
        """Whether the job has not ended yet."""
        return self.state in ("waiting", "running")


class Job:
    """One job and its folder; only the process that runs the job changes its state."""

    def __init__(self, folder: Path, state: State) -> None:
        self.folder = folder
        self.state = state
        self._written = 0.0

    @property
    def id(self) -> str:
        """Identifier of the job, 32 hexadecimal digits."""
        return self.folder.name

    @property
    def is_wanted(self) -> bool:
        """Whether the job has ended, or somebody waits for it."""
        return not self.state.is_pending or _is_wanted(self.folder, self.state)

    def update(self, **changes: Any) -> None:
        """Change the state; a new step or state is on disk at once, other progress soon.

        Raise StorageError if the disk is full.
        """
        now = time.time()
        is_new = changes.get("step", self.state.step) != self.state.step
        self.state = replace(self.state, **changes, changed=now)
        if is_new or {"state", "changed_table"} & changes.keys() or now - self._written > _BETWEEN_WRITES:
            self._written = now
            self._write()

    def fail(self, error: TrackpermError) -> None:
        """Record a failure; a result that is there already stays."""
        if self.state.is_pending:
            self._conclude(state="failed", error=error_values(error))
        else:
            self._conclude(changed_table="failed")

    def cancel(self) -> None:
        """Ask the process that runs the job to drop it."""
        if self.state.is_pending:
            with suppress(FileNotFoundError), temporary_files():
                (self.folder / _CANCELLED).touch()

    def drop(self) -> None:
        """Record that nobody waits for the job any more."""
        if self.state.is_pending:
            self._conclude(state="dropped")

    def _conclude(self, **changes: Any) -> None:
        """Record the end of the job. On a full disk, remove the job, so that no page waits for it."""
        shutil.rmtree(self.folder / SCRATCH, ignore_errors=True)
        try:
            try:
                self.update(**changes)
            except OSError:
                (self.folder / STATE_FILE).unlink(missing_ok=True)
                self._write()
        except OSError:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _write(self) -> None:
        target = self.folder / STATE_FILE
        draft = target.with_suffix(".draft")
        # the folder may have expired in the meantime
        with suppress(FileNotFoundError), temporary_files():
            draft.write_text(json.dumps(asdict(self.state)), encoding="utf-8")
            draft.replace(target)


class JobStore:
    """All jobs of one server.

    The name of the folder has the id of the parent process, which the processes of one server share.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None

    def begin(
        self, visitor: Visitor, reads: Sequence[Sequence[str]] = (), *, is_lasting: bool = False
    ) -> Job:
        """Create the record of a new job; `reads` and `is_lasting` are as in :class:`State`.

        Raise TooManyJobsError if too many jobs are pending, and StorageError if the disk is full.
        """
        with temporary_files(), self.locked() as folder:
            known = [(path, _read(path)) for path in _jobs(folder)]
            _require_room(visitor, [state for _, state in known if state is not None and state.is_pending])
            _expire(folder, known)
            path = folder / secrets.token_hex(16)
            (path / SCRATCH).mkdir(parents=True, mode=0o700)
            self.hear(visitor)
            state = State(
                visitor.owner,
                visitor.client,
                visitor.page,
                os.getpid(),
                reads=[list(each) for each in reads],
                is_lasting=is_lasting,
            )
            job = Job(path, state)
            job.update(state="waiting")
        return job

    def hear(self, visitor: Visitor) -> None:
        """Record that the page of a visitor is open."""
        path = self._shared() / _PAGES / visitor.page
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.touch()

    def find(self, job_id: str) -> Job | None:
        """Return the job with that id, or None."""
        if not _ID.fullmatch(job_id):
            return None
        path = self._shared() / job_id
        state = _read(path)
        return None if state is None else Job(path, state)

    def clear(self) -> None:
        """Remove the jobs of this process."""
        if self._folder is not None:
            clear(self._folder, os.getpid())

    @contextmanager
    def locked(self) -> Iterator[Path]:
        """Lock the folder of all jobs for one process of the server at a time; yields the folder."""
        while True:
            folder = self._shared()
            with _locked(folder) as is_locked:
                if is_locked:
                    yield folder
                    return

    def _shared(self) -> Path:
        if self._folder is None or not self._folder.is_dir():
            self._folder = _private_folder()
        return self._folder


def _private_folder() -> Path:
    """Create the folder of this server, readable by its user alone; remove folders of servers that ended."""
    own = f"{_NAME}-{os.getuid()}-"
    folder = Path(tempfile.gettempdir(), f"{own}{os.getppid()}")
    for other in folder.parent.glob(f"{own}*"):
        parent = other.name.removeprefix(own)
        if other != folder and parent.isdecimal() and not _is_alive(int(parent)):
            shutil.rmtree(other, ignore_errors=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise TrackpermError(
            f"`{folder}` is owned by another user; results cannot be stored there",
            hint="remove it, or start the server with another `TMPDIR`.",
        )
    return folder


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Hold the lock of a folder; yields False if the folder was removed in the meantime."""
    path = folder / _LOCK
    try:
        lock = path.open("a")
    except FileNotFoundError:
        yield False
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            is_there = os.path.samestat(os.fstat(lock.fileno()), path.stat())
        except FileNotFoundError:
            is_there = False
        yield is_there


def clear(folder: Path, process: int) -> None:
    """Remove the jobs of a process that ends; the record of a pending job stays, for its page to read."""
    for path in _jobs(folder):
        state = _parsed(path)
        if state is None or state.process != process:
            continue
        if not state.is_pending:
            shutil.rmtree(path, ignore_errors=True)
            continue
        shutil.rmtree(path / SCRATCH, ignore_errors=True)
        for name in (RESULT_FILE, CHANGED_FILE):
            (path / name).unlink(missing_ok=True)
    with suppress(OSError), _locked(folder) as is_locked:  # no other process begins a job meanwhile
        if is_locked and not _jobs(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _jobs(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*") if _ID.fullmatch(path.name)]


def _parsed(path: Path) -> State | None:
    try:
        return State(**json.loads((path / STATE_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _read(path: Path) -> State | None:
    """Read a record. A pending job fails with its process, and is dropped when nobody waits for it."""
    state = _parsed(path)
    if state is None:
        return None
    if _is_alive(state.process):
        return state if not state.is_pending or _is_wanted(path, state) else replace(state, state="dropped")
    if not state.is_pending:
        return replace(state, changed_table="failed") if state.changed_table == "writing" else state
    ended = TrackpermError("the server process that ran this job has ended", hint="try again.")
    return replace(state, state="failed", error=error_values(ended))


def _is_wanted(path: Path, state: State) -> bool:
    """Whether the page of a pending job is open and has not cancelled it."""
    if (path / _CANCELLED).exists():
        return False
    if state.is_lasting:
        return True
    try:
        heard = (path.parent / _PAGES / state.page).stat().st_mtime
    except FileNotFoundError:
        return False
    return time.time() - heard < GONE_SECONDS


def _require_room(visitor: Visitor, pending: Sequence[State]) -> None:
    """Refuse a job if too many are pending already: of its page, of its client, or in all."""
    bounds = [(sum(state.page == visitor.page for state in pending), PENDING_PER_PAGE, "of this page")]
    of_client = sum(state.client == visitor.client for state in pending)
    if visitor.is_user:
        bounds.append((of_client, PENDING_PER_USER, "of yours"))
    else:
        bounds.append((of_client, PENDING_PER_ADDRESS, "from your network address"))
    bounds.append((len(pending), PENDING_IN_ALL, "on this server"))
    for found, most, whose in bounds if visitor.is_page else bounds[1:]:
        if found >= most:
            raise TooManyJobsError(
                f"{found} comparisons {whose} are pending; the limit is {most}",
                hint="wait until one is done; `trackperm compare` on the command line has no such limit.",
            )


def _expire(folder: Path, known: list[tuple[Path, State | None]]) -> None:
    """Remove unreadable records, old results, the oldest of too many results, and traces of closed pages."""
    for page in folder.glob(f"{_PAGES}/*"):
        if time.time() - page.stat().st_mtime > _EXPIRY_SECONDS:
            page.unlink(missing_ok=True)
    kept = []
    for path, state in known:
        if state is None:
            shutil.rmtree(path, ignore_errors=True)
        elif not state.is_pending:
            kept.append((state.changed, path))
    kept.sort(reverse=True)
    for number, (changed, path) in enumerate(kept):
        if number >= _MOST_KEPT or time.time() - changed > _EXPIRY_SECONDS:
            shutil.rmtree(path, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
