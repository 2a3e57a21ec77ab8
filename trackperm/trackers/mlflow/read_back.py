"""Comparisons and leaderboards in MLflow, read back."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from mlflow import MlflowClient
from mlflow.entities import Run

from trackperm.errors import SourceError
from trackperm.trackers.mlflow.store import Store, downloaded, moment, require_artifact_folder
from trackperm.trackers.mlflow.write import DONE, STATE_TAG
from trackperm.trackers.publication import (
    KIND_TAG,
    KINDS,
    TEST_SET_TAG,
    LoggedComparison,
    creation,
    is_recent,
)
from trackperm.trackers.references import TrackedRun

_FOLDER = "trackperm"


def logged_comparison(store: Store, run: Run) -> LoggedComparison:
    """Describe the run of a comparison."""
    tags = run.data.tags
    created, started = creation(tags), moment(run.info.start_time)
    return LoggedComparison(
        run=store.tracked(run),
        created=created,
        is_finished=(run.info.status, tags.get(STATE_TAG)) == ("FINISHED", DONE),
        tags={name: value for name, value in tags.items() if name.startswith("trackperm.")},
        metrics=dict(run.data.metrics),
        is_beginning=created is None and started is not None and is_recent(started),
    )


def logged_comparisons(store: Store, experiment_id: str, test_set: str | None) -> list[LoggedComparison]:
    """Find all comparisons and leaderboards of an experiment, or those on one test set."""
    wanted = f"tags.`{KIND_TAG}` != ''"
    if test_set is not None:
        wanted += f" and tags.`{TEST_SET_TAG}` = '{test_set}'"
    runs = store.search("looking up comparisons", [experiment_id], wanted)
    return [logged_comparison(store, run) for run in runs if is_comparison(run)]


def is_comparison(run: Run) -> bool:
    """Whether trackperm logged `run`."""
    return run.data.tags.get(KIND_TAG) in KINDS


def logged_files(store: Store, run: TrackedRun) -> dict[str, bytes]:
    """Download the files from which a comparison can be verified, by artifact path.

    Raise SourceError if the run has no such files, and InputError if the folder of its artifacts is missing.
    """
    run_id = run.reference.locator
    with store.calls(f"downloading the files of comparison `{run.reference}`") as client:
        found = {path: downloaded(client, run_id, path) for path in _paths(client, run_id)}
    if not found:
        lack = f"comparison `{run.reference}` has no artifacts in `{_FOLDER}/`"
        require_artifact_folder(store.run(run), lack)
        raise SourceError(lack)
    return found


def logged_tables(store: Store, run: TrackedRun) -> dict[str, bytes]:
    """Download the tables that the page of a comparison shows, by name: JSON files outside all folders."""
    run_id = run.reference.locator
    with store.calls(f"downloading the tables of comparison `{run.reference}`") as client:
        paths = [str(info.path) for info in client.list_artifacts(run_id) if not info.is_dir]
        tables = [path for path in paths if path.endswith(".json")]
        return {path.removesuffix(".json"): downloaded(client, run_id, path) for path in tables}


def _paths(client: MlflowClient, run_id: str) -> Iterator[str]:
    for info in client.list_artifacts(run_id, _FOLDER):
        if not info.is_dir and posixpath.dirname(info.path) == _FOLDER:
            yield str(info.path)
