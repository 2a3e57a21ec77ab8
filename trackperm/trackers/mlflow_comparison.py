"""A comparison as a run of its own in MLflow, written so that a crash is never taken for a result.

The order is: run (``RUNNING``, ``trackperm.state=writing``), artifacts, metrics, tags, the candidate's
tags, everything read back, ``trackperm.state=done``, and ``FINISHED`` last. The next try finds the run
by its key and goes through the same steps; each leaves what is already there as it is or replaces it.
"""
# ruff: noqa: TID251

from __future__ import annotations

import getpass
import hashlib
import json
import math
import posixpath
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from mlflow import MlflowClient
from mlflow.entities import Metric, Run, RunTag

from trackperm.errors import InputError, TrackerError
from trackperm.trackers.base import Publication, Published, Table, TrackedRun
from trackperm.trackers.mlflow_artifacts import is_safe_path
from trackperm.trackers.mlflow_store import COMPARISON, KIND_TAG, Store

KEY_TAG = "trackperm.key"
STATE_TAG = "trackperm.state"
DIGEST_TAG = "trackperm.digest"
WRITING, DONE = "writing", "done"

_NAME = re.compile(r"[\w.\-:/ ]{1,250}")
_MAX_VALUE = 8000
_MAX_ROWS = 1000
_METRICS_PER_REQUEST = 1000


@dataclass(frozen=True)
class _Content:
    """What the comparison's run must hold in the end."""

    metrics: Mapping[str, float]
    tags: Mapping[str, str]
    files: Mapping[str, bytes]
    digest: str


def write_comparison(
    store: Store, publication: Publication, candidate: TrackedRun | None, experiment_id: str
) -> Published:
    """Write `publication` to the run with its key in an experiment, made if there is none.

    Parameters
    ----------
    store : Store
        Where to write.
    publication : Publication
        What to write.
    candidate : TrackedRun or None
        The run to nest the comparison under, where it is in MLflow. It gets its tags if it is in the
        same experiment.
    experiment_id : str
        The experiment to write to.
    """
    content = _content(publication)
    candidate_tags = publication.candidate_tags if candidate and candidate.container == experiment_id else {}
    _check_tags(candidate_tags)
    doing = f"logging comparison `{publication.name}`"
    with store.calls(doing, writes=True) as client:
        if candidate is not None:
            _require_active(client, candidate)
        run = _find(client, publication.key, experiment_id)
    created = run is None
    if run is None:
        with store.calls(doing, writes=True, once=True) as client:
            run = client.create_run(
                experiment_id, tags=_first_tags(publication.key, candidate), run_name=publication.name
            )
    run_id = run.info.run_id
    doing = f"{doing} as run `mlflow:{run_id}`"
    try:
        with store.calls(doing, writes=True) as client:
            if not _is_complete(client, run, content):
                _reopen(client, run)
                _write(client, run_id, content)
            if candidate is not None and candidate_tags:
                _tag(client, candidate.reference.locator, candidate_tags)
            if not _is_complete(client, client.get_run(run_id), content):
                _finish(client, run_id, content)
    except BaseException:
        store.close_after_failure(run_id)
        raise
    return Published(run=store.tracked(run), created=created)
