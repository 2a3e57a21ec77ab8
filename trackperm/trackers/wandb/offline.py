"""W&B runs in a folder, ``wandb:FOLDER``: found and read without wandb and without a server.

:mod:`trackperm.tables.wandb.run_log` decodes the log, and :mod:`trackperm.tables.wandb.run_folder` finds the
tables; it also reads such folders as plain files.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from trackperm.errors import InputError, SourceError
from trackperm.tables.registry import detect_format
from trackperm.tables.table import ExampleTable
from trackperm.tables.wandb.run_folder import RunFolder, is_run_folder
from trackperm.tables.wandb.run_log import RunLog, read_run_log
from trackperm.trackers.publication import (
    GROUP,
    KINDS,
    TEST_SET_TAG,
    LoggedComparison,
    creation,
    is_recent,
    logged_by_trackperm,
)
from trackperm.trackers.references import RunReference, TrackedRun

TABLE_TYPE = "table-file"
"""Type of the entries of tables in summaries."""

_QUIET_SECONDS = 1.0  # a log that did not change for this long is complete, or its writer is gone
_MOST_SECONDS = 5.0  # longest wait for the end of a log, which a killed run never writes


def is_offline_run(locator: str) -> bool:
    """Whether `locator` is the path of a run's folder, or of the log in one."""
    return is_run_folder(Path(locator).expanduser())


def find_offline_run(locator: str) -> TrackedRun:
    """Describe the run in a folder; its locator is the folder's absolute path.

    Its container is ``<entity>/<project>``, as far as the log contains them. Raise InputError if its log is
    empty or unreadable, or the run is a comparison.
    """
    folder = _open(locator)
    if _is_ours(folder.log):
        raise logged_by_trackperm(f"wandb:{locator}", folder.log.job_type)
    return _tracked(folder)


def read_offline_run(run: TrackedRun, artifact: str | None = None) -> ExampleTable:
    """Read the per-example table of a run that :func:`find_offline_run` returned.

    Raise SourceError if several tables could be meant, files are missing, or W&B truncated the table.
    """
    folder = _open(run.reference.locator, str(run.reference))
    return folder.read(artifact, "--artifact ", detect_format)


def offline_comparison(locator: str) -> LoggedComparison:
    """Describe the comparison or leaderboard in a folder.

    Raise InputError if its log is empty or unreadable, or the run is not a comparison.
    """
    folder = _open(locator)
    return replace(_described(folder, locator), metrics=_metrics(folder))


def _described(folder: RunFolder, locator: str) -> LoggedComparison:
    if not _is_ours(folder.log):
        raise InputError(f"run `wandb:{locator}` is not a comparison; expected a run that trackperm logged")
    tags = tags_of_config(folder.log.config)
    created = creation(tags)
    return LoggedComparison(
        _tracked(folder),
        created,
        folder.log.exit_code == 0,
        tags,
        is_beginning=created is None and _is_recent(folder.path),
        labels=folder.log.tags,
    )


def _metrics(folder: RunFolder) -> dict[str, float] | None:
    """Read the numbers in the summary of a comparison, whose log is short; None with several logs."""
    logs = list(folder.path.glob("run-*.wandb"))
    if len(logs) != 1:
        return None
    return numbers_of_summary(read_run_log(logs[0], folder.origin, with_summary=True).summary)


def numbers_of_summary(summary: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics of a comparison, which are in the summary of its run beside wandb's own entries."""
    return {
        name: float(value)
        for name, value in summary.items()
        if isinstance(value, int | float) and not name.startswith("_")
    }


def _tracked(folder: RunFolder) -> TrackedRun:
    log = folder.log
    return TrackedRun(
        reference=RunReference("wandb", str(folder.path)),
        name=log.name or log.run_id,
        container="/".join(part for part in (log.entity, log.project) if part),
    )


def folders_of_comparisons(folder: Path, run_id: str = "trackperm-") -> list[Path]:
    """List the folders of comparisons beside the runs in `folder`, oldest first.

    wandb writes to the folder ``wandb`` inside the folder that it is given, unless that is called ``wandb``
    itself.
    """
    inside = [folder] if folder.name == "wandb" else [folder, folder / "wandb"]
    paths = (path for each in inside for path in each.glob(f"*run-*-{run_id}*"))
    return sorted(paths, key=lambda path: path.name)


def offline_comparisons(folder: Path, test_set: str | None) -> list[LoggedComparison]:
    """List the comparisons among the runs in `folder`; only the logs are read."""
    found = []
    for path in folders_of_comparisons(folder):
        try:
            comparison = _described(_open(str(path)), str(path))
        except InputError:  # not a comparison, or one whose log is still empty
            if _is_recent(path):
                run = TrackedRun(RunReference("wandb", str(path.resolve())), path.name, "")
                found.append(LoggedComparison(run, None, False, {}, is_beginning=True))
            continue
        if comparison.is_beginning or test_set in (None, comparison.tags.get(TEST_SET_TAG)):
            found.append(comparison)
    return found


def _is_recent(path: Path) -> bool:
    return is_recent(datetime.fromtimestamp(path.stat().st_mtime, tz=timezone.utc))


def offline_files(run: TrackedRun) -> dict[str, bytes]:
    """Read the files of a comparison under ``trackperm/``, from where they were when it was logged.

    Raise SourceError if they are missing or were changed.
    """
    folder = _open(run.reference.locator, str(run.reference))
    results = [artifact for artifact in folder.log.artifacts if artifact.type in KINDS]
    if not results:
        raise SourceError(f"comparison `{run.reference}` was interrupted before its files were written")
    paths = [path for path in results[-1].entries if path.startswith("trackperm/")]
    return {path: folder.staged(results[-1], path).read_bytes() for path in paths}


def offline_tables(run: TrackedRun) -> dict[str, bytes]:
    """Read the tables that the run of a comparison shows, by key, as JSON; missing files are left out."""
    folder = _open(run.reference.locator, str(run.reference))
    paths = {
        key: folder.path / "files" / str(entries[-1].get("path", ""))
        for key, entries in folder.log.media.items()
        if entries[-1].get("_type") == TABLE_TYPE
    }
    return {key: path.read_bytes() for key, path in paths.items() if path.is_file()}


def tags_of_config(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags of a comparison, which are in the config of its run."""
    return {
        name: value
        for name, value in config.items()
        if name.startswith("trackperm.") and isinstance(value, str)
    }


def offline_runs(container: str) -> list[TrackedRun]:
    """List the finished runs in a folder, oldest first, without those that trackperm logged.

    Raise InputError if the folder has no such runs.
    """
    folder = Path(container).expanduser()
    found = []
    for path in sorted(folder.glob("*run-*")):
        if not is_run_folder(path):
            continue
        opened = _open(str(path))
        if opened.log.exit_code == 0 and not _is_ours(opened.log):
            found.append(_tracked(opened))
    if not found:
        raise InputError(
            f"`{folder}` contains no finished run of W&B", hint="name the folder `wandb` of a project."
        )
    return found


def has_crashed(locator: str) -> bool:
    """Whether an offline run ended with an exit code other than 0."""
    return _open(locator).log.exit_code not in (None, 0)


def _is_ours(log: RunLog) -> bool:
    return log.group == GROUP and log.job_type in KINDS


def _open(locator: str, origin: str | None = None) -> RunFolder:
    path = Path(locator).expanduser().resolve()
    _wait_for_writer(path)
    return RunFolder.open(path, f"wandb:{locator}" if origin is None else origin)


def _wait_for_writer(path: Path) -> None:
    """Wait for the end of a log that is being written.

    ``run.finish()`` may return before wandb's process has written it.
    """
    logs = list(path.glob("run-*.wandb")) if path.is_dir() else [path]
    deadline = time.monotonic() + _MOST_SECONDS
    with suppress(SourceError, OSError):  # opening the log reports them
        for log in logs:
            while time.time() - log.stat().st_mtime < _QUIET_SECONDS and time.monotonic() < deadline:
                if read_run_log(log, str(log)).exit_code is not None:
                    break
                time.sleep(0.05)
