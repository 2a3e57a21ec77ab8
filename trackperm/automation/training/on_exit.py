"""``compare_on_exit``: compare a run when the training script is done with it, at a bounded price.

At the end of the block the run is queued, which is on disk before anything else happens, and then another
process has what is left of the budget to compare it. Killed before the row is on disk, a watcher that lists
the experiment still finds the run; killed after, or not done in time, the row waits for a worker. Whatever
fails is logged as a warning of the logger ``trackperm``, and raised by nobody.
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
from trackperm.automation.policy.policy import Policy, PolicyFile, load_policies
from trackperm.automation.queue.database import default_folder
from trackperm.automation.queue.queue import Queue, Task
from trackperm.automation.training.subprocess_worker import WorkRequest, run_in_subprocess
from trackperm.errors import InputError, TrackpermError
from trackperm.trackers.open_runs import OpenRun, RunsOfBlock, open_run

BUDGET_SECONDS = 20.0

_MOST_SECONDS = 86400.0
_LEAST_SECONDS = 1.0  # in which no comparison is made
_RESERVE_SECONDS = 0.5  # to end the other process, and give its row back
_LOGGER = logging.getLogger("trackperm")


class CompareOnExit:
    """The context manager that :func:`compare_on_exit` returns.

    Attributes
    ----------
    run : object
        The run that is compared, where that is another one than those which the block begins: what
        ``mlflow.start_run`` or ``wandb.init`` returned, or ``mlflow:RUN_ID``.
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
            _warn("nothing will be compared when this run ends", error)
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
            _warn("the run was not compared", failure)

    def _finish(self, deadline: float) -> None:
        runs = [open_run(self.run)] if self.run is not None else self._runs.runs()
        if not runs:
            raise InputError(
                "no run of MLflow or W&B was seen to be open in this block",
                hint="`with compare_on_exit(...) as hook:` and `hook.run = run` names it, such as one that"
                " another thread has begun.",
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
                    "not compared: no policy is about %s", ", ".join(str(r.reference) for r in online)
                )
            return
        folder = self._folder()
        queue = Queue(folder, busy=max(0.5, min(5.0, self._budget / 4)))
        queue.add(tasks, "on-exit")
        candidates = [str(run.reference) for run in online]
        left = deadline - time.monotonic() - _RESERVE_SECONDS
        why = "there was no time"
        if left >= _LEAST_SECONDS:
            why = self._attempt(queue, candidates, online, left) or why
        _report(queue, tasks, why)

    def _folder(self) -> Path:
        """Return the folder of the queue, by default that of the policy file."""
        if self._state is not None:
            return Path(self._state).expanduser()
        return default_folder(self._policies[0].file)

    def _attempt(
        self, queue: Queue, candidates: Sequence[str], runs: Sequence[OpenRun], seconds: float
    ) -> str | None:
        """Let another process try, and take back what it leaves; returns why, if that is not for time."""
        owner = f"on-exit:{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        environment = {name: value for run in runs for name, value in run.environment.items()}
        try:
            written = run_in_subprocess(
                WorkRequest(self._policies, candidates, queue.folder, owner), environment, seconds
            )
        except OSError as error:
            return f"no process could be started for it ({error.strerror or error})"
        finally:
            queue.release_of(owner)
        return None if written is None else "the process for it ended early"


def compare_on_exit(
    policy: str | Path | PolicyFile | Policy = "trackperm.yaml",
    *,
    name: str | None = None,
    run: object = None,
    budget_seconds: float = BUDGET_SECONDS,
    state: str | Path | None = None,
) -> CompareOnExit:
    """Compare the runs of the block when the block ends, as a policy says.

    Stands around ``with mlflow.start_run():`` or ``with wandb.init():``, or inside them: it compares the runs
    that the block begins or resumes in its thread, also those that have ended by then, and the run around the
    block only if it begins none; of MLflow and W&B each by itself. An exception in the block passes through,
    and nothing is compared. Nothing is raised, and the end of the block takes
    `budget_seconds` at most: what does not fit waits in the queue for ``trackperm watch``.

    Parameters
    ----------
    policy : str, Path, PolicyFile or Policy
        What is compared, and with what: the path of a policy file, or what was read from one.
    name : str, optional
        Name of the policy; by default every policy of the file that is about a run.
    run : object, optional
        The run, as ``mlflow.start_run`` or ``wandb.init`` returned it, or ``mlflow:RUN_ID``, in place of
        those of the block.
    budget_seconds : float
        What the end of the block may take; 0 only queues.
    state : str or Path, optional
        Folder of the queue; by default ``TRACKPERM_STATE``, else one of the policy file's own in
        ``~/.local/state/trackperm``.

    Returns
    -------
    CompareOnExit
        A context manager.
    """
    return CompareOnExit(policy, name=name, run=run, budget_seconds=budget_seconds, state=state)


def budget_of(given: object) -> float:
    """Return the seconds of a budget; what is none costs a warning, and no record of what is wanted."""
    if isinstance(given, Real) and float(given) >= 0.0:
        return min(float(given), threading.TIMEOUT_MAX)
    _LOGGER.warning("`budget_seconds` is %r, no number from 0 on: it is taken as %g", given, BUDGET_SECONDS)
    return BUDGET_SECONDS


def _policies(policy: str | Path | PolicyFile | Policy, name: str | None) -> tuple[Policy, ...]:
    if isinstance(policy, Policy):
        return (policy,)
    file = policy if isinstance(policy, PolicyFile) else load_policies(policy)
    return file.policies if name is None else (file.find(name),)


def _tasks(policies: Sequence[Policy], run: OpenRun) -> list[Task]:
    """List the policies that can be about a run; whether they are, the worker asks its tracker.

    The end of a block is a change of its run: what was refused at an earlier one, before the predictions were
    logged perhaps, does not answer for it.
    """
    scheme, stamp = run.reference.scheme, f"on-exit:{uuid.uuid4().hex}"
    return [
        Task(policy.queue_key, str(run.reference), policy.name, stamp)
        for policy in policies
        if not policy.runs or any(place.scheme == scheme for place in policy.runs)
    ]


def _report(queue: Queue, tasks: Sequence[Task], otherwise: str) -> None:
    """Log what came of the tasks, as the queue has it; where it does not say why one waits, `otherwise`."""
    keys = {(task.queue_key, task.candidate) for task in tasks}
    found = {key: each for each in queue.entries() if (key := (each.queue_key, each.candidate)) in keys}
    for task in tasks:
        entry = found.get((task.queue_key, task.candidate))
        what = f"{task.candidate} under policy `{task.policy}`"
        if entry is None:
            _LOGGER.info("not compared: the policy is not about it, or it has failed: %s", what)
        elif entry.state == "done" and not entry.comparisons:
            _LOGGER.info("passed: %s: %s", what, entry.outcome)
        elif entry.state == "done":
            level = logging.WARNING if entry.outcome == "fail" else logging.INFO
            _LOGGER.log(level, "compared: %s: %s (%s)", what, entry.outcome, ", ".join(entry.comparisons))
        elif entry.state == "refused":
            _LOGGER.warning("not compared: %s: %s", what, entry.reason)
        else:
            why = "it is another worker's" if entry.state == "claimed" else entry.reason or otherwise
            _LOGGER.warning(
                "not compared yet: %s: %s. It is queued in %s, and `trackperm watch` compares it.",
                what,
                why,
                queue.folder,
            )


def _warn(what: str, error: Exception) -> None:
    said: Any = error if isinstance(error, TrackpermError) else f"{type(error).__name__}: {error}"
    _LOGGER.warning("%s: %s", what, scrubbed(str(said)))
