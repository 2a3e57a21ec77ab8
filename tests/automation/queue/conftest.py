"""A store that is watched, with a queue of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.hooked_runs import WatchedStore


@pytest.fixture
def runs(database: Path, tmp_path: Path) -> WatchedStore:
    uri = f"sqlite:///{database / 'mlflow.db'}"
    return WatchedStore(uri, tmp_path, tmp_path / "artifacts", tmp_path.name)
