"""What every tracker adapter offers, and how the adapter for a run is found.

An adapter is a class with the methods of :class:`Tracker`, found by the entry point group
``trackperm.trackers`` under the scheme of its run references (``mlflow:...`` finds ``mlflow``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from typing import Any, ClassVar, Protocol

from trackperm.errors import InputError, InputTypeError, MissingDependencyError
from trackperm.messages import listed
from trackperm.tables.table import ExampleTable
from trackperm.trackers.predictions import Predictions
from trackperm.trackers.publication import LoggedComparison, Publication, Published
from trackperm.trackers.references import RunReference, TrackedRun


class Tracker(Protocol):
    """Adapter of one experiment tracker.

    Attributes
    ----------
    scheme : str
        What its references begin with, and the name of the library whose runs it takes as objects.
    options : frozenset of str
        The options of :meth:`publish` that it has.
    """

    scheme: ClassVar[str]
    options: ClassVar[frozenset[str]]

    @classmethod
    def of_run(cls, run: Any, tracking_uri: str | None = None) -> Tracker:
        """Connect to where `run`, an object of the tracker's own library, is recorded.

        Parameters
        ----------
        run : object
            Such as ``mlflow.ActiveRun`` or ``wandb.Run``.
        tracking_uri : str, optional
            Where it is recorded, if the object does not tell.
        """

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

    def read_all(
        self, runs: Sequence[TrackedRun], artifact: str | None = None
    ) -> Iterator[ExampleTable | InputError]:
        """Read the tables of many runs, as :meth:`read` does, in their order.

        A run whose table cannot be read gives the error in its place.

        Raises
        ------
        TrackerError
            If the tracker cannot be reached or refuses.
        """

    def log_predictions(self, run: Any, predictions: Predictions) -> RunReference:
        """Log `predictions` to `run`, and read them back; the same again adds nothing.

        Parameters
        ----------
        run : object or str
            A run of the tracker's own library, or the locator of one.
        predictions : Predictions
            What to log.

        Returns
        -------
        RunReference
            From which :meth:`find` and :meth:`read` read them, once the run has ended at the latest.

        Raises
        ------
        InputError
            If `run` takes none, or has others under that name; nothing has been written then.
        TrackerError
            If the tracker failed, or did not keep them.
        """

    def publish(
        self,
        publication: Publication,
        container: str | None = None,
        *,
        alert: bool = False,
        tag_runs: bool = False,
    ) -> Published:
        """Write `publication`, or bring the one with the same key up to date.

        Parameters
        ----------
        publication : Publication
            What to write.
        container : str, optional
            Name of the experiment or project to write to; by default that of ``publication.home``.
        alert : bool
            Whether a candidate that is significantly worse raises an alert, when this is first written.
        tag_runs : bool
            Whether baseline and candidate, or the runs of a leaderboard, get their tags. All have to be
            finished runs of this tracker.

        Raises
        ------
        InputError
            If neither says where to write, or the tracker lacks an option, or it cannot be granted; nothing
            has been written then.
        TrackerError
            If the tracker failed; the next try completes what was begun.
        """

    def comparison(self, locator: str) -> LoggedComparison:
        """Find the comparison or leaderboard whose run `locator` names.

        Raises
        ------
        InputError
            If there is no such run, or it is neither.
        TrackerError
            If the tracker cannot be reached or refuses.
        """

    def comparisons(self, near: TrackedRun | str, test_set: str | None = None) -> list[LoggedComparison]:
        """List comparisons and leaderboards in an experiment or project, in any order, unfinished ones too.

        Parameters
        ----------
        near : TrackedRun or str
            Name of the experiment or project, or a run that is in it.
        test_set : str, optional
            Only those with this value of the tag ``trackperm.test_set``.

        Raises
        ------
        InputError
            If there is no such experiment or project, or the run is of another tracker.
        TrackerError
            If the tracker cannot be reached or refuses.
        """

    def files(self, run: TrackedRun) -> dict[str, bytes]:
        """Read the files of a comparison under ``trackperm/``, by path.

        Raises
        ------
        SourceError
            If they are gone, or were changed where that shows.
        TrackerError
            If the tracker cannot be reached or refuses.
        """

    def runs(self, container: str) -> list[TrackedRun]:
        """List the finished runs of an experiment or project, the oldest first; what we logged is left out.

        Parameters
        ----------
        container : str
            Name of the experiment or project.

        Raises
        ------
        InputError
            If there is no such experiment or project.
        TrackerError
            If the tracker cannot be reached or refuses.
        """


def table_or_error(tracker: Tracker, run: TrackedRun, artifact: str | None) -> ExampleTable | InputError:
    """Read one of many runs: return the error, where it says that this run has no table to be used."""
    try:
        return tracker.read(run, artifact)
    except InputError as error:
        return error


def require_options(tracker: Tracker, *, alert: bool = False, tag_runs: bool = False) -> None:
    """Refuse options of :meth:`Tracker.publish` that `tracker` does not have.

    Raises
    ------
    InputError
        If there is one.
    """
    for name, is_wanted in (("alert", alert), ("tag_runs", tag_runs)):
        if is_wanted and name not in tracker.options:
            has = listed(sorted(f"--{option.replace('_', '-')}" for option in tracker.options))
            raise InputError(
                f"the tracker `{tracker.scheme}` has no `--{name.replace('_', '-')}`",
                hint=f"it has {has}." if has else None,
            )


def schemes() -> list[str]:
    """List the schemes of the trackers that there are adapters for."""
    return sorted({point.name for point in entry_points(group="trackperm.trackers")})


def open_tracker(scheme: str, tracking_uri: str | None = None) -> Tracker:
    """Load the adapter for `scheme` and connect it to `tracking_uri` (default: as the tracker decides).

    Raises
    ------
    InputError
        If no adapter has that name.
    MissingDependencyError
        If the tracker's own library is not installed.
    """
    tracker: Tracker = _adapter(scheme)(tracking_uri)
    return tracker


def open_tracker_of(run: object, tracking_uri: str | None = None) -> Tracker:
    """Load the adapter whose scheme is the library that `run` is an object of, and connect it to the run.

    No tracker's library is imported to find out.

    Raises
    ------
    InputTypeError
        If `run` is of no library that an adapter is called after.
    """
    schemes = {point.name for point in entry_points(group="trackperm.trackers")}
    for base in type(run).__mro__:
        scheme = base.__module__.partition(".")[0]
        if scheme in schemes:
            tracker: Tracker = _adapter(scheme).of_run(run, tracking_uri)
            return tracker
    raise InputTypeError(
        f"{type(run).__module__}.{type(run).__qualname__} is no run of {' or '.join(sorted(schemes))}",
        hint="give the run that their library started, or a reference such as `mlflow:RUN_ID`.",
    )


def _adapter(scheme: str) -> Any:
    adapters = {point.name: point for point in entry_points(group="trackperm.trackers")}
    if scheme not in adapters:
        known = ", ".join(f"`{name}`" for name in sorted(adapters))
        raise InputError(
            f"no tracker is called `{scheme}`; known are {known}",
            hint="a path that contains a colon is written with `./` in front.",
        )
    try:
        return adapters[scheme].load()
    except ImportError as error:
        raise MissingDependencyError(
            f"runs at `{scheme}:` need a library that is not installed: {error}",
            hint=f"pip install 'trackperm[{scheme}]'",
        ) from error
