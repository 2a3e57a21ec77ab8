"""``trackperm gate``: decision on a candidate by a policy, for continuous integration.

Exit codes: 0 pass, 1 fail, 2 bad input, 3 the tracker failed, 4 undecided with too few examples, 70 a fault
of trackperm itself.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from trackperm.cli.output import (
    FORMAT,
    RUNS,
    OutputFiles,
    Renderers,
    echo,
    require_formats,
    require_other_files,
    write_files,
)
from trackperm.cli.progress import working
from trackperm.errors import InputError, StorageError, TrackpermError
from trackperm.storage import cannot_be_written, is_full


def gate(
    candidate: Annotated[
        str, typer.Option(metavar="RUN", help="The run to judge, as in `trackperm compare`.")
    ],
    policy: Annotated[Path, typer.Option("--policy", metavar="FILE", help="Policies in YAML.")] = Path(
        "trackperm.yaml"
    ),
    name: Annotated[
        str | None, typer.Option(metavar="POLICY", help="One policy of the file, if it has several.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Compare with this run, not with that of the policy."),
    ] = None,
    log: Annotated[bool, typer.Option("--log/--no-log", help="Log the comparisons, or log nothing.")] = True,
    format_: Annotated[Literal["text", "json", "markdown"], FORMAT] = "text",
    output: OutputFiles = None,
    github: Annotated[
        bool,
        typer.Option(
            "--github", help="In GitHub Actions: print annotations, write the job summary and outputs."
        ),
    ] = False,
) -> None:
    """Judge a candidate by a policy, and log the comparisons.

    Exit code 0 pass, 1 fail, 4 undecided; 2 bad input, 3 tracker failed.
    """
    from trackperm.automation.gate.gate import choose_policy, gate_report
    from trackperm.automation.gate.markdown import markdown
    from trackperm.automation.gate.report import github_error
    from trackperm.automation.policy.resolve import policy_path

    try:
        require_formats(output, ("text", "json", "markdown", "junit"), check_folders=False)
        if github and format_ != "text":
            raise InputError(
                f"`--github` and `--format {format_}` contradict each other: annotations are text",
                hint="write a file by `-o gate.json` or `-o gate.md`.",
            )
        chosen = choose_policy(policy, name, baseline)
        named = chosen.baseline.run
        compared = candidate, named and policy_path(chosen, named)
        require_other_files(output, {RUNS: compared, "the policy file": (policy,)})
    except TrackpermError as unread:
        if not github:
            raise
        annotation, outputs = github_error(unread)
        echo(annotation)
        failure = _append("GITHUB_OUTPUT", outputs)
        if failure is not None:
            raise failure from unread
        raise typer.Exit(unread.exit_code) from unread
    with working("judging the candidate"):
        report, error = gate_report(chosen, candidate, log=log)
    body = markdown(report)
    renderers: Renderers = {
        "text": lambda: "\n".join(report.lines()),
        "markdown": lambda: body,
        "json": report.to_json,
        "junit": report.to_junit,
    }
    echo(renderers[format_]())
    failures: list[StorageError | None] = [*write_files(renderers, output)]
    if github:
        for command in report.annotations():
            echo(command)
        failures += [_append("GITHUB_STEP_SUMMARY", body), _append("GITHUB_OUTPUT", report.outputs())]
    first = next(filter(None, failures), None)
    if first is not None:
        raise first
    if error is not None and not github:  # on GitHub, the annotation contains the error
        raise error
    raise typer.Exit(report.exit_code)


def _append(variable: str, content: str) -> StorageError | None:
    """Append to the file that a variable of GitHub Actions names; return the error if writing fails."""
    name = os.environ.get(variable)
    if not name:
        return None
    try:
        with Path(name).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(content)
    except OSError as error:
        failure = cannot_be_written(name, error)
        if not is_full(error):
            failure.hint = f"set `{variable}` to a file in an existing folder."
        failure.hint = f"{failure.hint} The result is printed above."
        return failure
    return None
