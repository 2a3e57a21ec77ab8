"""`trackperm receive` as people run it: a process, with secrets in its environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.receivers import MLFLOW, WANDB, Sender
from support.waiting import wait_until
from support.watchers import Program
from trackperm.automation.webhooks.receive import MLFLOW_SECRET, WANDB_SECRET


class Receiving:
    """A process of `trackperm receive` on a free port; its queue and lines are in `folder`."""

    def __init__(self, folder: Path, policy: Path, *options: str, **env: str) -> None:
        self.state = folder / "state"
        arguments = ["receive", "--policy", policy, "--state", self.state, "--port", "0", *options]
        secrets = {WANDB_SECRET: WANDB, MLFLOW_SECRET: MLFLOW}
        self.program = Program(arguments, folder / "receive.log", {**secrets, **env})

    def __enter__(self) -> Receiving:
        self.program.start()
        self.port = int(self.program.wait_for("started")["port"])
        self.sender = Sender(self.port)
        return self

    def __exit__(self, *_: object) -> None:
        self.program.kill()

    def wait_for(self, n: int, *events: str, seconds: float = 120.0) -> list[dict[str, Any]]:
        """Wait for its first `n` lines of these events."""
        wait_until(lambda: len(self.program.events(*events)) >= n, seconds, lambda: self.program.text)
        return self.program.events(*events)
