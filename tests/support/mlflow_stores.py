"""MLflow stores for tests: runs with logged predictions, and what is in the store afterwards."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mlflow
import polars as pl
from mlflow import MlflowClient
from mlflow.entities import Run

from support.mlflow_database import write_tables
from support.tracker_stores import PREDICTIONS, Artifacts, Columns, Kept, write_columns
from trackperm.trackers.base import Tracker, open_tracker


class MlflowStore:
    """A store that exists, written to as a user would and read back with MLflow's own client."""

    def __init__(self, uri: str, artifacts: Path | None = None) -> None:
        self.uri = uri
        self.client = MlflowClient(uri)
        self._artifacts = artifacts

    @classmethod
    def local(cls, folder: Path) -> MlflowStore:
        """Create a SQLite store in `folder`, with its artifacts beside it."""
        write_tables(folder / "mlflow.db")
        return cls(f"sqlite:///{folder / 'mlflow.db'}", folder / "artifacts")

    def tracker(self) -> Tracker:
        """Open the store as trackperm does."""
        return open_tracker("mlflow", self.uri)

    def experiment(self, name: str) -> str:
        """Return the id of the experiment called `name`, made if there is none."""
        found = self.client.get_experiment_by_name(name)
        if found is not None:
            return str(found.experiment_id)
        location = None if self._artifacts is None else (self._artifacts / name.replace("/", "_")).as_uri()
        return str(self.client.create_experiment(name, artifact_location=location))

    def run(self, experiment: str, name: str, *, tags: Mapping[str, str] | None = None) -> str:
        """Make a finished run without predictions and return its id."""
        run = self.client.create_run(self.experiment(experiment), run_name=name, tags=dict(tags or {}))
        self.client.set_terminated(run.info.run_id)
        return str(run.info.run_id)

    def run_with_predictions(
        self,
        experiment: str,
        name: str,
        columns: Columns = PREDICTIONS,
        *,
        artifact: str = "predictions.json",
    ) -> str:
        """Make a finished run that logged `columns`, and return its id.

        A ``.json`` artifact is what ``log_table`` writes; ``.parquet`` and ``.csv`` are log_artifact's.
        """
        run_id = self.run(experiment, name)
        self.log_columns(run_id, columns, artifact)
        return run_id

    def log_columns(self, run_id: str, columns: Columns, artifact: str) -> None:
        """Log `columns` as a table, or as a Parquet or CSV file."""
        if artifact.endswith(".json"):
            import pandas as pd

            self.client.log_table(run_id, pd.DataFrame(dict(columns)), artifact)
        else:
            self.log_frame(run_id, columns, artifact)

    def log_frame(self, run_id: str, columns: Columns, artifact: str) -> None:
        """Log `columns` as a Parquet or CSV file, or in parts to a folder."""
        with TemporaryDirectory() as folder:
            file = Path(folder, Path(artifact).name)
            write_columns(columns, file)
            parent = Path(artifact).parent.as_posix()
            self.client.log_artifact(run_id, str(file), None if parent == "." else parent)

    def get(self, run_id: str) -> Run:
        """Read one run."""
        return self.client.get_run(run_id)

    def comparisons(self, experiment: str, kind: str = "comparison") -> list[Run]:
        """List the comparison runs of `experiment`, newest first; or those of leaderboards."""
        return list(
            self.client.search_runs(
                [self.experiment(experiment)], filter_string=f"tags.`trackperm.kind` = '{kind}'"
            )
        )

    def describe(self, experiment: str, text: str) -> None:
        """Write the description of an experiment as people do."""
        self.client.set_experiment_tag(self.experiment(experiment), "mlflow.note.content", text)

    def description(self, experiment: str) -> str:
        """Read the description of an experiment."""
        tags = self.client.get_experiment(self.experiment(experiment)).tags
        return str(tags.get("mlflow.note.content", ""))

    def artifacts(self, run_id: str, folder: str | None = None) -> dict[str, bytes]:
        """Read every artifact of a run."""
        contents: dict[str, bytes] = {}
        for info in self.client.list_artifacts(run_id, folder):
            if info.is_dir:
                contents.update(self.artifacts(run_id, info.path))
            else:
                with TemporaryDirectory() as target:
                    contents[info.path] = Path(
                        self.client.download_artifacts(run_id, info.path, target)
                    ).read_bytes()
        return contents

    def frame(self, run_id: str, artifact: str | None = None) -> pl.DataFrame:
        """Read a Parquet artifact of a run; one that is not named has to be the only one."""
        files = self.artifacts(run_id)
        [name] = files if artifact is None else [artifact]
        return pl.read_parquet(files[name])

    def table(self, run_id: str, artifact: str) -> dict[str, Any]:
        """Read a logged table as the JSON object that it is."""
        parsed: dict[str, Any] = json.loads(self.artifacts(run_id)[artifact])
        return parsed


class MlflowExperiments:
    """A store as the contract of all trackers sees it."""

    tags_candidates = True

    def __init__(self, store: MlflowStore) -> None:
        self._store = store

    def tracker(self) -> Tracker:
        return self._store.tracker()

    @property
    def tracking_uri(self) -> str:
        return self._store.uri

    def open_run(self, container: str, name: str) -> AbstractContextManager[Any]:
        mlflow.set_tracking_uri(self._store.uri)
        return mlflow.start_run(experiment_id=self._store.experiment(container), run_name=name)

    def address(self) -> tuple[str, str]:
        return "mlflow", self._store.uri

    def container(self, name: str) -> str:
        self._store.experiment(name)
        return name

    def run(self, container: str, name: str, artifacts: Artifacts | None = None) -> str:
        run_id = self._store.run(container, name)
        for path, content in (artifacts or {}).items():
            if isinstance(content, str):
                self._store.client.log_text(run_id, content, path)
            else:
                self._store.log_columns(run_id, content, path)
        return run_id

    def by_name(self, container: str, name: str) -> str:
        return f"{container}/{name}"

    def chosen(self, locator: str, artifact: str) -> str:
        return artifact

    def comparisons(self, container: str, kind: str = "comparison") -> list[Kept]:
        return [self._kept(run) for run in self._store.comparisons(container, kind)]

    def snapshot(self, locator: str) -> Any:
        run = self._store.get(locator)
        found = run.data.to_dictionary()
        data = {
            part: {name: value for name, value in values.items() if not name.startswith("sig.")}
            for part, values in found.items()
        }
        histories = [
            point
            for name in data["metrics"]
            for point in self._store.client.get_metric_history(locator, name)
        ]
        return dict(run.info), data, [dict(point) for point in histories], self._store.artifacts(locator)

    def candidate_tags(self, locator: str) -> dict[str, str | float]:
        data = self._store.get(locator).data
        values = {**data.tags, **data.metrics}
        return {name: value for name, value in values.items() if name.startswith("sig.")}

    def _kept(self, run: Run) -> Kept:
        files = self._store.artifacts(run.info.run_id)
        tags = run.data.tags
        tables = {
            entry["path"]: json.loads(files.pop(entry["path"]))
            for entry in json.loads(tags["mlflow.loggedArtifacts"])
        }
        return Kept(
            locator=run.info.run_id,
            name=run.info.run_name,
            is_finished=(run.info.status, tags["trackperm.state"]) == ("FINISHED", "done"),
            metrics=run.data.metrics,
            description=tags["mlflow.note.content"],
            tags=tags,
            tables={path.removesuffix(".json"): table for path, table in tables.items()},
            files=files,
        )
