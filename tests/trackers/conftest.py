"""The stores that tests of every tracker run over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from support.faulty_proxy import FaultyProxy, faulty_proxy
from support.mlflow_server import MlflowServer
from support.mlflow_stores import MlflowExperiments, MlflowStore
from support.tracker_stores import PREDICTIONS, STORES, TrackerStore
from support.wandb_projects import WandbFolders, WandbProjects

from trackperm.trackers.base import Tracker
from trackperm.trackers.references import TrackedRun


@pytest.fixture(scope="module")
def sqlite_store(tmp_path_factory: pytest.TempPathFactory) -> MlflowStore:
    return MlflowStore.local(tmp_path_factory.mktemp("mlflow-store"))


@pytest.fixture
def http_store(mlflow_server: MlflowServer) -> MlflowStore:
    return MlflowStore(mlflow_server.uri)


@pytest.fixture
def proxy(mlflow_server: MlflowServer) -> Iterator[FaultyProxy]:
    with faulty_proxy(mlflow_server.uri) as proxy:
        yield proxy


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> TrackerStore:
    match request.param:
        case "mlflow-sqlite":
            return MlflowExperiments(request.getfixturevalue("sqlite_store"))
        case "mlflow-http":
            return MlflowExperiments(request.getfixturevalue("http_store"))
        case "wandb-online":
            return WandbProjects(request.getfixturevalue("standin"))
        case "wandb-offline":
            return WandbFolders(tmp_path)


@pytest.fixture
def experiment(store: TrackerStore) -> str:
    return store.container(f"digits-{uuid4().hex[:8]}")


@pytest.fixture
def tracker(store: TrackerStore) -> Tracker:
    return store.tracker()


@pytest.fixture
def pair(store: TrackerStore, tracker: Tracker, experiment: str) -> tuple[TrackedRun, TrackedRun]:
    """Baseline and candidate, with predictions."""
    baseline, candidate = (
        tracker.find(store.run(experiment, name, {"predictions.json": PREDICTIONS}))
        for name in ("logistic", "forest")
    )
    return baseline, candidate
