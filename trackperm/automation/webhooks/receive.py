"""Webhook receiver: checks a delivery of W&B or MLflow, queues its run, and answers before it is compared.

The body is read up to a limit, and its signature is checked before its content. The names in it have to match
strict patterns. The queue rows are on disk, in one transaction with the id of the delivery, before the answer
202. If the receiver is killed before that, the sender gets no answer and sends the delivery again; if it is
killed after that, the rows wait for a worker. If the sender gives up, a watcher that lists the same
experiments still finds the run.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.message import Message
from typing import Any

from trackperm.automation.decision_log import DecisionLog
from trackperm.automation.policy.policy import Policy
from trackperm.automation.queue.queue import Queue, Task
from trackperm.automation.webhooks.signatures import REPLAY_SECONDS, verify_mlflow, verify_wandb
from trackperm.errors import InputError, RefusedRequestError, ReplayError, SignatureError, TrackpermError
from trackperm.trackers.references import RunReference

WANDB_SECRET, MLFLOW_SECRET = "TRACKPERM_WANDB_WEBHOOK_SECRET", "TRACKPERM_MLFLOW_WEBHOOK_SECRET"
MOST_BYTES = 64 * 1024

_SHORTEST_SECRET = 16
"""Number of characters: even 16 hexadecimal digits have 64 bits."""

_LOCK_SECONDS = 15.0
_WANDB_MEMORY = 30 * 86400.0
"""Seconds for which a delivery of W&B is remembered: its signature has no time, so that it never expires."""

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
_WANDB_RUN = re.compile(rf"{_NAME}/{_NAME}/{_NAME}")
_WANDB_ARTIFACT = re.compile(rf"{_NAME}/{_NAME}/{_NAME}:[A-Za-z0-9][A-Za-z0-9._-]{{0,63}}")
_MLFLOW_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Secrets:
    """Secrets that this receiver shares with senders.

    Attributes
    ----------
    wandb, mlflow : str or None
        Secret of each sender; None refuses its deliveries.
    """

    wandb: str | None = field(default=None, repr=False)
    mlflow: str | None = field(default=None, repr=False)

    @classmethod
    def of_environment(cls) -> Secrets:
        """Read ``TRACKPERM_WANDB_WEBHOOK_SECRET`` and ``TRACKPERM_MLFLOW_WEBHOOK_SECRET``.

        Raise InputError if neither is set, or one is short, is not UTF-8 text, or begins or ends with white
        space.
        """
        found = {name: os.environ.get(name) or None for name in (WANDB_SECRET, MLFLOW_SECRET)}
        make = "`python -c 'import secrets; print(secrets.token_urlsafe(32))'` makes one."
        if not any(found.values()):
            raise InputError(
                "no secret is set, so a forged delivery could not be recognised; expected"
                f" `{WANDB_SECRET}` or `{MLFLOW_SECRET}` in the environment",
                hint=make,
            )
        for name, secret in found.items():
            if secret is None:
                continue
            if len(secret) < _SHORTEST_SECRET:
                raise InputError(
                    f"`{name}` has {len(secret)} characters, which can be guessed; expected at least"
                    f" {_SHORTEST_SECRET}",
                    hint=make,
                )
            if secret != secret.strip():
                raise InputError(
                    f"`{name}` begins or ends with white space, which senders usually leave out",
                    hint="files and secret stores often end with a line break: remove it.",
                )
            if not _is_utf8(secret):
                raise InputError(
                    f"`{name}` is not UTF-8 text; senders sign with the bytes of UTF-8", hint=make
                )
        return cls(found[WANDB_SECRET], found[MLFLOW_SECRET])


@dataclass(frozen=True)
class Receiver:
    """Receiver of the deliveries for some policies.

    Attributes
    ----------
    policies : sequence of Policy
        Policies whose runs may be announced.
    queue : Queue
        Queue for the announced runs.
    secrets : Secrets
        Secrets of the senders.
    log : DecisionLog
        Receives what was accepted and what was refused, without bodies and headers.
    """

    policies: Sequence[Policy]
    queue: Queue
    secrets: Secrets
    log: DecisionLog
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def take(
        self, path: str, headers: Message | Mapping[str, str], body: bytes
    ) -> tuple[int, dict[str, Any]]:
        """Verify a delivery to ``/wandb`` or ``/mlflow`` and queue its run; return HTTP status and answer."""
        try:
            delivery, memory = self._verified(path, headers, body)
            reference = _reference(path, body)
            tasks = [] if reference is None else self._tasks(reference)
            # an ignored delivery may be sent again, once the policies have been corrected
            added = self._added(tasks, delivery, memory) if tasks else []
        except SignatureError as error:
            return self.refused(path, 401, error.message, len(body))
        except ReplayError as error:
            return self.refused(path, 409, error.message, len(body))
        except RefusedRequestError as error:
            return self.refused(path, error.status, error.message, len(body))
        except TrackpermError as error:  # the queue cannot be written; the sender tries again
            return self.refused(path, 503, error.message, len(body))
        candidate = None if reference is None else str(reference)
        if not tasks:
            why = _why_no_run(body) if reference is None else "no policy covers it"
            self.log("delivery-ignored", path=path, candidate=candidate, reason=why)
            return 200, {"status": "ignored", "reason": why}
        policies = [task.policy for task in tasks]
        facts = {"candidate": candidate, "queued": len(added)}
        self.log("delivery", path=path, delivery=delivery[:20], policies=policies, **facts)
        return 202, {"status": "queued", **facts}

    def refused(
        self, path: str, status: int, reason: str, n_bytes: int | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Log a refusal, and return status and answer, which depend on no secret."""
        known = path if path in ("/wandb", "/mlflow") else "another"
        self.log("delivery-refused", path=known, status=status, reason=reason, bytes=n_bytes)
        return status, {"status": "refused", "reason": reason}

    def _added(self, tasks: list[Task], delivery: str, memory: float) -> list[Task]:
        """Add tasks, one delivery at a time: many writers wait much longer for SQLite than few."""
        if not self._lock.acquire(timeout=_LOCK_SECONDS):
            raise RefusedRequestError(503, "the queue is busy")
        try:
            return self.queue.add(tasks, "receive", delivery=delivery, window=memory)
        finally:
            self._lock.release()

    def _verified(self, path: str, headers: Message | Mapping[str, str], body: bytes) -> tuple[str, float]:
        """Return the id of a delivery with a valid signature, and for how many seconds to remember it."""
        if path == "/wandb" and self.secrets.wandb is not None:
            return verify_wandb(headers, body, self.secrets.wandb), _WANDB_MEMORY
        if path == "/mlflow" and self.secrets.mlflow is not None:
            delivery = verify_mlflow(headers, body, self.secrets.mlflow, time.time())
            return delivery, 3 * REPLAY_SECONDS
        raise RefusedRequestError(404, "nothing is received at this address")

    def _tasks(self, reference: RunReference) -> list[Task]:
        """Return one task per policy that may be about the run; the worker checks whether it is."""
        container = reference.locator.rpartition("/")[0]
        places = (container, container.rpartition("/")[2])
        return [
            Task(policy.queue_key, str(reference), policy.name)
            for policy in self.policies
            if any(
                place.scheme == reference.scheme and (place.scheme == "mlflow" or place.locator in places)
                for place in policy.runs
            )
        ]


def _reference(path: str, body: bytes) -> RunReference | None:
    """Return the run or artifact that a body announces, or None if it announces something else."""
    try:
        document = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise RefusedRequestError(400, "the body is not valid JSON") from None
    if not isinstance(document, dict):
        raise RefusedRequestError(400, "the body is not a JSON object")
    return _of_wandb(document) if path == "/wandb" else _of_mlflow(document)


def _of_wandb(document: Mapping[str, Any]) -> RunReference:
    """Parse ``{"artifact": "ENTITY/PROJECT/NAME:VERSION"}`` or ``{"run": "ENTITY/PROJECT/ID"}``."""
    given = [(name, document[name]) for name in ("artifact", "run") if document.get(name) not in (None, "")]
    if len(given) != 1:
        raise RefusedRequestError(400, "the body does not have exactly one of `artifact` and `run`")
    name, text = given[0]
    pattern = _WANDB_ARTIFACT if name == "artifact" else _WANDB_RUN
    if not isinstance(text, str) or not pattern.fullmatch(text):
        form = "ENTITY/PROJECT/NAME:VERSION" if name == "artifact" else "ENTITY/PROJECT/RUN_ID"
        raise RefusedRequestError(400, f"`{name}` does not have the form {form}")
    return RunReference("wandb", text)


def _of_mlflow(document: Mapping[str, Any]) -> RunReference | None:
    """Return the run behind the model version of a ``model_version.created`` event; None for other events."""
    if not _is_new_version(document):
        return None
    data = document.get("data")
    if not isinstance(data, dict):
        raise RefusedRequestError(400, "`data` is not an object")
    run_id = data.get("run_id")
    if run_id in (None, ""):
        return None
    if not isinstance(run_id, str) or not _MLFLOW_RUN.fullmatch(run_id):
        raise RefusedRequestError(400, "`data.run_id` is not the id of a run")
    return RunReference("mlflow", run_id)


def _is_new_version(document: Mapping[str, Any]) -> bool:
    return (document.get("entity"), document.get("action")) == ("model_version", "created")


def _why_no_run(body: bytes) -> str:
    """Return why a valid body of MLflow announces no run."""
    if not _is_new_version(json.loads(body.decode("utf-8"))):
        return "it announces no run"
    return "no run made this version of the model, so it has no predictions to compare"


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
