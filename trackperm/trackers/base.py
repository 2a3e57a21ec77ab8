"""What every tracker adapter offers, and the values that pass between adapters and the rest.

An adapter is a class with the methods of :class:`Tracker`, found by the entry point group
``trackperm.trackers`` under the scheme of its run references (``mlflow:...`` finds ``mlflow``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from importlib.metadata import entry_points
from typing import Any, ClassVar, Protocol

from trackperm.documents import listed
from trackperm.errors import InputError, InputTypeError, MissingDependencyError
from trackperm.tables import ExampleTable
from trackperm.trackers.predictions import Predictions

KIND_TAG = "trackperm.kind"
COMPARISON, LEADERBOARD = "comparison", "leaderboard"
KINDS = (COMPARISON, LEADERBOARD)
"""What trackperm logs: values of KIND_TAG in MLflow, job types in W&B."""

PAIRS_TAG = "trackperm.n_pairs"
"""How many comparisons a leaderboard makes, each of which the ledger counts."""

TEST_SET_TAG = "trackperm.test_set"
KEY_TAG = "trackperm.key"
CREATED_TAG = "trackperm.created"
"""When the writing of a comparison was begun: read off after its run was there for all to see."""

_BEGINNING = timedelta(seconds=60)
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
    details : object
        What the adapter learnt when it found the run, and need not ask for again; of no meaning to others.
    """

    reference: RunReference
    name: str
    container: str
    url: str | None = None
    details: object = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Table:
    """A small table to be shown in a tracker: column names and rows of text, numbers or None."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str | int | float | bool | None, ...]]


@dataclass(frozen=True)
class Chart:
    """Curves that a tracker's own pages can draw.

    Attributes
    ----------
    title : str
        What stands above them.
    table : Table
        At most 1,000 rows.
    x, y, curve : str
        Columns of the table: two of numbers, and the name of the curve that a point belongs to.
    """

    title: str
    table: Table
    x: str
    y: str
    curve: str


@dataclass(frozen=True)
class Publication:
    """One comparison or leaderboard, ready to be written to any tracker.

    Attributes
    ----------
    key : str
        Hexadecimal digest of runs, data, spec and options: equal keys are the same comparison, which is
        updated instead of added again.
    name : str
        Name of its own run.
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
    candidate_tags, baseline_tags : mapping of str to str
        Short tags for the source runs, which become columns of the runs table.
    charts : mapping of str to Chart
        Charts by name, for trackers that draw them.
    kind : {'comparison', 'leaderboard'}
        What it is.
    entrants : sequence of (TrackedRun, mapping of str to str)
        Of a leaderboard: its runs that are in a tracker, with the tags that each gets if that is asked for.
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
    baseline_tags: Mapping[str, str] = field(default_factory=dict)
    charts: Mapping[str, Chart] = field(default_factory=dict)
    kind: str = COMPARISON
    entrants: Sequence[tuple[TrackedRun, Mapping[str, str]]] = ()

    @property
    def sources(self) -> list[TrackedRun]:
        """The runs that were read from a tracker."""
        pair = (run for run in (self.baseline, self.candidate) if run is not None)
        return [*pair, *(run for run, _ in self.entrants)]

    @property
    def home(self) -> TrackedRun | None:
        """A run where it is logged by default: the candidate, or any that a leaderboard ranks."""
        return self.entrants[0][0] if self.entrants else self.candidate

    def run_tags(self, scheme: str) -> list[tuple[TrackedRun, Mapping[str, str]]]:
        """List the runs with their tags, for a tracker that was asked to tag them.

        Raises
        ------
        InputError
            If one of them is not in the tracker `scheme`.
        """
        if self.kind == LEADERBOARD:
            tagged = [(run, tags) for run, tags in self.entrants if tags]
            if other := next((run for run, _ in tagged if run.reference.scheme != scheme), None):
                raise InputError(
                    f"`--tag-runs` tags all runs, but `{other.reference}` is not in `{scheme}`",
                    hint="leave it out; the leaderboard itself says everything.",
                )
            return tagged
        found = []
        for role, run, tags in (
            ("candidate", self.candidate, self.candidate_tags),
            ("baseline", self.baseline, self.baseline_tags),
        ):
            if run is None or run.reference.scheme != scheme:
                raise InputError(
                    f"`--tag-runs` tags both runs, but the {role} is not in `{scheme}`",
                    hint="leave it out; the comparison itself says everything.",
                )
            found.append((run, tags))
        return found


@dataclass(frozen=True)
class Published:
    """What became of a publication.

    Attributes
    ----------
    run : TrackedRun
        Its own run.
    created : bool
        Whether that is new.
    look : int or None
        Place of the comparison, or of the first pair of the leaderboard, among the comparisons on its test
        set, from 1, each pair of a leaderboard being one; None where nobody counted.
    in_leaderboards : int
        How many of those before it are pairs of leaderboards.
    remarks : tuple of str
        What was not written as was meant, and why.
    """

    run: TrackedRun
    created: bool
    look: int | None = None
    in_leaderboards: int = 0
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoggedComparison:
    """A comparison or a leaderboard as a tracker has it.

    Attributes
    ----------
    run : TrackedRun
        Its own run.
    created : datetime or None
        When its writing was begun; bringing it up to date does not change that. Whoever lists the comparisons
        before a run is there lists them before this time. None as long as it is not written.
    is_finished : bool
        Whether all of it was written.
    tags : mapping of str to str
        Those of its publication, of which an unfinished one may lack some, and its key.
    metrics : mapping of str to float
        Those of its publication; empty where reading them takes more than finding the run.
    is_beginning : bool
        Whether another process has just made the run, and may not have said yet when.
    """

    run: TrackedRun
    created: datetime | None
    is_finished: bool
    tags: Mapping[str, str]
    metrics: Mapping[str, float] = field(default_factory=dict)
    is_beginning: bool = False

    @property
    def kind(self) -> str:
        """``comparison`` or ``leaderboard``."""
        return self.tags.get(KIND_TAG, COMPARISON)

    @property
    def n_pairs(self) -> int:
        """How many comparisons it is: 1, or the pairs of a leaderboard."""
        written = self.tags.get(PAIRS_TAG, "") if self.kind == LEADERBOARD else ""
        return max(int(written), 1) if written.isdecimal() else 1


def creation(tags: Mapping[str, str]) -> datetime | None:
    """When the tags of a comparison say that it was begun."""
    try:
        moment = datetime.fromisoformat(tags.get(CREATED_TAG, ""))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)


def now() -> str:
    """Return the time as CREATED_TAG has it."""
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")


def is_recent(moment: datetime) -> bool:
    """Whether a process that made a run at `moment` may still be about to say so."""
    return abs(datetime.now(timezone.utc) - moment) < _BEGINNING


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
