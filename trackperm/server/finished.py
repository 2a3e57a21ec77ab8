"""A hook in MLflow's server: a run that finishes is queued, and compared by whoever works off the queue.

``TRACKPERM_POLICY=FILE`` switches it on. The request is answered as ever: one row is written to a file, and
no run is read. Killed between MLflow's own change and that row, nothing is lost where a watcher lists the
experiment.
"""

from __future__ import annotations

import logging
import os

from flask import Flask, Response, request

from trackperm.errors import TrackpermError
from trackperm.hooks.policy import Policy, load_policies
from trackperm.hooks.queue import Queue, Unit
from trackperm.hooks.queue_file import default_folder

SWITCH = "TRACKPERM_POLICY"

_ROUTE = "/mlflow/runs/update"
_FINISHED = ("FINISHED", 3)  # by name or by number, as protocol buffers in JSON may be
_BUSY_SECONDS = 2.0
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
    queue = Queue(default_folder(), busy=_BUSY_SECONDS)

    def queue_finished(response: Response) -> Response:
        if response.status_code == 200 and request.method == "POST" and request.path.endswith(_ROUTE):
            try:
                _queue(policies, queue)
            except Exception as error:  # MLflow's answer does not depend on it
                said = error.message if isinstance(error, TrackpermError) else type(error).__name__
                _LOGGER.warning("a finished run was not queued: %s", said)
        return response

    app.after_request(queue_finished)
    return True


def _queue(policies: list[Policy], queue: Queue) -> None:
    asked = request.get_json(force=True, silent=True)
    if not isinstance(asked, dict) or asked.get("status") not in _FINISHED:
        return
    run_id = asked.get("run_id") or asked.get("run_uuid")
    if isinstance(run_id, str):
        queue.add([Unit(policy.digest, f"mlflow:{run_id}", policy.name) for policy in policies], "app")
