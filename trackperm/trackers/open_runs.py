"""The runs that this process has open, or had, as MLflow and W&B know them: no library is imported for it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trackperm.errors import InputTypeError
from trackperm.trackers.references import RunReference


@dataclass(frozen=True)
class OpenRun:
    """A run of this process.

    Attributes
    ----------
    reference : RunReference
        The run.
    is_offline : bool
        Whether it is in a folder only, until it is synced.
    environment : mapping of str to str
        Variables by which another process finds the same server.
    handle : object
        What ``trackperm.log_predictions`` takes for it.
    """

    reference: RunReference
    is_offline: bool = False
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    handle: object = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Snapshot:
    """What runs there were at one moment, in this thread.

    Attributes
    ----------
    mlflow_active, mlflow_last : str or None
        Id of MLflow's active run, and of the one that was active last.
    wandb : object
        W&B's active run.
    """

    mlflow_active: str | None
    mlflow_last: str | None
    wandb: Any

    @classmethod
    def taken(cls) -> Snapshot:
        """Look at the libraries that are loaded; no server is asked."""
        mlflow, wandb = sys.modules.get("mlflow"), sys.modules.get("wandb")
        active = mlflow.active_run() if mlflow is not None and hasattr(mlflow, "active_run") else None
        return cls(
            mlflow_active=None if active is None else str(active.info.run_id),
            mlflow_last=_last_of_mlflow(),
            wandb=getattr(wandb, "run", None),
        )

    def runs_since(self, earlier: Snapshot) -> list[OpenRun]:
        """List the runs that are open now, were open at the `earlier` moment, or were begun since.

        MLflow keeps which run was active last, and not when: if the same one was resumed since and has ended,
        that is not seen.
        """
        found = []
        last = None if self.mlflow_last == earlier.mlflow_last else self.mlflow_last
        if (run_id := self.mlflow_active or last or earlier.mlflow_active) is not None:
            found.append(mlflow_run(run_id))
        if (run := self.wandb or earlier.wandb) is not None:
            found.append(_of_wandb(run))
        return found


def open_run(run: object) -> OpenRun:
    """Describe a run that the user gives: a reference, or what ``start_run`` or ``wandb.init`` returned.

    Raises
    ------
    InputTypeError
        If it is no run of MLflow or W&B.
    """
    if isinstance(run, OpenRun):
        return run
    if isinstance(run, str):
        return OpenRun(RunReference.parse(run), handle=run)
    library = {base.__module__.partition(".")[0] for base in type(run).__mro__}
    if "mlflow" in library and hasattr(run, "info"):
        return mlflow_run(str(run.info.run_id))
    if "wandb" in library and hasattr(run, "settings"):
        return _of_wandb(run)
    raise InputTypeError(
        f"{type(run).__module__}.{type(run).__qualname__} is no run of MLflow or W&B",
        hint="give what `mlflow.start_run` or `wandb.init` returned, or `mlflow:RUN_ID`.",
    )


def _last_of_mlflow() -> str | None:
    """Id of the run that was active last in this thread.

    ``mlflow.last_active_run()`` asks the server, for up to four minutes; what it asks for is kept here.
    """
    fluent = sys.modules.get("mlflow.tracking.fluent")
    kept: Any = getattr(fluent, "_last_active_run_id", None)
    found = kept.get() if hasattr(kept, "get") else kept
    return found if isinstance(found, str) else None


def mlflow_run(run_id: str, uri: str | None = None) -> OpenRun:
    """Describe a run of MLflow, which is recorded where `uri` says, or else where MLflow does."""
    if uri is None:
        uri = str(sys.modules["mlflow"].get_tracking_uri()) if "mlflow" in sys.modules else ""
    reference = RunReference("mlflow", run_id)
    environment = {"MLFLOW_TRACKING_URI": uri} if uri else {}
    return OpenRun(reference, environment=environment, handle=str(reference))


def _of_wandb(run: Any) -> OpenRun:
    settings = run.settings
    if getattr(run, "offline", False) or getattr(settings, "mode", "online") in ("offline", "dryrun"):
        folder = RunReference("wandb", str(Path(str(run.dir)).parent))
        return OpenRun(folder, is_offline=True, handle=run)
    wanted = {"WANDB_BASE_URL": "base_url", "WANDB_API_KEY": "api_key"}
    values = {name: getattr(settings, attribute, None) for name, attribute in wanted.items()}
    environment = {name: str(value) for name, value in values.items() if value}
    reference = RunReference("wandb", f"{run.entity}/{run.project}/{run.id}")
    return OpenRun(reference, environment=environment, handle=run)
