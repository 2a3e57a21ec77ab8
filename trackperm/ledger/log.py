"""Write comparisons and leaderboards to a tracker, numbered among the looks at their test set."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, overload

from trackperm.comparison import Comparison, RunData
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
from trackperm.trackers.base import Tracker, require_options
from trackperm.trackers.publication import KEY_TAG, LoggedComparison, Publication, Published
from trackperm.trackers.references import TrackedRun

_TRIES = 3
_SETTLING_SECONDS = (0.0, 0.2, 0.5, 1.0, 2.0, 4.0)


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
    """Write a result to a tracker, or update the one that was written there before.

    Results are values, and nothing else writes them. Equal results, on equal data, are written once: the
    second call finds the first. Each comparison counts as a look at its test set, a leaderboard as one for
    each of its pairs; see :func:`trackperm.family`. To write predictions, use
    :func:`trackperm.log_predictions`.

    Parameters
    ----------
    result : Comparison, Leaderboard, or sequence of Comparison
        What :func:`trackperm.compare` or :func:`trackperm.leaderboard` returned.
    tracker : Tracker, optional
        Where to write; by default the tracker that the candidate, or the runs, were read from.
    container : str, optional
        Experiment or project; by default that of the candidate, or of the runs where it is the same for all.
    alert : bool
        Whether a candidate that is significantly worse raises an alert, the first time (W&B).
    tag_runs : bool
        Whether the runs, which have to be finished, get short tags with the verdict; without it only a
        candidate in MLflow does. For a leaderboard, whose tags hold the adjusted p-value, it needs a
        baseline.

    Returns
    -------
    Published, or list of Published
        The run that holds the result, whether this call created it, and its number among the looks at the
        test set; of a sequence, one for each.

    Raises
    ------
    InputError
        If nothing says where to write, or the tracker does not have an option.
    InputTypeError
        If `result` is something else.
    TrackerError
        If the tracker failed; the next call completes what was begun.
    MissingDependencyError
        If ``trackperm[plots]`` is not installed.

    Examples
    --------
    Runs of a tracker say where to log, as in
    ``trackperm.log(trackperm.compare("mlflow:nightly/old", "mlflow:nightly/new"))``; files do not:

    >>> trackperm.log(trackperm.compare("baseline.parquet", "candidate.parquet"))
    Traceback (most recent call last):
        ...
    trackperm.errors.InputError: the candidate `candidate.parquet` is in no tracker...
    <BLANKLINE>
    Hint: give one: `trackperm.log(result, trackperm.open_tracker('mlflow', uri), 'experiment')`.
    """
    if isinstance(result, Comparison):
        return _log_comparison(result, tracker, container, alert=alert, tag_runs=tag_runs)
    if isinstance(result, Leaderboard):
        if alert:
            raise InputError("a leaderboard has no alert", hint="`alert` goes with a comparison.")
        return _log_leaderboard(result, tracker, container, tag_runs=tag_runs)
    if isinstance(result, list | tuple) and all(isinstance(each, Comparison) for each in result):
        return [_log_comparison(each, tracker, container, alert=alert, tag_runs=tag_runs) for each in result]
    raise InputTypeError(
        f"`result` is {type(result).__name__!r}; expected a comparison, several, or a leaderboard",
        hint="`trackperm.compare` and `trackperm.leaderboard` return them.",
    )


def _log_comparison(
    comparison: Comparison, tracker: Tracker | None, container: str | None, *, alert: bool, tag_runs: bool
) -> Published:
    target = tracker or comparison.candidate_data.tracker
    if target is None:
        raise InputError(
            f"the candidate `{comparison.candidate}` is in no tracker, so there is nowhere to log to",
            hint="give one: `trackperm.log(result, trackperm.open_tracker('mlflow', uri), 'experiment')`.",
        )
    require_options(target, alert=alert, tag_runs=tag_runs)
    return log_comparison(comparison, target, container, alert=alert, tag_runs=tag_runs)


class Place(NamedTuple):
    """Where a entry stands: its number, and how many comparisons before it are pairs of leaderboards."""

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

    The place is read off before writing, and again afterwards: where another writer came first in the
    meantime, the description is brought up to date. Who comes first is settled as in a bakery (Lamport 1974):
    a writer makes its run, then draws a time, and counts when no other run is about to draw one.

    Raises
    ------
    InputError
        If neither the candidate nor `container` says where to write.
    TrackerError
        If the tracker failed; the next call completes what was begun.
    """
    near = comparison.candidate_run if container is None else container
    if near is None or (container is None and comparison.candidate_data.tracker is None):
        made = _tagged(publication(comparison), tags)
        return tracker.publish(made, container, alert=alert, tag_runs=tag_runs)
    ledger = _Ledger(tracker, near, comparison.pairing.test_set, comparison.key)

    def placed(place: Place, earlier: LedgerEntry | None) -> Publication:
        # Second opinions that were asked for once stay there.
        found, asked = comparison, {} if earlier is None else earlier.tags
        if OPINIONS_TAG in asked:
            found = found.with_second_opinions()
        if STUDENTIZED_TAG in asked:
            found = found.with_studentized()
        return _tagged(publication(found, *place), tags)

    return ledger.log(placed, container, alert=alert, tag_runs=tag_runs)


def _tagged(made: Publication, tags: Mapping[str, str] | None) -> Publication:
    return replace(made, tags={**made.tags, **tags}) if tags else made


def _log_leaderboard(
    board: Leaderboard, tracker: Tracker | None, container: str | None, *, tag_runs: bool
) -> Published:
    home = None if tracker is not None and container is not None else _home(board, container)
    target = home.tracker if tracker is None and home is not None else tracker
    near = home.run if container is None and home is not None else container
    if target is None or near is None:
        raise InputError(
            "no run of the leaderboard is in a tracker, so there is nowhere to log to",
            hint="`--log-to mlflow:EXPERIMENT` or `--log-to wandb:ENTITY/PROJECT` names a place.",
        )
    require_options(target, tag_runs=tag_runs)
    if tag_runs:
        require_taggable(board)
    ledger = _Ledger(target, near, board.test_set, board.key)

    def made(place: Place, _: LedgerEntry | None) -> Publication:
        return leaderboard_publication(board, looks_sentence(place[0], len(board.pairs), place[1]))

    return ledger.log(made, container, tag_runs=tag_runs)


def _home(board: Leaderboard, container: str | None) -> RunData | None:
    """Return a run whose experiment or project is that of all runs that are in a tracker.

    Raises
    ------
    InputError
        If they are in several, and no container is named.
    """
    tracked = [(row.data, row.data.run) for row in board.rows if row.data.run is not None]
    places = {run.reference.scheme if container else _container(run) for _, run in tracked}
    if len(places) > 1:
        raise InputError(
            "the runs are in several experiments, projects or trackers, so they do not say where to log the"
            " leaderboard",
            hint="`--log-to mlflow:EXPERIMENT` or `--log-to wandb:ENTITY/PROJECT` says it.",
        )
    return tracked[0][0] if tracked else None


def _container(run: TrackedRun) -> tuple[str, str, str]:
    """Tell experiments and projects apart, and the folders of offline runs."""
    return run.reference.scheme, run.container, run.reference.locator.rpartition("/")[0]


@dataclass(frozen=True)
class _Ledger:
    """The comparisons beside a run or in a container on one test set, one of which is being written."""

    tracker: Tracker
    near: TrackedRun | str
    test_set: str
    key: str

    def log(
        self, made: Callable[[Place, LedgerEntry | None], Publication], container: str | None, **options: bool
    ) -> Published:
        """Publish what `made` returns for its place, and for what is there of it already."""
        earlier, following = self._looked_up()
        expected = following if earlier is None else _place(earlier)
        published = self.tracker.publish(made(expected, earlier), container, **options)
        for _ in range(_TRIES):
            own, _ = self._looked_up()
            if own is None or _place(own) == expected:
                break
            expected = _place(own)
            again = self.tracker.publish(made(expected, earlier), container)
            published = replace(again, created=published.created)
        if own is None:
            return published
        return replace(published, look=own.number, in_leaderboards=own.in_leaderboards)

    def _looked_up(self) -> tuple[LedgerEntry | None, Place]:
        """Return what is there of what is being written, and the place of a new one."""
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
        return next((entry for entry in entries if entry.key == self.key), None), following


def _place(entry: LedgerEntry) -> Place:
    return Place(entry.number, entry.in_leaderboards)
