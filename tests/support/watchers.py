"""Watchers as people run them: processes of the command line, with their lines kept in a file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support.waiting import wait_until

COMMAND = [sys.executable, "-c", "from trackperm.cli import main; main()"]


class Program:
    """A command of trackperm that goes on until it is ended, and can be started again."""

    def __init__(
        self, arguments: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self._arguments = [str(argument) for argument in arguments]
        self._log = log
        self._env = dict(env or {})
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Program:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it, unless it runs."""
        if self._process is not None and self._process.poll() is None:
            return
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
        with self._log.open("ab") as log:
            log.write(b'\n{"event": "life"}\n')  # the last line of the life before may be cut
            log.flush()
            self._process = subprocess.Popen(
                [*COMMAND, *self._arguments],
                stdout=log,
                stderr=log,
                env={**inherited, "MLFLOW_DISABLE_TELEMETRY": "true", **self._env},
                start_new_session=True,
            )

    @property
    def process(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End it at once, with all that it has started."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def stop(self, seconds: float = 60.0) -> int:
        """Ask it to end, and return its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(timeout=seconds)

    def wait_for(self, event: str, seconds: float = 120.0) -> dict[str, Any]:
        """Wait for its first line of an event."""

        def is_said() -> object:
            assert self._process is not None
            assert self._process.poll() is None, self.text
            return self.events(event)

        wait_until(is_said, seconds, lambda: self.text)
        return self.events(event)[0]

    def wait_until_started(self, seconds: float = 120.0) -> None:
        """Wait until it has begun its present life, from when on it can be asked to end."""

        def has_started() -> bool:
            events = [line["event"] for line in self.lines]
            return "started" in events[len(events) - events[::-1].index("life") :]

        wait_until(has_started, seconds, lambda: self.text)

    @property
    def text(self) -> str:
        """All that it wrote."""
        return self._log.read_text(encoding="utf-8") if self._log.exists() else ""

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Its JSON lines; the last one of a life may be cut."""
        found = []
        for line in self.text.splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        return found

    def events(self, *events: str) -> list[dict[str, Any]]:
        """Lines of these events."""
        return [line for line in self.lines if line["event"] in events]
