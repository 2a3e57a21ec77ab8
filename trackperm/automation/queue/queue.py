"""The queue of comparisons to be made, which all processes of one machine share: one SQLite file.

The task is (key of the policy, candidate); it is the primary key, so that whoever adds the same one twice,
by polling, webhook or hook, adds nothing. A row is ``waiting``, ``claimed``, ``done`` or ``refused``. Rows
change in transactions that begin ``IMMEDIATE``, one writer at a time, and are on disk when a call returns.

What happens where a process dies, by ``kill -9`` or with its machine:

* before or in a transaction: SQLite undoes it at the next opening; nothing has happened.
* after :meth:`Queue.add`: the row waits; any worker takes it.
* after :meth:`Queue.claim`: nobody renews the lease any more, and when it has expired another worker claims
  the row, with a new token. A worker that was only slow finds that its token is no longer that of the row:
  every change it asks for raises :class:`LeaseLostError`. A row whose workers die again and again is claimed
  at growing intervals, so that it does not keep others from their turn, and is never given up.
* after :meth:`Queue.note_stamp`: the next worker looks at the run itself, and notes what it is like then.
* after :meth:`Queue.fix_baseline`: the next worker is given the same baseline, whatever has finished since,
  so that it makes the same comparison, by the same key, and completes in the tracker what was begun.
* after the comparison was logged and before :meth:`Queue.complete`: the next worker finds it in the tracker
by
  its policy and candidate, takes it as done, and settles the row.
* after :meth:`Queue.complete`: the row is ``done`` and never claimed again.

A queue that is lost is empty, no more: what was compared stands in the tracker as well.
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
LONGEST_WAIT = 3600.0
"""No lease and no delay is longer: one that ends later was written before the clock was set back."""

_AFRESH = "state = 'waiting', attempts = 0, baseline = NULL, why = NULL"
_ADD = f"""
INSERT INTO work (queue_key, candidate, policy, stamp, source, due, added, changed)
VALUES (:queue_key, :candidate, :policy, :stamp, :source, :now, :now, :now)
ON CONFLICT (queue_key, candidate) DO UPDATE
SET {_AFRESH}, stamp = excluded.stamp, source = excluded.source, due = :now, changed = :now
WHERE state = 'refused' AND excluded.stamp IS NOT NULL AND stamp IS NOT excluded.stamp
"""


@dataclass(frozen=True)
class Task:
    """What is compared once: a candidate under a policy.

    Attributes
    ----------
    queue_key : str
        The policy's :attr:`~trackperm.automation.policy.policy.Policy.queue_key`.
    candidate : str
        Reference of the run, ``mlflow:RUN_ID`` for example.
    policy : str
        Name of the policy.
    stamp : str or None
        Changes when the run does; None where nobody has looked at it.
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
        The task.
    source : str
        Who added it: ``watch``, ``receive``, ``on-exit`` or ``app``.
    state : {'waiting', 'claimed', 'done', 'refused'}
        How far it is.
    due : float
        Unix time before which a waiting one is not tried, and when the lease of a claimed one ends.
    attempts : int
        How often it was claimed.
    token : str or None
        Of the claim, while it is claimed.
    owner : str or None
        Who has claimed it last.
    baseline : str or None
        Reference of the baseline, fixed at the first attempt that found one.
    why : str or None
        Why it is the baseline.
    outcome : str or None
        Of the judgement, where it is done.
    comparisons : tuple of str
        References of what was logged.
    reason : str or None
        Why it is refused, or what the last attempt failed of.
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
    """The queue in a folder, made if there is none.

    Each call opens the file anew, so that one object serves all threads, and processes that it is forked to.

    Parameters
    ----------
    folder : Path
        On a local disk: SQLite's log does not work on network file systems.
    lease : float
        Seconds after which a claim that is not renewed counts as abandoned.
    clock : callable
        Returns the Unix time.
    busy : float
        Seconds to wait for other processes.

    Raises
    ------
    QueueError
        If the folder cannot be written to, or holds something else.
    """

    def __init__(
        self,
        folder: Path,
        *,
        lease: float = LEASE_SECONDS,
        clock: Callable[[], float] = time.time,
        busy: float = BUSY_SECONDS,
    ) -> None:
        self.lease = min(lease, LONGEST_WAIT)
        self._clock = clock
        self._file = QueueFile(folder, busy)

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return self._file.folder

    def add(
        self, tasks: Iterable[Task], source: str, *, delivery: str | None = None, window: float = 0.0
    ) -> list[Task]:
        """Add what is not there yet, all or nothing; it is on disk when this returns.

        A refused one is tried afresh if its run has changed.

        Parameters
        ----------
        tasks : iterable of Task
            What is to be compared.
        source : str
            Who adds it.
        delivery : str, optional
            Identifies the message that asks for it, and is remembered in the same transaction.
        window : float
            Seconds for which it is remembered.

        Returns
        -------
        list of Task
            Those that will be worked on and would not have been.

        Raises
        ------
        ReplayError
            If `delivery` was received before; nothing has been added then.
        """
        added = []
        with self._file.transaction() as rows:
            now = self._clock()
            if delivery is not None:
                rows.execute("DELETE FROM delivery WHERE forgotten < ?", (now,))
                values = (delivery, now + window)
                if rows.execute("INSERT OR IGNORE INTO delivery VALUES (?, ?)", values).rowcount == 0:
                    raise ReplayError("this delivery has been received before")
            for task in tasks:
                new = rows.execute(_ADD, {**vars(task), "source": source, "now": now})
                if new.rowcount:
                    added.append(task)
        return added

    def claim(
        self, queue_keys: Sequence[str], owner: str, *, candidates: Sequence[str] | None = None
    ) -> Entry | None:
        """Claim a row that is due, for the length of a lease; None if none is.

        Those that were tried least come first, and of these the one that is due first.

        Parameters
        ----------
        queue_keys : sequence of str
            Keys of the policies that the worker knows.
        owner : str
            Who the worker is.
        candidates : sequence of str, optional
            Only these.
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
        """Let rows wait that were claimed and whose lease has expired: not at all for the first two times."""
        expired = rows.execute(
            "SELECT queue_key, candidate, attempts FROM work"
            " WHERE state = 'claimed' AND (due <= ? OR due > ?)",
            (now, now + LONGEST_WAIT),
        ).fetchall()
        for queue_key, candidate, attempts in expired:
            wait = 0.0 if attempts < 3 else delay(attempts - 3, LONGEST_WAIT)
            rows.execute(
                "UPDATE work SET state = 'waiting', token = NULL, due = ?, changed = ?,"
                " reason = 'the worker ended, or stood still for longer than its lease'"
                " WHERE queue_key = ? AND candidate = ?",
                (now + wait, now, queue_key, candidate),
            )

    def renew(self, claim: Entry) -> None:
        """Prolong the lease of `claim`.

        Raises
        ------
        LeaseLostError
            If another worker has it.
        """
        self._change(claim, "due = :now + :lease", lease=self.lease)

    def fix_baseline(self, claim: Entry, baseline: str, why: str) -> Entry:
        """Note the baseline, unless an earlier attempt has; returns the row with the one that holds.

        Raises
        ------
        LeaseLostError
            If another worker has it.
        """
        assignments = "why = coalesce(why, :why), baseline = coalesce(baseline, :baseline)"
        return self._change(claim, assignments, baseline=baseline, why=why)

    def note_stamp(self, claim: Entry, stamp: str) -> Entry:
        """Note what the run is like that is worked on, so that only a later change asks for it again.

        Who announces a run, by webhook or at its end, has not looked at it.

        Raises
        ------
        LeaseLostError
            If another worker has it.
        """
        return self._change(claim, "stamp = :stamp", stamp=stamp)

    def complete(self, claim: Entry, outcome: str, comparisons: Sequence[str]) -> None:
        """Note that it is done, and what came of it.

        Raises
        ------
        LeaseLostError
            If another worker has it.
        """
        self._change(
            claim,
            "state = 'done', token = NULL, outcome = :outcome, comparisons = :comparisons, reason = NULL",
            outcome=outcome,
            comparisons=json.dumps(list(comparisons)),
        )

    def refuse(self, claim: Entry, reason: str) -> None:
        """Note that it cannot be done, and why; it is tried again only if the run changes or people ask.

        Raises
        ------
        LeaseLostError
            If another worker has it.
        """
        self._change(claim, "state = 'refused', token = NULL, reason = :reason", reason=reason)

    def retry(self, claim: Entry, reason: str, wait: float) -> None:
        """Note that the attempt failed, and let the next one wait for some seconds.

        Raises
        ------
        LeaseLostError
            If another worker has it.
        """
        self._change(
            claim,
            "state = 'waiting', token = NULL, due = :now + :wait, reason = :reason",
            wait=min(wait, LONGEST_WAIT),
            reason=reason,
        )

    def postpone(self, claim: Entry, reason: str, wait: float) -> None:
        """Let the row wait for some seconds, for it is too early; that counts as no attempt.

        Raises
        ------
        LeaseLostError
            If another worker has it.
        """
        self._change(
            claim,
            "state = 'waiting', token = NULL, due = :now + :wait, reason = :reason, attempts = attempts - 1",
            wait=min(wait, LONGEST_WAIT),
            reason=reason,
        )

    def release(self, claim: Entry) -> None:
        """Give the row back, as if it had not been claimed.

        Raises
        ------
        LeaseLostError
            If another worker has it.
        """
        self._change(claim, "state = 'waiting', token = NULL, due = :now, attempts = attempts - 1")

    def drop(self, claim: Entry) -> None:
        """Remove the row: the policy is not about this run.

        Raises
        ------
        LeaseLostError
            If another worker has it.
        """
        with self._file.transaction() as rows:
            gone = rows.execute(
                "DELETE FROM work WHERE queue_key = ? AND candidate = ? AND state = 'claimed' AND token = ?",
                (claim.queue_key, claim.candidate, claim.token),
            )
            if gone.rowcount == 0:
                raise _lost(claim)

    def release_of(self, owner: str) -> int:
        """Give back what `owner`, which has ended, had claimed; returns how many rows that are."""
        with self._file.transaction() as rows:
            now = self._clock()
            return rows.execute(
                "UPDATE work SET state = 'waiting', token = NULL, due = ?, changed = ?"
                " WHERE state = 'claimed' AND owner = ?",
                (now, now, owner),
            ).rowcount

    def retry_refused(self, queue_keys: Sequence[str]) -> int:
        """Let everything that was refused under these policies be tried afresh; returns how much that is."""
        with self._file.transaction() as rows:
            now = self._clock()
            return rows.execute(
                f"UPDATE work SET {_AFRESH}, due = ?, changed = ?"
                f" WHERE state = 'refused' AND queue_key IN ({_marks(queue_keys)})",
                (now, now, *queue_keys),
            ).rowcount

    def entries(self) -> list[Entry]:
        """List all rows, in the order in which they were added."""
        with self._file.opened() as rows:
            return [_entry(row) for row in rows.execute("SELECT * FROM work ORDER BY rowid")]

    def counts(self) -> dict[str, int]:
        """Count the rows in each state."""
        with self._file.opened() as rows:
            found = dict(rows.execute("SELECT state, count(*) FROM work GROUP BY state").fetchall())
        return {state: int(found.get(state, 0)) for state in ("waiting", "claimed", "done", "refused")}

    def _change(self, claim: Entry, assignments: str, **values: Any) -> Entry:
        """Change the row of `claim`, as long as its token is that of the row."""
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
