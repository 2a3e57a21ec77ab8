"""The stand-in itself: what it refuses, what it notices, and W&B's own check of a server."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.wandb_standin import API_KEY, Standin, environment

pytestmark = pytest.mark.tracker


@pytest.fixture
def own() -> Iterator[Standin]:
    with Standin() as server:
        yield server


def send(url: str, body: bytes, method: str = "POST") -> tuple[int, bytes]:
    request = urllib.request.Request(url, body, method=method)
    request.add_unredirected_header("Authorization", "Basic " + _basic())
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def _basic() -> str:
    return base64.b64encode(f"api:{API_KEY}".encode()).decode()


def test_what_it_does_not_model_is_recorded(own: Standin):
    query = "query Q { viewer { shoeSize } }"
    status, body = send(f"{own.url}/graphql", json.dumps({"query": query}).encode())
    assert (status, json.loads(body)) == (200, {"data": {"viewer": {"shoeSize": None}}})
    send(f"{own.url}/graphql", json.dumps({"query": "mutation M { fly(input: {}) { high } }"}).encode())
    assert send(f"{own.url}/nowhere", b"")[0] == 404
    assert own.unmodelled == {"User.shoeSize", "Mutation.fly", "POST /nowhere"}
    query = "query Q { project(name: 1, colour: 2) { id } }"
    assert send(f"{own.url}/graphql", json.dumps({"query": query}).encode())[0] == 500
    assert any("colour" in entry for entry in own.unmodelled)


@pytest.mark.slow
def test_wandbs_own_check_of_a_server(own: Standin, tmp_path: Path):
    """All but encryption, cross-origin headers and sweeps, which trackperm does not use."""
    done = subprocess.run(
        [sys.executable, "-m", "wandb", "verify", "--host", own.url],
        env={**os.environ, **environment(tmp_path, own), "WANDB_SILENT": "false"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    passed = {line.partition(".")[0] for line in done.stdout.splitlines() if line.endswith("✅")}
    assert passed == {
        "Checking if logged in",
        "Checking signed URL upload",
        "Checking ability to send large payloads through proxy",
        "Checking wandb package version is up to date",
        "Checking logged metrics, saving and downloading a file",
        "Checking artifact save and download workflows",
    }
