"""Runs that this process has open, or had, in MLflow and W&B; neither library is imported to find them."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trackperm.errors import InputTypeError
from trackperm.trackers.publication import GROUP, KINDS
from trackperm.trackers.references import RunReference


@dataclass(frozen=True)
class OpenRun:
    """Run that this process has open, or had.

    Attributes
    ----------
    reference : RunReference
        The run.
    is_offline : bool
        Whether it is only in a folder until it is synced.
    environment : mapping of str to str
        Environment variables with which another process reaches the same server.
    handle : object
        Argument for ``trackperm.log_predictions``.
    """

    reference: RunReference
    is_offline: bool = False
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    handle: object = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Snapshot:
    """The active runs of this thread at one moment.

    Attributes
    ----------
    mlflow_active, mlflow_last : str or None
        Ids of MLflow's active run, and of the run that was active last.
    wandb : object
        W&B's active run.
    """

    mlflow_active: str | None
    mlflow_last: str | None
    wandb: Any

    @classmethod
    def taken(cls) -> Snapshot:
        """Read the active runs from the libraries that are loaded; no server is contacted."""
        mlflow, wandb = sys.modules.get("mlflow"), sys.modules.get("wandb")
        active = mlflow.active_run() if mlflow is not None and hasattr(mlflow, "active_run") else None
        run = getattr(wandb, "run", None)
        return cls(
            mlflow_active=None if active is None else str(active.info.run_id),
            mlflow_last=_last_of_mlflow(),
            wandb=None if getattr(run, "disabled", False) else run,  # a disabled run is stored nowhere
        )

    def runs_since(self, earlier: Snapshot) -> list[OpenRun]:
        """List the runs that are open now, were open at the `earlier` moment, or started in between.

        MLflow stores which run was active last, but not when. A run is therefore missed if it was the last
        one before, was resumed in between, and has ended.
        """
        found = []
        last = None if self.mlflow_last == earlier.mlflow_last else self.mlflow_last
        if (run_id := self.mlflow_active or last or earlier.mlflow_active) is not None:
            found.append(mlflow_run(run_id))
        if (run := self.wandb or earlier.wandb) is not None:
            found.append(_of_wandb(run))
        return found


class RunsOfBlock:
    """Runs of a block of code: those that it starts, or else the run around it.

    The libraries are treated separately. MLflow stores one active run and one last run, and W&B one active
    run, so starts are recorded as they happen: from :meth:`open` to :meth:`close`, ``mlflow.ActiveRun`` and
    ``wandb.init`` report the runs that this thread starts or resumes. A library that is imported inside the
    block reports nothing; its run is then the one that is active at the end, or else was active last. Runs
    that trackperm itself logs are ignored.
    """

    def __init__(self) -> None:
        self.thread = 0
        self._before = Snapshot(None, None, None)
        self._started: dict[str, OpenRun] = {}
        self._hooks_mlflow = False

    def open(self) -> None:
        """Record the active runs, and from now on the runs that start."""
        self.thread = threading.get_ident()
        self._started.clear()
        self._before = Snapshot.taken()
        self._hooks_mlflow = "mlflow" in sys.modules
        _START_HOOKS.add(self)

    def close(self) -> None:
        """Stop recording."""
        _START_HOOKS.remove(self)

    def note(self, run: OpenRun) -> None:
        """Record a run that has started."""
        self._started.setdefault(str(run.reference), run)

    def runs(self) -> list[OpenRun]:
        """List the runs of the block, in the order in which they started."""
        before, now = self._before, Snapshot.taken()
        if not self._hooks_mlflow:
            last = None if now.mlflow_last == before.mlflow_last else now.mlflow_last
            if (run_id := now.mlflow_active or last) is not None:
                self.note(mlflow_run(run_id))
        if now.wandb is not None and now.wandb is not before.wandb:
            self.note(_of_wandb(now.wandb))
        found = list(self._started.values())
        schemes = {run.reference.scheme for run in found}
        if "mlflow" not in schemes and (run_id := before.mlflow_active) is not None:
            found.append(mlflow_run(run_id))
        if "wandb" not in schemes and before.wandb is not None:
            found.append(_of_wandb(before.wandb))
        return found


class _StartHooks:
    """Wrappers around the libraries' functions that start runs, while a block is open in any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks: tuple[RunsOfBlock, ...] = ()
        self._hooked: list[tuple[Any, str, Any, Any]] = []

    def add(self, block: RunsOfBlock) -> None:
        """Report to `block` the runs that its thread starts."""
        mlflow, wandb = sys.modules.get("mlflow"), sys.modules.get("wandb")
        with self._lock:
            self._blocks = (*self._blocks, block)
            self._hook(getattr(mlflow, "ActiveRun", None), "__init__", _started_in_mlflow)
            self._hook(wandb, "init", _started_in_wandb)

    def remove(self, block: RunsOfBlock) -> None:
        """Stop reporting to `block`; the last block restores the libraries' functions."""
        with self._lock:
            self._blocks = tuple(each for each in self._blocks if each is not block)
            if self._blocks:
                return
            for owner, name, original, reporting in self._hooked:
                if getattr(owner, name) is reporting:  # not wrapped by other code in the meantime
                    setattr(owner, name, original)
            self._hooked.clear()

    def _hook(self, owner: Any, name: str, describe: Callable[..., OpenRun | None]) -> None:
        if not hasattr(owner, name) or any(owner is hooked for hooked, *_ in self._hooked):
            return
        original = getattr(owner, name)

        @functools.wraps(original)
        def reporting(*arguments: Any, **options: Any) -> Any:
            result = original(*arguments, **options)
            with suppress(Exception):  # a failure here must not stop the training
                self._note(describe, result, *arguments)
            return result

        setattr(owner, name, reporting)
        self._hooked.append((owner, name, original, reporting))

    def _note(self, describe: Callable[..., OpenRun | None], *told: object) -> None:
        thread = threading.get_ident()
        blocks = [block for block in self._blocks if block.thread == thread]
        if blocks and (run := describe(*told)) is not None:
            for block in blocks:
                block.note(run)


_START_HOOKS = _StartHooks()


def _started_in_mlflow(_: None, run: Any, *__: object) -> OpenRun:
    return mlflow_run(str(run.info.run_id))


def _started_in_wandb(run: Any, *_: object) -> OpenRun | None:
    is_ours = getattr(run, "group", None) == GROUP and getattr(run, "job_type", None) in KINDS
    return None if is_ours or getattr(run, "disabled", False) else _of_wandb(run)


def open_run(run: object) -> OpenRun:
    """Describe a run that is given as a reference, or as ``start_run`` or ``wandb.init`` returned it.

    Raise InputTypeError if `run` is not a run of MLflow or W&B.
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
        f"{type(run).__module__}.{type(run).__qualname__} is not a run of MLflow or W&B",
        hint="pass what `mlflow.start_run` or `wandb.init` returned, or `mlflow:RUN_ID`.",
    )


def _last_of_mlflow() -> str | None:
    """Return the id of the run that was active last in this thread.

    ``mlflow.last_active_run()`` calls the server, for up to four minutes; this reads the id that MLflow has
    stored.
    """
    fluent = sys.modules.get("mlflow.tracking.fluent")
    kept: Any = getattr(fluent, "_last_active_run_id", None)
    found = kept.get() if hasattr(kept, "get") else kept
    return found if isinstance(found, str) else None


def mlflow_run(run_id: str, uri: str | None = None) -> OpenRun:
    """Describe a run of MLflow, recorded at `uri` or else at MLflow's tracking URI."""
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
