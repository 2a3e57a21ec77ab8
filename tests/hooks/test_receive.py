"""The webhook receiver over real HTTP: what is taken, what is refused, and what is said of it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from hooked_runs import Heard, HookedStore
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mlflow_server import MlflowServer

from trackperm.errors import InputError
from trackperm.hooks import receive
from trackperm.hooks.policy import load_policies
from trackperm.hooks.queue import Queue
from trackperm.hooks.receive import MLFLOW_SECRET, WANDB_SECRET, Receiver, ReceiverServer, Secrets
from trackperm.hooks.worker import Worker

SECRET, OTHER = "a-secret-of-wandb-that-is-long", "another-secret-that-is-mlflows"  # gitleaks:allow
POLICIES = {
    "policies": [
        {"name": "registry", "runs": "mlflow:digits", "baseline": {"champion": "digits"}},
        {"name": "project", "runs": "wandb:team/digits", "baseline": {"newest": {"tags": {"stage": "base"}}}},
        {"name": "elsewhere", "runs": "wandb:other", "baseline": {"run": "wandb:team/other/b"}},
        {"name": "gate-only", "baseline": {"run": "wandb:team/digits/b"}},
    ]
}


class Site:
    """A receiver that listens."""

    def __init__(self, folder: Path) -> None:
        path = folder / "trackperm.yaml"
        path.write_text(yaml.safe_dump(POLICIES))
        self.queue = Queue(folder / "state")
        self.heard = Heard()
        policies = load_policies(path).policies
        receiver = Receiver(policies, self.queue, Secrets(SECRET, OTHER), self.heard.notes)
        self.server = ReceiverServer(receiver)
        self.port = self.server.server_port

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("POST", path, body, dict(headers))
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def wandb(self, document: object, secret: str = SECRET) -> tuple[int, dict[str, Any]]:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        signature = base64.b64encode(hmac.new(secret.encode(), body, hashlib.sha256).digest()).decode()
        return self.post("/wandb", body, {"X-Wandb-Signature": signature})

    def mlflow(
        self, document: object, delivery: str = "delivery-1", at: float | None = None
    ) -> tuple[int, dict[str, Any]]:
        body = json.dumps(document).encode()
        stamp = str(int(time.time() if at is None else at))
        digest = hmac.new(OTHER.encode(), f"{delivery}.{stamp}.".encode() + body, hashlib.sha256).digest()
        headers = {"Delivery-Id": delivery, "Timestamp": stamp}
        headers["Signature"] = "v1," + base64.b64encode(digest).decode()
        return self.post("/mlflow", body, {f"X-MLflow-{name}": value for name, value in headers.items()})

    @property
    def queued(self) -> list[tuple[str, str]]:
        return [(entry.policy, entry.candidate) for entry in self.queue.entries()]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join(10)
    assert SECRET not in made.heard.text
    assert OTHER not in made.heard.text


def created(run_id: object) -> dict[str, Any]:
    data = {"name": "digits", "version": "3", "source": "models:/m-1", "run_id": run_id, "tags": {}}
    return {"entity": "model_version", "action": "created", "timestamp": "…", "data": data}


def test_an_artifact_of_wandb(site: Site):
    status, answer = site.wandb({"artifact": "team/digits/predictions:v3", "event": "LINK", "token": "t0p"})
    assert (status, answer["queued"]) == (202, 1)
    assert site.queued == [("project", "wandb:team/digits/predictions:v3")]
    [line] = site.heard.events("delivery")
    assert line["policies"] == ["project"]
    assert "t0p" not in site.heard.text


def test_a_run_of_wandb_for_a_policy_without_entity(site: Site):
    assert site.wandb({"run": "team/other/abc123"})[0] == 202
    assert site.queued == [("elsewhere", "wandb:team/other/abc123")]


def test_a_model_version_of_mlflow(site: Site):
    assert site.mlflow(created("3f2a" * 8))[0] == 202
    assert site.queued == [("registry", "mlflow:" + "3f2a" * 8)]


@pytest.mark.parametrize(
    "document",
    [
        created(None),
        created(""),
        {"entity": "model_version_alias", "action": "created", "data": {"name": "m", "alias": "champion"}},
        {"entity": "registered_model", "action": "created", "data": {"name": "m"}},
    ],
)
def test_events_of_mlflow_that_tell_of_no_run(site: Site, document: dict[str, Any]):
    assert site.mlflow(document) == (200, {"status": "ignored", "reason": "it announces no run"})
    assert site.queued == []


def test_a_run_that_no_policy_is_about(site: Site):
    status, answer = site.wandb({"run": "team/unknown/abc123"})
    assert (status, answer["reason"]) == (200, "no policy is about it")


def test_the_same_again_is_refused_and_adds_nothing(site: Site):
    assert site.mlflow(created("a" * 32))[0] == 202
    assert site.mlflow(created("a" * 32))[0] == 409
    assert site.wandb({"run": "team/digits/x"})[0] == 202
    assert site.wandb({"run": "team/digits/x"})[0] == 409
    assert len(site.queued) == 2
    assert [line["status"] for line in site.heard.events("delivery-refused")] == [409, 409]


def test_an_old_delivery_is_refused(site: Site):
    assert site.mlflow(created("a" * 32), at=time.time() - 400)[0] == 401
    assert site.mlflow(created("a" * 32), at=time.time() + 400)[0] == 401
    assert site.queued == []


def test_a_wrong_signature_is_refused(site: Site):
    assert site.wandb({"run": "team/digits/x"}, secret="guessed")[0] == 401
    assert site.post("/wandb", b"{}", {})[0] == 401
    assert site.post("/mlflow", b"{}", {"X-MLflow-Signature": "v1,x"})[0] == 401
    assert site.queued == []
    refused = site.heard.events("delivery-refused")
    assert refused[0]["reason"] == "the signature is not that of the body"


def test_a_signature_is_checked_before_the_body_is_read(site: Site):
    assert site.wandb(b"this is no JSON", secret="guessed")[0] == 401


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"this is no JSON",
        b"[]",
        b'"text"',
        b"{}",
        b"\xff\xfe",
        b"[" * 50_000,
        b"1" * 5_000,
        b'{"run": 5}',
        b'{"run": "team/digits/x", "artifact": "team/digits/a:v1"}',
        b'{"run": "team/digits"}',
        b'{"run": "team/digits/x:v1"}',
        b'{"run": "../../etc/passwd"}',
        b'{"run": "team/digits/.."}',
        b'{"run": "https://host/team/digits/x"}',
        b'{"run": "team/digits/x\\n"}',
        b'{"run": "team/digits/x y"}',
        b'{"artifact": "team/digits/a"}',
        b'{"artifact": "team/digits/a:v1:v2"}',
        b'{"artifact": "team/digits/a:${alias}"}',
        b'{"artifact": ["team/digits/a:v1"]}',
    ],
    ids=lambda body: body[:30].decode("latin-1"),
)
def test_malformed_bodies_of_wandb(site: Site, body: bytes):
    assert site.wandb(body)[0] == 400
    assert site.queued == []


@pytest.mark.parametrize("run_id", [5, "a/b", "../x", "x" * 65, "a b", "ü", ["x"], {"a": 1}, "-rf"])
def test_malformed_ids_of_mlflow(site: Site, run_id: object):
    assert site.mlflow(created(run_id))[0] == 400
    assert site.mlflow({**created("x"), "data": []}, delivery="delivery-2")[0] == 400
    assert site.queued == []


def raw(site: Site, request: bytes, seconds: float = 30.0) -> bytes:
    with socket.create_connection(("127.0.0.1", site.port), timeout=seconds) as connection:
        connection.sendall(request)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return answer


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"Content-Length: 65537\r\n", 413),
        (b"Content-Length: 99999999999999999999\r\n", 413),
        (b"Content-Length: -1\r\n", 400),
        (b"Content-Length: 1e3\r\n", 400),
        (b"Content-Length: 2\r\nContent-Length: 3\r\n", 400),
        (b"Transfer-Encoding: chunked\r\n", 411),
        (b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", 411),
        (b"", 411),
    ],
)
def test_bodies_of_no_or_too_great_a_length(site: Site, headers: bytes, status: int):
    answer = raw(site, b"POST /wandb HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n")
    assert answer.split(b" ")[1] == str(status).encode()
    assert site.heard.events("delivery-refused")[0]["status"] == status


def test_a_body_that_does_not_come(site: Site, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(receive, "_READ_SECONDS", 0.3)
    began = time.monotonic()
    answer = raw(site, b"POST /wandb HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
    assert answer.split(b" ")[1] == b"408"
    assert time.monotonic() - began < 5


def test_other_paths_and_methods(site: Site):
    assert site.post("/", b"{}", {})[0] == 404
    assert site.post("/wandb/../mlflow", b"{}", {})[0] == 404
    assert raw(site, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").split(b" ")[1] == b"200"
    assert raw(site, b"GET /?secret=hidden-in-address HTTP/1.1\r\nHost: x\r\n\r\n").split(b" ")[1] == b"404"
    assert raw(site, b"DELETE /wandb HTTP/1.1\r\nHost: x\r\n\r\n").split(b" ")[1] == b"501"
    assert "hidden" not in site.heard.text


def test_a_kind_whose_secret_is_not_set(tmp_path: Path):
    site = Site(tmp_path)
    site.server.server_close()
    receiver = Receiver([], site.queue, Secrets(wandb=None, mlflow=OTHER), site.heard.notes)
    assert receiver.take("/wandb", {}, b"{}")[0] == 404


def test_a_queue_that_cannot_be_written_to_lets_the_sender_try_again(site: Site):
    site.queue._file.busy = 0.05
    with Queue(site.queue.folder)._file.transaction():
        assert site.wandb({"run": "team/digits/x"})[0] == 503
    assert site.wandb({"run": "team/digits/x"})[0] == 202


def test_a_burst(site: Site):
    """200 at once are all taken, each once, and answered soon."""
    began = time.monotonic()
    with ThreadPoolExecutor(100) as senders:
        answers = list(senders.map(lambda number: site.wandb({"run": f"team/digits/r{number}"}), range(200)))
    assert [status for status, _ in answers] == [202] * 200
    assert sorted(site.queued) == sorted(("project", f"wandb:team/digits/r{number}") for number in range(200))
    assert time.monotonic() - began < 60


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=300), path=st.sampled_from(["/wandb", "/mlflow", "/"]))
def test_any_bytes_are_answered(site: Site, body: bytes, path: str):
    assert site.post(path, body, {"X-Wandb-Signature": "x"})[0] in (401, 404)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=60))
def test_any_signed_name_is_queued_as_it_is_or_refused(site: Site, text: str):
    status, _ = site.wandb({"run": text, "nonce": time.time_ns()})
    assert status in (200, 202, 400)
    assert all(candidate.startswith("wandb:team/digits/") for _, candidate in site.queued)


def test_secrets_of_the_environment(monkeypatch: pytest.MonkeyPatch):
    for name in (WANDB_SECRET, MLFLOW_SECRET):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="no secret is set"):
        Secrets.of_environment()
    monkeypatch.setenv(WANDB_SECRET, "short")
    with pytest.raises(InputError, match="has 5 characters") as caught:
        Secrets.of_environment()
    assert "`short`" not in str(caught.value)
    monkeypatch.setenv(WANDB_SECRET, SECRET)
    assert Secrets.of_environment() == Secrets(SECRET, None)
    assert SECRET not in repr(Secrets.of_environment())


def test_a_port_that_is_taken(site: Site):
    with pytest.raises(InputError, match=f"`127.0.0.1:{site.port}` cannot be listened on"):
        ReceiverServer(site.server.receiver, port=site.port)


@pytest.mark.slow
@pytest.mark.tracker
def test_mlflow_sends_and_the_run_is_compared(tmp_path: Path):
    """A registry webhook of a real server, signed by it, leads to one comparison of the run it names."""
    from cryptography.fernet import Fernet
    from mlflow import MlflowClient
    from mlflow.entities.webhook import WebhookAction, WebhookEntity, WebhookEvent

    env = {
        "MLFLOW_WEBHOOK_SECRET_ENCRYPTION_KEY": Fernet.generate_key().decode(),
        "MLFLOW_WEBHOOK_ALLOWED_SCHEMES": "http,https",
        "MLFLOW_WEBHOOK_ALLOW_PRIVATE_IPS": "true",
        "_MLFLOW_WEBHOOK_ALLOW_PRIVATE_IPS": "true",
    }
    with MlflowServer(tmp_path, env) as server:
        runs = HookedStore(server.uri, tmp_path)
        runs.baseline()
        candidate = runs.finished()
        policy = runs.policy()
        queue, heard = Queue(tmp_path / "state"), Heard()
        receiver = Receiver([policy], queue, Secrets(mlflow=OTHER), heard.notes)
        listening = ReceiverServer(receiver)
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            client = MlflowClient(server.uri)
            client.create_webhook(
                "trackperm",
                f"http://127.0.0.1:{listening.server_port}/mlflow",
                [WebhookEvent(WebhookEntity.MODEL_VERSION, WebhookAction.CREATED)],
                secret=OTHER,
            )
            client.create_registered_model("digits")
            client.create_model_version("digits", f"runs:/{candidate}/model", run_id=candidate)
            deadline = time.monotonic() + 60
            while not queue.entries() and time.monotonic() < deadline:
                time.sleep(0.1)
        finally:
            listening.shutdown()
            listening.server_close()
            thread.join(10)
        assert [entry.candidate for entry in queue.entries()] == [f"mlflow:{candidate}"], heard.text
        turn = Worker([policy], queue, heard.notes).turn()
        assert turn is not None
        assert turn.event == "compared"
        assert runs.compared() == [f"mlflow:{candidate}"]
