"""Job records, in a private folder that all processes of one server share: each answers for any job."""

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

from trackperm.errors import CapacityError, TrackpermError
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

STATE_FILE, RESULT_FILE, FLIPS_FILE, SCRATCH = "state.json", "result.json", "flips.sqlite", "scratch"

_NAME = "trackperm-server"
_PAGES, _CANCELLED, _LOCK = "pages", "cancelled", "lock"
_ID = re.compile(r"[0-9a-f]{32}")
_EXPIRY_SECONDS = 3600.0
_MOST_KEPT = 256
_BETWEEN_WRITES = 0.1

Error = dict[str, str | None]


class TooManyJobsError(CapacityError):
    """A visitor, or all visitors together, wait for too many jobs."""


def error_values(error: TrackpermError) -> Error:
    """Return what a page shows of an error, with options by the labels of its fields."""
    return {"message": on_pages(error.message), "hint": error.hint and on_pages(error.hint)}


@dataclass(frozen=True)
class State:
    """What is known of a job.

    Attributes
    ----------
    owner, client, page : str
        Who asked for it, as :class:`Visitor` has it.
    process : int
        The process of the server that runs it.
    reads : list of [str, str, str]
        What one has to be allowed to read, to read its result: route of MLflow, parameter and value.
    is_lasting : bool
        Whether it is done even if its page is gone.
    state : {'waiting', 'running', 'done', 'failed', 'dropped'}
        How far it is. A job is dropped when its page cancels it, or is gone before there is a result.
    step : str
        What is being done, in words.
    done, total : float
        Steps done of all steps; parts of a step count.
    bytes : int
        What was read from the server.
    changed : float
        Unix time of the last change.
    error : dict or None
        Message and hint, where it failed.
    flips : {'none', 'writing', 'ready', 'failed'}
        Whether there is a table of the examples that changed; it is written after the result.
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
    flips: Literal["none", "writing", "ready", "failed"] = "none"

    @property
    def is_pending(self) -> bool:
        """Whether there is no result yet."""
        return self.state in ("waiting", "running")


class Job:
    """One job and its folder.

    Parameters
    ----------
    folder : Path
        Where it is.
    state : State
        What is known of it; only the process that runs the job changes that.
    """

    def __init__(self, folder: Path, state: State) -> None:
        self.folder = folder
        self.state = state
        self._written = 0.0

    @property
    def id(self) -> str:
        """What callers know it by."""
        return self.folder.name

    def update(self, **changes: Any) -> None:
        """Note what has changed; on disk at once where that matters, else soon.

        Raises
        ------
        StorageError
            If there is no room for it on disk.
        """
        now = time.time()
        matters = (
            "state" in changes
            or "flips" in changes
            or changes.get("step", self.state.step) != self.state.step
        )
        self.state = replace(self.state, **changes, changed=now)
        if matters or now - self._written > _BETWEEN_WRITES:
            self._written = now
            self._write()

    def fail(self, error: TrackpermError) -> None:
        """Note that it failed, and why; a result that there is already stays."""
        if self.state.is_pending:
            self._conclude(state="failed", error=error_values(error))
        else:
            self._conclude(flips="failed")

    @property
    def is_wanted(self) -> bool:
        """Whether anybody waits for it still, or has its result."""
        return not self.state.is_pending or _is_wanted(self.folder, self.state)

    def cancel(self) -> None:
        """Let it be dropped by the process that runs it."""
        if self.state.is_pending:
            with suppress(FileNotFoundError), temporary_files():
                (self.folder / _CANCELLED).touch()

    def drop(self) -> None:
        """Note that nobody waited for it any more."""
        if self.state.is_pending:
            self._conclude(state="dropped")

    def _conclude(self, **changes: Any) -> None:
        """Note how it ended, for which room is made; else the record goes: nobody waits for it for ever."""
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

    The folder is called after the parent of this process, which the processes of one server share.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None

    def begin(
        self, visitor: Visitor, reads: Sequence[Sequence[str]] = (), *, is_lasting: bool = False
    ) -> Job:
        """Make the record of a new job.

        Parameters
        ----------
        visitor : Visitor
            Who asks for it.
        reads, is_lasting
            As :class:`State` has them.

        Raises
        ------
        TooManyJobsError
            If too many jobs wait already.
        StorageError
            If there is no room for it on disk.
        """
        with temporary_files(), self.locked() as folder:
            known = [(path, _read(path)) for path in _jobs(folder)]
            _require_room(visitor, [state for _, state in known if state is not None and state.is_pending])
            _expire(folder, known)
            path = folder / secrets.token_hex(16)
            (path / SCRATCH).mkdir(parents=True, mode=0o700)
            self.hear(visitor)
            job = Job(
                path,
                State(
                    visitor.owner,
                    visitor.client,
                    visitor.page,
                    os.getpid(),
                    reads=[list(each) for each in reads],
                    is_lasting=is_lasting,
                ),
            )
            job.update(state="waiting")
        return job

    def hear(self, visitor: Visitor) -> None:
        """Note that the page of a visitor is there."""
        path = self._shared() / _PAGES / visitor.page
        try:
            path.touch()
        except FileNotFoundError:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            path.touch()

    def find(self, job_id: str) -> Job | None:
        """Find a job by its id."""
        if not _ID.fullmatch(job_id):
            return None
        path = self._shared() / job_id
        state = _read(path)
        return None if state is None else Job(path, state)

    def clear(self) -> None:
        """Remove what this process leaves behind."""
        if self._folder is not None:
            clear(self._folder, os.getpid())

    @contextmanager
    def locked(self) -> Iterator[Path]:
        """Let one process of the server at a time do something; gives the folder of all jobs."""
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
    """Make the folder of this server, which nobody else can read, and remove those of servers that ended.

    Raises
    ------
    TrackpermError
        If somebody else has made it.
    """
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
            f"`{folder}` belongs to somebody else, so that no comparison can be kept there",
            hint="remove it, or start the server with another `TMPDIR`.",
        )
    return folder


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Let one process at a time do something in a folder; gives False where it is gone meanwhile."""
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
    """Remove the jobs of a process that ends; of one that was not done the record stays."""
    for path in _jobs(folder):
        try:
            state = State(**json.loads((path / STATE_FILE).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            continue
        if state.process != process:
            continue
        if not state.is_pending:
            shutil.rmtree(path, ignore_errors=True)
            continue
        shutil.rmtree(path / SCRATCH, ignore_errors=True)
        for name in (RESULT_FILE, FLIPS_FILE):
            (path / name).unlink(missing_ok=True)
    with suppress(OSError), _locked(folder) as is_locked:  # others begin no job meanwhile
        if is_locked and not _jobs(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _jobs(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*") if _ID.fullmatch(path.name)]


def _read(path: Path) -> State | None:
    """Read a record; a job whose process is gone has failed, and one that nobody waits for is dropped."""
    try:
        state = State(**json.loads((path / STATE_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    if _is_alive(state.process):
        return state if not state.is_pending or _is_wanted(path, state) else replace(state, state="dropped")
    if not state.is_pending:
        return replace(state, flips="failed") if state.flips == "writing" else state
    ended = TrackpermError("the server's process that ran this has ended", hint="try again.")
    return replace(state, state="failed", error=error_values(ended))


def _is_wanted(path: Path, state: State) -> bool:
    """Whether the page of a job without a result is there, and has not cancelled it."""
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
    """Refuse a job where too many wait already: of a page, of a client, or in all.

    Raises
    ------
    TooManyJobsError
        If so.
    """
    of_client, most_of_client = ("of yours", PENDING_PER_USER)
    if not visitor.is_user:
        of_client, most_of_client = ("from your network address", PENDING_PER_ADDRESS)
    bounds = [
        (sum(state.client == visitor.client for state in pending), most_of_client, of_client),
        (len(pending), PENDING_IN_ALL, "on this server"),
    ]
    if visitor.is_page:
        n_of_page = sum(state.page == visitor.page for state in pending)
        bounds.insert(0, (n_of_page, PENDING_PER_PAGE, "of this page"))
    for found, most, whose in bounds:
        if found >= most:
            raise TooManyJobsError(
                f"{most} comparisons {whose} wait or are being computed, which is the limit",
                hint="wait until one is done; `trackperm compare` on the command line has no such limit.",
            )


def _expire(folder: Path, known: list[tuple[Path, State | None]]) -> None:
    """Remove old results, the oldest of too many, and what is known of pages that are long gone."""
    for page in folder.glob(f"{_PAGES}/*"):
        if time.time() - page.stat().st_mtime > _EXPIRY_SECONDS:
            page.unlink(missing_ok=True)
    for path, state in known:
        if state is None:
            shutil.rmtree(path, ignore_errors=True)
    kept = [(path, state) for path, state in known if state is not None and not state.is_pending]
    kept.sort(key=lambda each: each[1].changed, reverse=True)
    for number, (path, state) in enumerate(kept):
        if number >= _MOST_KEPT or time.time() - state.changed > _EXPIRY_SECONDS:
            shutil.rmtree(path, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
