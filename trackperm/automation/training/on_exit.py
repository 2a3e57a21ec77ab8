"""Comparison at the end of a training script (``compare_on_exit``), within a time budget.

At the end of the block the run is queued, and the row is on disk before anything else happens. Another
process then has the rest of the budget to compare the run. If the script is killed before the row is on disk,
a watcher that lists the experiment still finds the run; if it is killed later, or time runs out, the row
waits for a worker. Failures are warnings of the logger ``trackperm``, and never exceptions.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Sequence
from numbers import Real
from pathlib import Path
from types import TracebackType
from typing import Any

from trackperm.automation.decision_log import scrubbed
from trackperm.automation.policy.load import PolicyFile, load_policies
from trackperm.automation.policy.policy import Policy
from trackperm.automation.queue.database import default_folder
from trackperm.automation.queue.queue import Queue, Task
from trackperm.automation.training.subprocess_worker import WorkRequest, run_in_subprocess
from trackperm.errors import InputError, TrackpermError
from trackperm.trackers.open_runs import OpenRun, RunsOfBlock, open_run

BUDGET_SECONDS = 20.0
"""Time in which a usual comparison is done, and which few users notice at the end of a training."""

_MOST_SECONDS = 86400.0
_LEAST_SECONDS = 1.0
"""Time below which no process is started: importing the libraries takes about as long."""

_RESERVE_SECONDS = 0.5
"""Time to end the other process, and to release its row."""

_LOGGER = logging.getLogger("trackperm")


class CompareOnExit:
    """Context manager that :func:`compare_on_exit` returns.

    Attributes
    ----------
    run : object
        Run to compare instead of those of the block: what ``mlflow.start_run`` or ``wandb.init`` returned, or
        ``mlflow:RUN_ID``.
    """

    def __init__(
        self,
        policy: str | Path | PolicyFile | Policy,
        *,
        name: str | None,
        run: object,
        budget_seconds: float,
        state: str | Path | None,
    ) -> None:
        self.run = run
        self._policy = policy
        self._name = name
        self._budget = budget_of(budget_seconds)
        self._state = state
        self._policies: tuple[Policy, ...] = ()
        self._runs = RunsOfBlock()

    def __enter__(self) -> CompareOnExit:
        try:
            self._policies = _policies(self._policy, self._name)
            self._runs.open()
        except Exception as error:
            warn("nothing will be compared when this run ends", error)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runs.close()
        if kind is not None or not self._policies:
            return
        try:
            self._finish(time.monotonic() + min(self._budget, _MOST_SECONDS))
        except Exception as failure:
            warn("the run was not compared", failure)

    def _finish(self, deadline: float) -> None:
        runs = [open_run(self.run)] if self.run is not None else self._runs.runs()
        if not runs:
            raise InputError(
                "no run of MLflow or W&B was open in this block",
                hint="`with compare_on_exit(...) as hook:` and `hook.run = run` names it, such as a run of"
                " another thread.",
            )
        for offline in (run for run in runs if run.is_offline):
            _LOGGER.warning(
                "not compared: %s is offline. After `wandb sync`, `trackperm watch` finds it.",
                offline.reference,
            )
        online = [run for run in runs if not run.is_offline]
        tasks = [task for run in online for task in _tasks(self._policies, run)]
        if not tasks:
            if online:
                _LOGGER.warning(
                    "not compared: no policy selects %s", ", ".join(str(r.reference) for r in online)
                )
            return
        state, default = self._state, default_folder(self._policies[0].file)
        folder = default if state is None else Path(state).expanduser()
        queue = Queue(folder, busy=max(0.5, min(5.0, self._budget / 4)))
        queue.add(tasks, "on-exit")
        candidates = [str(run.reference) for run in online]
        left = deadline - time.monotonic() - _RESERVE_SECONDS
        why = "its time was over"
        if left >= _LEAST_SECONDS:
            why = self._attempt(queue, candidates, online, left) or why
        _report(queue, tasks, why)

    def _attempt(
        self, queue: Queue, candidates: Sequence[str], runs: Sequence[OpenRun], seconds: float
    ) -> str | None:
        """Compare in another process, and release its rows; return why it failed, or None if time ran out."""
        owner = f"on-exit:{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        environment = {name: value for run in runs for name, value in run.environment.items()}
        try:
            written = run_in_subprocess(
                WorkRequest(self._policies, candidates, queue.folder, owner), environment, seconds
            )
        except OSError as error:
            return f"its worker process could not be started ({error.strerror or error})"
        finally:
            queue.release_of(owner)
        return None if written is None else "its worker process ended early"


def compare_on_exit(
    policy: str | Path | PolicyFile | Policy = "trackperm.yaml",
    *,
    name: str | None = None,
    run: object = None,
    budget_seconds: float = BUDGET_SECONDS,
    state: str | Path | None = None,
) -> CompareOnExit:
    """Compare the runs of a block by a policy when the block ends.

    The block is around ``with mlflow.start_run():`` or ``with wandb.init():``, or inside. The runs that the
    block starts or resumes in its thread are compared, also if they have ended by then. If it starts none,
    the run around it is compared; MLflow and W&B are treated separately. An exception in the block passes
    through, and nothing is compared. The end of the block raises nothing and takes at most `budget_seconds`:
    what is not compared in time waits in the queue for ``trackperm watch``.

    To compare two runs at once, use :func:`trackperm.compare`. To block a pipeline on the outcome, use
    :func:`trackperm.gate`.

    Parameters
    ----------
    policy : str, Path, PolicyFile or Policy
        Path of a policy file, or what was read from one.
    name : str, optional
        Name of the policy; by default every policy of the file that selects the run.
    run : object, optional
        Run to compare instead of those of the block: what ``mlflow.start_run`` or ``wandb.init`` returned, or
        ``mlflow:RUN_ID``.
    budget_seconds : float
        Longest time that the end of the block takes; 0 only queues.
    state : str or Path, optional
        Folder of the queue; by default ``TRACKPERM_STATE``, else a folder per policy file in
        ``~/.local/state/trackperm``.

    Returns
    -------
    CompareOnExit
        A context manager.

    Examples
    --------
    A training script has its usual code in the block::

        with trackperm.compare_on_exit("trackperm.yaml"), mlflow.start_run():
            model = train()
            trackperm.log_predictions(...)

    An invalid policy leads to a warning, and does not stop the training:

    >>> with trackperm.compare_on_exit("missing.yaml"):
    ...     print("training")
    training
    """
    return CompareOnExit(policy, name=name, run=run, budget_seconds=budget_seconds, state=state)


def budget_of(given: object) -> float:
    """Return the seconds of a budget; for an invalid value, warn and return the default."""
    if isinstance(given, Real) and float(given) >= 0.0:
        return min(float(given), threading.TIMEOUT_MAX)
    _LOGGER.warning(
        "`budget_seconds` is %r; expected a number of at least 0, and %g is used", given, BUDGET_SECONDS
    )
    return BUDGET_SECONDS


def _policies(policy: str | Path | PolicyFile | Policy, name: str | None) -> tuple[Policy, ...]:
    if isinstance(policy, Policy):
        return (policy,)
    file = policy if isinstance(policy, PolicyFile) else load_policies(policy)
    return file.policies if name is None else (file.find(name),)


def _tasks(policies: Sequence[Policy], run: OpenRun) -> list[Task]:
    """Return one task per policy that may select the run; the worker checks whether it does.

    The new stamp re-opens a task that was refused at the end of an earlier block, perhaps because the
    predictions were not logged yet.
    """
    scheme, stamp = run.reference.scheme, f"on-exit:{uuid.uuid4().hex}"
    return [
        Task(policy.queue_key, str(run.reference), policy.name, stamp)
        for policy in policies
        if not policy.runs or any(place.scheme == scheme for place in policy.runs)
    ]


def _report(queue: Queue, tasks: Sequence[Task], otherwise: str) -> None:
    """Log the results of the tasks; `otherwise` is the reason for a waiting task without one in the queue."""
    keys = {(task.queue_key, task.candidate) for task in tasks}
    found = {key: each for each in queue.entries() if (key := (each.queue_key, each.candidate)) in keys}
    for task in tasks:
        entry = found.get((task.queue_key, task.candidate))
        what = f"{task.candidate} under policy `{task.policy}`"
        if entry is None:
            _LOGGER.info("not compared: the policy does not select it, or it has failed: %s", what)
        elif entry.state == "done" and not entry.comparisons:
            _LOGGER.info("passed: %s: %s", what, entry.outcome)
        elif entry.state == "done":
            level = logging.WARNING if entry.outcome == "fail" else logging.INFO
            _LOGGER.log(level, "compared: %s: %s (%s)", what, entry.outcome, ", ".join(entry.comparisons))
        elif entry.state == "refused":
            _LOGGER.warning("not compared: %s: %s", what, entry.reason)
        else:
            why = "another worker has it" if entry.state == "claimed" else entry.reason or otherwise
            _LOGGER.warning(
                "not compared yet: %s: %s. It is queued in %s, and `trackperm watch` compares it.",
                what,
                why,
                queue.folder,
            )


def warn(what: str, error: Exception) -> None:
    """Log a failure as a warning, without secrets."""
    said: Any = error if isinstance(error, TrackpermError) else f"{type(error).__name__}: {error}"
    _LOGGER.warning("%s: %s", what, scrubbed(str(said)))
