"""``trackperm policy``: check and explain policy files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trackperm.cli.help import Commands
from trackperm.cli.output import (
    Block,
    OutputFiles,
    TextOrJson,
    echo,
    emit_checks,
    require_formats,
    require_other_files,
)
from trackperm.errors import SpecError
from trackperm.messages import printable, without_credentials

if TYPE_CHECKING:
    from trackperm.automation.policy.policy import Policy

app = Commands(no_args_is_help=True)

_DIGEST = 12  # digits that are printed: enough to distinguish the versions of a policy


@app.callback()
def root() -> None:
    """Check policies of automatic comparisons."""


@app.command()
def check(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Policies in YAML; `trackperm.yaml` by default.",
            default_factory=lambda: [Path("trackperm.yaml")],
            show_default=False,
        ),
    ],
    format_: TextOrJson = "text",
    output: OutputFiles = None,
) -> None:
    """Describe policies, or print all of their errors and exit with code 2."""
    from trackperm.automation.policy.load import read_policies

    require_formats(output, ("text", "json"))
    require_other_files(output, {"one of the policy files": files})
    found = {path: read_policies(path) for path in files}
    results = [
        {
            "file": str(path),
            "ok": not isinstance(read, list),
            "problems": _messages(read) if isinstance(read, list) else [],
            "policies": []
            if isinstance(read, list)
            else [{**policy.to_dict(), "digest": policy.digest} for policy in read.policies],
        }
        for path, read in found.items()
    ]
    blocks = [
        Block(_problems(path, read), is_error=True)
        if isinstance(read, list)
        else Block(_understood(path, read.policies))
        for path, read in found.items()
    ]
    emit_checks(blocks, results, format_, output)


@app.command()
def schema() -> None:
    """Print the JSON Schema of policy files, for completion and checks in editors."""
    from trackperm.automation.policy.policy import json_schema

    echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))


def _understood(path: Path, policies: Sequence[Policy]) -> str:
    """Describe the policies of a file."""
    heading = f"{printable(path)}: ok, {_number(len(policies), 'policy', 'policies')}"
    return "\n\n".join([heading, *("\n".join(map(printable, _block(policy))) for policy in policies)])


def _problems(path: Path, errors: Sequence[SpecError]) -> str:
    """Describe the problems of a policy file."""
    return "\n\n".join(
        [*_messages(errors), f"{printable(path)}: {_number(len(errors), 'problem', 'problems')}"]
    )


def _messages(errors: Sequence[SpecError]) -> list[str]:
    return [without_credentials(error.on_command_line()) for error in errors]


def _block(policy: Policy) -> Iterator[str]:
    """Describe a policy, one line for each of its settings."""
    from trackperm.automation.policy.resolve import missing_baseline_file

    runs = ", ".join(map(str, policy.runs)) or "no runs; only for `trackperm gate`"
    chosen = "" if str(policy.only) == "any" else f" ({policy.only})"
    yield policy.name
    yield f"  compares    the finished runs of {runs}{chosen}" if policy.runs else f"  compares    {runs}"
    missing = missing_baseline_file(policy)
    yield f"  with        {policy.baseline}{'' if missing is None else ', which does not exist'}"
    if missing is not None and not Path(missing).suffix:
        yield f"              if it is a run of a tracker: `mlflow:{missing}`, for example"
    if policy.if_no_baseline == "pass":
        yield "              without one, a candidate passes"
    named = [*(spec.name for spec in policy.specs), *(f"metric {name}" for name in policy.metric)]
    yield f"  by          {', '.join(named) or 'the statistic that the runs imply'}{_sliced(policy)}"
    yield f"  at          alpha {policy.alpha:g}{_options(policy)}"
    yield f"  fails on    {_failure(policy)}"
    yield f"  logs to     {policy.log_to or 'where the candidate is'}{', tags both runs' * policy.tag_runs}"
    if policy.tracking_uri is not None:
        yield f"  tracker     {policy.tracking_uri}"
    yield f"  digest      {policy.digest[:_DIGEST]}"


def _sliced(policy: Policy) -> str:
    return f", and on slices of {', '.join(policy.slices)}" if policy.slices else ""


def _options(policy: Policy) -> str:
    parts = [
        "" if policy.margin is None else f"margin {policy.margin:g}",
        "" if policy.correction == "none" else f"correction {policy.correction}",
        "" if policy.alternative is None else f"alternative {policy.alternative}",
        "" if policy.missing == "error" else f"missing {policy.missing}",
        "" if policy.engine == "auto" else f"engine {policy.engine}",
        "" if policy.artifact is None else f"artifact {policy.artifact}",
        "" if policy.unit is None else f"unit {policy.unit}",
        "" if policy.repeats is None else f"repeats {policy.repeats}",
        "" if policy.cluster is None else f"cluster {policy.cluster}",
        "units declared" if policy.units == "declared" else "",
        "allow unseen" if policy.allow_unseen else "",
    ]
    return "".join(f", {each}" for each in parts if each)


def _failure(policy: Policy) -> str:
    if policy.fail_on == "regression":
        return "a candidate that is significantly worse"
    return f"a candidate that is not shown to be at most {policy.margin:g} worse"


def _number(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
