"""What every tracker adapter offers, and the values that pass between adapters and the rest.

An adapter is a class with the methods of :class:`Tracker`, found by the entry point group
``trackperm.trackers`` under the scheme of its run references (``mlflow:...`` finds ``mlflow``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Protocol

from trackperm.errors import InputError, MissingDependencyError
from trackperm.tables import ExampleTable

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):(?!//|:)(.+)", re.DOTALL)
_WANDB_PAGE = re.compile(r"https?://[^/]+(/wandb)?/[^/]+/[^/]+/runs/[^/]+(/.*)?")


@dataclass(frozen=True)
class RunReference:
    """Where a run is: ``mlflow:3f2a...``, ``wandb:entity/project/run`` or a path.

    Attributes
    ----------
    scheme : str
        The tracker's name, or ``file``.
    locator : str
        What stands behind the colon, in the tracker's own words; a path for ``file``.
    """

    scheme: str
    locator: str

    @classmethod
    def parse(cls, text: str) -> RunReference:
        """Split `text` at its scheme; text without one is a path, or the address of a run's page in W&B.

        Raises
        ------
        InputError
            If nothing stands behind the scheme.
        """
        if _WANDB_PAGE.fullmatch(text):
            return cls("wandb", text)
        match = _SCHEME.fullmatch(text)
        if match is None:
            if re.fullmatch(r"[a-z][a-z0-9+.-]+:", text):
                raise InputError(
                    f"`{text}` names a tracker but no run", hint=f"write `{text}<run id>`, for example."
                )
            return cls("file", text)
        return cls(match[1], match[2])

    def __str__(self) -> str:
        return self.locator if self.scheme == "file" else f"{self.scheme}:{self.locator}"


@dataclass(frozen=True)
class TrackedRun:
    """A run that an adapter has found.

    Attributes
    ----------
    reference : RunReference
        With the tracker's own unique id as locator, whatever the user wrote.
    name : str
        The name that people see.
    container : str
        Identifier of the experiment or project that holds the run.
    url : str or None
        A page that shows the run, where the tracker knows one.
    """

    reference: RunReference
    name: str
    container: str
    url: str | None = None


@dataclass(frozen=True)
class Table:
    """A small table to be shown in a tracker: column names and rows of text, numbers or None."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str | int | float | bool | None, ...]]


@dataclass(frozen=True)
class Publication:
    """One comparison, ready to be written to any tracker.

    Attributes
    ----------
    key : str
        Hexadecimal digest of baseline, candidate, data, spec and options: equal keys are the same
        comparison, which is updated instead of added again.
    name : str
        Name of the comparison's own run.
    metrics : mapping of str to float
        Finite numbers by metric name, such as ``f1/p_value``.
    tables : mapping of str to Table
        Tables of at most 1,000 rows that the tracker's own pages can show, by name without suffix.
    files : mapping of str to bytes
        Contents by artifact path.
    tags : mapping of str to str
        Tags of the comparison's own run.
    description : str
        Markdown, short enough to be read at a glance.
    baseline, candidate : TrackedRun or None
        The source runs, where they are in a tracker.
    candidate_tags : mapping of str to str
        Short tags for the candidate run, which become columns of the runs table.
    """

    key: str
    name: str
    metrics: Mapping[str, float]
    tables: Mapping[str, Table]
    files: Mapping[str, bytes]
    tags: Mapping[str, str]
    description: str
    baseline: TrackedRun | None = None
    candidate: TrackedRun | None = None
    candidate_tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Published:
    """What became of a publication: the comparison's run and whether it was new."""

    run: TrackedRun
    created: bool


class Tracker(Protocol):
    """Adapter of one experiment tracker."""

    def find(self, locator: str) -> TrackedRun:
        """Find the one run that `locator` names.

        Raises
        ------
        InputError
            If no run or several runs answer to it.
        TrackerError
            If the tracker cannot be reached or refuses.
        """

    def read(self, run: TrackedRun, artifact: str | None = None) -> ExampleTable:
        """Read the per-example table that `run` logged.

        Parameters
        ----------
        run : TrackedRun
            A run that :meth:`find` returned.
        artifact : str, optional
            Artifact path; needed where several could be meant. ``PATH::PART`` for one system, filter or
            scorer in it.

        Raises
        ------
        InputError
            If there is no such artifact, or several and none was named.
        SourceError
            If the artifact cannot be read as a table.
        TrackerError
            If the tracker cannot be reached or refuses.
        """

    def publish(self, publication: Publication, container: str | None = None) -> Published:
        """Write `publication`, or bring the one with the same key up to date.

        Parameters
        ----------
        publication : Publication
            What to write.
        container : str, optional
            Name of the experiment or project to write to; by default that of the candidate.

        Raises
        ------
        InputError
            If neither says where to write.
        TrackerError
            If the tracker failed; the next try completes what was begun.
        """


def open_tracker(scheme: str, tracking_uri: str | None = None) -> Tracker:
    """Load the adapter for `scheme` and connect it to `tracking_uri` (default: as the tracker decides).

    Raises
    ------
    InputError
        If no adapter has that name.
    MissingDependencyError
        If the tracker's own library is not installed.
    """
    adapters = {point.name: point for point in entry_points(group="trackperm.trackers")}
    if scheme not in adapters:
        known = ", ".join(f"`{name}`" for name in sorted(adapters))
        raise InputError(
            f"no tracker is called `{scheme}`; known are {known}",
            hint="a path that contains a colon is written with `./` in front.",
        )
    try:
        adapter = adapters[scheme].load()
    except ImportError as error:
        raise MissingDependencyError(
            f"runs at `{scheme}:` need a library that is not installed: {error}",
            hint=f"pip install 'trackperm[{scheme}]'",
        ) from error
    tracker: Tracker = adapter(tracking_uri)
    return tracker
