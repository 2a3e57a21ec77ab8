"""A worker in a process of its own, for the candidates of one training script: what `compare_on_exit` starts.

The training script can end it at any moment, and nothing of it stays in the script's memory. It is told what
to do on standard input, so that nothing of it stands among the arguments of a process, and it writes its
decisions as JSON lines to standard output.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL

from trackperm import version
from trackperm.automation.decision_log import DecisionLog
from trackperm.automation.policy.policy import Policy
from trackperm.automation.queue.queue import Queue
from trackperm.automation.queue.worker import Worker


@dataclass(frozen=True)
class WorkRequest:
    """What is to be worked off.

    Attributes
    ----------
    policies : sequence of Policy
        Under these.
    candidates : sequence of str
        References of runs.
    folder : Path
        Of the queue.
    owner : str
        Who claims.
    """

    policies: Sequence[Policy]
    candidates: Sequence[str]
    folder: Path
    owner: str


def run_in_subprocess(order: WorkRequest, environment: Mapping[str, str], seconds: float) -> str | None:
    """Let another process work off `order`; returns what it wrote, or None if it was not done in time.

    A process that is not done is ended, with all that it has started.

    Parameters
    ----------
    order : WorkRequest
        What to do.
    environment : mapping of str to str
        Added to that of this process.
    seconds : float
        Time that it has.

    Raises
    ------
    OSError
        If no process can be started.
    """
    home = str(Path(version.__file__).parents[1])
    path = os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))
    ours = {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "trackperm.automation.training.subprocess_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **ours, **environment},
        start_new_session=True,
    )
    try:
        written, _ = process.communicate(pickle.dumps(order), timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, SIGKILL)
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
    return written.decode("utf-8", "replace")


def main() -> None:
    """Work off the order on standard input, until nothing of it is due or the tracker fails."""
    order: WorkRequest = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own parent wrote it
    # what libraries print is no note
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    worker = Worker(order.policies, Queue(order.folder), DecisionLog(stream), owner=order.owner)
    while (step := worker.step(candidates=order.candidates)) is not None and step.event != "retry":
        continue


if __name__ == "__main__":
    from trackperm.automation.training import subprocess_worker

    subprocess_worker.main()
