"""Programs run as a user runs them: in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]


def script(name: str) -> str:
    """The console script that is installed beside this interpreter."""
    return str(Path(sys.executable).parent / name)


def without_trackers() -> dict[str, str]:
    """Return the environment without what points at trackers or pytest; MLflow's telemetry is off."""
    ours = ("MLFLOW_", "WANDB_", "PYTEST_", "PYTHONWARNINGS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "MLFLOW_DISABLE_TELEMETRY": "true"}


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    timeout: float = 300.0,
) -> subprocess.CompletedProcess[str]:
    """Run `command` to its end; `env` is added to the environment, without what points at a tracker."""
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**without_trackers(), **(env or {})},
        capture_output=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )


def python(code: str, *, cwd: Path = ROOT) -> str:
    """Run `code` in a fresh interpreter and return what it printed."""
    result = run([sys.executable, "-c", code], cwd=cwd)
    assert result.returncode == 0, result.stderr
    return result.stdout


def at_once(code: str, *arguments: Sequence[str]) -> list[str]:
    """Run `code` in a process for each of `arguments`; all go on together once each has printed `ready`."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, *each], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for each in arguments
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    return [process.communicate(timeout=120)[0] for process in processes]


def descendants(process: int) -> list[int]:
    """List the processes that `process` has started, and those that they have, while they run."""
    found = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile
            for child in map(int, task.read_text().split()):
                found += [child, *descendants(child)]
    return found


def workers_of(process: int) -> list[int]:
    """List the processes below `process` that run jobs of a server."""
    return [
        child
        for child in descendants(process)
        if b"trackperm.server.jobs.process" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
