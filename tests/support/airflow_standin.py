"""Stand-in for the parts of Airflow 3 that our DAG uses, with which its tasks run for real.

Retries follow Airflow's documentation: a task that raises is tried again as often as ``retries`` says, unless
it raises ``AirflowFailException``, which fails it at once, or ``AirflowSkipException``, which skips it.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

_SETTINGS = {"retries", "retry_delay", "retry_exponential_backoff"}
_OF_BASH = {"task_id", "bash_command", "do_xcom_push"}
_OF_DAG = {"schedule", "start_date", "catchup", "tags"}


class AirflowFailException(Exception):  # noqa: N818 - Airflow's name
    """The task fails, and is not retried."""


class AirflowSkipException(Exception):  # noqa: N818 - Airflow's name
    """The task is skipped."""


@dataclass
class Node:
    """A task in the DAG, with the values or outputs that it takes; ``>>`` puts another after it."""

    name: str
    takes: tuple[Any, ...] = ()
    followed_by: list[Node] = field(default_factory=list)

    @property
    def output(self) -> Node:
        """What it returns, once it has run."""
        return self

    def __rshift__(self, other: Node) -> Node:
        self.followed_by.append(other)
        return other


@dataclass(frozen=True)
class Ended:
    """How a task ended: ``success``, ``failed`` or ``skipped``, with what the last try raised."""

    state: str
    n_tries: int
    error: Exception | None = None


@dataclass
class Task:
    """A decorated function, which is tried again `retries` times; a call puts it into the DAG."""

    function: Callable[..., Any]
    retries: int

    def __call__(self, *arguments: Any) -> Node:
        return Node(self.function.__name__, arguments)

    def run(self, *arguments: Any) -> Ended:
        """Run the function as a worker does, without waiting between tries."""
        for number in range(1, self.retries + 2):
            try:
                self.function(*arguments)
            except AirflowSkipException as error:
                return Ended("skipped", number, error)
            except AirflowFailException as error:
                return Ended("failed", number, error)
            except Exception as error:
                last = error
            else:
                return Ended("success", number)
        return Ended("failed", number, last)


def _task(**settings: Any) -> Callable[[Callable[..., Any]], Task]:
    assert settings.keys() <= _SETTINGS, settings
    assert isinstance(settings.get("retry_delay", timedelta()), timedelta)
    return lambda function: Task(function, settings.get("retries", 0))


def _bash(**settings: Any) -> Node:
    assert settings.keys() <= _OF_BASH, settings
    return Node(settings["task_id"])


@contextmanager
def _dag(dag_id: str, **settings: Any) -> Iterator[str]:
    assert settings.keys() <= _OF_DAG, settings
    yield dag_id


def load_dag(path: Path) -> dict[str, Any]:
    """Run the file of a DAG with the stand-in in place of Airflow, and return its names."""
    names = {
        "airflow": {},
        "airflow.exceptions": {
            "AirflowFailException": AirflowFailException,
            "AirflowSkipException": AirflowSkipException,
        },
        "airflow.sdk": {"DAG": _dag, "task": _task},
        "airflow.providers": {},
        "airflow.providers.standard": {},
        "airflow.providers.standard.operators": {},
        "airflow.providers.standard.operators.bash": {"BashOperator": _bash},
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, members in names.items():
            patch.setitem(sys.modules, name, ModuleType(name))
            vars(sys.modules[name]).update(members)
        return runpy.run_path(str(path))
