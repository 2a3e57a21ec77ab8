"""Folders of W&B runs, ``offline-run-<time>-<id>``, and the logs in them.

They are read without wandb and without a server. ``FOLDER`` and ``FOLDER::TABLE`` are files like others; the
adapter of W&B reads ``wandb:FOLDER`` through :class:`RunFolder` (:mod:`trackperm.trackers.wandb.offline`).
"""

from __future__ import annotations

import base64
import hashlib
import os
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote, urlsplit

from trackperm.errors import SourceError
from trackperm.messages import listed
from trackperm.storage import temporary_files
from trackperm.tables.json_values import whole_number
from trackperm.tables.remote import shown_locator
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable
from trackperm.tables.wandb.logged_tables import (
    Detect,
    LoggedTable,
    choose,
    holds_predictions,
    likelihood_of_key,
    parts_of,
    read_table,
    tables_of_artifact,
)
from trackperm.tables.wandb.run_log import (
    MAGIC,
    LoggedArtifact,
    ManifestEntry,
    RunLog,
    external_entries,
    read_run_log,
)

_CLIENT_ARTIFACT = "wandb-client-artifact://"
_INPUT = "dataset"


def is_run_folder(path: Path) -> bool:
    """Whether `path` is the folder of a W&B run, or the log in one."""
    if path.is_dir():
        return any(path.glob("run-*.wandb"))
    return path.suffix == ".wandb" and path.is_file()


@dataclass(frozen=True)
class RunFolder:
    """A run in a folder.

    Attributes
    ----------
    path : Path
        The folder.
    log : RunLog
        Content of its log.
    origin : str
        Name of the run in messages.
    """

    path: Path
    log: RunLog
    origin: str

    @classmethod
    def open(cls, path: Path, origin: str) -> RunFolder:
        """Read the log in a folder; `path` may be the log itself.

        Raise SourceError if the folder has no log or several, or the log is empty or damaged.
        """
        logs = sorted(path.glob("run-*.wandb")) if path.is_dir() else [path]
        if len(logs) != 1:
            raise SourceError(
                f"`{origin}` has {len(logs)} logs of W&B runs",
                hint=f"choose one: {listed(log.name for log in logs)}." if logs else None,
            )
        log = read_run_log(logs[0], origin)
        if not log.run_id:
            raise SourceError(
                f"the log of `{origin}` is empty",
                hint="wandb writes it every few seconds, so a run that was killed early leaves nothing.",
            )
        return cls(logs[0].parent, log, origin)

    def read(self, choice: str | None, chosen_by: str, detect: Detect) -> ExampleTable:
        """Read the table that `choice` names, or the only one.

        `choice` is the key under which the table was logged, or ``<artifact>/<file>``; ``::PART`` may follow.
        In hints, `chosen_by` precedes a choice. Raise SourceError if the run has no such table, or has
        several and none was named, or if files or rows are missing.
        """
        called = f"`{self.origin}`" + (f" ({self.log.name})" if self.log.name else "")
        if self.log.exit_code is None:
            called += ", which has not ended,"
        logged, part = choose(
            self.tables(), choice, called, lambda name: f"`{chosen_by}{name}`", self._others()
        )
        with temporary_files(), TemporaryDirectory(prefix="trackperm-") as folder:
            read = read_table(logged, Path(folder), self.origin, detect, part).loaded()
        return replace(read, facts={**read.facts, **self._facts()}, notes=(*read.notes, *self._notes()))

    def tables(self) -> list[LoggedTable]:
        """List the tables that the run logged, by key, and the files of its artifacts."""
        return [*self._by_key(), *self._in_artifacts()]

    def _by_key(self) -> list[LoggedTable]:
        tables = []
        for key, logged in self.log.media.items():
            # something else, such as an image, may have been logged under the key since
            entries = [
                each for each in logged if each.get("_type") in ("table-file", "incremental-table-file")
            ]
            if not entries:
                continue
            entry, previous = entries[-1], _increments(entries[-1])
            firsts = {str([*_increments(each), each.get("artifact_path")][0]) for each in entries}
            tables.append(
                LoggedTable(
                    key,
                    partial(self._logged_files, key, entry, previous),
                    n_rows=whole_number(entry.get("nrows")),
                    likelihood=likelihood_of_key(key, self.log.config),
                    n_versions=len(firsts),
                )
            )
        return tables

    def _in_artifacts(self) -> list[LoggedTable]:
        tables = []
        latest = {artifact.name: artifact for artifact in self._artifacts()}
        for name, artifact in latest.items():
            n_versions = len({each.digest for each in self._artifacts() if each.name == name})
            parts, fetch = partial(self._parts, artifact), partial(self._staged_files, artifact)
            tables += tables_of_artifact(f"{name}/", self._entries(artifact), parts, fetch, n_versions)
        return tables

    def _artifacts(self) -> list[LoggedArtifact]:
        """Return the artifacts that people log, without the run's inputs."""
        return [
            artifact
            for artifact in self.log.artifacts
            if holds_predictions(artifact.type) and not artifact.is_input
        ]

    def _others(self) -> list[str]:
        keys = [
            f"{key} ({entry[-1]['_type']})"
            for key, entry in self.log.media.items()
            if str(entry[-1]["_type"]).endswith("-table")
        ]
        return [*keys, *(f"artifact {artifact.name}" for artifact in self._artifacts())]

    def _facts(self) -> dict[str, str]:
        digests = {a.digest for a in self.log.artifacts if a.is_input and a.type == _INPUT}
        return {"dataset artifact": ", ".join(sorted(digests))} if digests else {}

    def _notes(self) -> list[str]:
        if self.log.exit_code is None:
            return ["the run has not ended"]
        return [f"the run failed, with exit code {self.log.exit_code}"] if self.log.exit_code else []

    def _entries(self, artifact: LoggedArtifact) -> Mapping[str, ManifestEntry]:
        if not artifact.manifest_file:
            return artifact.entries
        manifest = _moved(Path(artifact.manifest_file), "artifact_manifests")
        # The user may want another artifact, and a log may name a pipe or a device.
        with suppress(OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError):
            return external_entries(manifest.read_bytes()) if manifest.is_file() else {}
        return {}

    def _parts(self, artifact: LoggedArtifact, path: str) -> list[str] | None:
        """Return the paths to which a partitioned table points; None where it cannot be read."""
        with suppress(SourceError):
            return parts_of(self.staged(artifact, path), self._entries(artifact))
        return None

    def _logged_files(
        self, key: str, entry: Mapping[str, Any], previous: Sequence[str], _folder: Path
    ) -> list[Path]:
        try:
            return [self._referred(key, str(path)) for path in (*previous, entry.get("artifact_path", ""))]
        except SourceError:
            copy = self.path / "files" / str(entry.get("path", ""))
            if previous or not copy.is_file() or _sha256(copy) != entry.get("sha256"):
                raise
            return [copy]  # its number of rows shows whether it was truncated

    def _referred(self, key: str, reference: str) -> Path:
        client_id, _, path = reference.removeprefix(_CLIENT_ARTIFACT).partition("/")
        for artifact in self.log.artifacts:
            if artifact.client_id == client_id and path in self._entries(artifact):
                return self.staged(artifact, path)
        raise SourceError(
            f"the log of `{self.origin}` does not contain the place of the rows of table `{key}`",
            hint="the run was resumed, or its log is truncated: read it from the server once it is synced.",
        )

    def _staged_files(self, artifact: LoggedArtifact, paths: Sequence[str], _folder: Path) -> list[Path]:
        return [self.staged(artifact, path) for path in paths]

    def staged(self, artifact: LoggedArtifact, path: str) -> Path:
        """Return the path of a file of an artifact, unchanged since it was logged.

        Raise SourceError if the file is missing, was changed, or is not a local file.
        """
        entry = self._entries(artifact)[path]
        what = f"file `{path}` of artifact `{artifact.name}` of `{self.origin}`"
        if entry.ref and not entry.ref.startswith("file:"):
            raise SourceError(
                f"{what} is a reference to `{shown_locator(entry.ref)}`",
                hint="download that file, and compare files.",
            )
        file = _path_of_url(entry.ref) if entry.ref else _moved(Path(entry.local_path), "")
        if not file.is_file():
            raise SourceError(
                f"{what} is not at `{file}`, where it was when it was logged",
                hint="files of artifacts are outside the run's folder: also copy `WANDB_DATA_DIR`, which is"
                " `~/.local/share/wandb` by default, and set it to the copy.",
            )
        is_unchecked = bool(entry.ref) and entry.digest == manifest_digest(str(file).encode())
        if not is_unchecked and entry.digest != manifest_digest(file.read_bytes()):
            raise SourceError(f"{what} was changed at `{file}` after it was logged")
        return file


def _path_of_url(url: str) -> Path:
    try:
        return Path(unquote(urlsplit(url).path))
    except ValueError as error:  # for example with `file://[`
        raise SourceError(f"`{shown_locator(url)}` is not the address of a file: {error}") from error


def _moved(file: Path, folder: str) -> Path:
    """Return the path of a staged file, in ``WANDB_DATA_DIR`` if it is not at its old place."""
    data = os.environ.get("WANDB_DATA_DIR")
    if data is None or file.is_file():
        return file
    moved = Path(data) / "artifacts" / "staging" / folder / file.name
    return moved if moved.is_file() else file


def manifest_digest(content: bytes) -> str:
    """Return the MD5 in the form of manifests.

    The digest of a reference that wandb did not read is that of its path.
    """
    return base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()


def _increments(entry: Mapping[str, Any]) -> list[Any]:
    """Return the earlier parts of a table that was logged part by part; empty for its first part."""
    is_incremental = entry.get("_type") == "incremental-table-file"
    previous = entry.get("previous_increments_paths") if is_incremental else None
    return previous if isinstance(previous, list) else []


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def wandb_run(detect: Detect) -> Source:
    """Return the format of run folders, whose tables are in formats that `detect` distinguishes.

    ``FOLDER::TABLE`` selects one table of several.
    """

    def read(file: SourceFile) -> ExampleTable:
        return RunFolder.open(file.path, file.origin).read(file.part, f"{file.origin}::", detect)

    return Source("wandb-run", "folder of a W&B run", _recognises, read, part="table")


def _recognises(file: SourceFile) -> bool:
    return is_run_folder(file.path) if file.path.is_dir() else file.head.startswith(MAGIC)
