"""A webhook receiver that listens, and senders that sign as W&B and MLflow do."""

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
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from support.hooked_runs import Heard
from trackperm.automation.policy.load import load_policies
from trackperm.automation.queue.queue import Queue
from trackperm.automation.webhooks.http import ReceiverServer
from trackperm.automation.webhooks.receive import Receiver, Secrets

WANDB, MLFLOW = "a-secret-of-wandb-that-is-long", "another-secret-that-is-mlflows"
POLICIES = {
    "policies": [
        {"name": "registry", "runs": "mlflow:digits", "baseline": {"champion": "digits"}},
        {"name": "project", "runs": "wandb:team/digits", "baseline": {"newest": {"tags": {"stage": "base"}}}},
        {"name": "elsewhere", "runs": "wandb:other", "baseline": {"run": "wandb:team/other/b"}},
        {"name": "gate-only", "baseline": {"run": "wandb:team/digits/b"}},
    ]
}


class Sender:
    """Sends to a receiver on the loopback interface."""

    def __init__(self, port: int) -> None:
        self.port = port

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        """Send a body, and return status and answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", path, body, dict(headers))
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def wandb(self, document: object, secret: str = WANDB) -> tuple[int, dict[str, Any]]:
        """Send what a webhook of W&B sends."""
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        signature = base64.b64encode(hmac.new(secret.encode(), body, hashlib.sha256).digest()).decode()
        return self.post("/wandb", body, {"X-Wandb-Signature": signature})

    def mlflow(
        self, document: object, delivery: str = "delivery-1", at: float | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Send what a webhook of MLflow sends."""
        body = json.dumps(document).encode()
        stamp = str(int(time.time() if at is None else at))
        digest = hmac.new(MLFLOW.encode(), f"{delivery}.{stamp}.".encode() + body, hashlib.sha256).digest()
        headers = {"Delivery-Id": delivery, "Timestamp": stamp}
        headers["Signature"] = "v1," + base64.b64encode(digest).decode()
        return self.post("/mlflow", body, {f"X-MLflow-{name}": value for name, value in headers.items()})

    def raw(self, request: bytes, *, is_over: bool = False) -> bytes:
        """Send bytes, perhaps all that come, and return what is answered until the connection is closed."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(request)
            if is_over:
                connection.shutdown(socket.SHUT_WR)
            answer = b""
            while part := connection.recv(65536):
                answer += part
        return answer


class Site(Sender):
    """A receiver with its queue, and all that it notes."""

    def __init__(self, folder: Path) -> None:
        path = folder / "trackperm.yaml"
        path.write_text(yaml.safe_dump(POLICIES))
        self.queue = Queue(folder / "state")
        self.heard = Heard()
        policies = load_policies(path).policies
        self.receiver = Receiver(policies, self.queue, Secrets(WANDB, MLFLOW), self.heard.log)
        self.server = ReceiverServer(self.receiver)
        super().__init__(self.server.port)

    @property
    def queued(self) -> list[tuple[str, str]]:
        """Policy and candidate of all rows."""
        return [(entry.policy, entry.candidate) for entry in self.queue.entries()]


@contextmanager
def listening(server: ReceiverServer) -> Iterator[None]:
    """Let a server answer, in a thread."""
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    with server:
        try:
            yield
        finally:
            server.shutdown()
            thread.join(10)


def created(run_id: object) -> dict[str, Any]:
    """Return the body of `model_version.created`."""
    data = {"name": "digits", "version": "3", "source": "models:/m-1", "run_id": run_id, "tags": {}}
    return {"entity": "model_version", "action": "created", "timestamp": "…", "data": data}


def signed_raw(body: bytes, *headers: bytes) -> bytes:
    """Return a request to `/wandb` with the right signature, and further header lines, byte by byte."""
    signature = base64.b64encode(hmac.new(WANDB.encode(), body, hashlib.sha256).digest())
    lines = [b"POST /wandb HTTP/1.1", b"Host: x", b"X-Wandb-Signature: " + signature, *headers]
    return b"\r\n".join([*lines, b"", body])
