"""Verification of a logged comparison by its run, or by a folder with its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from trackperm.comparison import load_runs
from trackperm.comparison.runs import is_tracked
from trackperm.errors import InputError, SourceError
from trackperm.ledger.verification.checks import Check, Verification
from trackperm.ledger.verification.files import COUNTS, run_references
from trackperm.ledger.verification.reading_options import ReadingOptions
from trackperm.ledger.verification.recomputation import verify_files, verify_from_runs
from trackperm.ledger.verification.shown_values import TABLES
from trackperm.trackers.opened import opened
from trackperm.trackers.publication import COMPARISON, LoggedComparison
from trackperm.trackers.references import RunReference, TrackedRun, synced_id, without_part


def verify(
    comparison: str | Path | TrackedRun,
    *,
    from_runs: bool = False,
    artifact: str | tuple[str, str] | None = None,
    labels: Any = None,
    baseline_columns: Mapping[str, str] | None = None,
    candidate_columns: Mapping[str, str] | None = None,
    tracking_uri: str | None = None,
) -> Verification:
    """Recompute a logged comparison from its counts and spec, and check every logged number.

    A mismatch raises nothing: read ``matches`` of the result. To compute a comparison that was not logged,
    use :func:`trackperm.compare`; to check a leaderboard, compute it again.

    Parameters
    ----------
    comparison : str, Path or TrackedRun
        Run of a comparison, as ``mlflow:RUN_ID`` or as ``.run`` of what ``trackperm.log(...)`` returned; or a
        folder with its files.
    from_runs : bool
        Whether the predictions are read and compared again as well.
    artifact : str or (str, str), optional
        With `from_runs`, artifact path of the predictions in both runs, or one path per run; by default as
        logged.
    labels : str, path or data frame, optional
        With `from_runs`, the reference answers, if they are not in the runs; by default the logged file.
    baseline_columns, candidate_columns : mapping, optional
        With `from_runs`, column names of one run, as for :func:`trackperm.compare`; by default as logged.
    tracking_uri : str, optional
        Tracking server or store; by default as the tracker decides.

    Returns
    -------
    Verification
        One check per number, tag and file.

    Raises
    ------
    InputError
        If the comparison does not exist, its files are incomplete, or the runs cannot be compared any more,
        as where the logged file of labels is gone.
    TrackerError
        If the tracker cannot be reached or refuses.

    Examples
    --------
    ``trackperm.verify("mlflow:3f2a...").matches`` is True if all checks match. For a folder:

    >>> from trackperm.ledger.comparison_publication import evidence
    >>> Path("trackperm").mkdir()
    >>> for path, content in evidence(comparison).items():
    ...     _ = Path(path).write_bytes(content)
    >>> trackperm.verify(".").matches
    True
    """
    own_columns = baseline_columns or {}, candidate_columns or {}
    if not from_runs and (artifact or labels is not None or any(own_columns)):
        raise InputError(
            "`--artifact`, `--labels`, `--baseline-column` and `--candidate-column` need `--from-runs`",
            hint="add `--from-runs`.",
        )
    try:
        files, tables, logged = _files(comparison, tracking_uri)
    except SourceError as error:  # the tracker itself noticed that the files were changed
        return Verification((Check.failed("files", error.message),))
    read = [*_places_of_files(comparison)]
    found = [] if from_runs else [verify_files(files, logged, tables)]
    if from_runs:
        found += [verify_files(files)] if COUNTS in files else []
        own = comparison.tracking_uri if isinstance(comparison, TrackedRun) else None
        named = run_references(files)
        reading = ReadingOptions.of(files, artifact, labels, own_columns)
        found_at = [_place(reference, logged) for reference in named]
        read += [*found_at, *(() if reading.references is None else (str(reading.references.path),))]
        runs = load_runs(
            *found_at,
            artifact=reading.artifact,
            references=reading.references,
            tracking_uri=own or tracking_uri,
            own_columns=reading.own_columns,
        )
        baseline, candidate = (
            run if place in (reference, without_part(reference)) else run.under(reference)
            for run, place, reference in zip(runs, found_at, named, strict=True)
        )
        again = verify_from_runs(files, baseline, candidate, logged, tables)
        found.append(replace(again, notes=(*reading.notes(), *again.notes)))
    # predictions check more than counts do, so the notes of the last verification apply
    checks = tuple(check for each in found for check in each.checks)
    return Verification(checks, found[-1].notes, tuple(read))


def _places_of_files(comparison: str | Path | TrackedRun) -> Iterator[str]:
    """Yield the files of a comparison in a folder."""
    folder = Path(str(RunReference.of(comparison).locator)).expanduser()
    for inside in (folder, folder / "trackperm"):
        if inside.is_dir():
            yield from map(str, filter(Path.is_file, inside.iterdir()))


def _place(reference: str, logged: LoggedComparison | None) -> str:
    """Return the file or run that was compared, without the part of an artifact, which is read with it.

    A run of W&B is beside its comparison, if its offline folder has gone.
    """
    if not is_tracked(reference):
        return reference
    run = without_part(reference)
    id_ = synced_id(run)
    if id_ is None or logged is None or synced_id(str(logged.run.reference)) is not None:
        return run
    folder = Path(RunReference.parse(run).locator)
    return run if folder.exists() else f"wandb:{logged.run.container}/{id_}"


def _files(
    comparison: str | Path | TrackedRun, tracking_uri: str | None
) -> tuple[dict[str, bytes], dict[str, bytes] | None, LoggedComparison | None]:
    """Read the files and the tables of a comparison from a folder, which may lack tables, or from its run."""
    reference = RunReference.of(comparison)
    folder = Path(reference.locator).expanduser()
    if reference.scheme == "file" and folder.is_dir():
        for inside in (folder / "trackperm", folder):
            if (inside / "comparison.json").is_file():
                files = {
                    f"trackperm/{file.name}": file.read_bytes() for file in inside.iterdir() if file.is_file()
                }
                paths = [] if inside == folder else [folder / f"{name}.json" for name in TABLES]
                return files, {path.stem: path.read_bytes() for path in paths if path.is_file()}, None
    hint = "name `mlflow:RUN_ID`, `wandb:ENTITY/PROJECT/ID`, or a folder that contains `comparison.json`."
    tracker, locator = opened(comparison, tracking_uri, hint=hint)
    logged = tracker.comparison(locator)
    if logged.kind != COMPARISON:
        raise InputError(
            f"`{reference}` is a {logged.kind}; expected a comparison",
            hint="compute it again by `trackperm leaderboard`, or one of its pairs by `trackperm compare`.",
        )
    files = tracker.files(logged.run)
    read_tables = getattr(tracker, "shown_tables", None)  # adapters of other packages may lack it
    return files, None if read_tables is None else read_tables(logged.run), logged
