"""What adapters tell of the past of their experiments: what hooks, watchers and gates ask for.

An adapter that knows it has a method ``history()`` beside those of
:class:`~trackperm.trackers.base.Tracker`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import ClassVar, Protocol

from trackperm.errors import InputError
from trackperm.trackers.base import Tracker
from trackperm.trackers.publication import LoggedComparison
from trackperm.trackers.references import TrackedRun


@dataclass(frozen=True)
class RunRecord:
    """A run as its tracker has it now.

    Attributes
    ----------
    run : TrackedRun
        The run.
    tags : mapping of str to str
        What it is selected by. In MLflow its tags; in W&B the scalars of its config, its tags (``stage:test``
        as ``stage``, one without a colon as ``true``), its group and its job type.
    started, ended : datetime or None
        In UTC, as far as the tracker knows.
    is_finished : bool
        Whether it came to its end without failing.
    is_failed : bool
        Whether it came to its end otherwise: failed, killed or crashed.
    """

    run: TrackedRun
    tags: Mapping[str, str]
    started: datetime | None
    ended: datetime | None
    is_finished: bool
    is_failed: bool

    def has(self, tags: Mapping[str, str], name: str | None = None) -> bool:
        """Whether the run has all of `tags`, and a name that matches the pattern `name`."""
        return tags.items() <= self.tags.items() and (name is None or fnmatchcase(self.run.name, name))


class History(Protocol):
    """The past of the experiments or projects of one tracker.

    Attributes
    ----------
    baselines : frozenset of str
        The ways in which it finds a baseline: ``run``, ``newest``, ``alias``, ``champion``, ``branch``.
    branch_tag : str
        The tag that has the Git branch of a run.
    """

    baselines: ClassVar[frozenset[str]]
    branch_tag: ClassVar[str]

    def record(self, run: TrackedRun) -> RunRecord:
        """Read a run as it is now.

        Raises
        ------
        TrackerError
            If the tracker cannot be reached or refuses.
        """

    def finished(self, container: str, since: datetime | None = None) -> list[RunRecord]:
        """List the finished runs of an experiment or project, the oldest first; what we logged is left out.

        Parameters
        ----------
        container : str
            Its name.
        since : datetime, optional
            Only those that ended then or later.

        Raises
        ------
        InputError
            If there is no such experiment or project.
        TrackerError
            If the tracker cannot be reached or refuses.
        """

    def newest(
        self, near: TrackedRun | str, tags: Mapping[str, str], name: str | None, before: datetime | None
    ) -> RunRecord | None:
        """Find the finished run that was started last, of those which have `tags` and a matching name.

        Parameters
        ----------
        near : TrackedRun or str
            Name of the experiment or project, or a run that is in it and is not itself meant.
        tags : mapping of str to str
            What it has.
        name : str or None
            Pattern of its name.
        before : datetime or None
            It was started before then.

        Raises
        ------
        InputError
            If there is no such experiment or project, or its runs cannot be told apart by these tags.
        TrackerError
            If the tracker cannot be reached or refuses.
        """

    def aliased(self, alias: str) -> TrackedRun:
        """Find the run that made the version of a model or an artifact that has an alias.

        Raises
        ------
        NoSuchAliasError
            If nothing has the alias.
        InputError
            If it is no alias, or no run made the version.
        TrackerError
            If the tracker cannot be reached or refuses.
        """

    def champion(self, model: str) -> TrackedRun:
        """Find the run that made the version of a registered model that has the alias ``champion``.

        Raises
        ------
        NoSuchAliasError
            If no version has it.
        InputError
            If it is no name of a model, or no run made the version.
        TrackerError
            If the tracker cannot be reached or refuses.
        """

    def holds(self, container: str, run: TrackedRun) -> bool:
        """Whether `run` is in the experiment or project called `container`.

        Raises
        ------
        TrackerError
            If the tracker cannot be reached or refuses.
        """

    def withdraw(self, comparison: LoggedComparison, reason: str) -> None:
        """Mark a comparison as superseded, and delete it; one that is gone is left alone.

        Raises
        ------
        TrackerError
            If the tracker cannot be reached or refuses.
        """


def history_of(tracker: Tracker) -> History:
    """Return the past of a tracker's experiments.

    Raises
    ------
    InputError
        If its adapter tells nothing of it.
    """
    make = getattr(tracker, "history", None)
    if make is None:
        raise InputError(
            f"the adapter of `{tracker.scheme}` tells nothing of past runs",
            hint="`baseline: {run: ...}` names a run.",
        )
    found: History = make()
    return found
