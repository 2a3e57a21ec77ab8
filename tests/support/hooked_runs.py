"""Runs that hooks compare: a store with a baseline, candidates on demand, and a policy about them."""

from __future__ import annotations

import io
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.mlflow_stores import MlflowStore
from support.server_client import predictions
from support.waiting import wait_until
from trackperm.automation.decision_log import DecisionLog
from trackperm.automation.policy.load import load_policies
from trackperm.automation.policy.policy import Policy
from trackperm.automation.queue.queue import Entry, Queue, Task
from trackperm.automation.queue.watch import Watcher
from trackperm.automation.queue.worker import Worker
from trackperm.trackers.publication import KEY_TAG


class HookedStore:
    """An experiment of MLflow that a policy is about; policy files are written to `folder`."""

    def __init__(
        self, uri: str, folder: Path, artifacts: Path | None = None, experiment: str = "digits"
    ) -> None:
        self.store = MlflowStore(uri, artifacts)
        self.folder = folder
        self.experiment = experiment
        self._made = 0

    @classmethod
    def local(cls, folder: Path, policies: Path | None = None) -> HookedStore:
        """Create a SQLite store in `folder`, and an experiment in it."""
        made = cls(MlflowStore.local(folder).uri, policies or folder, folder / "artifacts")
        made.store.experiment(made.experiment)
        return made

    def baseline(self, seed: int = 1) -> str:
        """Log the baseline, tagged as such, and return its id."""
        return self.finished(f"base-{seed}", seed=seed, tags={"role": "baseline"})

    def begun(self, name: str | None = None, tags: dict[str, str] | None = None) -> str:
        """Begin a run, and return its id."""
        experiment = self.store.experiment(self.experiment)
        self._made += 1
        run = self.store.client.create_run(
            experiment, run_name=name or f"cand-{self._made}", tags={"role": "candidate", **(tags or {})}
        )
        return str(run.info.run_id)

    def finished(
        self, name: str | None = None, *, seed: int = 2, tags: dict[str, str] | None = None, rate: float = 0.2
    ) -> str:
        """Log a finished run with predictions, and return its id."""
        run_id = self.begun(name, tags)
        self.log(run_id, seed, rate)
        self.store.client.set_terminated(run_id)
        return run_id

    def few(self, name: str | None = None) -> str:
        """Log a finished run that differs from the baseline of `seed` 1 on three examples."""
        run_id = self.begun(name)
        self.store.log_columns(run_id, three_changed(), "predictions.parquet")
        self.store.client.set_terminated(run_id)
        return run_id

    def log(self, run_id: str, seed: int = 2, rate: float = 0.2) -> None:
        """Log predictions to a run."""
        self.store.log_columns(run_id, predictions(seed, rate=rate), "predictions.parquet")

    def policy_file(self, name: str = "nightly", **changes: Any) -> Path:
        """Write a policy file with one policy, and return its path."""
        policy = {
            "name": name,
            "runs": f"mlflow:{self.experiment}",
            "only": {"tags": {"role": "candidate"}},
            "baseline": {"newest": {"tags": {"role": "baseline"}}},
            "tracking_uri": self.store.uri,
            **changes,
        }
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump({"policies": [policy]}), encoding="utf-8")
        return path

    def policy(self, **changes: Any) -> Policy:
        """Load that policy."""
        return load_policies(self.policy_file(**changes)).find()

    def policy_by_name(self, candidate: str = "candidate", **changes: Any) -> Policy:
        """Load a policy that compares runs of a name with the newest one called `baseline`."""
        return self.policy(only={"name": candidate}, baseline={"newest": {"name": "baseline"}}, **changes)

    def compared(self) -> list[str]:
        """List the candidates of all finished comparisons, one entry for each comparison."""
        runs = self.store.comparisons(self.experiment)
        assert len({run.data.tags[KEY_TAG] for run in runs}) == len(runs), "one run for each key"
        return sorted(run.data.tags["trackperm.candidate"] for run in runs if run.info.status == "FINISHED")


class Heard:
    """What was noted by the decision log `log`."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        self.log = DecisionLog(self._stream)

    @property
    def text(self) -> str:
        """All lines."""
        return self._stream.getvalue()

    @property
    def lines(self) -> list[dict[str, Any]]:
        """All lines, decoded."""
        return [json.loads(line) for line in self.text.splitlines()]

    @property
    def names(self) -> list[str]:
        """Events of all lines."""
        return [line["event"] for line in self.lines]

    def events(self, *events: str) -> list[dict[str, Any]]:
        """Lines of these events."""
        return [line for line in self.lines if line["event"] in events]

    def wait_for(self, event: str, number: int = 1, seconds: float = 120.0) -> list[dict[str, Any]]:
        """Wait for so many lines of an event."""
        wait_until(lambda: len(self.events(event)) >= number, seconds, lambda: self.text)
        return self.events(event)


class WatchedStore(HookedStore):
    """An experiment with a queue of its own, and what its watchers and workers note."""

    def __init__(self, *place: Any) -> None:
        super().__init__(*place)
        self.later = 0.0  # seconds by which the clock of the queue is ahead
        self.queue = Queue(self.folder / "state", clock=lambda: time.time() + self.later)
        self.heard = Heard()

    def announce(
        self, *run_ids: str, policy: Policy | None = None, stamp: str | None = None, source: str = "receive"
    ) -> list[Task]:
        """Queue runs that nobody has looked at, and return the tasks that are new."""
        policy = policy or self.policy()
        tasks = [Task(policy.queue_key, f"mlflow:{run_id}", policy.name, stamp) for run_id in run_ids]
        return self.queue.add(tasks, source)

    def claim(self, owner: str = "another") -> Entry:
        """Claim the next row, as another process would."""
        claim = self.queue.claim([self.policy().queue_key], owner)
        assert claim is not None
        return claim

    def once(self, **changes: Any) -> Exception | None:
        """Let a watcher go over the experiment once, and return what it could not do."""
        return Watcher([self.policy(**changes)], self.queue, self.heard.log).once(threading.Event())

    def step(self, *policies: Policy) -> str | None:
        """Let a worker work off one row, and return what became of it."""
        step = Worker(policies or [self.policy()], self.queue, self.heard.log).step()
        return step and step.event

    def steps(self, *policies: Policy) -> list[str]:
        """Let a worker work off all rows that are due."""
        worker = Worker(policies or [self.policy()], self.queue, self.heard.log)
        return [step.event for step in iter(worker.step, None)]

    def entry(self) -> Entry:
        """Return the only row of the queue."""
        [entry] = self.queue.entries()
        return entry


class Script(HookedStore):
    """A training script: an experiment that is there, a queue of its own, and what it is told."""

    def __init__(self, *place: Any, log: pytest.LogCaptureFixture) -> None:
        super().__init__(*place)
        self.store.experiment(self.experiment)
        self.caplog = log
        self.state = self.folder / "state"

    @property
    def told(self) -> str:
        """All that was logged, by whichever library."""
        return self.caplog.text

    @property
    def said(self) -> list[str]:
        """What trackperm said."""
        return [record.getMessage() for record in self.caplog.records if record.name == "trackperm"]

    @property
    def entries(self) -> list[Entry]:
        return Queue(self.state).entries()

    @property
    def kept(self) -> list[Path]:
        """Predictions that could not be logged."""
        return sorted((self.state / "unlogged").glob("*"))


def three_changed() -> dict[str, list[Any]]:
    """Return the predictions of seed 1, of which three are changed: too few for a verdict."""
    columns = predictions(1)
    columns["prediction"][:3] = [1 - label for label in columns["label"][:3]]
    return columns
