"""Trackers opened by reference: of a run, a comparison, an experiment or a folder of offline runs."""

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
    """Open the tracker that `reference` names; the folder of an offline run is W&B's.

    Parameters
    ----------
    reference : str, Path or TrackedRun
        A run or a container: ``mlflow:RUN_ID``, ``wandb:ENTITY/PROJECT``, ``wandb:FOLDER``.
    tracking_uri : str, optional
        Tracking server or store, of a run that does not know its own; by default as the tracker decides.
    hint : str
        What to write instead, if it names no tracker.

    Returns
    -------
    tuple of Tracker and str
        The tracker, and the locator of what was named in its own words.

    Raises
    ------
    InputError
        If it names no tracker.
    MissingDependencyError
        If the library of the tracker is not installed.
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
        If it is neither.
    TrackerError
        If the tracker cannot be reached or refuses.
    """
    try:
        return tracker.comparison(locator)
    except InputError:
        return tracker.find(locator)
