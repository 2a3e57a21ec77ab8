"""No process of the pool reads storage by itself, or anything else of the network."""

from __future__ import annotations

import pytest
from support.processes import python

pytestmark = pytest.mark.tracker


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


def test_paths_stay_in_the_run() -> None:
    found = python(
        "from trackperm.server.jobs.artifacts import PublicArtifacts\n"
        "artifacts = PublicArtifacts('file:///x/run1/artifacts', 'http://127.0.0.1:1')\n"
        "for path in ('../other', '/etc/passwd', 'a/../../b'):\n"
        "    for ask in (artifacts.download_artifacts, artifacts.list_artifacts):\n"
        "        try:\n"
        "            ask(path)\n"
        "        except Exception as error:\n"
        "            print(error)\n"
    )
    assert found.count("is not a valid artifact path") == 6


def test_storage_of_anything_else_is_refused() -> None:
    found = python(
        "from trackperm.server.jobs.artifacts import PublicArtifacts\n"
        "for uri in ('file:///etc', 's3://bucket/models/7', '/x/run1/artifacts2'):\n"
        "    try:\n"
        "        PublicArtifacts(uri)\n"
        "    except Exception as error:\n"
        "        print(error)\n"
    )
    assert found.count("is not the artifact URI of a run") == 3


def test_other_hosts_are_out_of_reach() -> None:
    found = python(
        "import threading, requests\n"
        "from trackperm.server.jobs.process import ServerAdapter\n"
        "adapter = ServerAdapter(None, threading.Lock())\n"
        "adapter.base = 'http://127.0.0.1:5000'\n"
        "requests.Session.get_adapter = lambda *_, **__: adapter\n"
        "for url in ('http://127.0.0.1:50001/x', 'http://127.0.0.1.evil.example:5000/x', 'file:///etc/passwd'):\n"
        "    try:\n"
        "        requests.get(url, timeout=1)\n"
        "    except requests.ConnectionError as error:\n"
        "        print(error)\n"
    )
    assert found.count("cannot be reached") == 3
