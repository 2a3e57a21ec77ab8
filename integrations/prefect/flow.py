"""A flow that trains, and then judges the run: a regression fails the flow, and nothing after it runs.

Usage: ``python flow.py "COMMAND THAT TRAINS"``. Its last line of output is the run: ``mlflow:RUN_ID``.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import Any

from prefect import flow, get_run_logger, task
from prefect.client.schemas.objects import TaskRun
from prefect.states import State

import trackperm
from trackperm.errors import TrackerError


class GateError(RuntimeError):
    """The candidate was not let through."""


def tracker_failed(task: Any, task_run: TaskRun, state: State[Any]) -> bool:
    """Whether another try may help: not where the candidate is worse or the input is bad."""
    return isinstance(state.result(raise_on_failure=False), TrackerError)


@task
def train(command: str) -> str:
    """Run a command, and return the run that it names."""
    done = subprocess.run(shlex.split(command), check=True, stdout=subprocess.PIPE, encoding="utf-8")
    return done.stdout.split()[-1]


@task(retries=3, retry_delay_seconds=[10, 60, 300], retry_condition_fn=tracker_failed)
def gate(candidate: str, policy: str = "trackperm.yaml") -> bool:
    """Judge a run: True where it passes, False where there are too few examples to tell."""
    report = trackperm.gate(candidate, policy)
    said = "\n".join(report.lines())
    get_run_logger().info(said)
    if report.outcome == "fail":
        raise GateError(said)
    return report.passed


@task
def deploy(candidate: str) -> None:
    """Put what follows a pass here."""
    print(f"deploying {candidate}")


@flow
def train_and_judge(command: str) -> None:
    """Train, judge, and go on where the candidate passes."""
    candidate = train(command)
    if gate(candidate):
        deploy(candidate)


if __name__ == "__main__":
    train_and_judge(sys.argv[1])
