"""What is written to a tracker, and what a tracker then has of it."""

from __future__ import annotations

import json
import math
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from trackperm.errors import InputError
from trackperm.trackers.references import TrackedRun

KIND_TAG = "trackperm.kind"
COMPARISON, LEADERBOARD = "comparison", "leaderboard"
KINDS = (COMPARISON, LEADERBOARD)
"""What trackperm logs: values of KIND_TAG in MLflow, job types in W&B."""
GROUP = "trackperm"
"""Group in W&B of what trackperm logs."""

PAIRS_TAG = "trackperm.n_pairs"
"""How many comparisons a leaderboard makes, each of which the ledger counts."""

TEST_SET_TAG = "trackperm.test_set"
KEY_TAG = "trackperm.key"
CREATED_TAG = "trackperm.created"
"""When the writing of a comparison was begun: read off after its run was there for all to see."""

MAX_ROWS = 1_000
"""Rows of a table that the pages of every tracker show in time; MLflow's take 50 kB of memory for each."""

_BEGINNING = timedelta(seconds=60)


@dataclass(frozen=True)
class Table:
    """A small table to be shown in a tracker: column names and rows of text, numbers or None."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str | int | float | bool | None, ...]]

    def finite(self) -> Table:
        """Write infinities and NaN as text, as JSON has neither."""
        rows = [
            tuple(str(v) if isinstance(v, float) and not math.isfinite(v) else v for v in row)
            for row in self.rows
        ]
        return Table(self.columns, rows)

    def json(self) -> bytes:
        """Encode a table of finite numbers as MLflow's ``log_table`` does, which pages of trackers show."""
        shape = {"columns": self.columns, "data": self.rows}
        return json.dumps(shape, ensure_ascii=False, allow_nan=False).encode()


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

    def check(self) -> None:
        """Check what no tracker can keep: the key, paths, numbers and sizes of tables.

        Raises
        ------
        InputError
            If the key is not hexadecimal, a path leaves the run, a metric is not finite, or a table is long.
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


def is_safe_path(path: str) -> bool:
    """Whether `path` is a plain relative artifact path that stays inside its run."""
    return (
        bool(path) and posixpath.normpath(path) == path and not path.startswith(("/", "..")) and path != "."
    )


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
