"""What tests of hooks share: stores, a queue, what a watcher said."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.hooked_runs import HookedStore
from support.mlflow_stores import MlflowStore

from trackperm.report.drawings import rasterised


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store for all tests, each of which has an experiment of its own."""
    folder = tmp_path_factory.mktemp("store")
    MlflowStore.local(folder).experiment("made")
    return folder


@pytest.fixture(scope="session")
def any_picture() -> bytes:
    return rasterised.png('<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>')


@pytest.fixture(autouse=True)
def drawn_once(any_picture: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Log one picture for all comparisons: no test of this folder looks at pictures."""
    monkeypatch.setattr(rasterised, "png", lambda svg: any_picture)


@pytest.fixture
def runs(database: Path, tmp_path: Path) -> HookedStore:
    uri = f"sqlite:///{database / 'mlflow.db'}"
    return HookedStore(uri, tmp_path, tmp_path / "artifacts", tmp_path.name)
