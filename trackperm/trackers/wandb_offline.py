"""W&B runs that lie in a folder, ``wandb:FOLDER``: found and read without wandb and without a server.

The log is decoded by :mod:`trackperm.sources.wandb_log`, the tables are found by
:mod:`trackperm.sources.wandb_run`, which also reads such folders as plain files.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from trackperm.errors import InputError, SourceError
from trackperm.sources.wandb_log import read_run_log
from trackperm.sources.wandb_run import RunFolder, is_run_folder
from trackperm.tables import ExampleTable
from trackperm.trackers.base import RunReference, TrackedRun

_QUIET_SECONDS, _MOST_SECONDS = 1.0, 5.0
_JOB_AND_GROUP = "comparison", "trackperm"  # of comparisons; the adapter's own module imports wandb


def is_offline_run(locator: str) -> bool:
    """Whether `locator` is the path of a run's folder, or of the log in one."""
    return is_run_folder(Path(locator).expanduser())


def find_offline_run(locator: str) -> TrackedRun:
    """Describe the run in a folder; its locator is the folder's absolute path.

    Its container is ``<entity>/<project>``, as far as the run was told of them.

    Raises
    ------
    InputError
        If its log is empty or cannot be read, or it is a comparison.
    """
    folder = _open(locator)
    log = folder.log
    if (log.job_type, log.group) == _JOB_AND_GROUP:
        raise InputError(
            f"run `wandb:{locator}` is a comparison that trackperm logged, not a run to compare",
            hint="name the runs that made the predictions.",
        )
    return TrackedRun(
        reference=RunReference("wandb", str(folder.path)),
        name=log.name or log.run_id,
        container="/".join(part for part in (log.entity, log.project) if part),
    )


def read_offline_run(run: TrackedRun, artifact: str | None = None) -> ExampleTable:
    """Read the per-example table of a run that :func:`find_offline_run` returned.

    Raises
    ------
    SourceError
        If it cannot be told which table is meant, its files are gone, or W&B cut it.
    """
    folder = _open(run.reference.locator, str(run.reference))
    return folder.read(artifact, "--artifact ")


def _open(locator: str, origin: str | None = None) -> RunFolder:
    path = Path(locator).expanduser().resolve()
    _wait_for_writer(path)
    return RunFolder.open(path, f"wandb:{locator}" if origin is None else origin)


def _wait_for_writer(path: Path) -> None:
    """Wait for the end of a log that is being written: ``run.finish()`` does not wait for wandb's process."""
    logs = list(path.glob("run-*.wandb")) if path.is_dir() else [path]
    deadline = time.monotonic() + _MOST_SECONDS
    with suppress(SourceError, OSError):  # which opening the log is to say
        for log in logs:
            while time.time() - log.stat().st_mtime < _QUIET_SECONDS and time.monotonic() < deadline:
                if read_run_log(log, str(log)).exit_code is not None:
                    break
                time.sleep(0.05)
