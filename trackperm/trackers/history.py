"""Protocol of an adapter's history: past runs, baselines and aliases of an experiment.

Watchers, gates and hooks need it. An adapter that supports it has a method ``history()`` beside those of
:class:`~trackperm.trackers.base.Tracker`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import ClassVar, NamedTuple, Protocol

from trackperm.errors import InputError
from trackperm.trackers.base import Tracker
from trackperm.trackers.publication import LoggedComparison
from trackperm.trackers.references import TrackedRun


@dataclass(frozen=True)
class RunRecord:
    """State of a run when it was read.

    Attributes
    ----------
    run : TrackedRun
        The run.
    tags : mapping of str to str
        Tags that select it. In MLflow these are its tags; in W&B the scalars of its config, its tags
        (``stage:test`` as ``stage``, a tag without a colon as ``true``), its group and its job type.
    started, ended : datetime or None
        Start and end in UTC; None where the tracker does not know them.
    is_finished : bool
        Whether it ended without failing.
    is_failed : bool
        Whether it ended by failing, being killed or crashing.
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


class Aliased(NamedTuple):
    """Target of an alias in a registry.

    Attributes
    ----------
    run : TrackedRun
        The run that made the version.
    artifact : TrackedRun or None
        The version itself, where it holds predictions: those of the run may be of another version.
    """

    run: TrackedRun
    artifact: TrackedRun | None = None


class History(Protocol):
    """Past runs of the experiments or projects of one tracker.

    Every method raises :class:`~trackperm.errors.TrackerError` if the tracker does not answer or refuses a
    request.

    Attributes
    ----------
    branch_tag : str
        Tag that holds the Git branch of a run.
    """

    branch_tag: ClassVar[str]

    def record(self, run: TrackedRun) -> RunRecord:
        """Read the state of a run now."""

    def finished(self, container: str, since: datetime | None = None) -> list[RunRecord]:
        """List the finished runs of an experiment or project, oldest first.

        Runs that trackperm itself logged are left out.

        Parameters
        ----------
        container : str
            Name of the experiment or project.
        since : datetime, optional
            Earliest end of a run; by default any.

        Raises
        ------
        InputError
            If the experiment or project does not exist.
        """

    def newest(
        self, near: TrackedRun | str, tags: Mapping[str, str], name: str | None, before: datetime | None
    ) -> RunRecord | None:
        """Find the finished run that started last among those with `tags` and a matching name.

        Parameters
        ----------
        near : TrackedRun or str
            Name of the experiment or project, or a run in it, which is not itself returned.
        tags : mapping of str to str
            Tags that the run has to have.
        name : str or None
            Pattern that its name has to match.
        before : datetime or None
            Time before which it has to have started.

        Raises
        ------
        InputError
            If the experiment or project does not exist, or the tracker cannot search for these tags.
        """

    def aliased(self, alias: str) -> Aliased:
        """Find the model version or artifact with an alias, and the run that made it.

        Raises
        ------
        NoSuchAliasError
            If no version has the alias.
        InputError
            If `alias` is malformed, or the version was not made by a run.
        """

    def champion(self, model: str) -> Aliased:
        """Find the version of a registered model with the alias ``champion``, and the run that made it.

        Raises
        ------
        NoSuchAliasError
            If no version has that alias.
        InputError
            If `model` is malformed, or the version was not made by a run.
        """

    def holds(self, container: str, run: TrackedRun) -> bool:
        """Whether `run` is in the experiment or project called `container`."""

    def withdraw(self, comparison: LoggedComparison, reason: str) -> None:
        """Mark a comparison as superseded and delete it, unless it is already deleted."""


def history_of(tracker: Tracker) -> History:
    """Return the history of a tracker.

    Raises
    ------
    InputError
        If its adapter does not support one.
    """
    make = getattr(tracker, "history", None)
    if make is None:
        raise InputError(
            f"the adapter of `{tracker.scheme}` cannot list past runs",
            hint="name the baseline: `baseline: {run: ...}`.",
        )
    found: History = make()
    return found
