"""Which artifact of an MLflow run holds its per-example predictions."""

from __future__ import annotations

import json
import posixpath
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from mlflow import MlflowClient
from mlflow.entities import FileInfo, Run
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
from mlflow.utils.uri import add_databricks_profile_info_to_artifact_uri

from trackperm.errors import InputError, TrackerError
from trackperm.tables import is_readable
from trackperm.trackers.mlflow.evaluations import TRACES, has_assessed_traces
from trackperm.trackers.mlflow.store import Store
from trackperm.trackers.predictions import Predictions
from trackperm.trackers.references import TrackedRun

_OURS = "trackperm"
_MAX_FOLDERS = 64
_MAX_PEEKS = 8
_PEEK_SIZE = 16 * 2**20
_SPLIT_JSON = re.compile(rb'\s*\{\s*"(columns|index|data)"\s*:')
_SHOWN = 20


@dataclass
class _Contents:
    """What a walk through a run's artifacts has seen."""

    tables: list[FileInfo] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    complete: bool = True


def is_safe_path(path: str) -> bool:
    """Whether `path` is a plain relative artifact path that stays inside its run."""
    return (
        bool(path) and posixpath.normpath(path) == path and not path.startswith(("/", "..")) and path != "."
    )


class RunArtifacts:
    """The artifacts of one run, for which MLflow is asked as little as it can be.

    MLflow's client looks a run up for every listing, and for every download also the models that the run has
    logged, whose artifacts are in folders.
    """

    def __init__(self, client: MlflowClient, run: Run) -> None:
        self.run_id: str = run.info.run_id
        self.tags: Mapping[str, str] = run.data.tags
        self._client = client
        uri = add_databricks_profile_info_to_artifact_uri(  # type: ignore[no-untyped-call]
            run.info.artifact_uri, client.tracking_uri
        )
        self._repository = get_artifact_repository(uri, tracking_uri=client.tracking_uri)

    def listed(self, folder: str | None = None) -> Sequence[FileInfo]:
        """List the files and folders in `folder`, or outside all folders."""
        if folder is None:
            return self._repository.list_artifacts()
        return self._client.list_artifacts(self.run_id, folder)

    def download(self, path: str, target: str) -> Path:
        """Bring a file to the folder `target`."""
        if "/" in path:
            return Path(self._client.download_artifacts(self.run_id, path, target))
        return Path(self._repository.download_artifacts(path, target))  # type: ignore[no-untyped-call]


def find_table(store: Store, run: TrackedRun, *, is_evaluation: bool = False) -> str:
    """Find the one artifact of `run` that can hold per-example predictions.

    Folders that hold a model, the folder ``trackperm`` and JSON files that are no tables do not count.
    Nothing is preferred: several are listed and refused. ``traces`` is no file, but an evaluation, whose
    examples are traces: it is among them for a run that is said to be one, and what there is for any run
    that has no table.

    Raises
    ------
    InputError
        If there is none or more than one.
    """
    with store.calls(f"listing the artifacts of run `{run.reference}`") as client:
        contents = _walk(RunArtifacts(client, store.run(run)))
    if is_evaluation:
        contents.tables.append(FileInfo(TRACES, is_dir=False, file_size=None))
    if len(contents.tables) == 1 and contents.complete:
        return str(contents.tables[0].path)
    called = f"run `{run.reference}` ({run.name})"
    if not contents.complete:
        raise InputError(
            f"{called} has more than {_MAX_FOLDERS} artifact folders, too many to look through",
            hint="say which artifact holds its predictions: `--artifact PATH`.",
        )
    if contents.tables:
        raise InputError(
            f"{called} has {len(contents.tables)} artifacts that could hold its predictions:\n\n"
            + "\n".join(f"    {info.path}{_size(info)}" for info in contents.tables[:_SHOWN]),
            hint=f"choose one: `--artifact {contents.tables[0].path}`.",
        )
    if has_assessed_traces(store, run):
        return TRACES
    has = (
        f"only {', '.join(f'`{path}`' for path in contents.others[:_SHOWN])}"
        if contents.others
        else "none at all"
    )
    raise InputError(
        f"{called} has no artifact that could hold per-example predictions ({has})",
        hint="log one row an example, with the columns `id`, `prediction` and `label`: "
        f"`trackperm.log_predictions('{run.reference}', frame)`, or a file with `mlflow.log_artifact`.",
    )


def table_paths(store: Store, run: TrackedRun) -> list[str]:
    """List the artifacts of `run` that can hold per-example predictions."""
    with store.calls(f"listing the artifacts of run `{run.reference}`") as client:
        return [str(info.path) for info in _walk(RunArtifacts(client, store.run(run))).tables]


def require_artifact(store: Store, run: TrackedRun, path: str) -> None:
    """Make sure that `run` has a file called `path`.

    Raises
    ------
    InputError
        If there is none, or `path` is a folder.
    """
    called = f"run `{run.reference}` ({run.name})"
    if not is_safe_path(path):
        raise InputError(
            f"`{path}` is no artifact path", hint="write it as MLflow shows it: `folder/file.parquet`."
        )
    folder = posixpath.dirname(path)
    with store.calls(f"listing the artifacts of run `{run.reference}`") as client:
        found = {info.path: info for info in RunArtifacts(client, store.run(run)).listed(folder or None)}
    if path not in found:
        there = ", ".join(f"`{name}`" for name in sorted(found)[:_SHOWN])
        raise InputError(
            f"{called} has no artifact `{path}`", hint=f"`{folder or '.'}` holds {there}." if there else None
        )
    if found[path].is_dir:
        raise InputError(f"artifact `{path}` of {called} is a folder", hint="name one file in it.")


def write_predictions(store: Store, run: TrackedRun, predictions: Predictions) -> None:
    """Log a file of predictions to `run`, and read it back; if it is there, nothing is written.

    Raises
    ------
    InputError
        If something else is there under that name.
    TrackerError
        If MLflow failed, or did not keep it.
    """
    run_id, name = run.reference.locator, predictions.file
    with (
        TemporaryDirectory(prefix="trackperm-") as folder,
        store.calls(f"logging `{name}` to run `{run.reference}`", writes=True) as client,
    ):
        if any(info.path == name for info in client.list_artifacts(run_id)):
            logged = Path(client.download_artifacts(run_id, name, folder)).read_bytes()
            predictions.require_same(logged, run.reference)
            return
        file = Path(folder, name)
        file.write_bytes(predictions.data)
        client.log_artifact(run_id, str(file))
        file.unlink()
        if Path(client.download_artifacts(run_id, name, folder)).read_bytes() != predictions.data:
            raise TrackerError(f"MLflow did not keep `{name}` of run `{run.reference}` as it was logged")


def _walk(artifacts: RunArtifacts) -> _Contents:
    contents = _Contents()
    logged_tables = _logged_tables(artifacts.tags)
    pending: deque[str | None] = deque([None])
    folders = peeks = 0
    while pending:
        if folders == _MAX_FOLDERS:
            contents.complete = False
            break
        folders += 1
        folder = pending.popleft()
        infos = [info for info in artifacts.listed(folder) if info.path not in (".", folder)]
        if any(posixpath.basename(info.path) == "MLmodel" for info in infos):
            contents.others.append(f"{folder or '.'}/ (a model)")
            continue
        for info in infos:
            name = posixpath.basename(info.path)
            if info.is_dir:
                if name != _OURS:
                    pending.append(info.path)
                continue
            usable = is_readable(name)
            if usable and name.endswith(".json") and info.path not in logged_tables and peeks < _MAX_PEEKS:
                peeks += 1
                usable = _looks_like_table(artifacts, info)
            if usable:
                contents.tables.append(info)
            else:
                contents.others.append(info.path)
    return contents


def _logged_tables(tags: Mapping[str, str]) -> set[str]:
    """Read the paths that ``log_table`` has noted on the run."""
    try:
        noted = json.loads(tags.get("mlflow.loggedArtifacts", "[]"))
        return {entry["path"] for entry in noted if entry["type"] == "table"}
    except (ValueError, TypeError, KeyError):
        return set()


def _looks_like_table(artifacts: RunArtifacts, info: FileInfo) -> bool:
    """Whether a JSON file that ``log_table`` did not note starts like a table."""
    if (info.file_size or 0) > _PEEK_SIZE:
        return True
    with TemporaryDirectory(prefix="trackperm-") as folder:
        start = artifacts.download(info.path, folder).read_bytes()[:4096]
    return _SPLIT_JSON.match(start) is not None


def _size(info: FileInfo) -> str:
    return "" if info.file_size is None else f"  ({info.file_size:,} bytes)"
