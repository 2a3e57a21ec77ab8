"""Watcher: lists the finished runs of every policy at intervals, and processes the queue in between.

The watcher does not infer from a run's age or place in a list that it was compared, so that downtime loses
nothing and nothing is compared twice. Every finished run that a policy selects is added to the queue, which
ignores tasks that it has (:mod:`trackperm.automation.queue.queue`), and the worker looks into the tracker
before a comparison (:mod:`trackperm.automation.queue.worker`). All runs are listed at the start and every
quarter of an hour, recently ended runs in between. The end of a run is a time of its client's clock, so
"recently" includes an extra hour.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from trackperm.automation.decision_log import DecisionLog
from trackperm.automation.judging.baseline import is_selected
from trackperm.automation.policy.edits import EditedPolicies
from trackperm.automation.policy.policy import Policy
from trackperm.automation.policy.resolve import policy_tracker
from trackperm.automation.policy.wording import hint_for_policies
from trackperm.automation.queue.backoff import delay, retry_after
from trackperm.automation.queue.health import Health
from trackperm.automation.queue.queue import LONGEST_WAIT, Queue, Task
from trackperm.automation.queue.worker import Worker, WorkerStep, stamp_of
from trackperm.errors import HealthError, QueueError, TrackerError, TrackpermError
from trackperm.trackers.history import history_of
from trackperm.trackers.references import RunReference

SWEEP_SECONDS = 900.0
_SPARE = timedelta(hours=1)
_MANY = 3
"""Failures in a row after which the tracker counts as failing; fewer may be about single runs."""

_LONGEST_PAUSE = 60.0
_QUEUE_SECONDS = 2.0
"""Seconds between two looks at the queue, to which other processes add."""


@dataclass
class _Place:
    """Experiment or project of a policy, and when it is listed next."""

    policy: Policy
    reference: RunReference
    due: float = 0.0
    swept: float | None = None
    sweep_began: datetime | None = None
    failures: int = 0
    error: TrackpermError | None = None


class Watcher:
    """Watcher of the experiments and projects of some policies.

    Parameters
    ----------
    policies : sequence of Policy
        Policies to follow; nothing is listed for a policy without `runs`.
    queue : Queue
        Queue that all watchers of this machine share.
    log : DecisionLog
        Receives every decision.
    interval : float
        Seconds between two lists of the same experiment.
    since : datetime, optional
        Runs that ended before this time are not compared.
    health : Health, optional
        Receives reports.
    is_listing : bool
        Whether experiments are listed; if not, only the queue is processed.
    edits : EditedPolicies, optional
        Policy file, read again whenever it changes.
    """

    def __init__(
        self,
        policies: Sequence[Policy],
        queue: Queue,
        log: DecisionLog,
        *,
        interval: float = 30.0,
        since: datetime | None = None,
        health: Health | None = None,
        is_listing: bool = True,
        edits: EditedPolicies | None = None,
    ) -> None:
        self._queue = queue
        self._log = log
        self._interval = interval
        self._since = since
        self._health = health
        self._is_listing = is_listing
        self._edits = edits
        self._places: list[_Place] = []
        self._follow(policies)
        self._paused: dict[tuple[object, ...], float] = {}
        self._failures: dict[tuple[object, ...], int] = {}

    def once(self, stop: threading.Event) -> TrackpermError | None:
        """List everything, process all due rows, and return the worst error, or None.

        An error of a tracker is the worst. A run that cannot be compared is not an error.
        """
        for place in self._places:
            if not stop.is_set():
                self._list(place)
        found = [place.error for place in self._places if place.error is not None]
        while not stop.is_set() and (step := self._step()) is not None:
            if step.event == "retry":
                found.append(TrackerError("a comparison failed, and will be tried again"))
        self._beat()
        found.sort(key=lambda error: isinstance(error, TrackerError))
        return found[-1] if found else None

    def run(self, stop: threading.Event) -> None:
        """List and process until `stop` is set; a comparison in progress is finished."""
        while not stop.is_set():
            self._take_up_edits()
            for place in self._places:
                if place.due <= time.monotonic() and not stop.is_set():
                    self._list(place)
            try:
                self._beat()
                is_idle = stop.is_set() or self._step() is None
            except QueueError as error:
                self._log("queue-failed", reason=error.message, hint=error.hint)
                is_idle = True
            if is_idle:
                due = min((place.due for place in self._places), default=math.inf)
                stop.wait(min(max(due - time.monotonic(), 0.05), _QUEUE_SECONDS))

    def _follow(self, policies: Sequence[Policy]) -> None:
        """Follow these policies from now on; places that were followed before keep their schedule."""
        before = {(place.policy.queue_key, place.reference): place for place in self._places}
        listed = policies if self._is_listing else ()
        self._worker = Worker(policies, self._queue, self._log)
        self._places = [
            replace(before.get((policy.queue_key, place), _Place(policy, place)), policy=policy)
            for policy in listed
            for place in policy.runs
        ]
        self._say_what_is_left(policies)

    def _say_what_is_left(self, policies: Sequence[Policy]) -> None:
        """Name the waiting runs that scripts queued for an earlier version of a policy that lists none."""
        keys = {policy.queue_key for policy in policies}
        names = {policy.name for policy in policies if not policy.runs}
        with suppress(QueueError):  # the next step reports it
            for entry in self._queue.entries():
                if entry.state == "waiting" and entry.policy in names and entry.queue_key not in keys:
                    self._log(
                        "left",
                        policy=entry.policy,
                        candidate=entry.candidate,
                        reason="the policy was edited after the run was queued",
                        hint=f"`trackperm gate --candidate {entry.candidate}` compares it.",
                    )

    def _take_up_edits(self) -> None:
        """Follow edited policies; if they are not valid, keep the previous ones."""
        try:
            edited = None if self._edits is None else self._edits.edited()
        except TrackpermError as error:
            self._log("policy-refused", reason=error.message, hint=error.hint)
            return
        if edited is not None:
            self._follow(edited)
            self._log(
                "policy-taken-up",
                policies=[policy.name for policy in edited],
                digests=[policy.digest[:12] for policy in edited],
            )

    def _list(self, place: _Place) -> None:
        """Add the finished runs of a place to the queue."""
        began, now = datetime.now(timezone.utc), time.monotonic()
        is_sweep = place.swept is None or now - place.swept >= SWEEP_SECONDS
        try:
            tasks = list(self._tasks(place, is_sweep=is_sweep))
            added = self._queue.add(tasks, "watch")
        except TrackpermError as error:
            place.failures += 1
            place.error = error
            asked = retry_after(error)
            wait = max(self._interval, delay(place.failures) if asked is None else min(asked, LONGEST_WAIT))
            place.due = time.monotonic() + wait
            self._log(
                "list-failed",
                policy=place.policy.name,
                runs=str(place.reference),
                reason=error.message,
                hint=hint_for_policies(error),
                wait=round(wait, 1),
                told_to_wait=asked,
            )
            return
        if place.swept is None and not tasks:
            self._log(
                "nothing-yet",
                policy=place.policy.name,
                runs=str(place.reference),
                reason="no run that the policy selects has finished yet",
            )
        if is_sweep:
            place.swept, place.sweep_began = now, began
        place.failures, place.error = 0, None
        place.due = time.monotonic() + self._interval
        for task in added:
            self._log(
                "queued",
                policy=task.policy,
                digest=place.policy.digest[:12],
                candidate=task.candidate,
            )

    def _tasks(self, place: _Place, *, is_sweep: bool) -> Iterator[Task]:
        lately = None if is_sweep or place.sweep_began is None else place.sweep_began - _SPARE
        history = history_of(policy_tracker(place.policy, place.reference))
        for record in history.finished(place.reference.locator, lately):
            is_late = self._since is None or record.ended is None or record.ended >= self._since
            if is_late and is_selected(place.policy, record):
                candidate, stamp = str(record.run.reference), stamp_of(record)
                yield Task(place.policy.queue_key, candidate, place.policy.name, stamp)

    def _step(self) -> WorkerStep | None:
        """Process one row of a policy whose tracker is not paused.

        A tracker is paused for as long as it requests, and after several failures in a row: a single failure
        may be about the run, and must not keep other runs waiting.
        """
        now = time.monotonic()
        able = [policy for policy in self._worker.policies if self._paused.get(_tracker(policy), 0.0) <= now]
        step = self._worker.step(able)
        if step is None:
            return None
        tracker = _tracker(step.policy)
        failures = self._failures.get(tracker, 0) + 1 if step.event == "retry" else 0
        self._failures[tracker] = failures
        wait = step.told_to_wait
        if wait is None and failures >= _MANY:
            wait = delay(failures - _MANY, _LONGEST_PAUSE)
        if wait is not None:
            self._paused[tracker] = time.monotonic() + wait
        return step

    def _beat(self) -> None:
        if self._health is None:
            return
        errors = [place.error.message for place in self._places if place.error is not None]
        try:
            self._health.beat(is_good=not errors, queue=self._queue.counts(), errors=errors)
        except HealthError as error:
            self._log("health-failed", reason=error.message, hint=error.hint)


def _tracker(policy: Policy) -> tuple[object, ...]:
    """Return a key of the policy's tracker."""
    return policy.tracking_uri, *sorted({place.scheme for place in policy.runs})
