"""Computations of a job: choices for a page, comparisons and leaderboards, and their logging.

It runs in a worker process, where MLflow is reached as the user of the job.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Any, Protocol

from trackperm.comparison import Comparison, Question, compare_runs, load_run
from trackperm.comparison.runs import require_two_runs, with_like_names
from trackperm.errors import InputError, PermissionDeniedError, TrackerError, TrackpermError
from trackperm.exact import TestOptions
from trackperm.leaderboards import Leaderboard, leaderboard_of_runs, load_runs
from trackperm.ledger.log import log
from trackperm.report.changed_examples import DIRECTION, changed_examples
from trackperm.server.jobs import views
from trackperm.server.jobs.changed_examples import write_changed_examples
from trackperm.server.jobs.limits import MOST_RUNS
from trackperm.server.jobs.requests import ChoicesRequest, CompareRequest, JobRequest, LeaderboardRequest
from trackperm.server.jobs.store import CHANGED_FILE, RESULT_FILE, Error, error_values
from trackperm.statistic import Statistic, builtin_names, load_statistic
from trackperm.trackers.mlflow.statistics import stored_statistics
from trackperm.trackers.mlflow.store import Store
from trackperm.trackers.mlflow.tracker import MlflowTracker
from trackperm.trackers.publication import Published
from trackperm.trackers.references import TrackedRun

_MOST_LISTED = 20
"""Runs whose artifacts are listed for the choices: each takes a request, and similar runs have the same."""

_BUILT_IN, _STORED = "built in", "stored in experiment"


class Steps(Protocol):
    """Progress of a job."""

    def expect(self, total: int) -> None:
        """Set the number of steps."""

    def begin(self, step: str) -> None:
        """Begin the next step."""


def run_job(request: JobRequest, base: str, folder: Path, steps: Steps) -> Callable[[], None] | None:
    """Compute what a page requested, and write the result to the folder of the job.

    `base` is the URL of the tracking server. For a comparison, return a function that writes the table of
    changed examples, which takes longer. Raise TrackpermError if the result cannot be computed.
    """
    comparison = None
    if isinstance(request, ChoicesRequest):
        result = _choices(request, base, steps)
    elif isinstance(request, CompareRequest):
        comparison, result = _comparison(request, base, steps)
    else:
        result = _leaderboard(request, base, steps)
    written = json.dumps(result, ensure_ascii=False, allow_nan=False)
    (folder / RESULT_FILE).write_text(written, encoding="utf-8")
    return None if comparison is None else partial(_write_changed, comparison, folder / CHANGED_FILE)


def _comparison(request: CompareRequest, base: str, steps: Steps) -> tuple[Comparison, dict[str, Any]]:
    steps.expect(5 if request.log else 4)
    sides = []
    for role, run_id in zip(("baseline", "candidate"), request.runs, strict=True):
        steps.begin(f"reading the {role}")
        sides.append(load_run(f"mlflow:{run_id}", role, artifact=request.artifact, tracking_uri=base))
    baseline, candidate = with_like_names(*sides)
    require_two_runs(baseline, candidate)
    experiment = "" if candidate.run is None else candidate.run.container
    statistic = _question(request, base, experiment).statistic_of([baseline.table, candidate.table])
    steps.begin(f"pairing and testing: {statistic.name}")
    comparison = compare_runs(
        baseline,
        candidate,
        statistic,
        TestOptions(alternative=request.alternative, alpha=request.alpha),
        margin=request.margin,
        missing=request.missing,
    )
    logged, refused = _logged(comparison, steps) if request.log else (None, None)
    steps.begin("drawing")
    return comparison, {**views.comparison_view(comparison, logged), "not_logged": refused}


def _logged(result: Comparison | Leaderboard, steps: Steps) -> tuple[Published | None, Error | None]:
    """Log a result; if the tracker refuses, return the reason instead, and the page shows the result."""
    steps.begin("logging")
    try:
        return log(result), None
    except PermissionDeniedError:
        return None, {
            "message": "you may read these runs but not write to their experiment",
            "hint": "log again with the permission to edit the experiment, which its manager grants; a link"
            " to this page shows the same result to all users who may read the runs.",
        }
    except TrackerError as error:
        return None, error_values(error)


def _write_changed(comparison: Comparison, path: Path) -> None:
    changed = changed_examples(comparison)
    direction = DIRECTION if changed.directed else None
    write_changed_examples(path, changed.columns, changed.rows, direction)


def _leaderboard(request: LeaderboardRequest, base: str, steps: Steps) -> dict[str, Any]:
    name, n_runs = None, len(request.runs)
    if request.experiment is not None:
        steps.begin("listing runs")
        name = _experiment_name(Store(base), request.experiment)
        n_runs = _number_of_runs(MlflowTracker(base), name)
    steps.expect(3 * n_runs + 4)
    loaded = load_runs(
        [f"mlflow:{run_id}" for run_id in request.runs],
        baseline=None if request.baseline is None else f"mlflow:{request.baseline}",
        experiment=None if name is None else f"mlflow:{name}",
        artifact=request.artifact,
        tracking_uri=base,
        progress=steps.begin,
    )
    tracked = next((run.run for run in loaded.runs if run.run is not None), None)
    experiment = request.experiment or ("" if tracked is None else tracked.container)
    question = _question(request, base, experiment)
    board = leaderboard_of_runs(
        loaded,
        question.statistic_of([run.table for run in loaded.runs], check_labels=False),
        TestOptions(alternative=request.alternative, alpha=request.alpha),
        correction=request.correction,
        missing=request.missing,
        allow_unseen=request.allow_unseen,
        progress=steps.begin,
    )
    logged, refused = _logged(board, steps) if request.log else (None, None)
    steps.begin("drawing")
    return {**views.leaderboard_view(board, logged), "not_logged": refused}


def _choices(request: ChoicesRequest, base: str, steps: Steps) -> dict[str, Any]:
    tracker, store = MlflowTracker(base), Store(base)
    missing: list[dict[str, str]] = []
    found: list[TrackedRun] = []
    steps.expect(len(request.runs) + 2)
    experiment = None
    if request.experiment is not None:
        steps.begin("listing runs")
        experiment = _experiment_name(store, request.experiment)
        found = list(tracker.runs(experiment))
    for run_id in request.runs:
        steps.begin("looking up runs")
        try:
            found.append(tracker.find(run_id))
        except InputError as error:
            missing.append({"run": run_id, "reason": error.message})
    steps.begin("listing artifacts")
    paths = [tracker.tables(run) for run in found[:_MOST_LISTED]]
    shared = reduce(lambda some, more: [path for path in some if path in more], paths) if paths else []
    experiment_id = request.experiment or next((run.container for run in found), None)
    return {
        "kind": "choices",
        "experiment": experiment,
        "runs": [views.run_view(run.name, run) for run in found],
        "artifacts": shared,
        "statistics": [
            *(_described(load_statistic(name), _BUILT_IN) for name in builtin_names()),
            *_stored(store, experiment_id),
        ],
        "missing": missing,
    }


def _number_of_runs(tracker: MlflowTracker, experiment: str) -> int:
    """Count the finished runs of an experiment; raise InputError if a page cannot show so many."""
    n_runs = len(tracker.runs(experiment))
    if n_runs > MOST_RUNS:
        raise InputError(
            f"experiment `{experiment}` has {n_runs} finished runs; a page compares at most {MOST_RUNS}",
            hint="tick the runs to compare; `trackperm leaderboard` on the command line has no limit.",
        )
    return n_runs


def _experiment_name(store: Store, experiment_id: str) -> str:
    with store.calls(f"looking up experiment `{experiment_id}`") as client:
        return str(client.get_experiment(experiment_id).name)


def _question(request: CompareRequest | LeaderboardRequest, base: str, experiment_id: str) -> Question:
    """Return the question of a request, with its statistic loaded."""
    named = [] if request.statistic is None else [_statistic(request.statistic, base, experiment_id)]
    return Question(
        statistics=tuple(named),
        metrics=() if request.metric is None else (request.metric,),
        parameters=request.parameters,
        columns=request.columns,
        unit=request.unit,
        repeats=request.repeats,
        cluster=request.cluster,
        allow_unseen=request.allow_unseen,
    )


def _statistic(name: str, base: str, experiment_id: str) -> Statistic:
    """Load a statistic that is built in or stored in the experiment; a page cannot name a file."""
    if name in builtin_names():
        return load_statistic(name)
    stored = stored_statistics(Store(base), experiment_id) if experiment_id else {}
    if name not in stored:
        raise InputError(
            f"`{name}` is not a statistic; expected one that is built in or stored in the experiment",
            hint="`trackperm mlflow store-statistic EXPERIMENT FILE.yaml` stores one.",
        )
    found = stored[name]
    if isinstance(found, TrackpermError):
        raise found
    return found


def _stored(store: Store, experiment_id: str | None) -> Sequence[dict[str, Any]]:
    """Describe the statistics that are stored in an experiment, except those with a built-in name."""
    stored = stored_statistics(store, experiment_id) if experiment_id else {}
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
