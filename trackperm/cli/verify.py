"""``trackperm verify``: a logged comparison, computed again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trackperm.errors import InputError, SourceError

if TYPE_CHECKING:
    from trackperm.trackers.publication import LoggedComparison
    from trackperm.verification import Verification

MISMATCH = 4
"""Exit code where something does not match."""

_WIDEST = 60


def verify(
    comparison: Annotated[
        str, typer.Argument(help="mlflow:RUN_ID of a comparison, or a folder with its files.")
    ],
    from_runs: Annotated[
        bool, typer.Option("--from-runs", help="Read the runs again as well, and compare them anew.")
    ] = False,
    artifact: Annotated[
        str | None,
        typer.Option(metavar="NAME|BASE,CAND", help="With --from-runs: as for `trackperm compare`."),
    ] = None,
    labels: Annotated[
        str | None, typer.Option(metavar="FILE", help="With --from-runs: as for `trackperm compare`.")
    ] = None,
    tracking_uri: Annotated[str | None, typer.Option(metavar="URI", help="Tracking server or store.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Compute a logged comparison again from its counts and spec, and say line by line what matches.

    Exit code 4 if anything does not.
    """
    from trackperm import verification

    if not from_runs and (artifact or labels):
        raise InputError("`--artifact` and `--labels` say how runs are read", hint="add `--from-runs`.")
    try:
        files, logged = _files(comparison, tracking_uri)
    except SourceError as error:  # the tracker itself can tell that they are not what was logged
        failed = verification.Check.failed("files", error.message)
        _print(verification.Verification((failed,)), as_json=as_json)
        return
    found: list[Verification] = []
    if verification.COUNTS in files or not from_runs:
        found.append(verification.verify(files, logged))
    if from_runs:
        found.append(_from_runs(files, artifact, labels, tracking_uri))
    checks = tuple(check for each in found for check in each.checks)
    notes = tuple(note for each in found for note in each.notes)
    _print(verification.Verification(checks, notes), as_json=as_json)


def _print(result: Verification, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        width = max(len(check.what) for check in result.checks)
        for check in result.checks:
            values = _cut(check.found)
            if not check.matches:
                values = f"logged {_cut(check.logged)}, found {values}"
            typer.echo(
                f"{'ok      ' if check.matches else 'MISMATCH'}  {check.what:{width}}  {values}".rstrip()
            )
        for note in result.notes:
            typer.echo(note)
        wrong = sum(not check.matches for check in result.checks)
        total = len(result.checks)
        typer.echo(f"{wrong} of {total} do not match" if wrong else f"all {total} match")
    if not result.matches:
        raise typer.Exit(MISMATCH)


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def _files(text: str, tracking_uri: str | None) -> tuple[dict[str, bytes], LoggedComparison | None]:
    """Read the files of a comparison from a folder, or from its run."""
    from trackperm.cli.tracked import opened
    from trackperm.trackers.publication import COMPARISON
    from trackperm.trackers.references import RunReference

    folder = Path(text).expanduser()
    if RunReference.parse(text).scheme == "file" and folder.is_dir():
        for inside in (folder / "trackperm", folder):
            if (inside / "comparison.json").is_file():
                return {
                    f"trackperm/{file.name}": file.read_bytes() for file in inside.iterdir() if file.is_file()
                }, None
    hint = "`mlflow:RUN_ID`, `wandb:ENTITY/PROJECT/ID`, or a folder that holds `comparison.json`."
    tracker, locator = opened(text, tracking_uri, hint=hint)
    logged = tracker.comparison(locator)
    if logged.kind != COMPARISON:
        raise InputError(
            f"`{text}` is a {logged.kind}, and only comparisons are verified",
            hint="`trackperm leaderboard` computes it again; `trackperm compare` logs one pair of it.",
        )
    return tracker.files(logged.run), logged


def _from_runs(
    files: dict[str, bytes], artifact: str | None, labels: str | None, tracking_uri: str | None
) -> Verification:
    from trackperm import verification
    from trackperm.cli.arguments import artifacts
    from trackperm.comparison import load_run, reference_answers

    first, second = artifacts(artifact)
    runs = verification.references(files)
    gold = reference_answers(labels, {}, by_position=False)
    baseline, candidate = (
        load_run(run, role, artifact=path, gold=gold, tracking_uri=tracking_uri)
        for run, role, path in zip(runs, ("baseline", "candidate"), (first, second), strict=True)
    )
    return verification.verify_from_runs(files, baseline, candidate)
