"""No process of the pool reads storage by itself, or anything else of the network."""

from __future__ import annotations

import threading

import pytest
import requests
from mlflow.exceptions import MlflowException
from support.processes import python

from trackperm.server.jobs.artifacts import PublicArtifacts
from trackperm.server.jobs.process import ServerAdapter

pytestmark = pytest.mark.tracker


@pytest.mark.extended
def test_every_scheme_leads_to_public_routes() -> None:
    found = python(
        "from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository\n"
        "from mlflow.store.artifact import artifact_repository_registry as module\n"
        "from trackperm.server.jobs.artifacts import use_public_artifacts\n"
        "use_public_artifacts()\n"
        "schemes = module._artifact_repository_registry.get_registered_artifact_repositories()\n"
        "for scheme in schemes:\n"
        "    uri = f'{scheme}://host/x/run1/artifacts' if scheme else '/x/run1/artifacts'\n"
        "    uri = 'runs:/run1/a' if scheme == 'runs' else uri\n"
        "    found = get_artifact_repository(uri, tracking_uri='http://127.0.0.1:1')\n"
        "    print(scheme, type(found).__name__, found._run)\n"
    )
    lines = found.splitlines()
    assert len(lines) > 10
    assert {"s3", "file", "mlflow-artifacts", "runs"} <= {line.split()[0] for line in lines}
    assert all(line.endswith("PublicArtifacts run1") for line in lines)


@pytest.mark.parametrize("path", ["../other", "/etc/passwd", "a/../../b"])
def test_paths_stay_in_the_run(path: str) -> None:
    artifacts = PublicArtifacts("file:///x/run1/artifacts", "http://127.0.0.1:1")
    for ask in (artifacts.download_artifacts, artifacts.list_artifacts):
        with pytest.raises(MlflowException, match="is not a valid artifact path"):
            ask(path)


@pytest.mark.parametrize("uri", ["file:///etc", "s3://bucket/models/7", "/x/run1/artifacts2"])
def test_storage_of_anything_else_is_refused(uri: str) -> None:
    with pytest.raises(MlflowException, match="is not the artifact URI of a run"):
        PublicArtifacts(uri)


def test_other_hosts_are_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = ServerAdapter(None, threading.Lock())
    adapter.base = "http://127.0.0.1:5000"
    monkeypatch.setattr(requests.Session, "get_adapter", lambda *_, **__: adapter)
    for url in ("http://127.0.0.1:50001/x", "http://127.0.0.1.evil.example:5000/x", "file:///etc/passwd"):
        with pytest.raises(requests.ConnectionError, match="cannot be reached"):
            requests.get(url, timeout=1)
