"""The past that every tracker with servers tells: finished runs, by tag and time; and what it withdraws."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import Any

import pytest
import wandb
from support.mlflow_stores import MlflowExperiments
from support.tracker_stores import PREDICTIONS, TrackerStore, on_servers, publication

from trackperm.errors import InputError
from trackperm.trackers.base import Tracker
from trackperm.trackers.history import History, history_of
from trackperm.trackers.references import TrackedRun
from trackperm.trackers.wandb.history import REGISTRY

pytestmark = [pytest.mark.tracker, pytest.mark.contract, on_servers]

PROD = {"stage": "prod"}


@pytest.fixture
def history(tracker: Tracker) -> History:
    return history_of(tracker)


@contextmanager
def tagged(store: TrackerStore, experiment: str, name: str, tags: dict[str, str]) -> Any:
    """Start a run with tags as people set them: in W&B, in its config."""
    with store.open_run(experiment, name) as run:
        if isinstance(store, MlflowExperiments):
            import mlflow

            mlflow.set_tags(tags)
            yield run.info.run_id
        else:
            run.config.update(tags)
            yield f"{experiment}/{run.id}"


def made(store: TrackerStore, experiment: str, name: str, **tags: str) -> TrackedRun:
    with tagged(store, experiment, name, tags) as locator:
        pass
    if not isinstance(store, MlflowExperiments):
        time.sleep(1.1)  # W&B knows the seconds that runs were started in
    return store.tracker().find(locator)


def test_finished_runs_by_tag_and_time(store: TrackerStore, experiment: str, history: History):
    first, second = made(store, experiment, "one", **PROD), made(store, experiment, "two", **PROD)
    made(store, experiment, "three", stage="dev")
    candidate = made(store, experiment, "candidate", **PROD)
    record = history.record(candidate)
    assert (record.is_finished, record.tags["stage"]) == (True, "prod")
    assert record.started is not None
    found = history.newest(candidate, PROD, None, record.started)
    assert found.run.reference == second.reference
    named = history.newest(experiment, PROD, "o*", None)
    assert named.run.reference == first.reference
    assert history.newest(experiment, {"stage": "none"}, None, None) is None
    references = [each.run.reference for each in history.finished(experiment)]
    assert references[-1] == candidate.reference
    assert references.index(first.reference) < references.index(second.reference)
    assert history.finished(experiment, record.started)[-1].run.reference == candidate.reference


def test_a_run_that_is_still_going_is_not_finished(store: TrackerStore, experiment: str, history: History):
    with tagged(store, experiment, "going", PROD) as locator:
        run = store.tracker().find(locator)
        assert not history.record(run).is_finished
        assert run.reference not in [each.run.reference for each in history.finished(experiment)]
        assert history.newest(experiment, PROD, "going", None) is None


def test_where_a_run_is(
    store: TrackerStore, experiment: str, history: History, pair: tuple[TrackedRun, TrackedRun]
):
    other = store.container("another-place")
    assert history.holds(experiment, pair[0])
    assert not history.holds(other, pair[0])
    with pytest.raises(InputError):
        history.finished(f"{experiment}-nowhere")


@pytest.mark.extended
def test_a_comparison_is_not_a_run_and_can_be_withdrawn(
    store: TrackerStore,
    tracker: Tracker,
    experiment: str,
    history: History,
    pair: tuple[TrackedRun, TrackedRun],
):
    tracker.publish(publication(*pair))
    assert {each.run.reference for each in history.finished(experiment)} >= {run.reference for run in pair}
    (logged,) = tracker.comparisons(pair[1])
    assert logged.run.reference not in [each.run.reference for each in history.finished(experiment)]
    for _ in range(2):  # the second time there is nothing left
        history.withdraw(logged, "mlflow:3f2a")
        assert tracker.comparisons(pair[1]) == []
    assert len(tracker.read(pair[1])) == len(PREDICTIONS["id"])


def test_the_run_behind_an_alias(store: TrackerStore, experiment: str, history: History):
    if not isinstance(store, MlflowExperiments):  # where models are registered, which takes another client
        locator = store.run(experiment, "one", {"predictions.parquet": PREDICTIONS})
        name = f"predictions-{locator.rpartition('/')[2]}"
        assert history.aliased(f"{experiment}/{name}:latest").run.reference.locator == locator
        artifact = wandb.Api().artifact(f"{experiment}/{name}:latest")
        artifact.aliases.append("champion")
        artifact.save()
        assert history.champion(f"{experiment}/{name}").run.reference.locator == locator
        with pytest.raises(InputError, match=f"no artifact `{REGISTRY}/digits:champion`"):
            history.champion("digits")
        artifact.link(f"{REGISTRY}/digits", ["champion"])
        assert history.champion("digits").run.reference.locator == locator
    with pytest.raises(InputError):
        history.aliased(f"{experiment}/predictions:best")
