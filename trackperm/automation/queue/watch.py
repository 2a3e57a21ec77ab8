"""The watcher: lists the finished runs of every policy now and then, and works off the queue meanwhile.

Whether a run was compared is not read off its age or its place in a list, so that nothing is lost by downtime
and nothing is compared twice: every finished run that a policy selects is added to the queue, which ignores
what it has (:mod:`trackperm.automation.queue.queue`), and the tracker is asked before anything is compared
(:mod:`trackperm.automation.queue.worker`). Lists of all runs are made at the start and every quarter of an
hour, lists of those that ended lately in between. When a run ended is said by the clock of its client, so
that "lately" has an hour to spare.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from trackperm.automation.decision_log import DecisionLog
from trackperm.automation.judging.baseline import is_wanted
from trackperm.automation.policy.edits import EditedPolicies
from trackperm.automation.policy.policy import Policy, hint_for_policies
from trackperm.automation.queue.backoff import delay, retry_after
from trackperm.automation.queue.health import Health
from trackperm.automation.queue.queue import LONGEST_WAIT, Queue, Task
from trackperm.automation.queue.worker import Worker, WorkerStep, stamp_of
from trackperm.errors import HealthError, QueueError, TrackerError, TrackpermError
from trackperm.trackers.history import history_of
from trackperm.trackers.references import RunReference

SWEEP_SECONDS = 900.0
_SPARE = timedelta(hours=1)
_MANY = 3  # failures in a row, after which it seems to be the tracker
_LONGEST_PAUSE = 60.0
_LOOK_SECONDS = 2.0  # at the queue, to which other processes add


@dataclass
class _Place:
    """An experiment or project that a policy names, and when it is listed next."""

    policy: Policy
    reference: RunReference
    due: float = 0.0
    swept: float | None = None
    sweep_began: datetime | None = None
    failures: int = 0
    error: TrackpermError | None = None


class Watcher:
    """Watches the experiments and projects of some policies.

    Parameters
    ----------
    policies : sequence of Policy
        Those without `runs` are left out.
    queue : Queue
        Shared by all watchers of this machine.
    notes : DecisionLog
        Is told every decision.
    interval : float
        Seconds between two lists of the same experiment.
    since : datetime, optional
        Runs that ended before are not compared.
    health : Health, optional
        Is told how it goes.
    is_listing : bool
        Whether experiments are listed, or only the queue is worked off.
    edits : EditedPolicies, optional
        The file of the policies, which are taken up anew whenever it changes.
    """

    def __init__(
        self,
        policies: Sequence[Policy],
        queue: Queue,
        notes: DecisionLog,
        *,
        interval: float = 30.0,
        since: datetime | None = None,
        health: Health | None = None,
        is_listing: bool = True,
        edits: EditedPolicies | None = None,
    ) -> None:
        self._queue = queue
        self._log = notes
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
        """List everything, work off what is due, and return the worst error there was, if any.

        That of a tracker is the worst; what cannot be compared at all is no error.
        """
        for place in self._places:
            if not stop.is_set():
                self._list(place)
        found = [place.error for place in self._places if place.error is not None]
        while not stop.is_set() and (step := self._step()) is not None:
            if step.event == "retry":
                found.append(TrackerError("a comparison could not be made, and will be tried again"))
        self._beat()
        found.sort(key=lambda error: isinstance(error, TrackerError))
        return found[-1] if found else None

    def run(self, stop: threading.Event) -> None:
        """List and work off until `stop` is set; what is being compared then is finished."""
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
                stop.wait(min(max(due - time.monotonic(), 0.05), _LOOK_SECONDS))

    def _follow(self, policies: Sequence[Policy]) -> None:
        """Watch these policies from now on; places that were watched before are listed when they are due."""
        before = {(place.policy.queue_key, place.reference): place for place in self._places}
        listed = policies if self._is_listing else ()
        self._worker = Worker(policies, self._queue, self._log)
        self._places = [
            replace(before.get((policy.queue_key, place), _Place(policy, place)), policy=policy)
            for policy in listed
            for place in policy.runs
        ]

    def _take_up_edits(self) -> None:
        """Follow the policies as they are now; where they are not valid, go on with those from before."""
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
        history = history_of(place.policy.tracker_for(place.reference))
        for record in history.finished(place.reference.locator, lately):
            is_late = self._since is None or record.ended is None or record.ended >= self._since
            if is_late and is_wanted(place.policy, record):
                candidate, stamp = str(record.run.reference), stamp_of(record)
                yield Task(place.policy.queue_key, candidate, place.policy.name, stamp)

    def _step(self) -> WorkerStep | None:
        """Let the worker see to one row, of a policy whose tracker is not to be left alone.

        It is left alone for as long as it asks, and after several failures in a row: one alone may be about
        the run, whose predictions are out of reach, and is no reason to keep others waiting.
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
    """Return what the policies of one tracker have in common."""
    return policy.tracking_uri, *sorted({place.scheme for place in policy.runs})
