"""Gate: judge one candidate by a policy, as continuous integration does."""

from __future__ import annotations

import os
from pathlib import Path

from trackperm.automation.gate.report import GateReport
from trackperm.automation.judging.baseline import file_run, find_baseline
from trackperm.automation.judging.compare_candidate import compare_and_log, read_run
from trackperm.automation.policy.load import load_policies
from trackperm.automation.policy.policy import Policy
from trackperm.automation.policy.resolve import policy_tracker, with_baseline
from trackperm.automation.policy.wording import hint_for_policies, in_policies
from trackperm.errors import FaultError, InputError, IsBaselineError, NoBaselineError, TrackpermError
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
    """Judge a candidate by a policy: it passes, fails, or is undecided.

    To compare two runs without a policy, use :func:`trackperm.compare`. To judge every run of an experiment
    once, use ``trackperm watch``; at the end of a training script, :func:`trackperm.compare_on_exit`.

    Parameters
    ----------
    candidate : str, Path or TrackedRun
        Run to judge: ``mlflow:RUN_ID``, a run that a tracker returned, or a file.
    policy : str, Path or Policy
        A policy file, or a policy that :func:`trackperm.automation.policy.load.load_policies` returned.
    name : str, optional
        Name of the policy, if the file has several.
    baseline : str, Path or TrackedRun, optional
        Run to compare with, instead of the policy's rule.
    log : bool
        Whether the comparisons are logged, to the experiment of the candidate or where the policy says.

    Returns
    -------
    GateReport
        Its ``outcome`` is ``pass``, ``fail``, ``undecided``, or ``no baseline`` if the policy lets a
        candidate without one pass; ``passed`` is True for the first and the last. ``lines()``, ``to_json()``
        and ``to_junit()`` render it.

    Raises
    ------
    InputError
        If the policy is not valid, a run does not exist, or the two cannot be compared.
    TrackerError
        If a tracker cannot be reached or refuses; another attempt completes what was begun.
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
    """Refuse two runs in different stores of one tracker."""
    listed = [run for run in (candidate, baseline) if isinstance(run, TrackedRun)]
    if len({run.reference.scheme for run in listed}) == 1 and len({run.tracking_uri for run in listed}) > 1:
        raise InputError(
            "the candidate and the baseline are in different stores; a policy covers one store",
            hint="`trackperm.compare` compares runs of different stores.",
        )


def choose_policy(
    policy: str | Path | Policy, name: str | None = None, baseline: str | Path | TrackedRun | None = None
) -> Policy:
    """Return the policy called `name`, with another baseline if `baseline` is given.

    Raise InputError if the file is not valid, or does not have the policy.
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
    return chosen if baseline is None else with_baseline(chosen, str(RunReference.of(baseline)))


def _in_store_of(candidate: str | Path | TrackedRun, policy: Policy) -> Policy:
    """Return the policy with the store of a run, unless it names a store or refers to another tracker."""
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
    """Judge a candidate, and return a report in any case, with the error that prevented the comparison.

    Continuous integration expects a report even then. A fault of trackperm is reported too, unless
    ``TRACKPERM_DEBUG`` is set.
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
    """Find the candidate, and open its tracker; None for a file."""
    reference = RunReference.of(candidate)
    if reference.scheme == "file":
        return None, file_run(reference.locator)
    tracker = policy_tracker(policy, reference)
    return tracker, tracker.find(reference.locator)


def _judge(policy: Policy, tracker: Tracker | None, run: TrackedRun, *, log: bool) -> GateReport:
    """Find the baseline, compare, and report."""
    is_early = tracker is not None and _is_in_progress(tracker, run)
    try:
        baseline = find_baseline(policy, tracker, run)
    except NoBaselineError as error:
        if policy.if_no_baseline == "pass" and not isinstance(error, IsBaselineError):
            read_run(policy, run, tracker)  # a run without readable predictions does not pass
            return GateReport.without_baseline(policy, run, error)
        raise
    judged = compare_and_log(policy, run, baseline, tracker=tracker, log=log, once=False, is_early=is_early)
    return GateReport.of(judged)


def _is_in_progress(tracker: Tracker, run: TrackedRun) -> bool:
    """Whether a run has not ended; refuse a failed run, whatever it has logged."""
    try:
        record = history_of(tracker).record(run)
    except InputError:  # an offline run, or a tracker without a history
        return False
    if record.is_failed:
        raise InputError(f"the candidate `{run.reference}` has failed", hint="judge a run that has finished.")
    return not record.is_finished
