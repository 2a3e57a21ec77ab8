"""SQLite file of a queue: created once, opened for each call, changed in whole transactions."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trackperm.errors import QueueError
from trackperm.messages import printable

FILE = "queue.sqlite"
BUSY_SECONDS = 30.0
_VERSION = 2
_MOVE = (
    "stop what uses it and move its whole folder away, which has more files of SQLite; the comparisons are "
    "in the tracker as well."
)
_SCHEMA = f"""
PRAGMA journal_mode = WAL;
PRAGMA user_version = {_VERSION};
CREATE TABLE work (
    queue_key TEXT NOT NULL,
    candidate TEXT NOT NULL,
    policy TEXT NOT NULL,
    source TEXT NOT NULL,
    stamp TEXT,
    state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'claimed', 'done', 'refused')),
    due REAL NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    token TEXT,
    owner TEXT,
    baseline TEXT,
    why TEXT,
    outcome TEXT,
    comparisons TEXT NOT NULL DEFAULT '[]',
    reason TEXT,
    added REAL NOT NULL,
    changed REAL NOT NULL,
    PRIMARY KEY (queue_key, candidate)
);
CREATE INDEX work_due ON work (state, due);
CREATE TABLE delivery (id TEXT PRIMARY KEY, forgotten REAL NOT NULL) WITHOUT ROWID;
"""


def default_folder(policies: Path | None = None) -> Path:
    """Return the folder of the queue: ``TRACKPERM_STATE``, or a folder below ``XDG_STATE_HOME``.

    Unless ``TRACKPERM_STATE`` is set, each policy file has its own folder, named by its path.
    """
    if named := os.environ.get("TRACKPERM_STATE"):
        return Path(named).expanduser()
    home = os.environ.get("XDG_STATE_HOME")
    folder = (Path(home) if home else Path("~/.local/state").expanduser()) / "trackperm"
    if policies is None:
        return folder
    path = policies.expanduser().resolve()
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()
    return folder / f"{path.stem}-{digest[:12]}"


class QueueFile:
    """SQLite file in a folder on a local disk, created if it is missing.

    SQLite's write-ahead log does not work on network file systems. A call waits `busy` seconds for other
    processes. Raise QueueError if the folder cannot be written, or the file is not a queue of this version.
    """

    def __init__(self, folder: Path, busy: float) -> None:
        self.folder = folder
        self.path = folder / FILE
        self.busy = busy
        with self.opened() as rows:
            version = rows.execute("PRAGMA user_version").fetchone()[0]
        if version != _VERSION:
            raise QueueError(
                f"`{printable(self.path)}` is not a queue of this version of trackperm: its version is"
                f" {version}; expected {_VERSION}",
                hint=_MOVE,
            )

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """Open the file; a file that was moved away is created again.

        Raise QueueError if the disk is full, the file is damaged, or another process keeps it locked.
        """
        try:
            if not self.path.exists():
                self._create()
            address = f"{self.path.absolute().as_uri()}?mode=rw"
            connection = sqlite3.connect(address, uri=True, timeout=self.busy)
            try:
                connection.isolation_level = None
                connection.row_factory = sqlite3.Row
                connection.execute("PRAGMA synchronous = FULL")
                yield connection
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise QueueError(
                f"the queue `{printable(self.path)}` cannot be used: {error}", hint=_hint(error)
            ) from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction, which excludes other writers and is undone by an exception."""
        with self.opened() as rows:
            rows.execute("BEGIN IMMEDIATE")
            try:
                yield rows
            except BaseException:
                if rows.in_transaction:  # on a full disk, SQLite may have ended it
                    rows.execute("ROLLBACK")
                raise
            rows.execute("COMMIT")

    def _create(self) -> None:
        """Create the whole file under another name; link it to its final one unless another process did."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, draft = tempfile.mkstemp(dir=self.folder, prefix=f"{FILE}-", suffix=".draft")
            os.close(handle)
            try:
                connection = sqlite3.connect(draft)
                try:
                    connection.executescript(_SCHEMA)
                finally:
                    connection.close()
                with suppress(FileExistsError):
                    os.link(draft, self.path)
            finally:
                for leftover in self.folder.glob(f"{Path(draft).name}*"):
                    leftover.unlink()
        except OSError as error:
            raise QueueError(
                f"the queue cannot be created in `{self.folder}`: {error.strerror or error}",
                hint="`--state FOLDER` or `TRACKPERM_STATE` names a folder that can be written to.",
            ) from error


def _hint(error: sqlite3.Error) -> str:
    if "is full" in str(error):
        return (
            "make room on its disk, or name a folder on another one: `--state FOLDER` or `TRACKPERM_STATE`."
        )
    return f"is the disk full, or does another process keep it locked? If it is damaged, {_MOVE}"
