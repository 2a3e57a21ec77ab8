"""The two runs of a comparison: where their tables and reference answers come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trackperm.errors import InputError
from trackperm.tables import Gold, labelled, split_part
from trackperm.tables.remote import shown_locator
from trackperm.tables.table import ExampleTable
from trackperm.trackers.base import Tracker, open_tracker
from trackperm.trackers.files import read_file
from trackperm.trackers.references import RunReference, TrackedRun


@dataclass(frozen=True)
class RunData:
    """The per-example table of one run, and the run in its tracker if it has one.

    Attributes
    ----------
    table : ExampleTable
        What was read.
    name : str
        The name that people know the run by.
    run : TrackedRun or None
        Where the run is, unless it lies in a file or in memory.
    tracker : Tracker or None
        The adapter that found it.
    """

    table: ExampleTable
    name: str
    run: TrackedRun | None = None
    tracker: Tracker | None = field(default=None, compare=False, repr=False)


def reference_answers(
    labels: str | Path | None, columns: Mapping[str, str], *, by_position: bool
) -> Gold | None:
    """Say where reference answers lie apart, if they do; options as in :func:`compare`."""
    if labels is None:
        return None
    path, part = split_part(str(labels))
    names = {role: columns.get(role, role) for role in ("id", "label", "prediction")}
    return Gold(path, part, by_position=by_position, **names)


def require_artifacts_of_runs(artifact: object, baseline: object, candidate: object) -> None:
    """Refuse artifact paths where neither of the sources is a run that could have artifacts.

    Raises
    ------
    InputError
        If `artifact` is given and both are files or data frames.
    """
    if artifact is not None and not (is_tracked(baseline) or is_tracked(candidate)):
        raise InputError(
            "`--artifact` names a file in the artifacts of a tracked run, and neither of these is one",
            hint="a part of a file is named `FILE::PART`.",
        )


def load_run(
    source: Any,
    role: str,
    *,
    artifact: str | None = None,
    gold: Gold | None = None,
    tracking_uri: str | None = None,
) -> RunData:
    """Read the per-example table of one run.

    Parameters
    ----------
    source : str, path, TrackedRun or data frame
        As in :func:`compare`.
    role : str
        What to call a data frame that has no name of its own.
    artifact : str, optional
        Artifact path in the run.
    gold : Gold, optional
        Reference answers that lie elsewhere.
    tracking_uri : str, optional
        Tracking server or store.
    """
    if isinstance(source, TrackedRun):
        return _of_tracked_run(source, artifact, gold, tracking_uri)
    if not isinstance(source, str | Path):
        table = ExampleTable.from_native(source, role)
        return RunData(table if gold is None else labelled(table, gold), role)
    reference = RunReference.parse(source) if isinstance(source, str) else RunReference("file", str(source))
    if reference.scheme == "file":
        return RunData(read_file(reference.locator, gold), Path(shown_locator(reference.locator)).name)
    tracker = open_tracker(reference.scheme, tracking_uri)
    return _read(tracker, tracker.find(reference.locator), artifact, gold)


def is_tracked(source: object) -> bool:
    """Whether `source` is a run of a tracker, named by its reference or found before."""
    if isinstance(source, TrackedRun):
        return source.reference.scheme != "file"
    return isinstance(source, str) and RunReference.parse(source).scheme != "file"


def _of_tracked_run(
    run: TrackedRun, artifact: str | None, gold: Gold | None, tracking_uri: str | None
) -> RunData:
    if run.reference.scheme == "file":
        return RunData(read_file(run.reference.locator, gold), run.name, run)
    return _read(open_tracker(run.reference.scheme, run.tracking_uri or tracking_uri), run, artifact, gold)


def _read(tracker: Tracker, run: TrackedRun, artifact: str | None, gold: Gold | None) -> RunData:
    table = tracker.read(run, artifact)
    return RunData(table if gold is None else labelled(table, gold), run.name, run, tracker)
