"""Judge one candidate by a policy, as continuous integration does."""

from __future__ import annotations

import os
from pathlib import Path

from trackperm.automation.gate.report import GateReport
from trackperm.automation.judging.baseline import file_run, find_baseline
from trackperm.automation.judging.compare_candidate import compare_and_log, loaded
from trackperm.automation.policy.policy import Policy, hint_for_policies, in_policies, load_policies
from trackperm.errors import FaultError, InputError, NoBaselineError, TrackpermError
from trackperm.messages import without_secrets
from trackperm.trackers.base import Tracker
from trackperm.trackers.history import history_of
from trackperm.trackers.references import RunReference, TrackedRun


def gate(
    candidate: str | Path | TrackedRun,
    policy: str | Path | Policy = "trackperm.yaml",
    *,
    name: str | None = None,
    baseline: str | Path | TrackedRun | None = None,
    log: bool = True,
) -> GateReport:
    """Judge a candidate by a policy: whether it passes, fails, or cannot be told.

    Use :func:`trackperm.compare` to compare two runs without a policy, and ``trackperm watch`` to judge
    every run of an experiment once.

    Parameters
    ----------
    candidate : str, Path or TrackedRun
        The run to be judged: ``mlflow:RUN_ID``, a run that a tracker found, or a file.
    policy : str, Path or Policy
        A policy file, or a policy that :func:`trackperm.automation.policy.policy.load_policies` read.
    name : str, optional
        Which policy of the file, where it has several.
    baseline : str, Path or TrackedRun, optional
        Compare with this run, whatever the policy says.
    log : bool
        Whether the comparisons are logged, where the candidate is or where the policy says.

    Returns
    -------
    GateReport
        Its ``outcome`` is ``pass``, ``fail``, ``undecided``, or ``no baseline`` where the policy lets a
        candidate without one pass; ``passed`` is True for the first and the last. It renders itself by
        ``lines()``, ``to_json()`` and ``to_junit()``.

    Raises
    ------
    InputError
        If the policy is not valid, a run is not there, or the two cannot be compared.
    TrackerError
        If a tracker cannot be reached or refuses; another try completes what was begun.
    MissingDependencyError, CapacityError
        If a library or memory is missing.

    Examples
    --------
    >>> policy = "policies: [{name: no-worse, baseline: {run: baseline.parquet}}]"
    >>> _ = Path("trackperm.yaml").write_text(policy)
    >>> report = trackperm.gate("candidate.parquet")
    >>> report.outcome, report.exit_code
    ('pass', 0)
    """
    _require_one_store(candidate, baseline)
    chosen = _in_store_of(candidate, choose_policy(policy, name, baseline))
    chosen = chosen if baseline is None else _in_store_of(baseline, chosen)
    try:
        return _judge(chosen, *_find(chosen, candidate), log=log)
    except TrackpermError as error:
        error.message = without_secrets(in_policies(error.message))
        hint = hint_for_policies(error)
        error.hint = None if hint is None else without_secrets(hint)
        raise


def _require_one_store(candidate: object, baseline: object) -> None:
    """Refuse two listed runs of different stores of one tracker.

    Raises
    ------
    InputError
        If they are.
    """
    listed = [run for run in (candidate, baseline) if isinstance(run, TrackedRun)]
    if len({run.reference.scheme for run in listed}) == 1 and len({run.tracking_uri for run in listed}) > 1:
        raise InputError(
            "the candidate and the baseline are in two stores, and a policy is about one",
            hint="`trackperm.compare` compares them.",
        )


def choose_policy(
    policy: str | Path | Policy, name: str | None = None, baseline: str | Path | TrackedRun | None = None
) -> Policy:
    """Return the policy called `name`, with another baseline if one is given.

    Raises
    ------
    InputError
        If the file is not valid, or has no such policy.
    """
    if not isinstance(policy, Policy):
        chosen = load_policies(policy).find(name)
    elif name in (None, policy.name):
        chosen = policy
    else:
        raise InputError(
            f"the policy is called `{policy.name}`; expected `{name}`",
            hint="`name` chooses one of the policies of a file.",
        )
    return chosen if baseline is None else chosen.with_baseline(str(RunReference.of(baseline)))


def _in_store_of(candidate: str | Path | TrackedRun, policy: Policy) -> Policy:
    """Return the policy with the store of a listed run, unless it names a store, or two trackers."""
    if not isinstance(candidate, TrackedRun) or policy.tracking_uri is not None:
        return policy
    rule = policy.baseline
    others = [str(each) for each in (rule.run, rule.among, policy.log_to, *policy.runs) if each is not None]
    if {RunReference.parse(each).scheme for each in others} - {"file", candidate.reference.scheme}:
        return policy
    return policy.model_copy(update={"tracking_uri": candidate.tracking_uri})


def gate_report(
    policy: Policy, candidate: str | Path | TrackedRun, *, log: bool = True
) -> tuple[GateReport, TrackpermError | None]:
    """Judge a candidate, and return the report, with the error if one kept it from being compared.

    The report of an error is for readers who expect one in any case, as of continuous integration. What is
    raised otherwise, a fault of trackperm, is reported too, unless ``TRACKPERM_DEBUG`` is set.
    """
    run: TrackedRun | None = None
    try:
        tracker, run = _find(policy, candidate)
        return _judge(policy, tracker, run, log=log), None
    except TrackpermError as error:
        error.message, error.hint = in_policies(error.message), hint_for_policies(error)
        return GateReport.of_error(policy, run, error), error
    except Exception as error:
        if os.environ.get("TRACKPERM_DEBUG"):
            raise
        fault = FaultError.of(error)
        return GateReport.of_error(policy, run, fault), fault


def _find(policy: Policy, candidate: str | Path | TrackedRun) -> tuple[Tracker | None, TrackedRun]:
    """Find the candidate, and open its tracker; a file has none."""
    reference = RunReference.of(candidate)
    if reference.scheme == "file":
        return None, file_run(reference.locator)
    tracker = policy.tracker_for(reference)
    return tracker, tracker.find(reference.locator)


def _judge(policy: Policy, tracker: Tracker | None, run: TrackedRun, *, log: bool) -> GateReport:
    """Find the baseline, compare, and report."""
    if tracker is not None:
        _require_no_failure(tracker, run)
    try:
        baseline = find_baseline(policy, tracker, run)
    except NoBaselineError as error:
        if policy.if_no_baseline == "pass":
            loaded(policy, run)  # what cannot be read does not pass
            return GateReport.without_baseline(policy, run, error)
        raise
    return GateReport.of(compare_and_log(policy, run, baseline, log=log, once=False))


def _require_no_failure(tracker: Tracker, run: TrackedRun) -> None:
    """Refuse a run that broke off, whatever it has logged; one that is still going may be judged.

    Raises
    ------
    InputError
        If it has failed.
    """
    try:
        record = history_of(tracker).record(run)
    except InputError:  # an offline run, or a tracker that tells nothing of it
        return
    if record.is_failed:
        raise InputError(f"the candidate `{run.reference}` has failed", hint="judge a run that has finished.")
