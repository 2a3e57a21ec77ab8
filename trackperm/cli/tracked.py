"""What commands are told to look for in a tracker: a run, a comparison, an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from trackperm.errors import InputError

if TYPE_CHECKING:
    from trackperm.trackers.base import Tracker
    from trackperm.trackers.publication import LoggedComparison
    from trackperm.trackers.references import TrackedRun


def opened(text: str, tracking_uri: str | None, *, hint: str) -> tuple[Tracker, str]:
    """Open the tracker that `text` names; the folder of an offline run is W&B's.

    Raises
    ------
    InputError
        If it names none, with `hint`.
    """
    from trackperm.sources.wandb_run import is_run_folder
    from trackperm.trackers.base import open_tracker
    from trackperm.trackers.references import RunReference

    reference = RunReference.parse(text)
    if reference.scheme == "file" and is_run_folder(Path(text).expanduser()):
        return open_tracker("wandb"), text
    if reference.scheme == "file":
        raise InputError(f"`{text}` names no tracker", hint=hint)
    return open_tracker(reference.scheme, tracking_uri), reference.locator


def found(tracker: Tracker, locator: str) -> LoggedComparison | TrackedRun:
    """Find the comparison that `locator` names, or else the run.

    Raises
    ------
    InputError
        If it is neither.
    """
    try:
        return tracker.comparison(locator)
    except InputError:
        return tracker.find(locator)
