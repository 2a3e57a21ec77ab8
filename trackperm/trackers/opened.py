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
    """Open the tracker that `reference` names; a folder of an offline run is read by W&B's adapter.

    Parameters
    ----------
    reference : str, Path or TrackedRun
        A run or a container: ``mlflow:RUN_ID``, ``wandb:ENTITY/PROJECT``, ``wandb:FOLDER``.
    tracking_uri : str, optional
        Server or store of a run that does not know its own; by default as the tracker decides.
    hint : str
        Hint of the error where `reference` names no tracker.

    Returns
    -------
    tuple of Tracker and str
        The tracker, and the locator of the run or container in it.

    Raises
    ------
    InputError
        If `reference` names no tracker.
    MissingDependencyError
        If the tracker's library is not installed.
    """
    found = RunReference.of(reference)
    if found.scheme == "file" and is_run_folder(Path(found.locator).expanduser()):
        return open_tracker("wandb"), found.locator
    if found.scheme == "file":
        raise InputError(f"`{found}` names no tracker", hint=hint)
    own = reference.tracking_uri if isinstance(reference, TrackedRun) else None
    return open_tracker(found.scheme, own or tracking_uri), found.locator


def comparison_or_run(tracker: Tracker, locator: str) -> LoggedComparison | TrackedRun:
    """Find the comparison that `locator` names, or else the run.

    Raises
    ------
    InputError
        If `locator` names neither.
    """
    try:
        return tracker.comparison(locator)
    except InputError:
        return tracker.find(locator)
