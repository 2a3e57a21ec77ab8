"""Protocol of tracker adapters, and functions that load the adapter of a run.

An adapter is a class with the methods of :class:`Tracker`. The entry point group ``trackperm.trackers`` names
it under the scheme of its run references: ``mlflow:...`` is read by the adapter ``mlflow``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Protocol

from trackperm.errors import InputError, InputTypeError, MissingDependencyError
from trackperm.messages import echoed, listed
from trackperm.tables.table import ExampleTable
from trackperm.trackers.predictions import Predictions
from trackperm.trackers.publication import LoggedComparison, Publication, Published
from trackperm.trackers.references import RunReference, TrackedRun


class Tracker(Protocol):
    """Adapter of one experiment tracker.

    Every method raises :class:`~trackperm.errors.TrackerError` if the tracker does not answer or refuses a
    request.

    Attributes
    ----------
    scheme : str
        Start of its run references, and the name of the library whose runs it takes as objects.
    options : frozenset of str
        The options of :meth:`publish` that it supports.
    """

    scheme: ClassVar[str]
    options: ClassVar[frozenset[str]]

    @classmethod
    def of_run(cls, run: Any, tracking_uri: str | None = None) -> Tracker:
        """Connect to the server or store where `run` is recorded.

        Parameters
        ----------
        run : object
            A run of the tracker's own library, such as ``mlflow.ActiveRun`` or ``wandb.Run``.
        tracking_uri : str, optional
            Server or store, where the object does not name it.
        """

    def find(self, locator: str) -> TrackedRun:
        """Find the one run that `locator` names.

        Raises
        ------
        InputError
            If `locator` names no run, or several.
        """

    def read(self, run: TrackedRun, artifact: str | None = None) -> ExampleTable:
        """Read the per-example table that `run` logged.

        Parameters
        ----------
        run : TrackedRun
            A run that :meth:`find` returned.
        artifact : str, optional
            Artifact path, which is required where several artifacts could hold predictions. ``PATH::PART``
            selects one system, filter or scorer in it.

        Raises
        ------
        InputError
            If the run does not have the artifact, or several could be meant.
        SourceError
            If the artifact is not a table.
        """

    def read_all(
        self, runs: Sequence[TrackedRun], artifact: str | None = None
    ) -> Iterator[ExampleTable | InputError]:
        """Read the tables of many runs, as :meth:`read` does, in the order of the runs.

        A run whose table cannot be read yields its error instead.
        """

    def log_predictions(self, run: Any, predictions: Predictions) -> RunReference:
        """Log `predictions` to `run`, and read them back to check them.

        Logging the same predictions again adds nothing.

        Parameters
        ----------
        run : object or str
            A run of the tracker's own library, or a locator.
        predictions : Predictions
            Predictions to log.

        Returns
        -------
        RunReference
            Reference that :meth:`find` and :meth:`read` accept, at the latest once the run has ended.

        Raises
        ------
        InputError
            If `run` does not accept predictions, or holds other ones under that name; nothing is written
            then.
        TrackerError
            If the tracker failed, or did not store what it was sent.
        """

    def publish(
        self,
        publication: Publication,
        container: str | None = None,
        *,
        alert: bool = False,
        tag_runs: bool = False,
    ) -> Published:
        """Write `publication`, or update the one with the same key.

        Parameters
        ----------
        publication : Publication
            Comparison or leaderboard to write.
        container : str, optional
            Name of the experiment or project to write to; by default that of ``publication.home``.
        alert : bool
            Whether a candidate that is significantly worse raises an alert when the publication is first
            written.
        tag_runs : bool
            Whether the compared runs get their tags. All have to be finished runs of this tracker.

        Raises
        ------
        InputError
            If no experiment or project is known, or an option is not supported or cannot be granted; nothing
            is written then.
        TrackerError
            If the tracker failed; calling again completes the publication.
        """

    def comparison(self, locator: str) -> LoggedComparison:
        """Find the comparison or leaderboard whose run `locator` names.

        Raises
        ------
        InputError
            If the run does not exist, or is neither a comparison nor a leaderboard.
        """

    def comparisons(self, near: TrackedRun | str, test_set: str | None = None) -> list[LoggedComparison]:
        """List the comparisons and leaderboards of an experiment or project, also unfinished ones.

        Parameters
        ----------
        near : TrackedRun or str
            Name of the experiment or project, or a run in it.
        test_set : str, optional
            Value of the tag ``trackperm.test_set``; by default any.

        Raises
        ------
        InputError
            If the experiment or project does not exist, or the run belongs to another tracker.
        """

    def files(self, run: TrackedRun) -> dict[str, bytes]:
        """Read the files of a comparison under ``trackperm/``, by artifact path.

        Raises
        ------
        SourceError
            If files are missing, or their digests show that they were changed.
        """

    def runs(self, container: str) -> list[TrackedRun]:
        """List the finished runs of an experiment or project, oldest first.

        Runs that trackperm itself logged are left out.

        Parameters
        ----------
        container : str
            Name of the experiment or project.

        Raises
        ------
        InputError
            If the experiment or project does not exist.
        """


def table_or_error(tracker: Tracker, run: TrackedRun, artifact: str | None) -> ExampleTable | InputError:
    """Read the table of one of many runs; return the error where this run has no usable table."""
    try:
        return tracker.read(run, artifact)
    except InputError as error:
        return error


def require_options(tracker: Tracker, *, alert: bool = False, tag_runs: bool = False) -> None:
    """Refuse options of :meth:`Tracker.publish` that `tracker` does not support.

    Raises
    ------
    InputError
        If an option is set that is not in ``tracker.options``.
    """
    for name, is_wanted in (("alert", alert), ("tag_runs", tag_runs)):
        if is_wanted and name not in tracker.options:
            has = listed(sorted(f"--{option.replace('_', '-')}" for option in tracker.options))
            raise InputError(
                f"the tracker `{tracker.scheme}` does not support `--{name.replace('_', '-')}`",
                hint=f"it supports {has}." if has else None,
            )


def open_tracker(scheme: str, tracking_uri: str | None = None) -> Tracker:
    """Load the adapter for `scheme` and connect it to `tracking_uri`.

    Parameters
    ----------
    scheme : str
        Name of the adapter, such as ``mlflow``.
    tracking_uri : str, optional
        Server or store; by default as the tracker's library decides.

    Raises
    ------
    InputError
        If no adapter has that name.
    MissingDependencyError
        If the tracker's own library is not installed.
    """
    if not isinstance(scheme, str):
        raise InputTypeError(f"`scheme` is {echoed(scheme)}; expected the name of a tracker")
    tracker: Tracker = _adapter(scheme)(tracking_uri)
    return tracker


def open_tracker_of(run: object, tracking_uri: str | None = None) -> Tracker:
    """Load the adapter for a run object, and connect it to the store of the run.

    The adapter's scheme is the name of the package that defines the object's class; no tracker's library is
    imported to find it.

    Raises
    ------
    InputTypeError
        If no adapter has the name of that package.
    """
    known = _points()
    for base in type(run).__mro__:
        scheme = base.__module__.partition(".")[0]
        if scheme in known:
            tracker: Tracker = _adapter(scheme).of_run(run, tracking_uri)
            return tracker
    raise InputTypeError(
        f"{type(run).__module__}.{type(run).__qualname__} is not a run of {' or '.join(sorted(known))}",
        hint="pass the run that their library started, or a reference such as `mlflow:RUN_ID`.",
    )


def _points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group="trackperm.trackers")}


def _adapter(scheme: str) -> Any:
    adapters = _points()
    if scheme not in adapters:
        raise InputError(
            f"`{scheme}` is not a tracker; expected one of {listed(sorted(adapters))}",
            hint="write `./` before a path that contains a colon.",
        )
    point = adapters[scheme]
    try:
        return point.load()
    except ImportError as error:
        raise MissingDependencyError(
            f"runs at `{scheme}:` need a library that is not installed: {error}",
            hint=_install_hint(point, error),
        ) from error


def _install_hint(point: EntryPoint, error: ImportError) -> str:
    """Say what to install: an extra of trackperm, or what the adapter of another package imports."""
    if point.dist is None or point.dist.name == "trackperm":
        return f"pip install 'trackperm[{point.name}]'"
    missing = f"the module `{error.name}`, which" if error.name else "what"
    return f"the package `{point.dist.name}` has this adapter; install {missing} it imports."
