"""One turn of a worker: claim what is due, compare it, and note what came of it.

A worker can be killed between any two of these steps, and the next one takes the row up (see
:mod:`trackperm.automation.queue.queue`):

1. *claim*. Killed after it: the lease expires, and another worker begins anew.
2. *ask the tracker* whether it has the finished comparison of this policy and candidate, which a worker that
   was killed at step 5, or one on another machine, has logged. Of several, which are left where a worker was
   killed between logging and looking for others, all but the earliest begun are withdrawn.
3. *find the baseline and fix it in the row*. Killed before it is fixed: nothing was logged, so that another
   baseline may be found. Killed after: the same baseline is used again.
4. *renew the lease*, which fails where the row has gone to another worker meanwhile, *compare and log*.
   Killed in the middle: the tracker holds runs that are not finished. The next worker makes the same
   comparisons, with the same keys, by which it finds these runs and completes them. Two workers that log at
   the same time, for one stood still beyond its lease, do so under the same keys; what is logged twice all
   the same is withdrawn after logging, see :mod:`trackperm.automation.judging.duplicates`.
5. *settle the row*. Killed before: step 2 of the next worker finds what is logged.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from trackperm.automation.decision_log import DecisionLog, scrubbed
from trackperm.automation.judging.baseline import Baseline, file_run, find_baseline, is_wanted
from trackperm.automation.judging.compare_candidate import JudgedComparison, compare_and_log, loaded
from trackperm.automation.judging.duplicates import RULE_TAG, Group, baseline_of, withdraw_duplicates
from trackperm.automation.policy.policy import Policy, hint_for_policies, in_policies
from trackperm.automation.queue.backoff import MOST_SECONDS, delay, retry_after
from trackperm.automation.queue.queue import LONGEST_WAIT, Entry, Queue, Task
from trackperm.errors import (
    InputError,
    IsBaselineError,
    LeaseLostError,
    MissingDependencyError,
    NoBaselineError,
    QueueError,
    SkippedTaskError,
    TrackerError,
    TrackpermError,
    UnfinishedRunError,
)
from trackperm.trackers.base import Tracker
from trackperm.trackers.history import RunRecord, history_of
from trackperm.trackers.references import RunReference, TrackedRun

Event = Literal[
    "compared", "known", "passed", "refused", "retry", "skipped", "lease-lost", "waiting", "resolved"
]

PATIENCE_SECONDS = 7 * 86400.0
"""How long a run that is still going is waited for, once it was announced."""

_SOONEST_RENEWAL = 0.05


@dataclass(frozen=True)
class WorkerStep:
    """What became of one row.

    Attributes
    ----------
    event : str
        ``compared``; ``known``, for the tracker had it; ``passed``, for it is itself the baseline, or
        there is none and the policy lets it pass; ``refused``; ``retry``, for the tracker failed;
        ``waiting``, for the run is still going; ``skipped``, for the policy is not about it; ``resolved``,
        for the run that logged an artifact was queued in its place; ``lease-lost``.
    policy : Policy
        Under which.
    told_to_wait : float or None
        Seconds for which its tracker has asked to be left alone.
    """

    event: Event
    policy: Policy
    told_to_wait: float | None = None


def is_artifact(reference: RunReference) -> bool:
    """Whether an artifact of W&B was announced, ``ENTITY/PROJECT/NAME:VERSION``: no run has a colon there."""
    return reference.scheme == "wandb" and ":" in reference.locator.rpartition("/")[2]


class Worker:
    """Works off the rows of some policies, one at a time.

    Parameters
    ----------
    policies : sequence of Policy
        What it knows; rows of others are left alone.
    queue : Queue
        Where the rows are.
    notes : DecisionLog
        Is told every decision.
    owner : str, optional
        What rows name it by.
    """

    def __init__(
        self, policies: Sequence[Policy], queue: Queue, notes: DecisionLog, *, owner: str | None = None
    ) -> None:
        self.policies = tuple(policies)
        self._queue = queue
        self._log = notes
        self.owner = owner or f"{socket.gethostname()}:{os.getpid()}"

    def step(
        self, policies: Sequence[Policy] | None = None, *, candidates: Sequence[str] | None = None
    ) -> WorkerStep | None:
        """Claim the row that is due first and see to it; None if there is none.

        Parameters
        ----------
        policies : sequence of Policy, optional
            Only rows of these.
        candidates : sequence of str, optional
            Only these.
        """
        chosen = self.policies if policies is None else policies
        keys = list(dict.fromkeys(policy.queue_key for policy in chosen))
        claim = self._queue.claim(keys, self.owner, candidates=candidates) if keys else None
        if claim is None:
            return None
        same = [policy for policy in chosen if policy.queue_key == claim.queue_key]
        policy = next((policy for policy in same if policy.name == claim.policy), same[0])
        try:
            with self._renewed(claim):
                return self._see_to(claim, policy)
        except LeaseLostError as error:
            self._note("lease-lost", claim, policy, reason=error.message)
            return WorkerStep("lease-lost", policy)
        except BaseException:
            self._give_back(claim)
            raise

    def _see_to(self, claim: Entry, policy: Policy) -> WorkerStep:
        began = time.monotonic()
        try:
            event, claim, facts = self._attempt(claim, policy)
        except (LeaseLostError, KeyboardInterrupt):
            raise
        except QueueError as error:  # what was logged is found by whoever claims the row next
            self._note("queue-failed", claim, policy, reason=error.message, hint=error.hint)
            return WorkerStep("retry", policy)
        except SkippedTaskError as error:
            self._queue.drop(claim)
            self._note("skipped", claim, policy, reason=error.message)
            return WorkerStep("skipped", policy)
        except UnfinishedRunError as error:
            wait = _look_again(time.time() - claim.added)
            self._queue.postpone(claim, error.message, wait)
            self._note("waiting", claim, policy, reason=error.message, wait=round(wait, 1))
            return WorkerStep("waiting", policy)
        except MissingDependencyError as error:
            hint = f"{error.hint}; then `trackperm watch --retry-refused` tries it again."
            return self._refuse(claim, policy, error.message, hint)
        except (TrackerError, OSError) as error:
            return self._retry(claim, policy, error)
        except TrackpermError as error:
            return self._refuse(claim, policy, in_policies(error.message), hint_for_policies(error))
        except MemoryError as error:
            return self._retry(claim, policy, error)
        except Exception as error:
            return self._refuse(
                claim, policy, f"a fault in trackperm itself: {type(error).__name__}: {error}"
            )
        seconds = round(time.monotonic() - began, 3)
        self._note(event, claim, policy, seconds=seconds, **facts)
        return WorkerStep(event, policy)

    def _attempt(self, claim: Entry, policy: Policy) -> tuple[Event, Entry, dict[str, object]]:
        reference = RunReference.parse(claim.candidate)
        tracker = _opened(policy, reference)
        if is_artifact(reference):
            return self._resolve(claim, tracker, reference)
        run = tracker.find(reference.locator)
        stamp = stamp_of(_wanted(claim, policy, tracker, run))
        if stamp != claim.stamp:
            claim = self._queue.note_stamp(claim, stamp)
        if before := _logged_before(policy, tracker, run):
            logged = [str(comparison.run.reference) for comparison in before]
            outcome = _judged_again(policy, run, before)
            self._queue.complete(claim, outcome or "known", logged)
            return "known", claim, {"outcome": outcome, "comparisons": logged}
        baseline = _fixed(claim, policy)
        if baseline is None:
            try:
                baseline = find_baseline(policy, tracker, run)
            except IsBaselineError as error:
                self._queue.complete(claim, "baseline", [])
                return "passed", claim, {"outcome": "baseline", "reason": scrubbed(error.message)}
            except NoBaselineError as error:
                if policy.if_no_baseline != "pass":
                    raise
                loaded(policy, run)  # what cannot be read does not pass
                self._queue.complete(claim, "no baseline", [])
                return "passed", claim, {"outcome": "no baseline", "reason": scrubbed(error.message)}
            claim = self._queue.fix_baseline(claim, str(baseline.run.reference), baseline.why)
        self._queue.renew(claim)
        judged = compare_and_log(policy, run, baseline)
        logged = [str(published.run.reference) for published in judged.published]
        outcome = _outcome(judged)
        self._queue.complete(claim, outcome, logged)
        facts = {"outcome": outcome, "why": baseline.why, "comparisons": logged}
        return "compared", claim, {**facts, "reasons": list(judged.judgement.reasons)}

    def _resolve(
        self, claim: Entry, tracker: Tracker, reference: RunReference
    ) -> tuple[Event, Entry, dict[str, object]]:
        """Queue the run that logged an artifact; killed before the row is dropped, the next adds nothing."""
        run = history_of(tracker).aliased(reference.locator)
        self._queue.add([Task(claim.queue_key, str(run.reference), claim.policy)], claim.source)
        self._queue.drop(claim)
        return "resolved", claim, {"run": str(run.reference)}

    def _retry(self, claim: Entry, policy: Policy, error: Exception) -> WorkerStep:
        asked = retry_after(error)
        wait = delay(claim.attempts) if asked is None else min(asked + delay(0), LONGEST_WAIT)
        reason = scrubbed(in_policies(error.message) if isinstance(error, TrackpermError) else str(error))
        self._queue.retry(claim, reason, wait)
        hint = hint_for_policies(error)
        self._note("retry", claim, policy, reason=reason, hint=hint, wait=round(wait, 1), told_to_wait=asked)
        return WorkerStep("retry", policy, None if asked is None else wait)

    def _refuse(self, claim: Entry, policy: Policy, reason: str, hint: str | None = None) -> WorkerStep:
        reason = scrubbed(reason)
        self._queue.refuse(claim, reason)
        self._note("refused", claim, policy, reason=reason, hint=hint)
        return WorkerStep("refused", policy)

    def _give_back(self, claim: Entry) -> None:
        """Release a row on the way out; if even that fails, its lease expires."""
        try:
            self._queue.release(claim)
        except TrackpermError:
            return
        self._log("released", policy=claim.policy, candidate=claim.candidate)

    def _note(
        self, event: Event | Literal["queue-failed"], claim: Entry, policy: Policy, **facts: object
    ) -> None:
        self._log(
            event,
            policy=policy.name,
            digest=policy.digest[:12],
            candidate=claim.candidate,
            baseline=claim.baseline,
            attempt=claim.attempts,
            **facts,
        )

    @contextmanager
    def _renewed(self, claim: Entry) -> Iterator[None]:
        """Renew the lease of a row from another thread, as long as this process runs and holds it."""
        ended = threading.Event()

        def renew() -> None:
            while not ended.wait(max(self._queue.lease / 3, _SOONEST_RENEWAL)):
                try:
                    self._queue.renew(claim)
                except LeaseLostError:
                    return
                except InputError:  # the file is locked, or the disk is full: there is time for another try
                    continue

        thread = threading.Thread(target=renew, name="trackperm-lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(timeout=5)


def _opened(policy: Policy, reference: RunReference) -> Tracker:
    """Open the tracker; whatever is wrong with the configuration is no fault of this run.

    Raises
    ------
    TrackerError
        If it cannot be opened.
    """
    try:
        return policy.tracker_for(reference)
    except InputError as error:
        raise TrackerError(error.message, hint=error.hint) from error


def _logged_before(policy: Policy, tracker: Tracker, run: TrackedRun) -> Group:
    """Return what stays of what is logged; that there is no place to log to is no fault of this run.

    Raises
    ------
    TrackerError
        If there is none, or the tracker fails.
    """
    try:
        return withdraw_duplicates(policy, tracker, run)
    except InputError as error:
        raise TrackerError(error.message, hint=error.hint) from error


def _wanted(claim: Entry, policy: Policy, tracker: Tracker, run: TrackedRun) -> RunRecord:
    """Read a run as it is now; refuse those that the policy is not about, and those that are not there yet.

    Raises
    ------
    TrackpermError
        If it is one.
    """
    history = history_of(tracker)
    is_own = claim.source == "on-exit"  # the script itself says that the run is at its end
    scheme = run.reference.scheme
    places = [place.locator for place in policy.runs if place.scheme == scheme]
    if not (is_own and not policy.runs) and not any(history.holds(place, run) for place in places):
        raise SkippedTaskError("the run is in none of the experiments or projects of the policy")
    record = history.record(run)
    if not is_wanted(policy, replace(record, is_finished=True)):
        raise SkippedTaskError("the run is not one of those that `only` selects")
    if record.is_failed:
        raise SkippedTaskError("the run has failed")
    if record.is_finished or is_own:
        return record
    if time.time() - claim.added > PATIENCE_SECONDS:
        raise SkippedTaskError("the run was announced a week ago, and has not ended")
    raise UnfinishedRunError("the run is still going")


def _judged_again(policy: Policy, run: TrackedRun, group: Group) -> str | None:
    """Judge what was logged for a policy that has another rule.

    Returns
    -------
    str or None
        The outcome; None where it was judged by the same rule, or its runs are gone meanwhile.
    """
    if group[0].tags.get(RULE_TAG) == policy.fail_on:
        return None
    try:
        return _outcome(
            compare_and_log(policy, run, _baseline(policy, baseline_of(group), "as logged"), log=False)
        )
    except InputError:
        return None


def _fixed(claim: Entry, policy: Policy) -> Baseline | None:
    """Find the baseline again that an earlier attempt has fixed."""
    return None if claim.baseline is None else _baseline(policy, claim.baseline, claim.why or "")


def _baseline(policy: Policy, text: str, why: str) -> Baseline:
    reference = RunReference.parse(text)
    if reference.scheme == "file":
        return Baseline(file_run(reference.locator), why)
    return Baseline(_opened(policy, reference).find(reference.locator), why)


def _look_again(age: float) -> float:
    """Return the seconds after which a run is looked at again that was announced `age` seconds ago."""
    return 10.0 + min(max(age, 0.0) / 10.0, MOST_SECONDS) + delay(0)


def _outcome(judged: JudgedComparison) -> str:
    return "superseded" if judged.is_superseded else judged.judgement.outcome


def stamp_of(record: RunRecord) -> str:
    """Return what changes when a run does, but for what trackperm itself writes to it."""
    own = ("sig.", "trackperm.")
    tags = sorted((name, value) for name, value in record.tags.items() if not name.startswith(own))
    ended = None if record.ended is None else record.ended.isoformat()
    return hashlib.sha256(json.dumps([ended, tags]).encode()).hexdigest()[:16]
