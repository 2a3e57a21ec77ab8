"""Hook in MLflow's server that queues each run when it finishes; a worker of the queue compares it.

``TRACKPERM_POLICY=FILE`` switches it on. MLflow's answer says which run has finished, in which experiment.
The answer is passed on unchanged, at most a quarter of a second later: if the queue is locked for longer, or
cannot be written, the rows wait in memory for another attempt. If the server is killed before that, a watcher
that lists the experiment still finds the run.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flask import Flask, Response, request

from trackperm.automation.policy.load import load_policies
from trackperm.automation.policy.policy import Policy
from trackperm.automation.queue.database import default_folder
from trackperm.automation.queue.queue import Queue, Task
from trackperm.errors import TrackpermError
from trackperm.trackers.publication import KIND_TAG

SWITCH = "TRACKPERM_POLICY"

_ROUTE = "/mlflow/runs/update"
_RENAMED_SECONDS = 60.0
"""Clients that rename a run repeat its status; a run that ended longer ago than this was queued then."""

_WAIT_SECONDS = 0.25
_BUSY_SECONDS = 5.0
_AGAIN_SECONDS = 10.0
_MOST_KEPT = 10_000
_LOGGER = logging.getLogger(__name__)


def install(app: Flask) -> bool:
    """Queue runs of `app`, MLflow's application, when they finish; return whether the switch is set.

    Raise SpecError if the policy file is not valid, and InputError if the queue cannot be written.
    """
    path = os.environ.get(SWITCH)
    if not path:
        return False
    policies = [
        policy
        for policy in load_policies(path).policies
        if any(place.scheme == "mlflow" for place in policy.runs)
    ]
    writer = _Writer(Queue(default_folder(Path(path)), busy=_BUSY_SECONDS))

    def queue_finished(response: Response) -> Response:
        if request.method == "POST" and request.path.endswith(_ROUTE) and response.status_code == 200:
            try:
                if tasks := _tasks(policies, response):
                    writer.add(tasks)
            except Exception as error:  # MLflow's answer does not depend on it
                _LOGGER.warning("trackperm: a finished run was not queued: %s", type(error).__name__)
        return response

    app.after_request(queue_finished)
    return True


def _finished(response: Response) -> tuple[str, str] | None:
    """Return run and experiment of an update that finishes a run; None if it fails or only renames it."""
    answered, asked = response.get_json(silent=True), request.get_data(as_text=True)
    info = answered.get("run_info") if isinstance(answered, dict) else None
    if not isinstance(info, dict) or info.get("status") != "FINISHED" or '"status' not in asked:
        return None
    ended = int(info.get("end_time") or 0) / 1000  # clients that rename a run repeat its status
    if '"run_name' in asked and 0 < ended < time.time() - _RENAMED_SECONDS:
        return None
    return str(info.get("run_id")), str(info.get("experiment_id"))


def _tasks(policies: Sequence[Policy], response: Response) -> list[Task]:
    """Return one task per policy of the run's experiment; the worker checks what `only` selects."""
    finished = _finished(response)
    if finished is None:
        return []
    from mlflow.server.handlers import _get_tracking_store

    run_id, experiment_id = finished
    store: Any = _get_tracking_store()
    experiment = store.get_experiment(experiment_id).name
    chosen = [
        policy
        for policy in policies
        if any((place.scheme, place.locator) == ("mlflow", experiment) for place in policy.runs)
    ]
    if not chosen or KIND_TAG in store.get_run(run_id).data.tags:  # trackperm logged the run itself
        return []
    return [Task(policy.queue_key, f"mlflow:{run_id}", policy.name) for policy in chosen]


class _Writer:
    """Writes rows to a queue from a thread of its own, so that no answer waits for a locked file."""

    def __init__(self, rows: Queue) -> None:
        self._queue = rows
        self._inbox: queue.Queue[tuple[Sequence[Task], threading.Event]] = queue.Queue(_MOST_KEPT)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, tasks: Sequence[Task]) -> None:
        """Write `tasks`, and wait a quarter of a second at most until they are on disk.

        Raise queue.Full if 10,000 updates wait for a queue that cannot be written.
        """
        written = threading.Event()
        self._inbox.put_nowait((tasks, written))
        with self._lock:
            # a process that was forked does not have the thread
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="trackperm-finished", daemon=True)
                self._thread.start()
        written.wait(_WAIT_SECONDS)

    def _run(self) -> None:
        while True:
            tasks, written = self._inbox.get()
            failures = 0
            while not self._write(tasks, failures):
                failures += 1
                time.sleep(_AGAIN_SECONDS)
            written.set()

    def _write(self, tasks: Sequence[Task], failures: int) -> bool:
        """Whether the tasks are on disk now; log the first failure, and then every hundredth."""
        try:
            self._queue.add(tasks, "app")
        except TrackpermError as error:
            if failures % 100 == 0:
                _LOGGER.warning("trackperm: finished runs wait to be queued: %s", error.message)
            return False
        return True
