"""What jobs do: the choices there are, comparisons and leaderboards, and logging them.

It runs in a process apart, where MLflow is reached as the user who asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Any, Protocol

from trackperm.comparison import Comparison, Question, compare_runs, load_run
from trackperm.errors import InputError, PermissionDeniedError, TrackerError, TrackpermError
from trackperm.exact import TestOptions
from trackperm.leaderboards import Leaderboard, leaderboard_of_runs, load_runs
from trackperm.ledger.log import log
from trackperm.report.changed_examples import DIRECTION
from trackperm.server.jobs import views
from trackperm.server.jobs.changed_examples import write_flips
from trackperm.server.jobs.limits import MOST_RUNS
from trackperm.server.jobs.requests import ChoicesRequest, CompareRequest, JobRequest, LeaderboardRequest
from trackperm.server.jobs.store import FLIPS_FILE, RESULT_FILE, Error, error_values
from trackperm.statistic import Statistic, builtin_names, load_statistic
from trackperm.trackers.mlflow.statistics import stored_statistics
from trackperm.trackers.mlflow.store import Store
from trackperm.trackers.mlflow.tracker import MlflowTracker
from trackperm.trackers.publication import Published
from trackperm.trackers.references import TrackedRun

_MOST_LISTED = 20
_BUILT_IN, _STORED = "built in", "stored in experiment"


class Steps(Protocol):
    """Is told how far a job is."""

    def expect(self, total: int) -> None:
        """Say how many steps there will be."""

    def begin(self, step: str) -> None:
        """Begin the next step."""


def do(order: JobRequest, base: str, folder: Path, steps: Steps) -> Callable[[], None] | None:
    """Do what was asked for, and write the result to `folder`.

    Parameters
    ----------
    order : JobRequest
        What was asked for.
    base : str
        URL of the tracking server.
    folder : Path
        That of the job.
    steps : Steps
        Is told how far it is.

    Returns
    -------
    callable or None
        Writes the table of the examples that changed, which takes longer, where there is one.

    Raises
    ------
    TrackpermError
        If it cannot be done.
    """
    comparison = None
    if isinstance(order, ChoicesRequest):
        result = _choices(order, base, steps)
    elif isinstance(order, CompareRequest):
        comparison, result = _comparison(order, base, steps)
    else:
        result = _leaderboard(order, base, steps)
    written = json.dumps(result, ensure_ascii=False, allow_nan=False)
    (folder / RESULT_FILE).write_text(written, encoding="utf-8")
    return None if comparison is None else partial(_write_flips, comparison, folder / FLIPS_FILE)


def _comparison(order: CompareRequest, base: str, steps: Steps) -> tuple[Comparison, dict[str, Any]]:
    steps.expect(5 if order.log else 4)
    sides = []
    for role, run_id in zip(("baseline", "candidate"), order.runs, strict=True):
        steps.begin(f"reading the {role}")
        sides.append(load_run(f"mlflow:{run_id}", role, artifact=order.artifact, tracking_uri=base))
    baseline, candidate = sides
    experiment = "" if candidate.run is None else candidate.run.container
    statistic = _question(order, base, experiment).statistic_of([baseline.table, candidate.table])
    steps.begin(f"pairing and testing: {statistic.name}")
    comparison = compare_runs(
        baseline,
        candidate,
        statistic,
        TestOptions(alternative=order.alternative, alpha=order.alpha),
        margin=order.margin,
        missing=order.missing,
    )
    logged, refused = _logged(comparison, steps) if order.log else (None, None)
    steps.begin("drawing")
    return comparison, {**views.comparison_view(comparison, logged), "not_logged": refused}


def _logged(result: Comparison | Leaderboard, steps: Steps) -> tuple[Published | None, Error | None]:
    """Log a result, which stays where the tracker does not take it: then returns why."""
    steps.begin("logging")
    try:
        return log(result), None
    except PermissionDeniedError:
        return None, {
            "message": "you may read these runs, and not write to their experiment",
            "hint": "ask whoever manages the experiment for the permission to edit it, and log again; a link"
            " to this page shows the same result to everybody who may read the runs.",
        }
    except TrackerError as error:
        return None, error_values(error)


def _write_flips(comparison: Comparison, path: Path) -> None:
    changed = views.flips(comparison)
    direction = DIRECTION if DIRECTION in changed.columns[:1] else None
    write_flips(path, changed.columns, changed.rows, direction)


def _leaderboard(order: LeaderboardRequest, base: str, steps: Steps) -> dict[str, Any]:
    name, n_runs = None, len(order.runs)
    if order.experiment is not None:
        steps.begin("listing runs")
        name = _experiment_name(Store(base), order.experiment)
        n_runs = _number_of_runs(MlflowTracker(base), name)
    steps.expect(3 * n_runs + 4)
    entrants = load_runs(
        [f"mlflow:{run_id}" for run_id in order.runs],
        baseline=None if order.baseline is None else f"mlflow:{order.baseline}",
        experiment=None if name is None else f"mlflow:{name}",
        artifact=order.artifact,
        tracking_uri=base,
        progress=steps.begin,
    )
    tracked = next((run.run for run in entrants.runs if run.run is not None), None)
    experiment = order.experiment or ("" if tracked is None else tracked.container)
    question = _question(order, base, experiment)
    board = leaderboard_of_runs(
        entrants,
        question.statistic_of([run.table for run in entrants.runs], check_labels=False),
        TestOptions(alternative=order.alternative, alpha=order.alpha),
        correction=order.correction,
        missing=order.missing,
        allow_unseen=order.allow_unseen,
        progress=steps.begin,
    )
    logged, refused = _logged(board, steps) if order.log else (None, None)
    steps.begin("drawing")
    return {**views.leaderboard_view(board, logged), "not_logged": refused}


def _choices(order: ChoicesRequest, base: str, steps: Steps) -> dict[str, Any]:
    tracker, store = MlflowTracker(base), Store(base)
    missing: list[dict[str, str]] = []
    found: list[TrackedRun] = []
    steps.expect(len(order.runs) + 2)
    if order.experiment is not None:
        steps.begin("listing runs")
        found = list(tracker.runs(_experiment_name(store, order.experiment)))
    for run_id in order.runs:
        steps.begin("looking up runs")
        try:
            found.append(tracker.find(run_id))
        except InputError as error:
            missing.append({"run": run_id, "reason": error.message})
    steps.begin("listing artifacts")
    paths = [tracker.tables(run) for run in found[:_MOST_LISTED]]
    shared = reduce(lambda some, more: [path for path in some if path in more], paths) if paths else []
    experiments = dict.fromkeys(run.container for run in found)
    if order.experiment is not None:
        experiments = {order.experiment: None}
    return {
        "kind": "choices",
        "runs": [
            {
                "id": run.reference.locator,
                "name": run.name,
                "experiment_id": run.container,
                "url": run.url,
            }
            for run in found
        ],
        "artifacts": shared,
        "statistics": [*_built_in(), *_stored(store, list(experiments))],
        "missing": missing,
    }


def _number_of_runs(tracker: MlflowTracker, experiment: str) -> int:
    """Count the finished runs of an experiment, of which a page shows so many.

    Raises
    ------
    InputError
        If there are more.
    """
    n_runs = len(tracker.runs(experiment))
    if n_runs > MOST_RUNS:
        raise InputError(
            f"experiment `{experiment}` has {n_runs} finished runs; a page compares {MOST_RUNS} at most",
            hint="tick the runs to compare; `trackperm leaderboard` on the command line has no limit.",
        )
    return n_runs


def _experiment_name(store: Store, experiment_id: str) -> str:
    with store.calls(f"looking up experiment `{experiment_id}`") as client:
        return str(client.get_experiment(experiment_id).name)


def _question(order: CompareRequest | LeaderboardRequest, base: str, experiment_id: str) -> Question:
    """Return what a page asks."""
    named = [] if order.statistic is None else [_statistic(order.statistic, base, experiment_id)]
    return Question(
        statistics=tuple(named),
        metrics=() if order.metric is None else (order.metric,),
        parameters=order.parameters,
        columns=order.columns,
        unit=order.unit,
        repeats=order.repeats,
        cluster=order.cluster,
        allow_unseen=order.allow_unseen,
    )


def _statistic(name: str, base: str, experiment_id: str) -> Statistic:
    """Load a built-in statistic, or one that is stored in the experiment; never a file.

    Raises
    ------
    InputError
        If there is no such statistic, or it is not valid.
    """
    if name in builtin_names():
        return load_statistic(name)
    stored = stored_statistics(Store(base), experiment_id) if experiment_id else {}
    if name not in stored:
        raise InputError(
            f"no statistic is called `{name}`, neither built in nor stored in the experiment",
            hint="`trackperm mlflow store-statistic EXPERIMENT FILE.yaml` stores one.",
        )
    found = stored[name]
    if isinstance(found, TrackpermError):
        raise found
    return found


def _built_in() -> list[dict[str, Any]]:
    return [_described(load_statistic(name), _BUILT_IN) for name in builtin_names()]


def _stored(store: Store, experiment_ids: Sequence[str]) -> list[dict[str, Any]]:
    """Describe the statistics stored in the first experiment that are not called like a built-in one."""
    stored = stored_statistics(store, experiment_ids[0]) if experiment_ids else {}
    return [
        {"name": name, "origin": _STORED, "problem": statistic.message, "description": ""}
        if isinstance(statistic, TrackpermError)
        else _described(statistic, _STORED)
        for name, statistic in stored.items()
        if name not in builtin_names()
    ]


def _described(statistic: Statistic, origin: str) -> dict[str, Any]:
    return {
        "name": statistic.name,
        "origin": origin,
        "problem": None,
        "description": statistic.description,
        "parameters": dict(statistic.parameters),
        "columns": dict(statistic.columns),
    }
