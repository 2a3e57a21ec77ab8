"""Logging of comparisons and leaderboards, with their places among the looks at a test set."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, overload

from trackperm.comparison import Comparison, RunData
from trackperm.comparison.argument_types import require_types
from trackperm.errors import InputError, InputTypeError
from trackperm.leaderboards import Leaderboard
from trackperm.ledger.comparison_publication import (
    OPINIONS_TAG,
    STUDENTIZED_TAG,
    looks_sentence,
    publication,
)
from trackperm.ledger.entries import LedgerEntry, TestFamily, families
from trackperm.ledger.leaderboard_publication import leaderboard_publication, require_taggable
from trackperm.messages import echoed
from trackperm.trackers.base import Tracker, require_options
from trackperm.trackers.publication import KEY_TAG, LoggedComparison, Publication, Published
from trackperm.trackers.references import TrackedRun, is_same_run

_TRIES = 3
"""Rewrites of a description whose place has changed; each needs another writer at the same moment."""

_SETTLING_SECONDS = (0.0, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Waits for another process to record when it began, which it does within a request or two."""


@overload
def log(
    result: Comparison | Leaderboard,
    tracker: Tracker | None = None,
    container: str | None = None,
    *,
    alert: bool = False,
    tag_runs: bool = False,
) -> Published: ...


@overload
def log(
    result: Sequence[Comparison],
    tracker: Tracker | None = None,
    container: str | None = None,
    *,
    alert: bool = False,
    tag_runs: bool = False,
) -> list[Published]: ...


def log(
    result: Comparison | Leaderboard | Sequence[Comparison],
    tracker: Tracker | None = None,
    container: str | None = None,
    *,
    alert: bool = False,
    tag_runs: bool = False,
) -> Published | list[Published]:
    """Write a result to a tracker, or update the run that holds an equal one.

    Equal results on equal data are written once: the second call finds the first run. Each comparison counts
    as a look at its test set, and a leaderboard as one per pair; see :func:`trackperm.family`. To write
    predictions, use :func:`trackperm.log_predictions`; to write a file, :func:`trackperm.report.html`.

    Parameters
    ----------
    result : Comparison, Leaderboard, or sequence of Comparison
        Result of :func:`trackperm.compare` or :func:`trackperm.leaderboard`.
    tracker : Tracker, optional
        Tracker to write to; by default that of the candidate, or of the runs.
    container : str, optional
        Experiment or project; by default that of the candidate, or of the runs if they share one.
    alert : bool
        Whether a significantly worse candidate raises an alert, the first time (W&B).
    tag_runs : bool
        Whether the runs, which have to be finished, get short tags with the verdict. Without it, only a
        candidate in MLflow gets them. A leaderboard, whose tags have the adjusted p-value, needs a baseline.

    Returns
    -------
    Published, or list of Published
        Run that holds the result, whether this call created it, and its number among the looks at the test
        set; for a sequence, one per comparison.

    Raises
    ------
    InputError
        If the place to write to is unknown, or the tracker lacks an option.
    InputTypeError
        If `result` has another type.
    TrackerError
        If the tracker failed; the next call completes what was begun.
    MissingDependencyError
        If ``trackperm[plots]`` is not installed.

    Examples
    --------
    The tracker of the candidate is the place to log to, as in
    ``trackperm.log(trackperm.compare("mlflow:nightly/old", "mlflow:nightly/new"))``. Files have none:

    >>> trackperm.log(trackperm.compare("baseline.parquet", "candidate.parquet"))
    Traceback (most recent call last):
        ...
    trackperm.errors.InputError: the candidate `candidate.parquet` is not in a tracker...
    <BLANKLINE>
    Hint: give one: `trackperm.log(result, trackperm.open_tracker('mlflow', uri), 'experiment')`.
    """
    require_types(container=container)
    if tracker is not None and not hasattr(tracker, "publish"):
        raise InputTypeError(
            f"`tracker` is {echoed(tracker)}; expected a tracker",
            hint="open it: `trackperm.log(result, trackperm.open_tracker('mlflow', uri), 'experiment')`.",
        )
    if isinstance(result, Comparison):
        return _log_comparison(result, tracker, container, alert=alert, tag_runs=tag_runs)
    if isinstance(result, Leaderboard):
        if alert:
            raise InputError(
                "`alert` is not supported for a leaderboard", hint="log comparisons with `alert`."
            )
        return _log_leaderboard(result, tracker, container, tag_runs=tag_runs)
    if isinstance(result, list | tuple) and all(isinstance(each, Comparison) for each in result):
        return [_log_comparison(each, tracker, container, alert=alert, tag_runs=tag_runs) for each in result]
    raise InputTypeError(
        f"`result` is a {type(result).__name__}; expected a comparison, several, or a leaderboard",
        hint="`trackperm.compare` and `trackperm.leaderboard` return them.",
    )


def _log_comparison(
    comparison: Comparison, tracker: Tracker | None, container: str | None, *, alert: bool, tag_runs: bool
) -> Published:
    target = tracker or comparison.candidate_data.tracker
    if target is None:
        raise InputError(
            f"the candidate `{comparison.candidate}` is not in a tracker, so no place to log to is known",
            hint="give one: `trackperm.log(result, trackperm.open_tracker('mlflow', uri), 'experiment')`.",
        )
    require_options(target, alert=alert, tag_runs=tag_runs)
    return log_comparison(comparison, target, container, alert=alert, tag_runs=tag_runs)


class Place(NamedTuple):
    """Place of an entry: its number, and the number of earlier comparisons that are pairs of leaderboards."""

    number: int
    in_leaderboards: int


def log_comparison(
    comparison: Comparison,
    tracker: Tracker,
    container: str | None = None,
    *,
    alert: bool = False,
    tag_runs: bool = False,
    tags: Mapping[str, str] | None = None,
) -> Published:
    """Write `comparison` to `tracker`, with its place among the logged ones on its test set, and more `tags`.

    The place is read before writing and again afterwards; if another writer was first, the description is
    updated. The order of writers follows the bakery algorithm (Lamport 1974): a writer creates its run, then
    records a time, and counts the runs once no other is about to record one. Errors are those of :func:`log`.
    """

    def tagged(made: Publication) -> Publication:
        return replace(made, tags={**made.tags, **(tags or {})})

    near = comparison.candidate_run if container is None else container
    if near is None or (container is None and comparison.candidate_data.tracker is None):
        return tracker.publish(tagged(publication(comparison)), container, alert=alert, tag_runs=tag_runs)
    comparison = _as_logged(comparison, tracker, near)
    ledger = _Ledger(tracker, near, comparison.pairing.test_set, comparison.key)

    def placed(place: Place, earlier: LedgerEntry | None) -> Publication:
        # second opinions that were requested once are kept
        found, logged = comparison, {} if earlier is None else earlier.tags
        if OPINIONS_TAG in logged:
            found = found.with_second_opinions()
        if STUDENTIZED_TAG in logged:
            found = found.with_studentized()
        return tagged(publication(found, *place))

    return ledger.log(placed, container, alert=alert, tag_runs=tag_runs)


def _logged_otherwise(
    tracker: Tracker, near: TrackedRun | str, test_set: str, key: str
) -> list[LoggedComparison]:
    """Return what W&B has logged on a test set, if nothing of it has the key.

    References are part of the key, and that of an offline run is the path of its folder until it is synced.
    """
    logged = tracker.comparisons(near, test_set) if tracker.scheme == "wandb" else []
    return [] if any(each.tags.get(KEY_TAG) == key for each in logged) else logged


def _as_logged(comparison: Comparison, tracker: Tracker, near: TrackedRun | str) -> Comparison:
    """Return the comparison under the references by which it is logged, if W&B's runs were offline then."""
    for each in _logged_otherwise(tracker, near, comparison.pairing.test_set, comparison.key):
        baseline, candidate = (each.tags.get(f"trackperm.{role}", "") for role in ("baseline", "candidate"))
        if is_same_run(baseline, comparison.baseline) and is_same_run(candidate, comparison.candidate):
            found = replace(
                comparison,
                baseline_data=comparison.baseline_data.under(baseline),
                candidate_data=comparison.candidate_data.under(candidate),
            )
            if found.key == each.tags.get(KEY_TAG):
                return found
    return comparison


def _board_as_logged(board: Leaderboard, tracker: Tracker, near: TrackedRun | str) -> Leaderboard:
    """Return the leaderboard under the references by which it is logged, as :func:`_as_logged` does."""
    settings = _without_version(board.signature)
    logged = [
        each
        for each in _logged_otherwise(tracker, near, board.test_set, board.key)
        if _without_version(each.tags.get("trackperm.signature", "")) == settings
    ]
    for entry in (entry for each in families(logged) for entry in each.with_pairs(tracker).entries):
        references = {run for pair in entry.pairs for run in (pair.candidate, pair.baseline)}
        rows = [
            next((row.under(each) for each in references if is_same_run(each, row.origin)), row)
            for row in board.rows
        ]
        found = replace(board, rows=tuple(rows))
        if found.key == entry.key:
            return found
    return board


def _without_version(signature: str) -> str:
    return signature.rpartition("|")[0]


def _log_leaderboard(
    board: Leaderboard, tracker: Tracker | None, container: str | None, *, tag_runs: bool
) -> Published:
    home = None if tracker is not None and container is not None else _home(board, container)
    target = home.tracker if tracker is None and home is not None else tracker
    near = home.run if container is None and home is not None else container
    if target is None or near is None:
        raise InputError(
            "no run of the leaderboard is in a tracker, so no place to log to is known",
            hint="name one by `--log-to mlflow:EXPERIMENT` or `--log-to wandb:ENTITY/PROJECT`.",
        )
    require_options(target, tag_runs=tag_runs)
    if tag_runs:
        require_taggable(board)
    board = _board_as_logged(board, target, near)
    ledger = _Ledger(target, near, board.test_set, board.key)

    def made(place: Place, _: LedgerEntry | None) -> Publication:
        return leaderboard_publication(board, looks_sentence(place[0], len(board.pairs), place[1]))

    return ledger.log(made, container, tag_runs=tag_runs)


def _home(board: Leaderboard, container: str | None) -> RunData | None:
    """Return a run in the experiment or project that all tracked runs share; refuse runs in several."""
    tracked = [(row.data, row.data.run) for row in board.rows if row.data.run is not None]
    places = {run.reference.scheme if container else _container(run) for _, run in tracked}
    if len(places) > 1:
        raise InputError(
            "the runs are in several experiments, projects or trackers; expected one place to log to",
            hint="name one by `--log-to mlflow:EXPERIMENT` or `--log-to wandb:ENTITY/PROJECT`.",
        )
    return tracked[0][0] if tracked else None


def _container(run: TrackedRun) -> tuple[str, str, str]:
    """Return a key of the experiment or project of a run, or of the folder of an offline run."""
    return run.reference.scheme, run.container, run.reference.locator.rpartition("/")[0]


@dataclass(frozen=True)
class _Ledger:
    """Comparisons on one test set near a run or in a container, to which one is being added."""

    tracker: Tracker
    near: TrackedRun | str
    test_set: str
    key: str

    def log(
        self, made: Callable[[Place, LedgerEntry | None], Publication], container: str | None, **options: bool
    ) -> Published:
        """Publish what `made` returns for the place, and for the entry that an earlier call wrote."""
        earlier, following, begun_after = self._state()
        expected = following if earlier is None else _place(earlier)
        publication = replace(made(expected, earlier), begun_after=begun_after)
        published = self.tracker.publish(publication, container, **options)
        for _ in range(_TRIES):
            own, *_ = self._state()
            if own is None or _place(own) == expected:
                break
            expected = _place(own)
            again = self.tracker.publish(made(expected, earlier), container)
            published = replace(again, created=published.created)
        if own is None:
            return published
        return replace(published, look=own.number, in_leaderboards=own.in_leaderboards)

    def _state(self) -> tuple[LedgerEntry | None, Place, datetime | None]:
        """Return the entry that an earlier call wrote, if any, and the place of a new entry.

        The third value is the latest time at which an entry was begun.
        """
        logged: list[LoggedComparison] = []
        for seconds in _SETTLING_SECONDS:
            time.sleep(seconds)
            logged = self.tracker.comparisons(self.near, self.test_set)
            if not any(each.is_beginning and each.tags.get(KEY_TAG) != self.key for each in logged):
                break
        found = (each for each in families(logged) if each.test_set == self.test_set)
        entries = next(found, TestFamily(self.test_set, ())).entries
        begun = [entry for entry in entries if entry.created is not None]
        in_leaderboards = sum(entry.n_pairs for entry in begun if entry.is_leaderboard)
        following = Place(1 + sum(entry.n_pairs for entry in begun), in_leaderboards)
        own = next((entry for entry in entries if entry.key == self.key), None)
        return own, following, max((each.created for each in logged if each.created), default=None)


def _place(entry: LedgerEntry) -> Place:
    return Place(entry.number, entry.in_leaderboards)
