"""Artifacts of an MLflow run, and which of them holds its per-example predictions."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
import zlib
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from mlflow import MlflowClient
from mlflow.entities import FileInfo, Run
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
from mlflow.utils.uri import add_databricks_profile_info_to_artifact_uri

from trackperm.errors import InputError, TrackerError, TrackpermError
from trackperm.messages import listed, listing
from trackperm.tables import SourceFile, is_readable, tables_in_parts
from trackperm.tables.formats.json_records import JSON_RECORDS
from trackperm.tables.likely_names import likeliest
from trackperm.tables.registry import GENERAL, detect_format
from trackperm.trackers.mlflow.evaluations import TRACES, has_assessed_traces
from trackperm.trackers.mlflow.store import Store, downloaded, require_artifact_folder, temporary_file
from trackperm.trackers.predictions import PREDICTIONS_TAG, Predictions
from trackperm.trackers.publication import is_safe_path
from trackperm.trackers.references import TrackedRun

_OURS = "trackperm"
_MAX_FOLDERS = 64  # each folder is a request, so that more would make users wait
_MAX_PEEKS = 8  # JSON files that are downloaded for a look at them; MLflow cannot download a part
_PEEK_SIZE = 16 * 2**20  # bytes of such a file; larger ones take long to download and are mostly tables
_ARRAY_OF_OBJECTS = re.compile(rb"(\xef\xbb\xbf)?\s*\[\s*\{")
_SPLIT_JSON = re.compile(rb'\s*\{\s*"(columns|index|data)"\s*:')
_ROOT = "."
"""Name that selects the parts of a table which lie outside all folders."""


@dataclass(frozen=True)
class TableArtifact:
    """An artifact that can hold per-example predictions.

    Attributes
    ----------
    path : str
        Path of a file, or of the folder that holds the parts of a Parquet table.
    parts : tuple of str
        Paths of these parts; empty for a file.
    size : int or None
        Size in bytes, where MLflow knows it.
    """

    path: str
    parts: tuple[str, ...] = ()
    size: int | None = None


@dataclass
class _Contents:
    """Artifacts that a walk through a run has seen; `lists` are JSON arrays of objects of any kind."""

    tables: list[TableArtifact] = field(default_factory=list)
    lists: list[TableArtifact] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    complete: bool = True
    peeks: int = 0


class RunArtifacts:
    """Artifacts of one run, read with as few requests as possible.

    MLflow's client looks a run up for every listing. For every download it also looks up the models that the
    run has logged, whose artifacts are in folders.
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
        """List the files and folders in `folder`, or at the top level."""
        if folder is None:
            return self._repository.list_artifacts()
        return self._client.list_artifacts(self.run_id, folder)

    def download(self, path: str, target: str) -> Path:
        """Download a file to the folder `target`."""
        if "/" in path:
            return Path(self._client.download_artifacts(self.run_id, path, target))
        return Path(self._repository.download_artifacts(path, target))  # type: ignore[no-untyped-call]

    def fetch(self, table: TableArtifact, target: str) -> Path:
        """Download a table to the folder `target`: its file, or a folder with its parts alone."""
        if not table.parts:
            return self.download(table.path, target)
        folder = Path(target, "parts")
        folder.mkdir()
        for number, path in enumerate(table.parts):
            part = Path(target, str(number))
            part.mkdir()
            self.download(path, str(part)).rename(folder / posixpath.basename(path))
        return folder


def find_table(store: Store, run: TrackedRun, *, is_evaluation: bool = False) -> TableArtifact:
    """Find the one artifact of `run` that can hold per-example predictions.

    The parts of a Parquet table in one folder count as one artifact. Folders that hold a model, the folder
    ``trackperm`` and JSON files that are not tables are ignored. A JSON array of objects may be anything, so
    it counts only if nothing else does. Other JSON files count if they are logs of an evaluation harness. No
    artifact is preferred: several are listed and refused.

    ``traces`` names an evaluation, whose examples are traces and not an artifact. It is one of the candidates
    if `is_evaluation` is set, and the fallback for any run without a table. Raise InputError if the run has
    no such artifact, or more than one.
    """
    with store.calls(f"listing the artifacts of run `{run.reference}`") as client:
        contents = _walk(RunArtifacts(client, store.run(run)))
    if is_evaluation:
        contents.tables.append(TableArtifact(TRACES))
    if not contents.tables and contents.complete:
        if has_assessed_traces(store, run):
            return TableArtifact(TRACES)
        contents.tables = contents.lists
    if len(contents.tables) == 1 and contents.complete:
        return contents.tables[0]
    called = f"run `{run.reference}` ({run.name})"
    if not contents.complete:
        raise InputError(
            f"{called} has more than {_MAX_FOLDERS} artifact folders, too many to search",
            hint="name the artifact that holds its predictions: `--artifact PATH`.",
        )
    if contents.tables:
        raise InputError(
            f"{called} has {len(contents.tables)} artifacts that could hold its predictions:\n\n"
            + listing([f"{table.path}{_size(table)}" for table in contents.tables]),
            hint=f"choose one: `--artifact {likeliest(table.path for table in contents.tables)}`; of two runs"
            " that have it under different names, `--artifact BASELINE_PATH,CANDIDATE_PATH`.",
        )
    next_step = (
        "log one row per example, with the columns `id`, `prediction` and `label`: "
        f"`trackperm.log_predictions('{run.reference}', frame)`, or a file with `mlflow.log_artifact`."
    )
    lack = f"{called} has no artifact that could hold per-example predictions"
    if not contents.others:
        require_artifact_folder(store.run(run), lack, next_step)
        has = "no artifacts at all"
    else:
        has = f"only {listed(contents.others)}"
        next_step += " If one of its files has them, `--artifact PATH` reads it."
    raise InputError(f"{lack} ({has})", hint=next_step)


def table_paths(store: Store, run: TrackedRun) -> list[str]:
    """List the artifacts of `run` that can hold per-example predictions."""
    with store.calls(f"listing the artifacts of run `{run.reference}`") as client:
        contents = _walk(RunArtifacts(client, store.run(run)))
    return [table.path for table in contents.tables or contents.lists]


def named_table(store: Store, run: TrackedRun, path: str) -> TableArtifact:
    """Find the artifact of `run` at `path`: a file, or the folder of the parts of a Parquet table.

    Raise InputError if there is nothing at `path`, or it is one part of a table, or a folder of other files.
    """
    called = f"run `{run.reference}` ({run.name})"
    path = path.removesuffix("/")
    if path != _ROOT and not is_safe_path(path):
        raise InputError(
            f"`{path}` is not an artifact path; expected one such as `folder/file.parquet`",
            hint="copy it from the page of the run.",
        )
    folder = posixpath.dirname(path)
    with store.calls(f"listing the artifacts of run `{run.reference}`") as client:
        artifacts = RunArtifacts(client, store.run(run))
        found = {info.path: info for info in artifacts.listed(folder or None)}
        if path != _ROOT and path not in found:
            lack = f"{called} has no artifact `{path}`"
            require_artifact_folder(store.run(run), lack)
            raise InputError(
                lack,
                hint=f"`{folder or _ROOT}` holds {listed(sorted(found))}." if found else None,
            )
        if path == _ROOT or found[path].is_dir:
            inside = found if path == _ROOT else {info.path: info for info in artifacts.listed(path)}
            return _of_folder(path, inside, called)
    beside = next((parts for parts in _parts_among(found) if path in parts), ())
    if len(beside) > 1:
        raise InputError(
            f"artifact `{path}` of {called} is one of {len(beside)} parts of a table",
            hint=f"`--artifact {folder or _ROOT}` reads the whole: {listed(beside)}.",
        )
    return _in_parts(path, beside, found) if beside else TableArtifact(path, size=found[path].file_size)


def _of_folder(path: str, inside: Mapping[str, FileInfo], called: str) -> TableArtifact:
    """Return the table whose parts are the files in a folder.

    Raise InputError if they are not the parts of exactly one table.
    """
    tables = _parts_among(inside)
    if len(tables) != 1:
        what = f"holds parts of {len(tables)} tables" if tables else "is a folder"
        raise InputError(
            f"artifact `{path}` of {called} {what}",
            hint="log the parts of each table to a folder of its own."
            if tables
            else "name one file in it; only folders of the parts of a Parquet table are read as a whole.",
        )
    return _in_parts(path, tables[0], inside)


def _in_parts(path: str, parts: tuple[str, ...], inside: Mapping[str, FileInfo]) -> TableArtifact:
    return TableArtifact(path, parts, sum(inside[part].file_size or 0 for part in parts))


def _parts_among(inside: Mapping[str, FileInfo]) -> list[tuple[str, ...]]:
    """Group the paths of the files in one folder that are parts of the same table."""
    paths = {posixpath.basename(path): path for path, info in inside.items() if not info.is_dir}
    return [tuple(paths[name] for name in parts) for parts in tables_in_parts(paths)]


def write_predictions(store: Store, run: TrackedRun, predictions: Predictions) -> None:
    """Log a file of predictions to `run`, unless it is there, and read it back.

    Raise InputError if another file is there under that name, and TrackerError if MLflow failed, or did not
    store the file unchanged.
    """
    run_id, name = run.reference.locator, predictions.file
    with store.calls(f"logging `{name}` to run `{run.reference}`", writes=True) as client:
        if any(info.path == name for info in client.list_artifacts(run_id)):
            predictions.require_same(downloaded(client, run_id, name), run.reference)
            return
        with temporary_file(name, predictions.data) as file:
            client.log_artifact(run_id, file)
        if downloaded(client, run_id, name) != predictions.data:
            raise TrackerError(f"MLflow did not store `{name}` of run `{run.reference}` as it was logged")
        client.set_tag(run_id, PREDICTIONS_TAG, hashlib.sha256(predictions.data).hexdigest()[:16])


def _walk(artifacts: RunArtifacts) -> _Contents:
    contents = _Contents()
    logged_tables = _logged_tables(artifacts.tags)
    pending: deque[str | None] = deque([None])
    folders = 0
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
        inside = {info.path: info for info in infos}
        in_parts = _parts_among(inside)
        if len(in_parts) == 1:
            contents.tables.append(_in_parts(folder or _ROOT, in_parts[0], inside))
        elif in_parts:
            contents.others.append(f"{folder or _ROOT}/ (parts of {len(in_parts)} tables)")
        for info in infos:
            if info.is_dir:
                if posixpath.basename(info.path) != _OURS:
                    pending.append(info.path)
                continue
            if not any(info.path in parts for parts in in_parts):
                _sort_in(contents, artifacts, info, logged_tables)
    return contents


def _logged_tables(tags: Mapping[str, str]) -> set[str]:
    """Read the paths of tables that ``log_table`` recorded on the run."""
    try:
        noted = json.loads(tags.get("mlflow.loggedArtifacts", "[]"))
        return {entry["path"] for entry in noted if entry["type"] == "table"}
    except (ValueError, TypeError, KeyError):
        return set()


def _sort_in(contents: _Contents, artifacts: RunArtifacts, info: FileInfo, noted: Collection[str]) -> None:
    """Classify a file by its name, and a JSON file that ``log_table`` did not record by its content."""
    name = posixpath.basename(info.path).lower()
    table = TableArtifact(info.path, size=info.file_size)
    if not is_readable(name):
        contents.others.append(info.path)
        return
    is_json = name.removesuffix(".gz").endswith(".json") and info.path not in noted
    if not is_json or contents.peeks == _MAX_PEEKS or (info.file_size or 0) > _PEEK_SIZE:
        contents.tables.append(table)
        return
    contents.peeks += 1
    kind = _kind_of_json(artifacts, info)
    if kind is None:
        contents.others.append(info.path)
    else:
        (contents.tables if kind == "table" else contents.lists).append(table)


def _kind_of_json(artifacts: RunArtifacts, info: FileInfo) -> Literal["table", "list"] | None:
    """Tell a table or the log of a harness from an array of objects, and both from other or broken JSON."""
    with TemporaryDirectory(prefix="trackperm-") as folder:
        path = artifacts.download(info.path, folder)
        data = path.read_bytes()
        if data.startswith(b"\x1f\x8b"):
            path = Path(folder, "inflated.json")
            with suppress(zlib.error):
                data = zlib.decompressobj(wbits=31).decompress(data, _PEEK_SIZE)
            path.write_bytes(data)
        file = SourceFile(path)
        if _SPLIT_JSON.match(file.head):
            return "table"
        try:
            found = detect_format(file)
        except TrackpermError:
            return "list" if _ARRAY_OF_OBJECTS.match(file.head) else None
    if found == JSON_RECORDS:
        return "list"
    return None if found in GENERAL else "table"


def _size(table: TableArtifact) -> str:
    return "" if table.size is None else f"  ({table.size:,} bytes)"
