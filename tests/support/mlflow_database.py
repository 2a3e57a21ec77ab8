"""An empty database of MLflow, which takes it seconds to make: one is kept for each version."""

from __future__ import annotations

import warnings
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from support.processes import ROOT
from trackperm.storage import write_whole


def write_tables(database: Path) -> None:
    """Write an empty database of MLflow, unless there is one."""
    if database.exists():
        return
    kept = ROOT / ".pytest_cache" / f"mlflow-{version('mlflow')}.db"
    if not kept.exists():
        from mlflow import MlflowClient  # which takes a second to import

        with TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            MlflowClient(f"sqlite:///{folder}/mlflow.db").search_experiments()
            kept.parent.mkdir(exist_ok=True)
            write_whole(kept, Path(folder, "mlflow.db").read_bytes())
    database.write_bytes(kept.read_bytes())
