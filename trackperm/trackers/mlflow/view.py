"""Saved view "Significance" of an MLflow experiment: the columns of its runs table and their order.

A saved view is a tag of the experiment: JSON with a name, two times and a state, which is deflated JSON. The
format is MLflow's own and undocumented, so a view that cannot be parsed is not replaced.
"""

from __future__ import annotations

import base64
import json
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

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

_MAX_RUNS = 10_000
"""Newest runs whose tags and metrics become columns; older runs rarely add others."""

_FIRST_STATE = {"searchFilter": ""}


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
    """

    link: str
    columns: tuple[str, ...]
    is_written: bool
    unused: tuple[str, ...]


@dataclass(frozen=True)
class _Logged:
    """Names of the tags and metrics that the runs of an experiment have."""

    tags: frozenset[str]
    metrics: frozenset[str]
    metrics_of_comparisons: frozenset[str]

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

    Its columns are the scores and verdicts of each statistic, by default of all for which runs have verdicts.
    The first score orders the runs, best first. Other columns, widths and settings of an existing view stay.

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
    envelope, state = ({}, dict(_FIRST_STATE)) if held is None else _read(held)
    wanted = {**state, **_wanted(state, chosen, logged, _directions(store, experiment_id, chosen))}
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
    )


def _wanted(
    state: Mapping[str, Any], chosen: Sequence[str], logged: _Logged, ascending: Mapping[str, bool]
) -> dict[str, Any]:
    """Return columns and order: those of trackperm first, then those that people added."""
    scores = {name: _score(name, logged) for name in chosen}
    ours = []
    for name in chosen:
        ours += [f"metrics.`{score}`" for score in [scores[name]] if score is not None]
        ours.append(f"tags.`{_VERDICT}{name}`")
        ours += [
            f"tags.`{_VERDICT}{name}{end}`" for end in _BESIDE if f"{_VERDICT}{name}{end}" in logged.tags
        ]
    theirs = [column for column in state.get("selectedColumns", []) if not column.startswith("tags.`sig.")]
    wanted: dict[str, Any] = {"selectedColumns": list(dict.fromkeys([*ours, *theirs]))}
    first = next((name for name in chosen if scores[name] is not None), None)
    if first is not None:
        wanted |= {"orderByKey": f"metrics.`{scores[first]}`", "orderByAsc": ascending[first]}
    return wanted


def _score(statistic: str, logged: _Logged) -> str | None:
    """Return the name of the metric that holds the score of a run: its own, or else that of comparisons."""
    own = next((name for name in (statistic, f"{statistic}_score") if name in logged.metrics), None)
    candidate = f"{statistic}/candidate_score"
    return own or (candidate if candidate in logged.metrics_of_comparisons else None)


def _directions(store: Store, experiment_id: str, names: Sequence[str]) -> dict[str, bool]:
    """Return whether smaller scores are better, for statistics that are built in or stored."""
    stored = stored_statistics(store, experiment_id)
    builtins = builtin_names()
    ascending = {}
    for name in names:
        statistic = load_statistic(name) if name in builtins else stored.get(name)
        ascending[name] = isinstance(statistic, Statistic) and not statistic.greater_is_better
    return ascending


def _logged(store: Store, experiment_id: str) -> _Logged:
    tags: set[str] = set()
    metrics: set[str] = set()
    of_comparisons: set[str] = set()
    runs = store.search(f"listing the runs of experiment `{experiment_id}`", [experiment_id])
    for run in islice(runs, _MAX_RUNS):
        tags.update(name for name in run.data.tags if "`" not in name)
        (of_comparisons if KIND_TAG in run.data.tags else metrics).update(run.data.metrics)
    return _Logged(frozenset(tags), frozenset(metrics), frozenset(of_comparisons))


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
