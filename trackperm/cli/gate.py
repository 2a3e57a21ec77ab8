"""``trackperm gate``: a candidate judged by a policy, for continuous integration.

Exit codes: 0 pass, 1 fail, 2 bad input, 3 the tracker failed, 4 undecided with too few examples. (70 is a
fault of trackperm itself.)
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from trackperm.errors import FaultError, InputError, TrackpermError

if TYPE_CHECKING:
    from trackperm.hooks.gate_report import GateReport
    from trackperm.hooks.policy import Policy
    from trackperm.trackers.base import Tracker
    from trackperm.trackers.references import TrackedRun


def gate(
    candidate: Annotated[
        str, typer.Option(metavar="RUN", help="The run to be judged, as in `trackperm compare`.")
    ],
    policy: Annotated[Path, typer.Option("--policy", metavar="FILE", help="Policies in YAML.")] = Path(
        "trackperm.yaml"
    ),
    name: Annotated[
        str | None, typer.Option(metavar="POLICY", help="Which of them, where there are several.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="RUN", help="Compare with this run, whatever the policy says.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the body of a comment on a pull request.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write JUnit XML.")] = None,
    as_json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write JSON.")] = None,
    github: Annotated[
        bool,
        typer.Option(
            "--github", help="In GitHub Actions: print annotations, write the job summary and outputs."
        ),
    ] = False,
    no_log: Annotated[bool, typer.Option("--no-log", help="Log nothing.")] = False,
) -> None:
    """Judge a candidate by a policy: exit code 0 pass, 1 fail, 4 undecided; 2 bad input, 3 tracker failed."""
    from trackperm.hooks.gate_markdown import markdown as written
    from trackperm.hooks.gate_report import github_error
    from trackperm.hooks.policy import load_policies

    try:
        chosen = load_policies(policy).find(name)
        chosen = chosen if baseline is None else chosen.with_baseline(baseline)
    except TrackpermError as unread:
        if not github:
            raise
        annotation, outputs = github_error(unread)
        typer.echo(annotation)
        failure = _append("GITHUB_OUTPUT", outputs)
        if failure is not None:
            raise failure from unread
        raise typer.Exit(unread.exit_code) from unread
    report, error = _judged(chosen, candidate, log=not no_log)
    for line in report.lines():
        typer.echo(line)
    body = written(report)
    failures = [
        _write("--markdown", markdown, body),
        _write("--junit", junit, report.to_junit()),
        _write("--json", as_json, report.to_json()),
    ]
    if github:
        for command in report.annotations():
            typer.echo(command)
        failures += [_append("GITHUB_STEP_SUMMARY", body), _append("GITHUB_OUTPUT", report.outputs())]
    first = next(filter(None, failures), None)
    if first is not None:
        raise first
    if error is not None and not github:  # its text, which GitHub reads as well, stands in the annotation
        raise error
    raise typer.Exit(report.exit_code)


def _judged(policy: Policy, candidate: str, *, log: bool) -> tuple[GateReport, TrackpermError | None]:
    """Return the report on a candidate, and the error that kept it from being compared, if one did."""
    from trackperm.hooks.gate_report import GateReport
    from trackperm.hooks.policy import hint_for_policies

    found: list[TrackedRun] = []
    try:
        return _compared(policy, candidate, found, log=log), None
    except TrackpermError as error:
        error.hint = hint_for_policies(error)
        return GateReport.of_error(policy, next(iter(found), None), error), error
    except Exception as error:
        if os.environ.get("TRACKPERM_DEBUG"):
            raise
        fault = FaultError.of(error)
        return GateReport.of_error(policy, next(iter(found), None), fault), fault


def _compared(policy: Policy, candidate: str, found: list[TrackedRun], *, log: bool) -> GateReport:
    """Find candidate and baseline, and compare them; `found` is told of the candidate."""
    from trackperm.hooks.baseline import NoBaselineError, file_run, find_baseline
    from trackperm.hooks.gate_report import GateReport
    from trackperm.hooks.work import loaded, settle
    from trackperm.trackers.references import RunReference

    reference = RunReference.parse(candidate)
    tracker = None if reference.scheme == "file" else policy.tracker_for(reference)
    run = file_run(reference.locator) if tracker is None else tracker.find(reference.locator)
    found.append(run)
    if tracker is not None:
        _require_no_failure(tracker, run)
    try:
        baseline = find_baseline(policy, tracker, run)
    except NoBaselineError as error:
        if policy.if_no_baseline == "pass":
            loaded(policy, run)  # what cannot be read does not pass
            return GateReport.without_baseline(policy, run, error)
        raise
    return GateReport.of(settle(policy, run, baseline, log=log, once=False))


def _require_no_failure(tracker: Tracker, run: TrackedRun) -> None:
    """Refuse a run that broke off, whatever it has logged; one that is still going may be judged.

    Raises
    ------
    InputError
        If it has failed.
    """
    from trackperm.trackers.history import history_of

    try:
        record = history_of(tracker).record(run)
    except InputError:  # an offline run, or a tracker that tells nothing of it
        return
    if record.is_failed:
        raise InputError(f"the candidate `{run.reference}` has failed", hint="judge a run that has finished.")


def _write(option: str, path: Path | None, content: str) -> InputError | None:
    """Write the file that an option names, where it does, or return why it cannot be written."""
    return None if path is None else _written(option, path, content, "w")


def _append(variable: str, content: str) -> InputError | None:
    """Append to the file that GitHub Actions names in an environment variable, as :func:`_write` does."""
    path = os.environ.get(variable)
    return _written(variable, Path(path), content, "a") if path else None


def _written(name: str, path: Path, content: str, mode: Literal["w", "a"]) -> InputError | None:
    try:
        with path.open(mode, encoding="utf-8", errors="backslashreplace") as file:
            file.write(content)
    except OSError as error:
        return InputError(
            f"`{path}` cannot be written: {error.strerror or error}",
            hint=f"`{name}` names a file in a folder that is there; what was found stands above.",
        )
    return None
