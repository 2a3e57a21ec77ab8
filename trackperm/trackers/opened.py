"""Trackers opened by reference: to a run, a comparison, an experiment, or a folder of offline runs."""

from __future__ import annotations

from pathlib import Path

from trackperm.errors import InputError
from trackperm.tables.wandb.run_folder import is_run_folder
from trackperm.trackers.base import Tracker, open_tracker
from trackperm.trackers.publication import LoggedComparison
from trackperm.trackers.references import RunReference, TrackedRun


def opened(
    reference: str | Path | TrackedRun, tracking_uri: str | None = None, *, hint: str
) -> tuple[Tracker, str]:
    """Open the tracker of a run or container, such as ``mlflow:RUN_ID`` or ``wandb:ENTITY/PROJECT``.

    Return the tracker and the locator in it; W&B's adapter reads the folder of an offline run. `tracking_uri`
    is for a run that does not know its own. Raise InputError, with `hint`, if `reference` names no tracker.
    """
    found = RunReference.of(reference)
    if found.scheme == "file" and is_run_folder(Path(found.locator).expanduser()):
        return open_tracker("wandb"), found.locator
    if found.scheme == "file":
        raise InputError(f"`{found}` names no tracker", hint=hint)
    own = reference.tracking_uri if isinstance(reference, TrackedRun) else None
    return open_tracker(found.scheme, own or tracking_uri), found.locator


def comparison_or_run(tracker: Tracker, locator: str) -> LoggedComparison | TrackedRun:
    """Find the comparison that `locator` names, or else the run; raise InputError if it names neither."""
    try:
        return tracker.comparison(locator)
    except InputError:
        return tracker.find(locator)
