"""Worker of the queue: claims a due row, compares its candidate, and records the result.

A worker can be killed between any two of these steps, and another worker takes the row over (see
:mod:`trackperm.automation.queue.queue`):

1. *Claim a row.* Killed after that: the lease expires, and another worker starts again.
2. *Ask the tracker* for finished comparisons of this policy and candidate, which a worker that was killed at
   step 5, or one on another machine, may have logged. Duplicates, which remain if a worker was killed between
   logging and its search for duplicates, are withdrawn, except for the group that began first.
3. *Find the baseline and record it in the row.* Killed before it is recorded: nothing was logged, so another
   baseline may be found. Killed after that: the same baseline is used again.
4. *Renew the lease*, which fails if another worker has claimed the row, then *compare and log*. Killed in the
   middle: the tracker has unfinished runs. The next worker makes the same comparisons, with the same keys,
   finds these runs by their keys and completes them. If two workers log at the same time, because one paused
   for longer than its lease, they use the same keys, and duplicates are withdrawn after logging (see
   :mod:`trackperm.automation.judging.duplicates`).
5. *Complete the row.* Killed before that: the next worker finds the comparisons in step 2.
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
from trackperm.automation.judging.baseline import Baseline, file_run, find_baseline, is_selected
from trackperm.automation.judging.compare_candidate import JudgedComparison, compare_and_log, read_run
from trackperm.automation.judging.duplicates import (
    RULE_TAG,
    Group,
    baseline_of,
    withdraw_duplicates,
)
from trackperm.automation.policy.policy import Policy
from trackperm.automation.policy.resolve import policy_tracker
from trackperm.automation.policy.wording import hint_for_policies, in_policies
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
from trackperm.ledger.policy_outcome import agreed_outcome
from trackperm.trackers.base import Tracker
from trackperm.trackers.history import RunRecord, history_of
from trackperm.trackers.predictions import PREDICTIONS_TAG
from trackperm.trackers.references import RunReference, TrackedRun

Event = Literal[
    "compared", "known", "passed", "refused", "retry", "skipped", "lease-lost", "waiting", "resolved"
]

PATIENCE_SECONDS = 7 * 86400.0
"""Time that an announced run has to end: trainings take days, and a longer wait suggests a lost process."""

_SOONEST_RENEWAL = 0.05


@dataclass(frozen=True)
class WorkerStep:
    """Result of processing one row.

    Attributes
    ----------
    event : str
        ``compared``; ``known``: the tracker has the comparisons already; ``passed``: the run is itself the
        baseline, or no baseline exists and the policy lets it pass; ``refused``; ``retry``: the tracker
        failed; ``waiting``: the run is still in progress; ``skipped``: the policy does not select the run;
        ``resolved``: the run that logged an artifact was queued instead; ``lease-lost``.
    policy : Policy
        Policy of the row.
    told_to_wait : float or None
        Seconds to wait, as the tracker requested.
    """

    event: Event
    policy: Policy
    told_to_wait: float | None = None


def is_artifact(reference: RunReference) -> bool:
    """Whether a reference is an artifact of W&B, ``ENTITY/PROJECT/NAME:VERSION``; run ids have no colon."""
    return reference.scheme == "wandb" and ":" in reference.locator.rpartition("/")[2]


class Worker:
    """Worker that processes the rows of some policies, one at a time.

    Rows of other policies are not claimed. `owner` is the name of the worker in the rows, by default host and
    process id.
    """

    def __init__(
        self, policies: Sequence[Policy], queue: Queue, log: DecisionLog, *, owner: str | None = None
    ) -> None:
        self.policies = tuple(policies)
        self._queue = queue
        self._log = log
        self.owner = owner or f"{socket.gethostname()}:{os.getpid()}"

    def step(
        self, policies: Sequence[Policy] | None = None, *, candidates: Sequence[str] | None = None
    ) -> WorkerStep | None:
        """Claim the next due row and process it; None if no row is due.

        Only rows of `policies`, by default all, and of the `candidates` if given, are claimed.
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
                return self._process(claim, policy)
        except LeaseLostError as error:
            self._note("lease-lost", claim, policy, reason=error.message)
            return WorkerStep("lease-lost", policy)
        except BaseException:
            self._release(claim)
            raise

    def _process(self, claim: Entry, policy: Policy) -> WorkerStep:
        """Process a row, and turn every error into a state of the row."""
        began = time.monotonic()
        try:
            event, claim, facts = self._attempt(claim, policy)
        except (LeaseLostError, KeyboardInterrupt):
            raise
        except QueueError as error:  # the next worker that claims the row finds what was logged
            self._note("queue-failed", claim, policy, reason=error.message, hint=error.hint)
            return WorkerStep("retry", policy)
        except SkippedTaskError as error:
            self._queue.drop(claim)
            self._note("skipped", claim, policy, reason=error.message)
            return WorkerStep("skipped", policy)
        except UnfinishedRunError as error:
            wait = _wait_for_run(time.time() - claim.added)
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
            fault = f"a fault in trackperm itself: {type(error).__name__}: {error}"
            return self._refuse(claim, policy, fault)
        seconds = round(time.monotonic() - began, 3)
        self._note(event, claim, policy, seconds=seconds, **facts)
        return WorkerStep(event, policy)

    def _attempt(self, claim: Entry, policy: Policy) -> tuple[Event, Entry, dict[str, object]]:
        reference = RunReference.parse(claim.candidate)
        tracker = _open(policy, reference)
        if is_artifact(reference):
            return self._resolve(claim, tracker, reference)
        run = tracker.find(reference.locator)
        record = _selected(claim, policy, tracker, run)
        stamp = stamp_of(record)
        if stamp != claim.stamp:
            claim = self._queue.note_stamp(claim, stamp)
        # A script that ends again may have logged other predictions; the keys of comparisons tell.
        before = () if claim.source == "on-exit" else _logged_before(policy, tracker, run)
        if before:
            logged = [str(comparison.run.reference) for comparison in before]
            outcome = _judged_again(policy, tracker, run, before)
            self._queue.complete(claim, outcome or "known", logged)
            return "known", claim, {"outcome": outcome, "comparisons": logged}
        if claim.baseline is not None:
            baseline = _fixed_baseline(policy, tracker, claim.baseline, claim.why or "")
        else:
            try:
                baseline = find_baseline(policy, tracker, run)
            except NoBaselineError as error:
                is_baseline = isinstance(error, IsBaselineError)
                if not is_baseline:
                    if policy.if_no_baseline != "pass":
                        raise
                    read_run(policy, run, tracker)  # a run without readable predictions does not pass
                outcome = "baseline" if is_baseline else "no baseline"
                self._queue.complete(claim, outcome, [])
                return "passed", claim, {"outcome": outcome, "reason": scrubbed(error.message)}
            claim = self._queue.fix_baseline(claim, str(baseline.run.reference), baseline.why)
        self._queue.renew(claim)
        is_early = not record.is_finished
        judged = compare_and_log(policy, run, baseline, tracker=tracker, is_early=is_early)
        logged = [str(published.run.reference) for published in judged.published]
        outcome = _outcome(judged)
        self._queue.complete(claim, outcome, logged)
        facts = {"outcome": outcome, "why": baseline.why, "comparisons": logged}
        said = {"reasons": list(judged.judgement.reasons), "notes": judged.judgement.notes or None}
        return "compared", claim, {**facts, **said}

    def _resolve(
        self, claim: Entry, tracker: Tracker, reference: RunReference
    ) -> tuple[Event, Entry, dict[str, object]]:
        """Queue the run that logged an artifact; if a crash precedes the drop, the next call adds nothing."""
        run = history_of(tracker).aliased(reference.locator).run
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

    def _release(self, claim: Entry) -> None:
        """Release a row when the worker ends; if that fails too, the lease expires."""
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
        """Renew the lease of a row from another thread for as long as the block runs."""
        ended = threading.Event()

        def renew() -> None:
            while not ended.wait(max(self._queue.lease / 3, _SOONEST_RENEWAL)):
                try:
                    self._queue.renew(claim)
                except LeaseLostError:
                    return
                except InputError:  # the file is locked or the disk is full; the next renewal may succeed
                    continue

        thread = threading.Thread(target=renew, name="trackperm-lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(timeout=5)


def _open(policy: Policy, reference: RunReference) -> Tracker:
    """Open a tracker; an error of the configuration is a TrackerError, because it is not about the run."""
    try:
        return policy_tracker(policy, reference)
    except InputError as error:
        raise TrackerError(error.message, hint=error.hint) from error


def _logged_before(policy: Policy, tracker: Tracker, run: TrackedRun) -> Group:
    """Return the group that stays in the tracker; a missing place to log to is a TrackerError."""
    try:
        return withdraw_duplicates(policy, tracker, run)
    except InputError as error:
        raise TrackerError(error.message, hint=error.hint) from error


def _selected(claim: Entry, policy: Policy, tracker: Tracker, run: TrackedRun) -> RunRecord:
    """Read a run; raise SkippedTaskError if it is not selected, UnfinishedRunError if it is too early."""
    history = history_of(tracker)
    is_own = claim.source == "on-exit"  # the script itself says that the run is at its end
    scheme = run.reference.scheme
    places = [place.locator for place in policy.runs if place.scheme == scheme]
    if not (is_own and not policy.runs) and not any(history.holds(place, run) for place in places):
        raise SkippedTaskError("the run is not in an experiment or project of the policy")
    record = history.record(run)
    if not is_selected(policy, replace(record, is_finished=True)):
        raise SkippedTaskError("`only` does not select the run")
    if record.is_failed:
        raise SkippedTaskError("the run has failed")
    if record.is_finished or is_own:
        return record
    if time.time() - claim.added > PATIENCE_SECONDS:
        raise SkippedTaskError("the run was announced a week ago and has not ended")
    raise UnfinishedRunError("the run is still in progress")


def _judged_again(policy: Policy, tracker: Tracker, run: TrackedRun, group: Group) -> str | None:
    """Return the outcome of a logged group by the rule of this policy; None if its runs are gone."""
    outcome = agreed_outcome([each.tags for each in group])
    if group[0].tags.get(RULE_TAG) == policy.fail_on and outcome is not None:
        return outcome
    try:
        baseline = _fixed_baseline(policy, tracker, baseline_of(group), "as logged")
        return _outcome(compare_and_log(policy, run, baseline, tracker=tracker, log=False))
    except InputError:
        return None


def _fixed_baseline(policy: Policy, tracker: Tracker, text: str, why: str) -> Baseline:
    """Return the baseline that an earlier attempt recorded."""
    reference = RunReference.parse(text)
    if reference.scheme == "file":
        return Baseline(file_run(reference.locator), why)
    opened = tracker if tracker.scheme == reference.scheme else _open(policy, reference)
    return Baseline(opened.find(reference.locator), why)


def _wait_for_run(age: float) -> float:
    """Return the seconds until the next look at a run in progress that was announced `age` seconds ago."""
    return 10.0 + min(max(age, 0.0) / 10.0, MOST_SECONDS) + delay(0)


def _outcome(judged: JudgedComparison) -> str:
    return "superseded" if judged.is_superseded else judged.judgement.outcome


def stamp_of(record: RunRecord) -> str:
    """Return a digest of the end and the tags of a run, without what comparisons write to it."""
    own = ("sig.", "trackperm.")
    tags = sorted(
        (name, value)
        for name, value in record.tags.items()
        if name == PREDICTIONS_TAG or not name.startswith(own)
    )
    ended = None if record.ended is None else record.ended.isoformat()
    return hashlib.sha256(json.dumps([ended, tags]).encode()).hexdigest()[:16]
