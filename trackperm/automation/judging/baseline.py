"""Which run a candidate is compared with, by the rule of its policy, and why it is that one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from trackperm.automation.policy.keys import BaselineRule
from trackperm.automation.policy.policy import Policy
from trackperm.errors import InputError, IsBaselineError, NoBaselineError, NoSuchAliasError
from trackperm.tables import split_part
from trackperm.tables.remote import shown_locator
from trackperm.trackers.base import Tracker
from trackperm.trackers.history import History, RunRecord, history_of
from trackperm.trackers.references import RunReference, TrackedRun


@dataclass(frozen=True)
class Baseline:
    """The run that a candidate is compared with.

    Attributes
    ----------
    run : TrackedRun
        The run; of a file, its path is the locator and `container` is empty.
    why : str
        How it was found, as the end of a sentence: ``the champion of the model digits``.
    """

    run: TrackedRun
    why: str


def find_baseline(policy: Policy, tracker: Tracker | None, candidate: TrackedRun) -> Baseline:
    """Find the run that `candidate` is to be compared with.

    Parameters
    ----------
    policy : Policy
        Whose rule is followed.
    tracker : Tracker or None
        That of the candidate; None where it lies in a file.
    candidate : TrackedRun
        A run, or what :func:`file_run` returns.

    Raises
    ------
    NoBaselineError
        If there is none, or the candidate is itself the run that the rule names.
    InputError
        If the rule cannot be followed in this tracker, or the run that it names is not there.
    TrackerError
        If a tracker cannot be reached or refuses.
    """
    rule = policy.baseline
    if rule.run is not None:
        found = Baseline(_named(policy, tracker, rule.run), policy.baseline_given_by)
    elif rule.newest is not None:
        search = _Search.of(policy, tracker, candidate)
        found = search.newest(rule.newest.tags, rule.newest.name, str(rule))
    elif rule.branch is not None:
        search = _Search.of(policy, tracker, candidate)
        tag = rule.branch_tag or search.history.branch_tag
        found = search.newest({tag: rule.branch}, None, f"{rule} (tag `{tag}`)")
    else:
        found = _registered(policy, tracker, rule)
    if _is_same(found.run.reference, candidate.reference):
        raise IsBaselineError(
            f"the candidate `{candidate.reference}` is itself {rule}, so there is nothing to compare it with"
        )
    return found


def _is_same(first: RunReference, second: RunReference) -> bool:
    """Whether two references are of one run; of a file, by whichever path."""
    if first == second or {first.scheme, second.scheme} != {"file"}:
        return first == second
    (one, part), (other, of_other) = split_part(first.locator), split_part(second.locator)
    if not (isinstance(one, Path) and isinstance(other, Path)):
        return False
    return (one.resolve(), part) == (other.resolve(), of_other)


def is_wanted(policy: Policy, record: RunRecord) -> bool:
    """Whether a run is one that `policy` compares: finished, with the tags and the name that it wants."""
    return record.is_finished and record.has(policy.only.tags, policy.only.name)


def file_run(path: str) -> TrackedRun:
    """Describe a file as a run: ``FILE``, or ``FILE::PART``; its name has no credentials of a URL."""
    return TrackedRun(RunReference("file", path), Path(shown_locator(path)).name, "")


def _named(policy: Policy, tracker: Tracker | None, text: str) -> TrackedRun:
    reference = RunReference.parse(text)
    if reference.scheme == "file":
        path = policy.resolved(reference.locator)
        file, _ = split_part(path)
        if isinstance(file, Path) and not file.exists():
            raise NoBaselineError(
                f"there is no file `{reference.locator}`, which is to be the baseline",
                hint="its path starts at the folder of the policy file.",
            )
        return file_run(path)
    home = tracker if tracker is not None and tracker.scheme == reference.scheme else None
    try:
        return (home or policy.tracker_for(reference)).find(reference.locator)
    except InputError as error:  # a run that is named and not there is a mistake, and no reason to pass
        raise InputError(f"no baseline: {error.message}", hint=error.hint) from error


def _registered(policy: Policy, tracker: Tracker | None, rule: BaselineRule) -> Baseline:
    history = history_of(tracker or _first_tracker(policy))
    try:
        if rule.champion is not None:
            return Baseline(history.champion(rule.champion), str(rule))
        return Baseline(history.aliased(rule.alias or ""), str(rule))
    except NoSuchAliasError as error:
        raise NoBaselineError(f"no baseline: {error.message}", hint=error.hint) from error


@dataclass(frozen=True)
class _Search:
    """Where runs before the candidate are looked for."""

    history: History
    near: TrackedRun | str
    candidate: TrackedRun
    before: datetime | None

    @classmethod
    def of(cls, policy: Policy, tracker: Tracker | None, candidate: TrackedRun) -> _Search:
        """Look where the rule says, else where the candidate is, else where the policy's runs are."""
        among = policy.baseline.among
        if among is None and tracker is None:
            among = _first(policy)
        before = None if tracker is None else history_of(tracker).record(candidate).started
        if among is not None and (tracker is None or tracker.scheme != among.scheme):
            tracker = policy.tracker_for(among)
        if tracker is None:  # `_first` has found a place, or refused
            raise InputError("there is no place to look for a baseline")
        return cls(history_of(tracker), candidate if among is None else among.locator, candidate, before)

    def newest(self, tags: Mapping[str, str], name: str | None, rule: str) -> Baseline:
        """Return the run that was started last before the candidate."""
        record = self.history.newest(self.near, tags, name, self.before)
        if record is not None and record.run.reference == self.candidate.reference:
            record = self.history.newest(self.near, tags, name, record.started)
        if record is None:
            raise NoBaselineError(
                f"no baseline for `{self.candidate.reference}` ({self.candidate.name}): {rule} was looked"
                " for, and there is none",
                hint="tag a finished run so, or say `if_no_baseline: pass` for the first of all.",
            )
        started = "" if record.started is None else f", started {record.started:%Y-%m-%d %H:%M:%S} UTC"
        return Baseline(record.run, f"{rule}{started}")


def _first(policy: Policy) -> RunReference:
    if policy.runs:
        return policy.runs[0]
    if policy.log_to is not None:
        return policy.log_to
    raise InputError(
        f"the candidate is a file, and the policy `{policy.name}` does not say where its baseline is",
        hint="`runs: mlflow:EXPERIMENT` says it, or `among` in `baseline`.",
    )


def _first_tracker(policy: Policy) -> Tracker:
    return policy.tracker_for(_first(policy))
