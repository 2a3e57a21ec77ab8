"""The webhook receiver: what W&B and MLflow send is checked, queued and answered, and not compared yet.

A body is read up to a limit, its signature is checked before anything in it is looked at, what it names is
matched against strict patterns, and the rows are on disk, in one transaction with the identity of the
delivery, before it is answered with 202. Killed before that, the sender got no answer and sends it again;
killed after, the row waits for a worker. Senders that give up lose nothing where a watcher lists the same
experiments.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from trackperm.errors import InputError, TrackpermError
from trackperm.hooks.notes import Notes
from trackperm.hooks.policy import Policy
from trackperm.hooks.queue import Queue, ReplayError, Unit
from trackperm.hooks.signatures import REPLAY_SECONDS, SignatureError, verify_mlflow, verify_wandb
from trackperm.trackers.base import RunReference

WANDB_SECRET, MLFLOW_SECRET = "TRACKPERM_WANDB_WEBHOOK_SECRET", "TRACKPERM_MLFLOW_WEBHOOK_SECRET"
MOST_BYTES = 64 * 1024

_SHORTEST_SECRET = 16
_READ_SECONDS = 10.0
_BACKLOG = 512
_WANDB_MEMORY = 30 * 86400.0  # W&B's signatures carry no time, so that its bodies are remembered for long
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
_WANDB_RUN = re.compile(rf"{_NAME}/{_NAME}/{_NAME}")
_WANDB_ARTIFACT = re.compile(rf"{_NAME}/{_NAME}/{_NAME}:[A-Za-z0-9][A-Za-z0-9._-]{{0,63}}")
_MLFLOW_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class _RefusedError(TrackpermError):
    """A delivery that is answered by an error status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Secrets:
    """What senders share with this receiver.

    Attributes
    ----------
    wandb, mlflow : str or None
        None where deliveries of that kind are not taken.
    """

    wandb: str | None = field(default=None, repr=False)
    mlflow: str | None = field(default=None, repr=False)

    @classmethod
    def of_environment(cls) -> Secrets:
        """Read ``TRACKPERM_WANDB_WEBHOOK_SECRET`` and ``TRACKPERM_MLFLOW_WEBHOOK_SECRET``.

        Raises
        ------
        InputError
            If neither is set, or one can be guessed.
        """
        found = {name: os.environ.get(name) or None for name in (WANDB_SECRET, MLFLOW_SECRET)}
        make = "`python -c 'import secrets; print(secrets.token_urlsafe(32))'` makes one."
        if not any(found.values()):
            raise InputError(
                "no secret is set, so that no delivery could be told from a forged one: expected"
                f" `{WANDB_SECRET}` or `{MLFLOW_SECRET}` in the environment",
                hint=make,
            )
        for name, secret in found.items():
            if secret is not None and len(secret) < _SHORTEST_SECRET:
                raise InputError(
                    f"`{name}` has {len(secret)} characters, which can be guessed; expected"
                    f" {_SHORTEST_SECRET} at least",
                    hint=make,
                )
        return cls(found[WANDB_SECRET], found[MLFLOW_SECRET])


@dataclass(frozen=True)
class Receiver:
    """Takes deliveries for some policies.

    Attributes
    ----------
    policies : sequence of Policy
        Those that deliveries can be about.
    queue : Queue
        Where what they announce is added.
    secrets : Secrets
        By which they are checked.
    notes : Notes
        Is told what was taken and what was refused, without bodies and headers.
    """

    policies: Sequence[Policy]
    queue: Queue
    secrets: Secrets
    notes: Notes

    def take(self, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, dict[str, Any]]:
        """Check one delivery and queue what it announces; returns status and answer.

        Parameters
        ----------
        path : str
            ``/wandb`` or ``/mlflow``.
        headers : mapping of str to str
            Of the request.
        body : bytes
            All of it.
        """
        try:
            delivery, memory = self._verified(path, headers, body)
            reference = _reference(path, body)
            units = [] if reference is None else self._units(reference)
            added = self.queue.add(units, "receive", delivery=delivery, window=memory)
        except SignatureError as error:
            return self.refused(path, 401, error.message, len(body))
        except ReplayError as error:
            return self.refused(path, 409, error.message, len(body))
        except _RefusedError as error:
            return self.refused(path, error.status, error.message, len(body))
        except TrackpermError as error:  # the queue cannot be written to: the sender tries again
            return self.refused(path, 503, error.message, len(body))
        if reference is None or not units:
            why = "it announces no run" if reference is None else "no policy is about it"
            self.notes("delivery-ignored", path=path, candidate=_text(reference), reason=why)
            return 200, {"status": "ignored", "reason": why}
        self.notes(
            "delivery",
            path=path,
            delivery=delivery[:20],
            candidate=str(reference),
            policies=[unit.policy for unit in units],
            queued=len(added),
        )
        return 202, {"status": "queued", "candidate": str(reference), "queued": len(added)}

    def refused(
        self, path: str, status: int, reason: str, n_bytes: int | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Note a refusal, and return its status and answer; what is said depends on no secret."""
        known = path if path in ("/wandb", "/mlflow") else "another"
        self.notes("delivery-refused", path=known, status=status, reason=reason, bytes=n_bytes)
        return status, {"status": "refused", "reason": reason}

    def _verified(self, path: str, headers: Mapping[str, str], body: bytes) -> tuple[str, float]:
        """Identify a delivery whose signature is right, and say for how long it is remembered."""
        if path == "/wandb" and self.secrets.wandb is not None:
            return verify_wandb(headers, body, self.secrets.wandb), _WANDB_MEMORY
        if path == "/mlflow" and self.secrets.mlflow is not None:
            delivery = verify_mlflow(headers, body, self.secrets.mlflow, time.time())
            return delivery, 3 * REPLAY_SECONDS
        raise _RefusedError(404, "nothing is received here")

    def _units(self, reference: RunReference) -> list[Unit]:
        """One unit for each policy that can be about the run; whether it is, the worker finds out."""
        container = reference.locator.rpartition("/")[0]
        places = (container, container.rpartition("/")[2])
        return [
            Unit(policy.digest, str(reference), policy.name)
            for policy in self.policies
            if any(
                place.scheme == reference.scheme and (place.scheme == "mlflow" or place.locator in places)
                for place in policy.runs
            )
        ]


class ReceiverServer(ThreadingHTTPServer):
    """Answers at an address for a receiver.

    Parameters
    ----------
    receiver : Receiver
        Decides.
    host : str
        Address to listen at.
    port : int
        0 takes any that is free.

    Raises
    ------
    InputError
        If it cannot be listened on.
    """

    daemon_threads = True
    request_queue_size = _BACKLOG

    def __init__(self, receiver: Receiver, host: str = "127.0.0.1", port: int = 0) -> None:
        self.receiver = receiver
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise InputError(
                f"`{host}:{port}` cannot be listened on: {getattr(error, 'strerror', None) or error}",
                hint="`--port` names another port; 0 takes any that is free.",
            ) from error

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Note that a sender went away, without a traceback."""
        self.receiver.notes("delivery-broken-off")


class _Handler(BaseHTTPRequestHandler):
    """One request, on a connection of its own."""

    server: ReceiverServer
    timeout = _READ_SECONDS
    server_version = "trackperm"
    sys_version = ""

    def do_POST(self) -> None:
        path = self.path.partition("?")[0]
        receiver = self.server.receiver
        try:
            body = self._body()
        except _RefusedError as error:
            self._answer(*receiver.refused(path, error.status, error.message))
            return
        self._answer(*receiver.take(path, self.headers, body))  # type: ignore[arg-type]

    def do_GET(self) -> None:
        is_known = self.path.partition("?")[0] in ("/health", "/healthz")
        self._answer(200 if is_known else 404, {"status": "ok" if is_known else "not found"})

    def _body(self) -> bytes:
        """Read a body whose length is stated, within the limits of size and time.

        Raises
        ------
        _RefusedError
            If it is beyond one.
        """
        stated = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers or not stated:
            raise _RefusedError(411, "the length of the body is not stated")
        if len(stated) != 1 or not (stated[0].isascii() and stated[0].isdecimal()):
            raise _RefusedError(400, "the stated length of the body is no number")
        if len(stated[0]) > 9 or int(stated[0]) > MOST_BYTES:
            raise _RefusedError(413, f"the body is longer than {MOST_BYTES} bytes")
        wanted, parts, deadline = int(stated[0]), [], time.monotonic() + _READ_SECONDS
        while wanted:
            left = deadline - time.monotonic()
            self.connection.settimeout(max(left, 0.01))
            try:
                part = self.rfile.read1(wanted) if left > 0 else b""
            except TimeoutError:
                part = b""
            if not part:
                raise _RefusedError(408, "the body did not come in time")
            parts.append(part)
            wanted -= len(part)
        self.connection.settimeout(_READ_SECONDS)
        return b"".join(parts)

    def _answer(self, status: int, document: Mapping[str, Any]) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: the receiver notes what matters, and addresses may hold secrets."""


def _reference(path: str, body: bytes) -> RunReference | None:
    """Return the run or artifact that a body announces, or None if it is about something else.

    Raises
    ------
    _RefusedError
        If it is not what these senders write.
    """
    try:
        document = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise _RefusedError(400, "the body is not valid JSON") from None
    if not isinstance(document, dict):
        raise _RefusedError(400, "the body is no JSON object")
    return _of_wandb(document) if path == "/wandb" else _of_mlflow(document)


def _of_wandb(document: Mapping[str, Any]) -> RunReference:
    """``{"artifact": "ENTITY/PROJECT/NAME:VERSION"}`` or ``{"run": "ENTITY/PROJECT/ID"}``."""
    given = [(name, document[name]) for name in ("artifact", "run") if document.get(name) not in (None, "")]
    if len(given) != 1:
        raise _RefusedError(400, "the body names not one `artifact` or `run`")
    name, text = given[0]
    pattern = _WANDB_ARTIFACT if name == "artifact" else _WANDB_RUN
    if not isinstance(text, str) or not pattern.fullmatch(text):
        form = "ENTITY/PROJECT/NAME:VERSION" if name == "artifact" else "ENTITY/PROJECT/RUN_ID"
        raise _RefusedError(400, f"`{name}` is not of the form {form}")
    return RunReference("wandb", text)


def _of_mlflow(document: Mapping[str, Any]) -> RunReference | None:
    """Of ``model_version.created``, the run that made the version; other events tell of no run."""
    if (document.get("entity"), document.get("action")) != ("model_version", "created"):
        return None
    data = document.get("data")
    if not isinstance(data, dict):
        raise _RefusedError(400, "`data` is no object")
    run_id = data.get("run_id")
    if run_id in (None, ""):
        return None
    if not isinstance(run_id, str) or not _MLFLOW_RUN.fullmatch(run_id):
        raise _RefusedError(400, "`data.run_id` is no id of a run")
    return RunReference("mlflow", run_id)


def _text(reference: RunReference | None) -> str | None:
    return None if reference is None else str(reference)
