"""Saved view "Significance" of an MLflow experiment: the rows and columns of its runs table, and their order.

A saved view is a tag of the experiment: JSON with a name, two times and a state, which is deflated JSON. The
format is MLflow's own and undocumented, so a view that cannot be parsed is not replaced.
"""

from __future__ import annotations

import base64
import json
import time
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from mlflow.exceptions import MlflowException

from trackperm.errors import InputError
from trackperm.statistic import Statistic, builtin_names, load_statistic
from trackperm.trackers.mlflow.statistics import experiment_tags, stored_statistics, write_experiment_tag
from trackperm.trackers.mlflow.store import Store
from trackperm.trackers.publication import KIND_TAG

VIEW_NAME = "Significance"
VIEW_KEY = "trackperm"
VIEW_TAG = f"mlflow.sharedViewState.{VIEW_KEY}"

_DEFLATED = "deflate;"
_LARGEST_STATE = 2**20  # bytes, as a few kilobytes can be inflated without end
_VERDICT = "sig."
_BESIDE = (".vs", ".baseline_of")
"""Suffixes of the tags that accompany a verdict."""

_OF_COMPARISONS = "/candidate_score`"
"""End of the columns by which trackperm 0.1 sorted; only comparisons have these metrics."""

RUNS_ONLY = f"tags.`{KIND_TAG}` IS NULL"
"""Filter, in MLflow's language, that leaves out comparisons and leaderboards."""

_MAX_RUNS = 10_000
"""Newest runs whose tags and metrics become columns; older runs rarely add others."""

_VERDICT_WIDTH, _SCORE_WIDTH, _NAME_WIDTH = 250, 130, 170
"""Widths of columns in pixels; those of one statistic fit beside the names of runs on 1,280 pixels."""


@dataclass(frozen=True)
class SavedView:
    """The saved view after it was set up.

    Attributes
    ----------
    link : str
        Address of the view, or the part after the address of MLflow's pages.
    columns : tuple of str
        Columns, as MLflow names them.
    is_written : bool
        Whether the view was written; False where it was up to date.
    unused : tuple of str
        Chosen statistics for which no run of the experiment has a verdict yet.
    hides_comparisons : bool
        Whether comparisons are left out; False if this MLflow cannot filter by a missing tag.
    """

    link: str
    columns: tuple[str, ...]
    is_written: bool
    unused: tuple[str, ...]
    hides_comparisons: bool


@dataclass(frozen=True)
class _Logged:
    """Tags of the runs of an experiment, and how many runs have each metric; comparisons do not count."""

    tags: frozenset[str]
    metrics: Mapping[str, int]

    @property
    def statistics(self) -> list[str]:
        """Statistics for which runs have verdicts."""
        names = [tag.removeprefix(_VERDICT) for tag in self.tags if tag.startswith(_VERDICT)]
        return sorted(
            name
            for name in names
            if not any(name.endswith(end) and name.removesuffix(end) in names for end in _BESIDE)
        )


def set_up_view(store: Store, experiment_id: str, statistics: Sequence[str] = ()) -> SavedView:
    """Write the saved view of an experiment, or update it; an unchanged view is not written.

    Its columns are the verdicts and scores of each statistic, by default of all for which runs have verdicts.
    The first score orders the runs, best first; comparisons and leaderboards are left out. Other columns,
    widths, filters and settings of an existing view stay.

    Raise InputError if no statistic is named and no run has a verdict, if the saved view cannot be parsed, or
    if the new one is too large for MLflow; TrackerError if MLflow failed.
    """
    logged = _logged(store, experiment_id)
    chosen = list(dict.fromkeys(statistics)) or logged.statistics
    if not chosen:
        raise InputError(
            "no run of the experiment has a verdict, so the view would have no columns",
            hint="compare runs of it first, or name a statistic: `--statistic accuracy`.",
        )
    held = experiment_tags(store, experiment_id).get(VIEW_TAG)
    envelope, state = ({}, {}) if held is None else _read(held)
    wanted = {**state, **_wanted(state, chosen, logged, _directions(store, experiment_id, chosen))}
    hides_comparisons = _can_filter(store, experiment_id)
    wanted["searchFilter"] = _filter(
        str(state.get("searchFilter") or ""), hides_comparisons=hides_comparisons
    )
    if is_written := held is None or wanted != state:
        write_experiment_tag(
            store,
            experiment_id,
            VIEW_TAG,
            _write(envelope, wanted),
            too_long=f"the view `{VIEW_NAME}`",
            hint="`--statistic NAME` selects the statistics whose columns it shows.",
        )
    pages = f"{store.label.rstrip('/')}/" if store.uri.startswith(("http://", "https://")) else ""
    return SavedView(
        link=f"{pages}#/experiments/{experiment_id}/runs?viewStateShareKey={VIEW_KEY}",
        columns=tuple(wanted["selectedColumns"]),
        is_written=is_written,
        unused=tuple(name for name in chosen if name not in logged.statistics),
        hides_comparisons=hides_comparisons,
    )


def _can_filter(store: Store, experiment_id: str) -> bool:
    """Whether the store understands the filter for runs, which MLflow's pages send to it."""
    with store.calls("trying the filter of the view") as client:
        try:
            client.search_runs([experiment_id], filter_string=RUNS_ONLY, max_results=1)
        except MlflowException as error:
            if error.error_code != "INVALID_PARAMETER_VALUE":
                raise
            return False
    return True


def _filter(held: str, *, hides_comparisons: bool) -> str:
    """Return the filter of the view: that of people, if there is one, and that of trackperm."""
    if not hides_comparisons or KIND_TAG in held:
        return held
    return f"{held} AND {RUNS_ONLY}" if held.strip() else RUNS_ONLY


def _wanted(
    state: Mapping[str, Any], chosen: Sequence[str], logged: _Logged, ascending: Mapping[str, bool]
) -> dict[str, Any]:
    """Return columns, widths and order of a table: trackperm's first, then those that people added."""
    scores = {name: _score(name, logged) for name in chosen}
    widths = {f"tags.`{_VERDICT}{name}`": _VERDICT_WIDTH for name in chosen}
    widths |= {f"metrics.`{score}`": _SCORE_WIDTH for score in scores.values() if score is not None}
    others = [f"{_VERDICT}{name}{end}" for name in chosen for end in _BESIDE]
    widths |= {f"tags.`{tag}`": _NAME_WIDTH for tag in others if tag in logged.tags}
    theirs = [column for column in state.get("selectedColumns", []) if not _is_own(column)]
    columns = list(dict.fromkeys([*widths, *theirs]))
    held = [name for name in state.get("columnOrder") or [] if name in columns or not _is_own(name)]
    wanted: dict[str, Any] = {
        "selectedColumns": columns,
        "columnOrder": list(dict.fromkeys([*held, *columns])),
        "columnWidths": {**widths, **(state.get("columnWidths") or {})},
    }
    first = next((name for name in chosen if scores[name] is not None), None)
    if first is not None:
        wanted |= {"orderByKey": f"metrics.`{scores[first]}`", "orderByAsc": ascending[first]}
    return wanted


def _is_own(column: str) -> bool:
    """Whether trackperm added a column: a verdict, its score, or a score of comparisons."""
    return column.startswith((f"tags.`{_VERDICT}", f"metrics.`{_VERDICT}")) or column.endswith(
        _OF_COMPARISONS
    )


def _score(statistic: str, logged: _Logged) -> str | None:
    """Return the name of the metric with the scores of runs: the one that most runs have.

    If several are as frequent, it is the score that was tested, which is logged with a verdict.
    """
    names = (f"{_VERDICT}{statistic}.score", statistic, f"{statistic}_score")
    best = max(names, key=lambda name: logged.metrics.get(name, 0))
    return best if logged.metrics.get(best) else None


def _directions(store: Store, experiment_id: str, names: Sequence[str]) -> dict[str, bool]:
    """Whether smaller scores are better, for statistics that are built in or stored."""
    stored = stored_statistics(store, experiment_id)
    builtins = builtin_names()
    ascending = {}
    for name in names:
        statistic = load_statistic(name) if name in builtins else stored.get(name)
        ascending[name] = isinstance(statistic, Statistic) and not statistic.greater_is_better
    return ascending


def _logged(store: Store, experiment_id: str) -> _Logged:
    tags: set[str] = set()
    metrics: Counter[str] = Counter()
    runs = store.search(f"listing the runs of experiment `{experiment_id}`", [experiment_id])
    for run in islice(runs, _MAX_RUNS):
        if KIND_TAG not in run.data.tags:
            tags.update(name for name in run.data.tags if "`" not in name)
            metrics.update(run.data.metrics.keys())
    return _Logged(frozenset(tags), metrics)


def _read(held: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parse a saved view and its state.

    Raise InputError if it is not in MLflow's format.
    """
    try:
        envelope = json.loads(held)
        text = envelope["state"]
        if text.startswith(_DEFLATED):
            inflated = zlib.decompressobj()
            data = inflated.decompress(
                base64.b64decode(text[len(_DEFLATED) :], validate=True), _LARGEST_STATE
            )
            if not inflated.eof:
                raise ValueError("it is truncated or too large")
            text = data.decode()
        state = json.loads(text)
        columns = state.get("selectedColumns", [])
        if not isinstance(columns, list) or not all(isinstance(column, str) for column in columns):
            raise ValueError("its columns are not a list of names")
        if not isinstance(envelope["createdAt"], int | float):
            raise ValueError("it has no time of creation")
    except (ValueError, TypeError, KeyError, AttributeError, zlib.error) as error:
        raise InputError(
            f"the saved view in tag `{VIEW_TAG}` of the experiment cannot be read"
            f" ({type(error).__name__}: {error}), so it is not replaced",
            hint="was it written by a newer MLflow, or by hand? Delete it in the experiment's menu `Views`"
            f" or by `MlflowClient().delete_experiment_tag(EXPERIMENT_ID, {VIEW_TAG!r})`, and try again.",
        ) from error
    return envelope, state


def _write(envelope: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    """Encode a view as MLflow does, keeping its name and time of creation.

    Versions before 3.15 have no names, and read the state from the outer object, which therefore holds it
    too.
    """
    now = int(time.time() * 1000)
    deflated = base64.b64encode(zlib.compress(json.dumps(state).encode(), 9)).decode()
    view = {"name": VIEW_NAME, "createdAt": now, **envelope, "updatedAt": now, "state": _DEFLATED + deflated}
    return json.dumps({**view, **state})
