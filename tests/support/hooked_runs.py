"""Runs that hooks compare: a store with a baseline, candidates on demand, and a policy about them."""

from __future__ import annotations

import io
import json
import threading
import time
from pathlib import Path
from typing import Any

import yaml

from support.mlflow_stores import MlflowStore
from support.server_client import predictions
from trackperm.automation.decision_log import DecisionLog
from trackperm.automation.policy.load import load_policies
from trackperm.automation.policy.policy import Policy
from trackperm.automation.queue.queue import Queue
from trackperm.automation.queue.watch import Watcher
from trackperm.trackers.publication import KEY_TAG


class HookedStore:
    """An experiment of MLflow that a policy is about.

    Parameters
    ----------
    uri : str
        Of the store.
    folder : Path
        Where the policy file is written.
    artifacts : Path, optional
        Where a local store keeps artifacts.
    experiment : str
        Its name.
    """

    def __init__(
        self, uri: str, folder: Path, artifacts: Path | None = None, experiment: str = "digits"
    ) -> None:
        self.store = MlflowStore(uri, artifacts)
        self.folder = folder
        self.experiment = experiment
        self._made = 0

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

    def compared(self) -> list[str]:
        """List the candidates of all finished comparisons, one entry for each comparison."""
        runs = self.store.comparisons(self.experiment)
        assert len({run.data.tags[KEY_TAG] for run in runs}) == len(runs), "one run for each key"
        return sorted(run.data.tags["trackperm.candidate"] for run in runs if run.info.status == "FINISHED")


class Heard:
    """What was noted.

    Attributes
    ----------
    notes : DecisionLog
        To be given to what is tested.
    """

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

    def events(self, *events: str) -> list[dict[str, Any]]:
        """Lines of these events."""
        return [line for line in self.lines if line["event"] in events]

    def wait_for(self, event: str, number: int = 1, seconds: float = 120.0) -> list[dict[str, Any]]:
        """Wait for so many lines of an event."""
        deadline = time.monotonic() + seconds
        while len(found := self.events(event)) < number:
            assert time.monotonic() < deadline, self.text
            time.sleep(0.02)
        return found


def once(store: HookedStore, queue: Queue, heard: Heard, **changes: Any) -> Exception | None:
    """Let a watcher go over `store` once, and return what it could not do."""
    return Watcher([store.policy(**changes)], queue, heard.log).once(threading.Event())
