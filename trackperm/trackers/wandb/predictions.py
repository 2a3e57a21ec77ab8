"""Predictions logged to an open W&B run: one Parquet file, in an artifact of the run's own.

Artifacts of several runs with one name form one collection, whose newest version belongs to whichever run
came last. The artifact's name therefore contains the run's id.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakKeyDictionary

import wandb

from trackperm.errors import InputError, InputTypeError, TrackerError
from trackperm.tables.wandb.run_folder import manifest_digest
from trackperm.trackers.predictions import Predictions
from trackperm.trackers.references import RunReference
from trackperm.trackers.wandb.store import (
    SETTLING_SECONDS,
    UPLOAD_SECONDS,
    Store,
    downloaded,
    newest_version,
)

_TYPE = "predictions"

# The log of an offline run is flushed about every 15 seconds, so this process records what it has logged.
_LOGGED_OFFLINE: WeakKeyDictionary[wandb.Run, dict[str, Path]] = WeakKeyDictionary()


def require_open_run(run: object) -> wandb.Run:
    """Return `run` if it accepts artifacts.

    Raise InputTypeError if it is not a run that :func:`wandb.init` returned, and InputError if W&B is
    disabled.
    """
    if not isinstance(run, wandb.Run):
        kind = f"{type(run).__module__}.{type(run).__qualname__}"
        raise InputTypeError(
            f"{f'`wandb:{run}`' if isinstance(run, str) else kind} is not an open run of W&B; expected what"
            " `wandb.init` returned",
            hint="log predictions before `run.finish()`.",
        )
    if run.disabled:
        raise InputError(
            "W&B is disabled, so this run is not stored", hint="use `mode='online'` or `mode='offline'`."
        )
    return run


def write_predictions(store: Store, run: wandb.Run, predictions: Predictions) -> RunReference:
    """Log a file of predictions to `run`, unless it is there, and read it back.

    Raise InputError if the run holds other predictions under that name, and TrackerError if W&B failed, or
    did not store the file unchanged.
    """
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", f"{predictions.name}-{run.id}")
    with TemporaryDirectory(prefix="trackperm-", ignore_cleanup_errors=True) as folder:
        file = Path(folder, predictions.file)
        if run.offline:
            return _write_offline(run, predictions, name, file)
        return _write_online(store, run, predictions, name, file)


def _write_online(
    store: Store, run: wandb.Run, predictions: Predictions, name: str, file: Path
) -> RunReference:
    path = f"{run.entity}/{run.project}/{run.id}"
    reference = RunReference("wandb", path)
    with store.calls(f"logging `{predictions.file}` to run `{reference}`", writes=True):
        there = _artifact(store, path, name)
        if there is not None:
            is_there = predictions.file in there.manifest.entries
            predictions.require_same(downloaded(there, predictions.file) if is_there else b"", reference)
            return reference
        file.write_bytes(predictions.data)
        run.log_artifact(_new_artifact(name, file)).wait(timeout=UPLOAD_SECONDS)
        for seconds in SETTLING_SECONDS:
            time.sleep(seconds)
            kept = _artifact(store, path, name)
            entries = {} if kept is None else kept.manifest.entries
            entry = entries.get(predictions.file)
            if entry is not None and entry.digest == manifest_digest(predictions.data):
                return reference
    raise TrackerError(f"W&B did not store `{predictions.file}` of run `{reference}` as it was logged")


def _artifact(store: Store, path: str, name: str) -> Any:
    """Return the newest version of an artifact that the run at `path` has logged, or None."""
    run = store.run_or_none(path)
    logged = [] if run is None else run.logged_artifacts()
    return newest_version(artifact for artifact in logged if artifact.name.partition(":")[0] == name)


def _write_offline(run: wandb.Run, predictions: Predictions, name: str, file: Path) -> RunReference:
    reference = RunReference("wandb", str(Path(run.dir).parent.resolve()))
    doing = f"logging `{predictions.file}` to run `{reference}`"
    logged = _LOGGED_OFFLINE.setdefault(run, {})
    try:
        if name in logged:
            predictions.require_same(logged[name].read_bytes(), reference)
            return reference
        file.write_bytes(predictions.data)
        artifact = _new_artifact(name, file)
        run.log_artifact(artifact)
        staged = Path(artifact.manifest.entries[predictions.file].local_path or "")
        is_kept = staged.is_file() and staged.read_bytes() == predictions.data
    except (wandb.Error, OSError) as error:
        raise TrackerError(f"W&B failed while {doing}: {error}") from error
    if not is_kept:
        raise TrackerError(f"W&B did not store `{predictions.file}` of run `{reference}` as it was logged")
    logged[name] = staged
    return reference


def _new_artifact(name: str, file: Path) -> wandb.Artifact:
    artifact = wandb.Artifact(name, type=_TYPE, description="one row per example")
    artifact.add_file(str(file), name=file.name)
    return artifact
