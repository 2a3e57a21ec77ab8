"""Baseline of a candidate: the run that the rule of its policy finds, and how it was found."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from trackperm.automation.policy.policy import Policy
from trackperm.automation.policy.resolve import missing_baseline_file, policy_path, policy_tracker
from trackperm.errors import InputError, IsBaselineError, NoBaselineError, NoSuchAliasError
from trackperm.tables import split_part
from trackperm.tables.remote import shown_locator
from trackperm.trackers.base import Tracker
from trackperm.trackers.history import Aliased, History, RunRecord, history_of
from trackperm.trackers.references import RunReference, TrackedRun


@dataclass(frozen=True)
class Baseline:
    """Run that a candidate is compared with.

    Attributes
    ----------
    run : TrackedRun
        The run. A file is a run whose locator is its path, and whose container is empty.
    why : str
        How it was found, as the end of a sentence: ``the champion of the model digits``.
    """

    run: TrackedRun
    why: str


def find_baseline(policy: Policy, tracker: Tracker | None, candidate: TrackedRun) -> Baseline:
    """Find the baseline of a run or a file by the rule of its policy; `tracker` is None for a file.

    Raise NoBaselineError if the rule finds no run, or finds the candidate itself; InputError if the tracker
    does not support the rule, or the named run does not exist.
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
        aliased = _registered(policy, tracker)
        _require_other(policy, aliased.run, candidate)
        found = Baseline(_with_predictions(policy, aliased), str(rule))
    _require_other(policy, found.run, candidate)
    return found


def _require_other(policy: Policy, baseline: TrackedRun, candidate: TrackedRun) -> None:
    if _is_same(baseline.reference, candidate.reference):
        raise IsBaselineError(
            f"the candidate `{candidate.reference}` is itself {policy.baseline}; expected another run"
        )


def is_selected(policy: Policy, record: RunRecord) -> bool:
    """Whether a run is finished, and has the tags and the name that `policy` selects."""
    return record.is_finished and record.has(policy.only.tags, policy.only.name)


def file_run(path: str) -> TrackedRun:
    """Describe a file, ``FILE`` or ``FILE::PART``, as a run; its name has no credentials of a URL."""
    return TrackedRun(RunReference("file", path), Path(shown_locator(path)).name, "")


def _is_same(first: RunReference, second: RunReference) -> bool:
    """Whether two references name the same run, or the same file by different paths."""
    if first == second or {first.scheme, second.scheme} != {"file"}:
        return first == second
    (one, part), (other, other_part) = split_part(first.locator), split_part(second.locator)
    if not (isinstance(one, Path) and isinstance(other, Path)):
        return False
    return (one.resolve(), part) == (other.resolve(), other_part)


def _named(policy: Policy, tracker: Tracker | None, text: str) -> TrackedRun:
    reference = RunReference.parse(text)
    if reference.scheme == "file":
        if missing_baseline_file(policy) is not None:
            raise NoBaselineError(
                f"no baseline: the file `{reference.locator}` does not exist",
                hint="relative paths start at the folder of the policy file; a run of a tracker is written as"
                " `mlflow:RUN`.",
            )
        return file_run(policy_path(policy, reference.locator))
    try:
        return policy_tracker(policy, reference, tracker).find(reference.locator)
    except InputError as error:  # a missing run is a mistake, whatever `if_no_baseline` says
        raise InputError(f"no baseline: {error.message}", hint=error.hint) from error


def _registered(policy: Policy, tracker: Tracker | None) -> Aliased:
    rule = policy.baseline
    history = history_of(tracker or policy_tracker(policy, _first_place(policy)))
    try:
        if rule.champion is not None:
            return history.champion(rule.champion)
        return history.aliased(rule.alias or "")
    except NoSuchAliasError as error:
        raise NoBaselineError(f"no baseline: {error.message}", hint=error.hint) from error


def _with_predictions(policy: Policy, aliased: Aliased) -> TrackedRun:
    """Return the version itself if the predictions of `policy` are in it; else the run that made it.

    A run may have logged other versions since.
    """
    if aliased.artifact is None:
        return aliased.run
    name = aliased.artifact.name.partition(":")[0]
    asked = re.split("[:/]", policy.artifact or name)[0]
    return aliased.artifact if asked == name else aliased.run


@dataclass(frozen=True)
class _Search:
    """Search among the runs that were started before the candidate."""

    history: History
    near: TrackedRun | str
    candidate: TrackedRun
    before: datetime | None

    @classmethod
    def of(cls, policy: Policy, tracker: Tracker | None, candidate: TrackedRun) -> _Search:
        """Search in the place that the rule names, else near the candidate, else near the policy's runs."""
        before = None if tracker is None else history_of(tracker).record(candidate).started
        among = policy.baseline.among
        if among is None and tracker is not None:
            return cls(history_of(tracker), candidate, candidate, before)
        place = among or _first_place(policy)
        return cls(history_of(policy_tracker(policy, place, tracker)), place.locator, candidate, before)

    def newest(self, tags: Mapping[str, str], name: str | None, rule: str) -> Baseline:
        """Return the selected run that was started last before the candidate."""
        record = self.history.newest(self.near, tags, name, self.before)
        if record is not None and record.run.reference == self.candidate.reference:
            record = self.history.newest(self.near, tags, name, record.started)
        if record is None:
            raise NoBaselineError(
                f"no baseline for `{self.candidate.reference}` ({self.candidate.name}): {rule} is missing",
                hint="give a finished run these tags, or set `if_no_baseline: pass` for the first run.",
            )
        started = "" if record.started is None else f", started {record.started:%Y-%m-%d %H:%M:%S} UTC"
        return Baseline(record.run, f"{rule}{started}")


def _first_place(policy: Policy) -> RunReference:
    """Return the first experiment or project of a policy whose candidate is a file."""
    if policy.runs:
        return policy.runs[0]
    if policy.log_to is not None:
        return policy.log_to
    raise InputError(
        f"the candidate is a file, and the policy `{policy.name}` does not name the place of its baseline",
        hint="`runs: mlflow:EXPERIMENT`, or `among` in `baseline`, names it.",
    )
