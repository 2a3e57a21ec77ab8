"""Queue of comparisons that all processes of one machine share, in one SQLite file.

A task is a policy and a candidate, which together are the primary key: adding the same task twice, by
polling, webhook or hook, adds nothing. A row is ``waiting``, ``claimed``, ``done`` or ``refused``. Rows
change in transactions that begin ``IMMEDIATE``, one writer at a time, and changes are on disk when a call
returns.

When a process dies, by ``kill -9`` or with its machine,

* before or in a transaction: SQLite undoes the transaction when the file is next opened.
* after :meth:`Queue.add`: the row waits, and any worker takes it.
* after :meth:`Queue.claim`: the lease is not renewed any more. When it has expired, another worker claims
  the row, with a new token. A worker that was only slow has the old token, and each of its changes raises
  :class:`LeaseLostError`. A row whose workers die again and again is claimed at growing intervals, so that it
  does not keep other rows waiting, and is never given up.
* after :meth:`Queue.note_stamp`: the next worker reads the run again, and records its stamp.
* after :meth:`Queue.fix_baseline`: the next worker gets the same baseline, whatever has finished since. It
  makes the same comparison, with the same key, and completes in the tracker what was begun.
* after the comparison was logged and before :meth:`Queue.complete`: the next worker finds the comparison in
  the tracker by policy and candidate, and completes the row.
* after :meth:`Queue.complete`: the row is ``done``, and only the end of another block of
  ``compare_on_exit`` in the same run opens it again.

If the queue is lost, an empty one takes its place: the comparisons are in the tracker as well.
"""
# Statements are put together from constants and question marks.
# ruff: noqa: S608

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from trackperm.automation.queue.backoff import delay
from trackperm.automation.queue.database import BUSY_SECONDS, QueueFile
from trackperm.errors import LeaseLostError, ReplayError

State = Literal["waiting", "claimed", "done", "refused"]

LEASE_SECONDS = 60.0
"""Longer than any transaction of another process, and short enough that a dead worker is replaced soon."""

LONGEST_WAIT = 3600.0
"""Longest lease and longest delay; a later time was written before the clock was set back."""

_AFRESH = "state = 'waiting', attempts = 0, baseline = NULL, why = NULL"
_ADD = f"""
INSERT INTO work (queue_key, candidate, policy, stamp, source, due, added, changed)
VALUES (:queue_key, :candidate, :policy, :stamp, :source, :now, :now, :now)
ON CONFLICT (queue_key, candidate) DO UPDATE
SET {_AFRESH}, stamp = excluded.stamp, source = excluded.source, due = :now, changed = :now
WHERE (state = 'refused' OR (state = 'done' AND excluded.source = 'on-exit'))
    AND excluded.stamp IS NOT NULL AND stamp IS NOT excluded.stamp
"""


@dataclass(frozen=True)
class Task:
    """A candidate to be compared under a policy.

    Attributes
    ----------
    queue_key : str
        :attr:`~trackperm.automation.policy.policy.Policy.queue_key` of the policy.
    candidate : str
        Reference of the run, such as ``mlflow:RUN_ID``.
    policy : str
        Name of the policy.
    stamp : str or None
        Digest of the run's tags and end, which changes with the run; None if the run was not read yet.
    """

    queue_key: str
    candidate: str
    policy: str
    stamp: str | None = None


@dataclass(frozen=True)
class Entry:
    """A row of the queue.

    Attributes
    ----------
    queue_key, candidate, policy, stamp : str
        The task, as in :class:`Task`.
    source : str
        Program that added it: ``watch``, ``receive``, ``on-exit`` or ``app``.
    state : {'waiting', 'claimed', 'done', 'refused'}
        Progress of the task.
    due : float
        Unix time from which a waiting row is tried, or at which the lease of a claimed row ends.
    attempts : int
        Number of claims.
    token : str or None
        Token of the claim, while the row is claimed.
    owner : str or None
        Worker that claimed the row last.
    baseline, why : str or None
        Reference of the baseline, fixed by the first attempt that found one, and how it was found.
    outcome : str or None
        Outcome of the judgement, when the row is done.
    comparisons : tuple of str
        References of the logged comparisons.
    reason : str or None
        Reason of a refusal, or of the last failed attempt.
    added, changed : float
        Unix times.
    """

    queue_key: str
    candidate: str
    policy: str
    source: str
    stamp: str | None
    state: State
    due: float
    attempts: int
    token: str | None
    owner: str | None
    baseline: str | None
    why: str | None
    outcome: str | None
    comparisons: tuple[str, ...]
    reason: str | None
    added: float
    changed: float


class Queue:
    """Queue in a folder, created if it is missing.

    Every call opens the file anew, so that one object serves all threads and forked processes. Methods that
    take a claim raise :class:`LeaseLostError` if another worker has claimed the row in the meantime, and all
    methods raise :class:`QueueError` if the file cannot be used.

    Parameters
    ----------
    folder : Path
        Folder on a local disk: SQLite's write-ahead log does not work on network file systems.
    lease : float
        Seconds after which a claim that is not renewed counts as abandoned.
    clock : callable
        Returns the Unix time.
    busy : float
        Seconds to wait for other processes.

    Examples
    --------
    >>> queue = Queue(Path("state"))
    >>> added = queue.add([Task("key", "mlflow:run1", "nightly")], "watch")
    >>> claim = queue.claim(["key"], "worker 1")
    >>> queue.complete(claim, "pass", ["mlflow:comparison1"])
    >>> queue.counts()
    {'waiting': 0, 'claimed': 0, 'done': 1, 'refused': 0}
    """

    def __init__(
        self,
        folder: Path,
        *,
        lease: float = LEASE_SECONDS,
        clock: Callable[[], float] = time.time,
        busy: float = BUSY_SECONDS,
    ) -> None:
        self.folder = folder
        self.lease = min(lease, LONGEST_WAIT)
        self._clock = clock
        self._file = QueueFile(folder, busy)

    def add(
        self, tasks: Iterable[Task], source: str, *, delivery: str | None = None, window: float = 0.0
    ) -> list[Task]:
        """Add the tasks that are not in the queue, all or none; return the added or re-opened ones.

        A refused task is tried again if its run has changed, and one that is done if a script says that it
        has ended again. `source` is the program that adds them.
        `delivery` is the id of the webhook that announced them, remembered in the same transaction for
        `window` seconds. Raise ReplayError if it was received before; nothing is added then.
        """
        added = []
        with self._file.transaction() as rows:
            now = self._clock()
            if delivery is not None:
                rows.execute("DELETE FROM delivery WHERE forgotten < ?", (now,))
                values = (delivery, now + window)
                if rows.execute("INSERT OR IGNORE INTO delivery VALUES (?, ?)", values).rowcount == 0:
                    raise ReplayError("this delivery was received before")
            for task in tasks:
                new = rows.execute(_ADD, {**vars(task), "source": source, "now": now})
                if new.rowcount:
                    added.append(task)
        return added

    def claim(
        self, queue_keys: Sequence[str], owner: str, *, candidates: Sequence[str] | None = None
    ) -> Entry | None:
        """Claim a due row for the length of a lease; None if no row is due.

        Rows with the fewest attempts come first, and among these the row that is due first. Only rows of the
        policies with `queue_keys`, and of the `candidates` if given, are claimed.
        """
        chosen = f"queue_key IN ({_marks(queue_keys)})"
        if candidates is not None:
            chosen += f" AND candidate IN ({_marks(candidates)})"
        with self._file.transaction() as rows:
            now = self._clock()
            self._end_expired(rows, now)
            found = rows.execute(
                "SELECT queue_key, candidate FROM work WHERE state = 'waiting' AND (due <= ? OR due > ?)"
                f" AND {chosen} ORDER BY attempts, due, rowid LIMIT 1",
                (now, now + LONGEST_WAIT, *queue_keys, *(candidates or ())),
            ).fetchone()
            if found is None:
                return None
            rows.execute(
                "UPDATE work SET state = 'claimed', token = ?, owner = ?, due = ?, attempts = attempts + 1,"
                " changed = ? WHERE queue_key = ? AND candidate = ?",
                (secrets.token_hex(16), owner, now + self.lease, now, *found),
            )
            return _row(rows, *found)

    @staticmethod
    def _end_expired(rows: sqlite3.Connection, now: float) -> None:
        """Set claimed rows to waiting if their lease has expired, without a delay the first two times."""
        expired = rows.execute(
            "SELECT queue_key, candidate, attempts FROM work"
            " WHERE state = 'claimed' AND (due <= ? OR due > ?)",
            (now, now + LONGEST_WAIT),
        ).fetchall()
        for queue_key, candidate, attempts in expired:
            wait = 0.0 if attempts < 3 else delay(attempts - 3, LONGEST_WAIT)
            rows.execute(
                "UPDATE work SET state = 'waiting', token = NULL, due = ?, changed = ?,"
                " reason = 'the worker ended, or paused for longer than its lease'"
                " WHERE queue_key = ? AND candidate = ?",
                (now + wait, now, queue_key, candidate),
            )

    def renew(self, claim: Entry) -> None:
        """Extend the lease of a claim."""
        self._change(claim, "due = :now + :lease", lease=self.lease)

    def fix_baseline(self, claim: Entry, baseline: str, why: str) -> Entry:
        """Record the baseline, unless an earlier attempt recorded one; return the row."""
        assignments = "why = coalesce(why, :why), baseline = coalesce(baseline, :baseline)"
        return self._change(claim, assignments, baseline=baseline, why=why)

    def note_stamp(self, claim: Entry, stamp: str) -> Entry:
        """Record the stamp of the run, so that only a later change of the run re-opens the task.

        A program that announces a run, by webhook or at its end, has not read it.
        """
        return self._change(claim, "stamp = :stamp", stamp=stamp)

    def complete(self, claim: Entry, outcome: str, comparisons: Sequence[str]) -> None:
        """Mark the row as done, with the outcome and the logged comparisons."""
        self._change(
            claim,
            "state = 'done', token = NULL, outcome = :outcome, comparisons = :comparisons, reason = NULL",
            outcome=outcome,
            comparisons=json.dumps(list(comparisons)),
        )

    def refuse(self, claim: Entry, reason: str) -> None:
        """Mark the row as refused; it is tried again if the run changes, or by :meth:`retry_refused`."""
        self._change(claim, "state = 'refused', token = NULL, reason = :reason", reason=reason)

    def retry(self, claim: Entry, reason: str, wait: float) -> None:
        """Set the row to waiting after a failed attempt; the next attempt is due in `wait` seconds."""
        assignments = "state = 'waiting', token = NULL, due = :now + :wait, reason = :reason"
        self._change(claim, assignments, wait=min(wait, LONGEST_WAIT), reason=reason)

    def postpone(self, claim: Entry, reason: str, wait: float) -> None:
        """Set the row to waiting because it is too early; that does not count as an attempt."""
        assignments = "state = 'waiting', token = NULL, due = :now + :wait, reason = :reason"
        self._change(
            claim, f"{assignments}, attempts = attempts - 1", wait=min(wait, LONGEST_WAIT), reason=reason
        )

    def release(self, claim: Entry) -> None:
        """Set the row to waiting, as if it had not been claimed."""
        self._change(claim, "state = 'waiting', token = NULL, due = :now, attempts = attempts - 1")

    def drop(self, claim: Entry) -> None:
        """Remove the row, because the policy does not select the run."""
        with self._file.transaction() as rows:
            gone = rows.execute(
                "DELETE FROM work WHERE queue_key = ? AND candidate = ? AND state = 'claimed' AND token = ?",
                (claim.queue_key, claim.candidate, claim.token),
            )
            if gone.rowcount == 0:
                raise _lost(claim)

    def release_of(self, owner: str) -> int:
        """Set to waiting the rows of a worker that has ended; return their number."""
        with self._file.transaction() as rows:
            now = self._clock()
            return rows.execute(
                "UPDATE work SET state = 'waiting', token = NULL, due = ?, changed = ?"
                " WHERE state = 'claimed' AND owner = ?",
                (now, now, owner),
            ).rowcount

    def retry_refused(self, queue_keys: Sequence[str]) -> int:
        """Set all refused rows of these policies to waiting; return their number."""
        with self._file.transaction() as rows:
            now = self._clock()
            return rows.execute(
                f"UPDATE work SET {_AFRESH}, due = ?, changed = ?"
                f" WHERE state = 'refused' AND queue_key IN ({_marks(queue_keys)})",
                (now, now, *queue_keys),
            ).rowcount

    def entries(self) -> list[Entry]:
        """Return all rows, in the order in which they were added."""
        with self._file.opened() as rows:
            return [_entry(row) for row in rows.execute("SELECT * FROM work ORDER BY rowid")]

    def counts(self) -> dict[str, int]:
        """Return the number of rows by state."""
        with self._file.opened() as rows:
            found = dict(rows.execute("SELECT state, count(*) FROM work GROUP BY state").fetchall())
        return {state: int(found.get(state, 0)) for state in ("waiting", "claimed", "done", "refused")}

    def _change(self, claim: Entry, assignments: str, **values: Any) -> Entry:
        """Change the row of a claim, if the row still has its token."""
        key = {"queue_key": claim.queue_key, "candidate": claim.candidate, "held": claim.token}
        with self._file.transaction() as rows:
            changed = rows.execute(
                f"UPDATE work SET {assignments}, changed = :now WHERE queue_key = :queue_key"
                " AND candidate = :candidate AND state = 'claimed' AND token = :held",
                {**key, **values, "now": self._clock()},
            )
            if changed.rowcount == 0:
                raise _lost(claim)
            return _row(rows, claim.queue_key, claim.candidate)


def _row(rows: sqlite3.Connection, queue_key: str, candidate: str) -> Entry:
    found = rows.execute("SELECT * FROM work WHERE queue_key = ? AND candidate = ?", (queue_key, candidate))
    return _entry(found.fetchone())


def _entry(row: sqlite3.Row) -> Entry:
    values = dict(row)
    values["comparisons"] = tuple(json.loads(values["comparisons"]))
    return Entry(**values)


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" for _ in values)


def _lost(claim: Entry) -> LeaseLostError:
    return LeaseLostError(f"`{claim.candidate}` under policy `{claim.policy}` was claimed by another worker")
