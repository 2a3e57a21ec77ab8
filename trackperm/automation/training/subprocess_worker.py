"""Worker process for the candidates of one training script, which ``compare_on_exit`` starts.

The training script can kill it at any moment, and nothing of it stays in the script's memory. It reads its
request from standard input, so that no list of processes shows it, and writes its decisions as JSON lines to
standard output.
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
    """Rows of a queue that a worker process is to process, and the name of the worker in them."""

    policies: Sequence[Policy]
    candidates: Sequence[str]
    folder: Path
    owner: str


def run_in_subprocess(request: WorkRequest, environment: Mapping[str, str], seconds: float) -> str | None:
    """Process a request in another process; return its output, or None if it was not done in `seconds`.

    A process that is late is killed, with all processes that it started. `environment` adds variables to
    those of this process. Raise OSError if the process cannot be started.
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
        written, _ = process.communicate(pickle.dumps(request), timeout=seconds)
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
    """Process the request on standard input, until no row of it is due or the tracker fails."""
    request: WorkRequest = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own parent wrote it
    # what libraries print must not mix with the decisions
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    worker = Worker(request.policies, Queue(request.folder), DecisionLog(stream), owner=request.owner)
    while (step := worker.step(candidates=request.candidates)) is not None and step.event != "retry":
        continue


if __name__ == "__main__":
    from trackperm.automation.training import subprocess_worker

    subprocess_worker.main()
