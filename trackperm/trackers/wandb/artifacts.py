"""Tables and artifacts of a run on a W&B server, and which of them holds its per-example predictions.

Tables are read as the JSON files that wandb uploads. :class:`wandb.Table` would be far slower, and the copy
for W&B's pages may be truncated. :mod:`trackperm.tables.wandb.logged_tables` defines which tables count, and
what happens to a table without all its rows, for offline runs as well.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from trackperm.errors import InputError, SourceError, TrackerError
from trackperm.storage import temporary_files
from trackperm.tables.json_values import whole_number
from trackperm.tables.registry import detect_format
from trackperm.tables.table import ExampleTable
from trackperm.tables.wandb.logged_tables import (
    JOINED_SUFFIX,
    TABLE_SUFFIX,
    Likelihood,
    LoggedTable,
    choose,
    holds_predictions,
    likelihood_of_key,
    parts_of,
    read_table,
    tables_of_artifact,
)
from trackperm.tables.wandb.run_log import media_entries
from trackperm.trackers.references import RunReference, TrackedRun
from trackperm.trackers.wandb.evaluations import fetch_evaluation
from trackperm.trackers.wandb.store import Store

_ARTIFACT = re.compile(r"[^/:]+/[^/:]+/[^/:]+:[^/:]+")
_SERVER_ARTIFACT = "wandb-artifact://"
_INCREMENTS = "wandb-run-incremental-table"
FAILED_STATES = {
    "crashed": "crashed",
    "failed": "failed",
    "killed": "was killed",
    "preempted": "was preempted",
}
"""States of runs that did not end well, and how notes say so."""


def is_artifact(locator: str) -> bool:
    """Whether `locator` names an artifact, ``<entity>/<project>/<name>:<version or alias>``."""
    return _ARTIFACT.fullmatch(locator) is not None


def find_artifact(store: Store, locator: str) -> TrackedRun:
    """Find an artifact that is read in place of a run; its locator names the present version.

    Raise InputError if the artifact does not exist.
    """
    with store.calls(f"looking up artifact `wandb:{locator}`"):
        artifact = store.artifact_or_none(locator)
        if artifact is None:
            raise InputError(
                f"W&B at `{store.base_url}` has no artifact `{locator}`",
                hint="write `wandb:<entity>/<project>/<name>:<version or alias>`, as its page shows it.",
            )
        return _as_run(artifact)


def with_predictions(store: Store, artifact: Any) -> TrackedRun | None:
    """Return an artifact that is read in place of a run; None if it holds no predictions, as a model does."""
    if not holds_predictions(artifact.type):
        return None
    found = _as_run(artifact)
    tables = _LoggedArtifact(store, found).tables()
    return found if any(table.likelihood is Likelihood.TABLE for table in tables) else None


def _as_run(artifact: Any) -> TrackedRun:
    container, _, name = _full_name(artifact).rpartition("/")
    return TrackedRun(RunReference("wandb", f"{container}/{name}"), name, container, artifact.url)


def read_run(
    store: Store, run: TrackedRun, choice: str | None = None
) -> tuple[ExampleTable, tuple[str, ...]]:
    """Read the per-example table of a run, or of an artifact that :func:`find_artifact` returned.

    `choice` is the key under which the table was logged, or ``<artifact>[:<version>]/<file>``; in an artifact
    its name may be left out. ``::PART`` may follow. Return the table, and the versions of the artifacts that
    it was read from. Raise SourceError if several tables could be meant, the file is not a table, or W&B
    truncated it.
    """
    if is_artifact(run.reference.locator):
        logged: _Logged = _LoggedArtifact(store, run)
        choice = None if choice is None else _within(run, choice)
        called = f"artifact `{run.reference}`"
    else:
        logged = _LoggedByRun(store, run, choice)
        called = f"run `{run.reference}` ({run.name})"
    table, part = choose(
        logged.tables(), choice, called, lambda name: f"`--artifact '{name}'`", logged.others()
    )
    with temporary_files(), TemporaryDirectory(prefix="trackperm-") as folder:
        read = read_table(table, Path(folder), str(run.reference), detect_format, part).loaded()
    read = replace(read, facts={**read.facts, **logged.facts()}, notes=(*read.notes, *logged.notes()))
    return read, tuple(dict.fromkeys(logged.used))


def _within(artifact: TrackedRun, choice: str) -> str | None:
    """Return the file in an artifact that ``<artifact>/<file>`` names; None for the artifact alone."""
    collection = artifact.name.partition(":")[0]
    for name in (artifact.name, collection):
        if choice == name:
            return None
        choice = choice.removeprefix(f"{name}/")
    return choice


class _Logged:
    """Files of artifacts, among which a table is chosen."""

    def __init__(self, store: Store, run: TrackedRun) -> None:
        self._store = store
        self._run = run
        self.used: list[str] = []

    def tables(self) -> list[LoggedTable]:
        raise NotImplementedError

    def others(self) -> list[str]:
        return []

    def notes(self) -> list[str]:
        return []

    def _creator(self) -> Any:
        raise NotImplementedError

    def facts(self) -> dict[str, str]:
        """Return the digests of the datasets that the run used as input."""
        with self._store.calls(f"listing the inputs of `{self._run.reference}`"):
            creator = self._creator()
            used = [] if creator is None else list(creator.used_artifacts())
            digests = {artifact.digest for artifact in used if artifact.type == "dataset"}
        return {"dataset artifact": ", ".join(sorted(digests))} if digests else {}

    def _files(self, artifact: Any, prefix: str, n_versions: int = 1) -> list[LoggedTable]:
        """List the files in an artifact that can hold predictions."""
        entries = self._entries(artifact)

        def parts(path: str) -> list[str]:
            with temporary_files(), TemporaryDirectory(prefix="trackperm-") as folder:
                return parts_of(self._download_one(artifact, path, Path(folder)), entries)

        def fetch(paths: Sequence[str], folder: Path) -> list[Path]:
            return self._download([(artifact, path) for path in paths], folder)

        return tables_of_artifact(prefix, entries, parts, fetch, n_versions)

    def _entries(self, artifact: Any) -> Mapping[str, Any]:
        with self._store.calls(f"listing the files of artifact `{artifact.name}`"):
            entries: Mapping[str, Any] = artifact.manifest.entries
        return entries

    def _download(self, files: Sequence[tuple[Any, str]], folder: Path) -> list[Path]:
        self.used += [_full_name(artifact) for artifact, _ in files]
        return [self._download_one(*file, folder / str(number)) for number, file in enumerate(files)]

    def _download_one(self, artifact: Any, path: str, folder: Path) -> Path:
        what = f"`{path}` of artifact `{artifact.name}` of `{self._run.reference}`"
        with self._store.calls(f"downloading {what}"):
            entry = artifact.get_entry(path)
            if entry.ref and not str(entry.ref).startswith(_SERVER_ARTIFACT):
                raise SourceError(
                    f"{what} is a reference to `{entry.ref}`",
                    hint="download that file, and compare files.",
                )
            file = Path(entry.download(root=str(folder), skip_cache=True))
        if not entry.ref and file.stat().st_size != (entry.size or 0):
            raise TrackerError(f"{what} arrived with {file.stat().st_size:,} of its {entry.size:,} bytes")
        return file


class _LoggedArtifact(_Logged):
    """Files of one artifact, under their own names."""

    @cached_property
    def _artifact(self) -> Any:
        with self._store.calls(f"looking up artifact `{self._run.reference}`") as api:
            return api.artifact(self._run.reference.locator)

    def tables(self) -> list[LoggedTable]:
        return self._files(self._artifact, "")

    def others(self) -> list[str]:
        return list(self._entries(self._artifact))

    def _creator(self) -> Any:
        return self._artifact.logged_by()


class _LoggedByRun(_Logged):
    """Tables that a run logged, by key, and files of its artifacts, as ``<artifact>/<file>``."""

    def __init__(self, store: Store, run: TrackedRun, choice: str | None) -> None:
        super().__init__(store, run)
        self._choice = choice or ""
        with store.calls(f"listing what run `{run.reference}` logged") as api:
            self._found = api.run(run.reference.locator)
            self._entries_by_key = dict(sorted(media_entries(_plain(self._found.summary))))
            self._config = dict(self._found.rawconfig)
            self._versions: dict[str, list[Any]] = {}
            for artifact in self._found.logged_artifacts():
                self._versions.setdefault(_collection(artifact), []).append(artifact)
            for versions in self._versions.values():
                versions.sort(key=lambda artifact: ("latest" in artifact.aliases, _number(artifact)))

    def tables(self) -> list[LoggedTable]:
        by_key = list(self._by_key())
        return [*by_key, *self._without_key({table.name for table in by_key}), *self._in_artifacts()]

    def others(self) -> list[str]:
        keys = [
            f"{key} ({entry['_type']})"
            for key, entry in self._entries_by_key.items()
            if re.search(r"-table(-ces)?$", str(entry["_type"]))
        ]
        return [*keys, *(f"artifact {name}" for name in self._of_others())]

    def notes(self) -> list[str]:
        """Note that the run did not end well."""
        state = self._found.state
        return [f"the run {FAILED_STATES[state]}"] if state in FAILED_STATES else []

    def _creator(self) -> Any:
        return self._found

    def _by_key(self) -> Iterator[LoggedTable]:
        for key, entry in self._entries_by_key.items():
            kind = entry["_type"]
            if kind == "eval-table":
                fetch = partial(fetch_evaluation, self._store, self._run, key, entry)
                yield LoggedTable(key, fetch, is_own_format=False)
            elif kind in ("table-file", "incremental-table-file"):
                previous = entry.get("previous_increments_paths") or []
                is_incremental = kind == "incremental-table-file"
                paths = [*(previous if is_incremental else []), str(entry.get("artifact_path", ""))]
                n_versions = 1 if is_incremental else self._n_versions(_path(paths[-1]))
                yield LoggedTable(
                    key,
                    partial(self._logged_files, key, entry, paths),
                    n_rows=whole_number(entry.get("nrows")),
                    likelihood=likelihood_of_key(key, self._config),
                    n_versions=n_versions,
                )

    def _without_key(self, keys: Iterable[str]) -> Iterator[LoggedTable]:
        """Yield tables that the summary lacks, because of ``define_metric(summary="none")``."""
        known = {_path(str(entry.get("artifact_path", ""))) for entry in self._entries_by_key.values()}
        for path, versions in self._run_tables.items():
            key = path.removesuffix(TABLE_SUFFIX)
            if path.endswith(TABLE_SUFFIX) and path not in known and key not in keys:
                yield LoggedTable(
                    key,
                    partial(self._download, [(versions[-1], path)]),
                    likelihood=likelihood_of_key(key, self._config),
                    n_versions=len(versions),
                )

    @cached_property
    def _run_tables(self) -> dict[str, list[Any]]:
        """Versions of the artifacts that wandb creates for logged tables, by the path in the newest."""
        result = {}
        for versions in self._versions.values():
            if versions[-1].type == "run_table":
                entries = self._entries(versions[-1])
                if not any(path.endswith(JOINED_SUFFIX) for path in entries):
                    result.update(dict.fromkeys(entries, versions))
        return result

    def _n_versions(self, path: str) -> int:
        return 1 if self._is_shared(path) else len(self._run_tables.get(path, [1]))

    def _is_shared(self, path: str) -> bool:
        """Whether several keys, such as ``dev.preds`` and ``test.preds``, share an artifact."""
        paths = [_path(str(entry.get("artifact_path", ""))) for entry in self._entries_by_key.values()]
        return paths.count(path) > 1

    def _logged_files(
        self, key: str, entry: Mapping[str, Any], references: Sequence[str], folder: Path
    ) -> list[Path]:
        found = [self._referred(reference) for reference in references]
        if all(artifact is not None for artifact in found):
            paths = [_path(reference) for reference in references]
            return self._download(list(zip(found, paths, strict=True)), folder)
        if len(references) == 1:
            return [self._copy_for_pages(key, entry, folder)]
        raise SourceError(
            f"table `{key}` of run `{self._run.reference}` lacks some of its {len(references)} parts",
            hint="was the run synced completely?",
        )

    def _referred(self, reference: str) -> Any:
        """Return the artifact version that an entry refers to, by its id where a server has inserted it."""
        path = _path(reference)
        if reference.startswith(_SERVER_ARTIFACT):
            wanted = reference.removeprefix(_SERVER_ARTIFACT).partition("/")[0]
            everything = (artifact for versions in self._versions.values() for artifact in versions)
            return next((artifact for artifact in everything if _hexadecimal(artifact.id) == wanted), None)
        if path in self._run_tables:
            return None if self._is_shared(path) else self._run_tables[path][-1]
        increments = (versions for versions in self._versions.values() if versions[-1].type == _INCREMENTS)
        newest_first = (artifact for versions in increments for artifact in reversed(versions))
        return next((artifact for artifact in newest_first if path in self._entries(artifact)), None)

    def _copy_for_pages(self, key: str, entry: Mapping[str, Any], folder: Path) -> Path:
        """Download the copy for W&B's pages; its number of rows shows whether it was truncated."""
        path, digest = str(entry.get("path", "")), entry.get("sha256")
        what = f"table `{key}` of run `{self._run.reference}`"
        with self._store.calls(f"downloading `{path}` of run `{self._run.reference}`"):
            found = list(self._found.files([path])) if path else []
            for file in found:
                file.download(root=str(folder), replace=True).close()
        copy = folder / path
        if not found or hashlib.sha256(copy.read_bytes()).hexdigest() != digest:
            raise SourceError(
                f"the file that W&B has of {what} may not be the one that was logged",
                hint="keys with the same ending share an artifact: log `test_preds`, not `preds` in `test`.",
            )
        return copy

    def _of_others(self) -> dict[str, list[Any]]:
        """Artifacts that people log, and their versions, by name."""
        return {
            name: versions
            for name, versions in self._versions.items()
            if holds_predictions(versions[-1].type)
        }

    def _in_artifacts(self) -> list[LoggedTable]:
        tables = []
        for name, versions in self._of_others().items():
            tables += self._files(versions[-1], f"{name}/", len(versions))
            for artifact in versions:
                if self._choice.startswith(f"{artifact.name}/") or self._choice == artifact.name:
                    tables += self._files(artifact, f"{artifact.name}/")
        return tables


def _plain(value: Any) -> Any:
    """Convert a summary to plain objects, as wandb wraps nested ones."""
    return {key: _plain(item) for key, item in value.items()} if hasattr(value, "items") else value


def _collection(artifact: Any) -> str:
    return str(artifact.name).partition(":")[0]


def _full_name(artifact: Any) -> str:
    return f"{artifact.entity}/{artifact.project}/{_collection(artifact)}:{artifact.version}"


def _number(artifact: Any) -> int:
    digits = str(artifact.version).removeprefix("v")
    return int(digits) if digits.isdigit() else -1


def _path(reference: str) -> str:
    """Return the path in an artifact of ``wandb-client-artifact://<id>/<path>``."""
    return reference.partition("://")[2].partition("/")[2]


def _hexadecimal(artifact_id: str) -> str:
    """Return the id of an artifact in the form of references to it."""
    try:
        return base64.b64decode(artifact_id, validate=True).hex()
    except binascii.Error:
        return artifact_id
