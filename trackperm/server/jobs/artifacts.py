"""Artifact repository that goes through MLflow's public routes, wherever the artifacts are stored.

A process that read the storage itself would use the server's credentials, at addresses that users choose. In
a worker process this repository therefore replaces those of all schemes.
"""

from __future__ import annotations

import posixpath
import re
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import mlflow
import requests
from mlflow.entities import FileInfo
from mlflow.exceptions import MlflowException
from mlflow.store.artifact.artifact_repo import ArtifactRepository
from mlflow.store.artifact.artifact_repository_registry import _artifact_repository_registry

from trackperm.trackers.publication import is_safe_path

_OF_RUN = re.compile(r"(?:^|.*/)(?P<run>[a-zA-Z0-9][\w-]{0,255})/artifacts(?:/(?P<folder>.*))?")
_OF_RUN_URI = re.compile(r"/*(?P<run>[a-zA-Z0-9][\w-]{0,255})(?:/(?P<folder>.*))?")
_UPLOAD_LIMIT = 10 * 2**20
_CHUNK = 2**20


class PublicArtifacts(ArtifactRepository):
    """Artifacts of one run, read and written through MLflow's public routes.

    The artifact URI is one of MLflow's, or ``runs:/RUN``; only the run id in it is used.
    """

    def __init__(
        self, artifact_uri: str, tracking_uri: str | None = None, registry_uri: str | None = None, **_: Any
    ) -> None:
        super().__init__(artifact_uri, tracking_uri, registry_uri)
        parts = urlsplit(artifact_uri)
        path = unquote(parts.path)
        found = (_OF_RUN_URI if parts.scheme == "runs" else _OF_RUN).fullmatch(path.rstrip("/"))
        if found is None:
            raise MlflowException(f"`{artifact_uri}` is not the artifact URI of a run")
        self._run, self._folder = found["run"], found["folder"] or ""
        self._base = (tracking_uri or mlflow.get_tracking_uri()).rstrip("/")
        self._stored = path if parts.scheme == "mlflow-artifacts" else None

    def log_artifact(self, local_file: str, artifact_path: str | None = None) -> None:
        """Write one file."""
        file = Path(local_file)
        path = self._path(posixpath.join(artifact_path or "", file.name))
        if file.stat().st_size <= _UPLOAD_LIMIT:
            url = f"{self._base}/ajax-api/2.0/mlflow/upload-artifact"
            answer = requests.post(
                url,
                params={"run_uuid": self._run, "path": path},
                data=file.read_bytes(),
                headers={"Content-Type": "application/octet-stream"},
                timeout=60,
            )
        elif self._stored is None:
            raise MlflowException(
                f"`{path}` has {file.stat().st_size:,} bytes; a server that does not serve artifacts itself"
                f" accepts at most {_UPLOAD_LIMIT:,}"
            )
        else:
            stored = quote(posixpath.join(self._stored.lstrip("/"), path))
            with file.open("rb") as content:
                url = f"{self._base}/api/2.0/mlflow-artifacts/artifacts/{stored}"
                answer = requests.put(url, data=content, timeout=60)
        _require_success(answer)

    def log_artifacts(self, local_dir: str, artifact_path: str | None = None) -> None:
        """Write all files of a folder."""
        root = Path(local_dir)
        for file in sorted(path for path in root.rglob("*") if path.is_file()):
            parent = file.parent.relative_to(root).as_posix()
            self.log_artifact(str(file), posixpath.join(artifact_path or "", "" if parent == "." else parent))

    def list_artifacts(self, path: str | None = None) -> list[FileInfo]:
        """List a folder."""
        folder = self._path(path) if path else self._folder
        query = {"run_id": self._run, **({"path": folder} if folder else {})}
        answer = requests.get(f"{self._base}/api/2.0/mlflow/artifacts/list", params=query, timeout=60)
        _require_success(answer)
        return [
            FileInfo(
                posixpath.relpath(info["path"], self._folder) if self._folder else info["path"],
                bool(info.get("is_dir", False)),
                int(info["file_size"]) if "file_size" in info else None,
            )
            for info in answer.json().get("files", [])
        ]

    def download_artifacts(self, artifact_path: str, dst_path: str | None = None, **_: Any) -> str:
        """Download one file into the folder `dst_path`."""
        target = Path(tempfile.mkdtemp() if dst_path is None else dst_path)
        file = target / posixpath.basename(self._path(artifact_path))
        self._download_file(artifact_path, str(file))
        return str(file)

    def _download_file(self, remote_file_path: str, local_path: str) -> None:
        query = {"run_uuid": self._run, "path": self._path(remote_file_path)}
        with requests.get(f"{self._base}/get-artifact", params=query, stream=True, timeout=60) as answer:
            _require_success(answer)
            with Path(local_path).open("wb") as file:
                for chunk in answer.iter_content(_CHUNK):
                    file.write(chunk)

    def _path(self, path: str) -> str:
        whole = posixpath.join(self._folder, path)
        if not is_safe_path(whole):
            raise MlflowException(f"`{whole}` is not a valid artifact path")
        return whole


def use_public_artifacts() -> None:
    """Register :class:`PublicArtifacts` for every scheme that MLflow knows, in this process."""
    registry: Any = _artifact_repository_registry
    for scheme in list(registry.get_registered_artifact_repositories()):
        registry.register(scheme, PublicArtifacts)


def _require_success(answer: requests.Response) -> None:
    """Raise an ``HTTPError``, which trackers understand, unless the request succeeded."""
    if answer.status_code == 200:
        return
    try:
        message = str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        message = answer.text.strip()[:400] or answer.reason
    raise requests.HTTPError(message, response=answer)
