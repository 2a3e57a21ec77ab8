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
_TURN_SECONDS = 15.0
_WANDB_MEMORY = 30 * 86400.0  # W&B's signatures carry no time, so that its bodies are remembered for long
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
_WANDB_RUN = re.compile(rf"{_NAME}/{_NAME}/{_NAME}")
_WANDB_ARTIFACT = re.compile(rf"{_NAME}/{_NAME}/{_NAME}:[A-Za-z0-9][A-Za-z0-9._-]{{0,63}}")
_MLFLOW_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


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
            If neither is set, or one can be guessed, has white space around it or is not UTF-8 text.
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
            if secret is not None and secret != secret.strip():
                raise InputError(
                    f"`{name}` begins or ends with white space, which senders mostly leave out",
                    hint="files and secret stores often end with a line break: take it away.",
                )
            if secret is not None and not _is_utf8(secret):
                raise InputError(f"`{name}` is not UTF-8 text, as which senders sign with it", hint=make)
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
    log : DecisionLog
        Is told what was taken and what was refused, without bodies and headers.
    """

    policies: Sequence[Policy]
    queue: Queue
    secrets: Secrets
    log: DecisionLog
    _turn: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def take(
        self, path: str, headers: Message | Mapping[str, str], body: bytes
    ) -> tuple[int, dict[str, Any]]:
        """Check one delivery and queue what it announces; returns status and answer.

        Parameters
        ----------
        path : str
            ``/wandb`` or ``/mlflow``.
        headers : Message or mapping of str to str
            Of the request.
        body : bytes
            All of it.
        """
        try:
            delivery, memory = self._verified(path, headers, body)
            reference = _reference(path, body)
            tasks = [] if reference is None else self._tasks(reference)
            # what is ignored may be sent again, to policies that were mended for it
            added = self._added(tasks, delivery, memory) if tasks else []
        except SignatureError as error:
            return self.refused(path, 401, error.message, len(body))
        except ReplayError as error:
            return self.refused(path, 409, error.message, len(body))
        except RefusedRequestError as error:
            return self.refused(path, error.status, error.message, len(body))
        except TrackpermError as error:  # the queue cannot be written to: the sender tries again
            return self.refused(path, 503, error.message, len(body))
        if reference is None or not tasks:
            why = _why_no_run(body) if reference is None else "no policy is about it"
            self.log("delivery-ignored", path=path, candidate=_text(reference), reason=why)
            return 200, {"status": "ignored", "reason": why}
        self.log(
            "delivery",
            path=path,
            delivery=delivery[:20],
            candidate=str(reference),
            policies=[task.policy for task in tasks],
            queued=len(added),
        )
        return 202, {"status": "queued", "candidate": str(reference), "queued": len(added)}

    def refused(
        self, path: str, status: int, reason: str, n_bytes: int | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Note a refusal, and return its status and answer; what is said depends on no secret."""
        known = path if path in ("/wandb", "/mlflow") else "another"
        self.log("delivery-refused", path=known, status=status, reason=reason, bytes=n_bytes)
        return status, {"status": "refused", "reason": reason}

    def _added(self, tasks: list[Task], delivery: str, memory: float) -> list[Task]:
        """Add tasks, one delivery after the other: SQLite makes many writers wait much longer than few."""
        if not self._turn.acquire(timeout=_TURN_SECONDS):
            raise RefusedRequestError(503, "the queue is busy")
        try:
            return self.queue.add(tasks, "receive", delivery=delivery, window=memory)
        finally:
            self._turn.release()

    def _verified(self, path: str, headers: Message | Mapping[str, str], body: bytes) -> tuple[str, float]:
        """Identify a delivery whose signature is right, and say for how long it is remembered."""
        if path == "/wandb" and self.secrets.wandb is not None:
            return verify_wandb(headers, body, self.secrets.wandb), _WANDB_MEMORY
        if path == "/mlflow" and self.secrets.mlflow is not None:
            delivery = verify_mlflow(headers, body, self.secrets.mlflow, time.time())
            return delivery, 3 * REPLAY_SECONDS
        raise RefusedRequestError(404, "nothing is received here")

    def _tasks(self, reference: RunReference) -> list[Task]:
        """One task for each policy that can be about the run; whether it is, the worker finds out."""
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
    """Return the run or artifact that a body announces, or None if it is about something else.

    Raises
    ------
    RefusedRequestError
        If it is not what these senders write.
    """
    try:
        document = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise RefusedRequestError(400, "the body is not valid JSON") from None
    if not isinstance(document, dict):
        raise RefusedRequestError(400, "the body is no JSON object")
    return _of_wandb(document) if path == "/wandb" else _of_mlflow(document)


def _of_wandb(document: Mapping[str, Any]) -> RunReference:
    """``{"artifact": "ENTITY/PROJECT/NAME:VERSION"}`` or ``{"run": "ENTITY/PROJECT/ID"}``."""
    given = [(name, document[name]) for name in ("artifact", "run") if document.get(name) not in (None, "")]
    if len(given) != 1:
        raise RefusedRequestError(400, "the body names not one `artifact` or `run`")
    name, text = given[0]
    pattern = _WANDB_ARTIFACT if name == "artifact" else _WANDB_RUN
    if not isinstance(text, str) or not pattern.fullmatch(text):
        form = "ENTITY/PROJECT/NAME:VERSION" if name == "artifact" else "ENTITY/PROJECT/RUN_ID"
        raise RefusedRequestError(400, f"`{name}` is not of the form {form}")
    return RunReference("wandb", text)


def _of_mlflow(document: Mapping[str, Any]) -> RunReference | None:
    """Of ``model_version.created``, the run that made the version; other events tell of no run."""
    if (document.get("entity"), document.get("action")) != ("model_version", "created"):
        return None
    data = document.get("data")
    if not isinstance(data, dict):
        raise RefusedRequestError(400, "`data` is no object")
    run_id = data.get("run_id")
    if run_id in (None, ""):
        return None
    if not isinstance(run_id, str) or not _MLFLOW_RUN.fullmatch(run_id):
        raise RefusedRequestError(400, "`data.run_id` is no id of a run")
    return RunReference("mlflow", run_id)


def _why_no_run(body: bytes) -> str:
    """Say why a body of MLflow, which was read before, announces no run."""
    document = json.loads(body.decode("utf-8"))
    if (document.get("entity"), document.get("action")) != ("model_version", "created"):
        return "it announces no run"
    return "the version of the model was not made by a run, so it has no predictions that could be compared"


def _text(reference: RunReference | None) -> str | None:
    return None if reference is None else str(reference)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
