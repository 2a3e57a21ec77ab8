"""The saved view "Significance" of an MLflow experiment: columns of its table of runs, and their order.

A saved view is a tag of the experiment: JSON with a name, two times and a state, which is JSON as well,
deflated. The format is MLflow's own and is not documented: what is not understood is not replaced.
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
_LARGEST_STATE = 2**20
_VERDICT = "sig."
_BESIDE = (".vs", ".baseline_of")
"""Ends of the tags that stand beside a verdict."""

_MAX_RUNS = 10_000
"""Newest runs whose tags and metrics become columns; older ones rarely have others."""

_FIRST_STATE = {"searchFilter": ""}


@dataclass(frozen=True)
class SavedView:
    """The saved view as it is after it was set up.

    Attributes
    ----------
    link : str
        Where it is shown: an address, or what follows the address of MLflow's pages.
    columns : tuple of str
        Its columns, as MLflow names them.
    is_written : bool
        Whether it was written; False where it was as it is to be.
    unused : tuple of str
        Statistics among those that were chosen, by which no run of the experiment has a verdict yet.
    """

    link: str
    columns: tuple[str, ...]
    is_written: bool
    unused: tuple[str, ...]


@dataclass(frozen=True)
class _Logged:
    """Names of tags and metrics that the runs of an experiment have."""

    tags: frozenset[str]
    metrics: frozenset[str]
    metrics_of_comparisons: frozenset[str]

    @property
    def statistics(self) -> list[str]:
        """Statistics by which runs have verdicts."""
        names = [tag.removeprefix(_VERDICT) for tag in self.tags if tag.startswith(_VERDICT)]
        return sorted(
            name
            for name in names
            if not any(name.endswith(end) and name.removesuffix(end) in names for end in _BESIDE)
        )


def set_up_view(store: Store, experiment_id: str, statistics: Sequence[str] = ()) -> SavedView:
    """Write the saved view of an experiment, or bring it up to date; the same again writes nothing.

    Columns are the scores and verdicts by each statistic; the first score orders the runs, the best on top.
    Of a view that is there, columns that are neither, widths and all else stay as people left them.

    Parameters
    ----------
    store : Store
        Where the experiment is.
    experiment_id : str
        Its id.
    statistics : sequence of str
        Names of statistics; by default all by which runs of the experiment have verdicts.

    Raises
    ------
    InputError
        If there are no verdicts and no statistic was named, if what is saved there cannot be read, or if the
        view is too large for MLflow.
    TrackerError
        If MLflow failed.
    """
    logged = _logged(store, experiment_id)
    chosen = list(dict.fromkeys(statistics)) or logged.statistics
    if not chosen:
        raise InputError(
            "no run of the experiment has a verdict, so there is nothing to show in columns",
            hint="compare runs of it first, or say what is to be shown: `--statistic accuracy`.",
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
            hint="`--statistic NAME` chooses those whose columns it shows.",
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
    """Columns and order: ours first, then what people added."""
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
    """Name the metric that holds the score of a run: its own, or else that of comparisons."""
    own = next((name for name in (statistic, f"{statistic}_score") if name in logged.metrics), None)
    candidate = f"{statistic}/candidate_score"
    return own or (candidate if candidate in logged.metrics_of_comparisons else None)


def _directions(store: Store, experiment_id: str, names: Sequence[str]) -> dict[str, bool]:
    """Whether smaller scores are better, of statistics that are built in or stored in the experiment."""
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
    """Read a saved view and its state.

    Raises
    ------
    InputError
        If it is not as MLflow writes it.
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
                raise ValueError("it is cut, or too large")
            text = data.decode()
        state = json.loads(text)
        columns = state.get("selectedColumns", [])
        if not isinstance(columns, list) or not all(isinstance(column, str) for column in columns):
            raise ValueError("its columns are no list of names")
        if not isinstance(envelope["createdAt"], int | float):
            raise ValueError("it does not say when it was made")
    except (ValueError, TypeError, KeyError, AttributeError, zlib.error) as error:
        raise InputError(
            f"the saved view in tag `{VIEW_TAG}` of the experiment cannot be read"
            f" ({type(error).__name__}: {error}), and is left as it is",
            hint="was it written by a newer MLflow, or by hand? Delete it in the experiment's menu `Views`"
            f" or by `MlflowClient().delete_experiment_tag(EXPERIMENT_ID, {VIEW_TAG!r})`, and try again.",
        ) from error
    return envelope, state


def _write(envelope: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    """Write a view as MLflow does, with the name and the time of its making that it has.

    Versions before 3.15 know no names, and read the state from where they are: it stands there as well.
    """
    now = int(time.time() * 1000)
    deflated = base64.b64encode(zlib.compress(json.dumps(state).encode(), 9)).decode()
    view = {"name": VIEW_NAME, "createdAt": now, **envelope, "updatedAt": now, "state": _DEFLATED + deflated}
    return json.dumps({**view, **state})
