"""A hook in MLflow's server: a run that finishes is queued, and compared by whoever works off the queue.

``TRACKPERM_POLICY=FILE`` switches it on. MLflow's own answer says which run has finished and in which
experiment; the answer stays as it is, and waits for the row at most a quarter of a second: where the queue is
locked for longer, or cannot be written to, the rows are kept in memory and tried again. Killed before that,
nothing is lost where a watcher lists the experiment.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flask import Flask, Response, request

from trackperm.automation.policy.policy import Policy, load_policies
from trackperm.automation.queue.database import default_folder
from trackperm.automation.queue.queue import Queue, Task
from trackperm.errors import TrackpermError
from trackperm.trackers.publication import KIND_TAG

SWITCH = "TRACKPERM_POLICY"

_ROUTE = "/mlflow/runs/update"
_RENAMED_SECONDS = 60.0
_WAIT_SECONDS = 0.25
_BUSY_SECONDS = 5.0
_AGAIN_SECONDS = 10.0
_MOST_KEPT = 10_000
_LOGGER = logging.getLogger(__name__)


def install(app: Flask) -> bool:
    """Let runs be queued when they finish.

    Parameters
    ----------
    app : flask.Flask
        MLflow's application.

    Returns
    -------
    bool
        Whether the switch is on.

    Raises
    ------
    SpecError
        If the policy file is not valid.
    InputError
        If no queue can be kept.
    """
    path = os.environ.get(SWITCH)
    if not path:
        return False
    policies = [
        policy
        for policy in load_policies(path).policies
        if any(place.scheme == "mlflow" for place in policy.runs)
    ]
    rows = _Rows(Queue(default_folder(Path(path)), busy=_BUSY_SECONDS))

    def queue_finished(response: Response) -> Response:
        if request.method == "POST" and request.path.endswith(_ROUTE) and response.status_code == 200:
            try:
                if tasks := _tasks(policies, response):
                    rows.add(tasks)
            except Exception as error:  # MLflow's answer does not depend on it
                _LOGGER.warning("trackperm: a finished run was not queued: %s", type(error).__name__)
        return response

    app.after_request(queue_finished)
    return True


@dataclass(frozen=True)
class _Finished:
    """What MLflow says of a run that finished."""

    run_id: str
    experiment_id: str

    @classmethod
    def of(cls, response: Response) -> _Finished | None:
        """Read it off MLflow's answer; None where the run goes on, has failed, or only got another name."""
        answered, asked = response.get_json(silent=True), request.get_data(as_text=True)
        info = answered.get("run_info") if isinstance(answered, dict) else None
        if not isinstance(info, dict) or info.get("status") != "FINISHED" or '"status' not in asked:
            return None
        ended = int(info.get("end_time") or 0) / 1000  # clients that rename a run repeat its status
        if '"run_name' in asked and 0 < ended < time.time() - _RENAMED_SECONDS:
            return None
        return cls(str(info.get("run_id")), str(info.get("experiment_id")))


def _tasks(policies: Sequence[Policy], response: Response) -> list[Task]:
    """One task for each policy that is about the run; whether `only` selects it, the worker finds out."""
    finished = _Finished.of(response)
    if finished is None:
        return []
    from mlflow.server.handlers import _get_tracking_store

    store: Any = _get_tracking_store()
    experiment = store.get_experiment(finished.experiment_id).name
    about = [
        policy
        for policy in policies
        if any((place.scheme, place.locator) == ("mlflow", experiment) for place in policy.runs)
    ]
    if not about or KIND_TAG in store.get_run(finished.run_id).data.tags:  # which trackperm itself logged
        return []
    return [Task(policy.queue_key, f"mlflow:{finished.run_id}", policy.name) for policy in about]


class _Rows:
    """Writes rows from a thread of its own, so that no answer waits for a file that is locked.

    Parameters
    ----------
    rows : Queue
        Where they are written.
    """

    def __init__(self, rows: Queue) -> None:
        self._queue = rows
        self._inbox: queue.Queue[tuple[Sequence[Task], threading.Event]] = queue.Queue(_MOST_KEPT)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, tasks: Sequence[Task]) -> None:
        """Write `tasks`, and wait for a moment until they are on disk.

        Raises
        ------
        queue.Full
            If too many are waiting for a queue that cannot be written to.
        """
        written = threading.Event()
        self._inbox.put_nowait((tasks, written))
        with self._lock:
            if (
                self._thread is None or not self._thread.is_alive()
            ):  # at first, and in a process that was forked
                self._thread = threading.Thread(target=self._write, name="trackperm-finished", daemon=True)
                self._thread.start()
        written.wait(_WAIT_SECONDS)

    def _write(self) -> None:
        while True:
            tasks, written = self._inbox.get()
            failures = 0
            while not self._written(tasks, failures):
                failures += 1
                time.sleep(_AGAIN_SECONDS)
            written.set()

    def _written(self, tasks: Sequence[Task], failures: int) -> bool:
        """Whether they are on disk; the first failure is logged, and then every hundredth."""
        try:
            self._queue.add(tasks, "app")
        except TrackpermError as error:
            if failures % 100 == 0:
                _LOGGER.warning("trackperm: finished runs wait to be queued: %s", error.message)
            return False
        return True
