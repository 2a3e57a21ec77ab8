"""Comparisons and leaderboards as trackers store them: what is written, and what is read back."""

from __future__ import annotations

import json
import math
import posixpath
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from trackperm.errors import InputError
from trackperm.trackers.references import TrackedRun

KIND_TAG = "trackperm.kind"
COMPARISON, LEADERBOARD = "comparison", "leaderboard"
KINDS = (COMPARISON, LEADERBOARD)
"""Kinds of what trackperm logs: values of KIND_TAG in MLflow, job types in W&B."""
GROUP = "trackperm"
"""Group, in W&B, of the runs that trackperm logs."""

PAIRS_TAG = "trackperm.n_pairs"
"""Tag with the number of comparisons of a leaderboard, each of which the ledger counts."""

TEST_SET_TAG = "trackperm.test_set"
KEY_TAG = "trackperm.key"
CREATED_TAG = "trackperm.created"
"""Tag with the time at which writing began, by a clock that is read after others could see the run.

Tags that begin with this name have later times, which replace it; see :func:`record_beginning`.
"""

LOGGED_TAG = "trackperm.logged"
"""Tag with the time at which a leaderboard was logged again, which makes it the newest one.

Its place in the ledger is that of CREATED_TAG.
"""

FRESH_SECONDS = 5.0
"""Age from which a recorded time is old: readers wait 7.7 s for it, and clocks may differ by the rest."""

MAX_ROWS = 1_000
"""Rows of a table that the pages of every tracker show quickly; MLflow's take 50 kB of memory per row."""

RunTags = Mapping[str, str | float]
"""Short values for a compared run, by name: text, and scores as numbers, by which tables of runs are sorted.

Numbers are metrics in MLflow, which has a separate table of them, and entries of the summary in W&B.
"""

_LATEST = datetime(9999, 1, 1, tzinfo=timezone.utc)
_BEGINNING = timedelta(seconds=60)  # one request writes CREATED_TAG; slow servers answer within a minute


@dataclass(frozen=True)
class Table:
    """A small table that a tracker's pages show: column names and rows of text, numbers or None."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str | int | float | bool | None, ...]]

    def finite(self) -> Table:
        """Convert infinities and NaN to text, as JSON has neither."""
        rows = [
            tuple(str(v) if isinstance(v, float) and not math.isfinite(v) else v for v in row)
            for row in self.rows
        ]
        return Table(self.columns, rows)

    def json(self) -> bytes:
        """Encode a table of finite numbers as MLflow's ``log_table`` does, for the pages of trackers."""
        shape = {"columns": self.columns, "data": self.rows}
        return json.dumps(shape, ensure_ascii=False, allow_nan=False).encode()


@dataclass(frozen=True)
class Chart:
    """Curves that a tracker's own pages draw.

    Attributes
    ----------
    title : str
        Title above the chart.
    table : Table
        Points, at most 1,000 rows.
    x, y, curve : str
        Columns of the table: x and y hold numbers, `curve` the name of the curve of a point.
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
        Hexadecimal digest of runs, data, spec and options. A publication with the same key is updated, not
        added again.
    name : str
        Name of the publication's own run.
    metrics : mapping of str to float
        Finite numbers by metric name, such as ``f1/p_value``.
    tables : mapping of str to Table
        Tables of at most 1,000 rows for the tracker's pages, by name without suffix.
    files : mapping of str to bytes
        Contents by artifact path.
    tags : mapping of str to str
        Tags of the publication's own run.
    description : str
        Markdown, short enough to be read at a glance.
    baseline, candidate : TrackedRun or None
        The compared runs; None for a run that is not in a tracker.
    candidate_tags, baseline_tags : RunTags
        Short tags for the compared runs, which become columns of the runs table.
    charts : mapping of str to Chart
        Charts by name, for trackers that draw them.
    kind : {'comparison', 'leaderboard'}
        Kind of the publication.
    entrants : sequence of (TrackedRun, RunTags)
        Runs of a leaderboard that are in a tracker, with the tags that each gets under ``--tag-runs``.
    begun_after : datetime or None
        Latest time in CREATED_TAG of earlier publications on the test set; see :func:`beginning`.
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
    candidate_tags: RunTags = field(default_factory=dict)
    baseline_tags: RunTags = field(default_factory=dict)
    charts: Mapping[str, Chart] = field(default_factory=dict)
    kind: str = COMPARISON
    entrants: Sequence[tuple[TrackedRun, RunTags]] = ()
    begun_after: datetime | None = None

    def check(self) -> None:
        """Refuse content that no tracker can store.

        Raise InputError if the key is not hexadecimal, a path leaves the run, a metric is not finite, or a
        table is too long.
        """
        if not re.fullmatch(r"[0-9a-f]{8,}", self.key):
            raise InputError(f"`{self.key}` is not a comparison key; expected hexadecimal digits")
        for path in self.files:
            if not is_safe_path(path):
                raise InputError(f"`{path}` is not an artifact path; expected one such as `folder/file.json`")
        for name, value in self.metrics.items():
            if not math.isfinite(value):
                raise InputError(f"metric `{name}` is {value}; expected a finite number")
        charts = {name: chart.table for name, chart in self.charts.items()}
        for name, n_rows in ((name, len(table.rows)) for name, table in {**self.tables, **charts}.items()):
            if n_rows > MAX_ROWS:
                raise InputError(f"table `{name}` has {n_rows:,} rows; expected at most {MAX_ROWS:,}")

    @property
    def sources(self) -> list[TrackedRun]:
        """The compared runs that are in a tracker."""
        pair = (run for run in (self.baseline, self.candidate) if run is not None)
        return [*pair, *(run for run, _ in self.entrants)]

    @property
    def home(self) -> TrackedRun | None:
        """Run beside which it is logged by default: the candidate, or the first of a leaderboard's runs."""
        return self.entrants[0][0] if self.entrants else self.candidate

    def run_tags(self, scheme: str) -> list[tuple[TrackedRun, RunTags]]:
        """List the runs that ``--tag-runs`` tags, with their tags.

        Raise InputError if one of them is not in the tracker `scheme`.
        """
        if self.kind == LEADERBOARD:
            tagged = [(run, tags) for run, tags in self.entrants if tags]
            if other := next((run for run, _ in tagged if run.reference.scheme != scheme), None):
                raise InputError(
                    f"`--tag-runs` tags all runs, but `{other.reference}` is not in `{scheme}`",
                    hint="omit it; the leaderboard itself holds all results.",
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
                    hint="omit it; the comparison itself holds all results.",
                )
            found.append((run, tags))
        return found


@dataclass(frozen=True)
class Published:
    """Result of writing a publication.

    Attributes
    ----------
    run : TrackedRun
        The publication's own run.
    created : bool
        Whether that run is new.
    look : int or None
        Position of the comparison among all comparisons on its test set, from 1; of a leaderboard, the
        position of its first pair, as each pair counts. None where they are not counted.
    in_leaderboards : int
        Number of earlier comparisons that are pairs of leaderboards.
    remarks : tuple of str
        Parts that could not be written as intended, with the reason.
    """

    run: TrackedRun
    created: bool
    look: int | None = None
    in_leaderboards: int = 0
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoggedComparison:
    """A comparison or leaderboard as a tracker stores it.

    Attributes
    ----------
    run : TrackedRun
        The publication's own run.
    created : datetime or None
        Time at which writing began, read after others could see the run; updates do not change it. None until
        it is written.
    is_finished : bool
        Whether writing was completed.
    tags : mapping of str to str
        Tags of the publication and its key; an unfinished one may lack some.
    metrics : mapping of str to float, or None
        Metrics of the publication; None where reading them needs more than finding the run.
    is_beginning : bool
        Whether another process has just created the run and may not have written `created` yet.
    labels : tuple of str, or None
        Words that the tracker's table of runs shows beside the name; None where it has none.
    """

    run: TrackedRun
    created: datetime | None
    is_finished: bool
    tags: Mapping[str, str]
    metrics: Mapping[str, float] | None = None
    is_beginning: bool = False
    labels: tuple[str, ...] | None = None

    @property
    def kind(self) -> str:
        """The kind: ``comparison`` or ``leaderboard``."""
        return self.tags.get(KIND_TAG, COMPARISON)

    @property
    def n_pairs(self) -> int:
        """Number of comparisons: 1, or the number of pairs of a leaderboard."""
        written = self.tags.get(PAIRS_TAG, "") if self.kind == LEADERBOARD else ""
        return max(int(written), 1) if written.isdecimal() else 1


def score_tag(statistic: str, score: float | None) -> dict[str, str | float]:
    """Return the tag of a run's score by a statistic; empty if it has none that trackers can store."""
    if score is None or not math.isfinite(score):
        return {}
    return {f"sig.{statistic}.score": float(score)}


def logged_by_trackperm(reference: object, kind: str) -> InputError:
    """Return the error for a run that cannot be compared, because it is a comparison or leaderboard."""
    return InputError(
        f"run `{reference}` is a {kind} that trackperm logged, not a run to compare",
        hint="name the runs that made the predictions.",
    )


def nowhere_to_log(kind: str, tracker: str, hint: str) -> InputError:
    """Return the error for a publication without a run in the tracker, so that its place is unknown."""
    who = "no run is" if kind == LEADERBOARD else "the candidate is not"
    return InputError(f"{who} in {tracker}, so the place for the {kind} is unknown", hint=hint)


def is_safe_path(path: str) -> bool:
    """Whether `path` is a plain relative artifact path that stays inside its run."""
    return (
        bool(path) and posixpath.normpath(path) == path and not path.startswith(("/", "..")) and path != "."
    )


def creation(tags: Mapping[str, str]) -> datetime | None:
    """Return the latest recorded time at which writing began; None where it is missing or malformed."""
    found = (_moment(value) for name, value in tags.items() if name.startswith(CREATED_TAG))
    return max(filter(None, found), default=None)


def last_logged(tags: Mapping[str, str]) -> datetime | None:
    """Return the time at which a leaderboard was last logged; None where it is missing or malformed."""
    times = creation(tags), _moment(str(tags.get(LOGGED_TAG, "")))
    return max(filter(None, times), default=None)


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)


def now() -> str:
    """Return the current time in the format of CREATED_TAG."""
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")


def beginning(begun_after: datetime | None, recorded: Callable[[], Iterable[datetime | None]]) -> str:
    """Return the time to record in CREATED_TAG: this clock's, but later than all that were recorded before.

    Clocks of machines differ, and a slow one must not give a publication an earlier place than those that
    were there before. Where this clock does not exceed `begun_after`, the times of others are read again by
    `recorded`, after others could see the run: so of two writers at the same moment, at least one sees the
    other, as in the bakery algorithm (Lamport 1974).
    """
    moment = datetime.fromisoformat(now())
    if begun_after is not None and moment <= begun_after:
        latest = max([begun_after, *filter(None, recorded())])
        if latest < _LATEST:  # a time that somebody invented may be the last that exists
            moment = max(moment, (latest + timedelta(microseconds=1)).astimezone(timezone.utc))
    return moment.isoformat(timespec="microseconds")


def record_beginning(
    begun_after: datetime | None,
    recorded: Callable[[], Iterable[datetime | None]],
    write: Callable[[str, int], object],
    announced: datetime,
) -> None:
    """Record the time at which writing began so that no publication sorts before one that was reported.

    A slow request, a repeated one, or a process that was stopped makes a time visible when others, who no
    longer waited for it, have been told their places. Then a later time is recorded. Others who have seen the
    first one may move up, which makes their places cautious.

    Parameters
    ----------
    begun_after, recorded
        As for :func:`beginning`.
    write : callable
        Record a time; the number of the attempt, from 0, tells it from earlier ones. An earlier request that
        arrives late must not replace it, so each attempt has a tag of its own.
    announced : datetime
        Time at which the run was created, from which readers wait for a first record.
    """
    latest, attempt = begun_after, 0
    while True:
        clocks = time.monotonic(), time.time()  # the first one may stand while a computer sleeps
        text = beginning(latest, recorded)
        write(text, attempt)
        age = max(time.monotonic() - clocks[0], time.time() - clocks[1])
        waited = datetime.now(timezone.utc) - announced
        if age <= FRESH_SECONDS and (attempt or waited <= _BEGINNING - timedelta(seconds=FRESH_SECONDS)):
            return
        moment = datetime.fromisoformat(text)
        later = [each for each in recorded() if each is not None and moment < each < _LATEST]
        if not later:
            return
        latest, attempt = max(later), attempt + 1


def is_recent(moment: datetime) -> bool:
    """Whether a process that created a run at `moment` may still be about to write CREATED_TAG."""
    return abs(datetime.now(timezone.utc) - moment) < _BEGINNING
