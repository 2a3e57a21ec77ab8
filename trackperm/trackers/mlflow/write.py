"""Writer of comparisons and leaderboards to MLflow, each as a run that is marked complete last.

The order is: run (``RUNNING``, ``trackperm.state=writing``), artifacts, metrics, tags, tags of the compared
runs, reading everything back, ``trackperm.state=done``, and ``FINISHED`` last. After a crash the next call
finds the run by its key and repeats these steps; each step skips or replaces what is already there.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import math
import posixpath
import re
import secrets
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial

from mlflow import MlflowClient
from mlflow.entities import Metric, Run, RunTag

from trackperm.errors import InputError, TrackerError
from trackperm.trackers.mlflow.store import (
    Store,
    downloaded,
    restoring,
    restoring_experiment,
    temporary_file,
)
from trackperm.trackers.publication import (
    COMPARISON,
    CREATED_TAG,
    KEY_TAG,
    KIND_TAG,
    PAIRS_TAG,
    TEST_SET_TAG,
    Publication,
    Published,
    RunTags,
    creation,
    is_safe_path,
    record_beginning,
)
from trackperm.trackers.references import TrackedRun

STATE_TAG = "trackperm.state"
DIGEST_TAG = "trackperm.digest"
WRITING, DONE = "writing", "done"
REPORT = "trackperm_report.html"
"""File name of a comparison's page.

MLflow's page that compares runs shows it where both runs have a file of that name outside all folders.
"""

_NAME = re.compile(r"[\w.\-:/ ]{1,250}")
_MAX_VALUE = 8000  # characters at which MLflow silently truncates a tag
_LATEST_RUNS = 1000  # more than are written at once, of which some have no time yet
_METRICS_PER_REQUEST = 1000  # MLflow's limit


@dataclass(frozen=True)
class _Content:
    """Final content of a publication's run."""

    name: str
    metrics: Mapping[str, float]
    tags: Mapping[str, str]
    files: Mapping[str, bytes]
    digest: str


def write_comparison(
    store: Store,
    publication: Publication,
    candidate: TrackedRun | None,
    experiment_id: str,
    *,
    tag_runs: bool = False,
) -> Published:
    """Write `publication` to the run with its key in an experiment, creating the run if necessary.

    The comparison is nested under the `candidate`, which gets its tags if it is in the same experiment. With
    `tag_runs`, all compared runs get their tags, and the two runs of a comparison of all examples get its
    page as well, which replaces that of an earlier one. So does a baseline whose tags have an earlier verdict
    on the same candidate.
    """
    content = _content(publication)
    run_tags: list[tuple[TrackedRun, RunTags]] = []
    if tag_runs:
        run_tags = publication.run_tags("mlflow")
    elif candidate is not None and candidate.container == experiment_id:
        run_tags = [(candidate, publication.candidate_tags)]
    for _, tags in run_tags:
        _check_tags(tags)
    doing = f"logging {publication.kind} `{publication.name}`"
    with store.calls(doing, writes=True) as client:
        _require_active_experiment(client, experiment_id)
        if candidate is not None:
            _require_active(client, candidate)
        if tag_runs:
            for tagged, _ in run_tags:
                _require_active(client, tagged)
                _require_finished(client, tagged)
        elif run_tags and _is_outdated(client, publication):
            run_tags = publication.run_tags("mlflow")
            tag_runs = True
        run = _find(client, publication, experiment_id)
    created = run is None
    if run is None:
        with store.calls(doing, writes=True, once=True) as client:
            run = client.create_run(
                experiment_id, tags=_first_tags(publication, candidate), run_name=publication.name
            )
    run_id = run.info.run_id
    doing = f"{doing} as run `mlflow:{run_id}`"
    with store.calls(doing, writes=True) as client:
        complete = _is_marked_complete(run, content) and not _differences(client, run, content)
    try:
        with store.calls(doing, writes=True) as client:
            if not complete:
                if CREATED_TAG not in run.data.tags:
                    _record_beginning(client, run, publication, is_new=created)
                _write(client, run, content)
            for tagged, tags in run_tags:
                _tag(client, tagged.reference.locator, tags)
                if tag_runs and tags and publication.kind == COMPARISON and REPORT in publication.files:
                    _attach(client, tagged.reference.locator, REPORT, publication.files[REPORT])
            if not complete:
                _finish(client, run_id, content)
    except BaseException:
        if not complete:
            store.close_after_failure(run_id)
        raise
    return Published(run=store.tracked(run), created=created)


def _content(publication: Publication) -> _Content:
    """Convert `publication` to what MLflow stores.

    Raise InputError if MLflow would refuse, truncate or change any of it.
    """
    publication.check()
    for name in publication.metrics:
        _check_name("metric", name)
    tables = {f"{name}.json": table.finite().json() for name, table in publication.tables.items()}
    files = {**publication.files, **tables}
    noted = [{"path": f"{name}.json", "type": "table"} for name in publication.tables]
    tags = {
        **publication.tags,
        "mlflow.note.content": publication.description,
        "mlflow.loggedArtifacts": json.dumps(noted),
    }
    _check_tags(tags)
    digest = hashlib.sha256(
        json.dumps(
            [
                sorted((name, repr(float(value))) for name, value in publication.metrics.items()),
                sorted(tags.items()),
                sorted((path, hashlib.sha256(data).hexdigest()) for path, data in files.items()),
            ]
        ).encode()
    )
    return _Content(publication.name, publication.metrics, tags, files, digest.hexdigest())


def _check_name(kind: str, name: str) -> None:
    if not _NAME.fullmatch(name) or not is_safe_path(name):
        raise InputError(
            f"MLflow cannot store a {kind} called `{name}`; expected at most 250 letters, digits, spaces and"
            " `_ - . : /`",
            hint="rename the statistic.",
        )


def _check_tags(tags: RunTags) -> None:
    for name, value in tags.items():
        _check_name("tag" if isinstance(value, str) else "metric", name)
        if isinstance(value, str) and len(value) > _MAX_VALUE:
            raise InputError(f"tag `{name}` has {len(value):,} characters; MLflow stores {_MAX_VALUE:,}")


def _require_active_experiment(client: MlflowClient, experiment_id: str) -> None:
    experiment = client.get_experiment(experiment_id)
    if experiment.lifecycle_stage != "active":
        raise InputError(
            f"experiment `{experiment.name}` is deleted, so nothing can be logged there",
            hint=restoring_experiment(experiment),
        )


def _require_active(client: MlflowClient, candidate: TrackedRun) -> None:
    run = client.get_run(candidate.reference.locator)
    if run.info.lifecycle_stage != "active":
        raise InputError(
            f"run `{candidate.reference}` ({candidate.name}) is deleted, so nothing can be logged under it",
            hint=restoring(client, run),
        )


def _require_finished(client: MlflowClient, run: TrackedRun) -> None:
    status = client.get_run(run.reference.locator).info.status
    if status in ("RUNNING", "SCHEDULED"):
        raise InputError(
            f"run `{run.reference}` ({run.name}) is {status}, so it cannot get tags",
            hint="compare it again with `--tag-runs` when it is finished.",
        )


def _is_outdated(client: MlflowClient, publication: Publication) -> bool:
    """Whether tags of the baseline have a verdict on this candidate, or on one whose name no run has now."""
    baseline, candidate = publication.baseline, publication.candidate
    stores = {run.tracking_uri for run in (baseline, candidate) if run is not None}
    if baseline is None or candidate is None or baseline.reference.scheme != "mlflow" or len(stores) > 1:
        return False
    run = client.get_run(baseline.reference.locator)
    if run.info.lifecycle_stage != "active" or run.info.status in ("RUNNING", "SCHEDULED"):
        return False
    for tag, verdict in publication.baseline_tags.items():
        held = run.data.tags.get(tag)
        if held is None or not isinstance(verdict, str):
            continue
        name, named = (text.rpartition(" ")[0] for text in (held, verdict))
        if name == named or not _has_run(client, name, {baseline.container, candidate.container}):
            return True
    return False


def _has_run(client: MlflowClient, name: str, experiment_ids: Collection[str]) -> bool:
    """Whether a run has this name; a name that MLflow cannot search for is taken to be one."""
    quote = next((mark for mark in "'\"" if mark not in name), None)
    if quote is None:
        return True
    wanted = f"attributes.run_name = {quote}{name}{quote}"
    return bool(client.search_runs(list(experiment_ids), filter_string=wanted, max_results=1))


def _find(client: MlflowClient, publication: Publication, experiment_id: str) -> Run | None:
    """Find the run with the key of `publication`: the newest complete one, or else the newest."""
    key, kind = publication.key, publication.kind
    runs = client.search_runs(
        [experiment_id],
        filter_string=f"tags.`{KEY_TAG}` = '{key}' and tags.`{KIND_TAG}` = '{kind}'",
        order_by=["attributes.start_time DESC"],
    )
    done = [run for run in runs if run.data.tags.get(STATE_TAG) == DONE]
    return next(iter([*done, *runs]), None)


def _record_beginning(client: MlflowClient, run: Run, publication: Publication, *, is_new: bool) -> None:
    """Record the time at which writing began; see :func:`record_beginning`.

    The first request for a new run writes one tag. Later ones also write a tag of their own, since the first
    may still arrive after them.
    """
    run_id = run.info.run_id

    def write(text: str, attempt: int) -> None:
        if is_new and attempt == 0:
            client.set_tag(run_id, CREATED_TAG, text)
        else:
            again = f"{CREATED_TAG}_again_{secrets.token_hex(4)}"
            client.log_batch(run_id, tags=[RunTag(CREATED_TAG, text), RunTag(again, text)])

    others = partial(_beginnings, client, publication, run.info.experiment_id)
    announced = datetime.fromtimestamp(run.info.start_time / 1000.0, tz=timezone.utc)
    record_beginning(publication.begun_after, others, write, announced)


def _beginnings(client: MlflowClient, publication: Publication, experiment_id: str) -> list[datetime | None]:
    """Return the latest times at which publications on the same test set were begun."""
    runs = client.search_runs(
        [experiment_id],
        filter_string=f"tags.`{TEST_SET_TAG}` = '{publication.tags.get(TEST_SET_TAG, '')}'",
        max_results=_LATEST_RUNS,
        order_by=[f"tags.`{CREATED_TAG}` DESC"],
    )
    return [creation(run.data.tags) for run in runs]


def _first_tags(publication: Publication, candidate: TrackedRun | None) -> dict[str, str]:
    tags = {
        KIND_TAG: publication.kind,
        KEY_TAG: publication.key,
        STATE_TAG: WRITING,
        "mlflow.source.name": "trackperm",
        "mlflow.source.type": "LOCAL",
    }
    for name in (TEST_SET_TAG, PAIRS_TAG):  # the ledger counts a comparison while it is being written
        if name in publication.tags:
            tags[name] = publication.tags[name]
    if candidate is not None:
        tags["mlflow.parentRunId"] = candidate.reference.locator
    with suppress(OSError, KeyError, ImportError):  # a container may have no user name
        tags["mlflow.user"] = getpass.getuser()
    return tags


def _write(client: MlflowClient, run: Run, content: _Content) -> None:
    """Write name and artifacts, then metrics, then tags of an unfinished run, as `content` says."""
    run_id = run.info.run_id
    if run.data.tags.get(STATE_TAG) != WRITING:
        client.set_tag(run_id, STATE_TAG, WRITING)
    if run.info.status != "RUNNING" or run.info.run_name != content.name:
        client.update_run(run_id, status="RUNNING", name=content.name)
    for path, data in sorted(content.files.items()):
        with temporary_file(posixpath.basename(path), data) as file:
            client.log_artifact(run_id, file, posixpath.dirname(path) or None)
    points = _new_points(client, run_id, content.metrics)
    for start in range(0, len(points), _METRICS_PER_REQUEST):
        client.log_batch(run_id, metrics=points[start : start + _METRICS_PER_REQUEST])
    _tag(client, run_id, content.tags)


def _new_points(client: MlflowClient, run_id: str, metrics: Mapping[str, float]) -> list[Metric]:
    """Return the metrics that a run lacks or holds with other values, with times after all that it holds."""
    held = client.get_run(run_id).data
    stale = {name: value for name, value in metrics.items() if not _same(held.metrics.get(name), value)}
    # MLflow takes the larger of two values with one timestamp for the latest, and clocks differ.
    past = [
        point.timestamp
        for name in stale
        if name in held.metrics
        for point in client.get_metric_history(run_id, name)
    ]
    timestamp = max([int(time.time() * 1000), *(moment + 1 for moment in past)])
    return [Metric(name, float(value), timestamp, 0) for name, value in stale.items()]


def _tag(client: MlflowClient, run_id: str, values: RunTags) -> None:
    """Set tags and log numbers as metrics in one request, unless all are there; status and times stay."""
    tags = {name: value for name, value in values.items() if isinstance(value, str)}
    scores = {name: value for name, value in values.items() if not isinstance(value, str)}
    points = _new_points(client, run_id, scores) if scores else []
    if not points and tags.items() <= client.get_run(run_id).data.tags.items():
        return
    client.log_batch(run_id, metrics=points, tags=[RunTag(name, value) for name, value in tags.items()])
    kept = client.get_run(run_id).data.tags
    if lost := sorted(name for name, value in tags.items() if kept.get(name) != value):
        raise TrackerError(
            f"MLflow did not store what was written to run `mlflow:{run_id}`: "
            + ", ".join(f"tag `{name}`" for name in lost)
        )


def _attach(client: MlflowClient, run_id: str, name: str, data: bytes) -> None:
    """Log a file to a run, unless the run holds it unchanged; the run's status and times stay."""
    is_there = any(info.path == name for info in client.list_artifacts(run_id))
    if is_there and downloaded(client, run_id, name) == data:
        return
    with temporary_file(name, data) as file:
        client.log_artifact(run_id, file)


def _finish(client: MlflowClient, run_id: str, content: _Content) -> None:
    """Read everything back, and mark the run as complete only then."""
    if differences := _differences(client, client.get_run(run_id), content):
        raise TrackerError(
            f"MLflow did not store what was written to run `mlflow:{run_id}`: {', '.join(differences)}",
            hint="the run stays marked as unfinished; try again, or look at the server's log.",
        )
    client.log_batch(run_id, tags=[RunTag(DIGEST_TAG, content.digest), RunTag(STATE_TAG, DONE)])
    client.set_terminated(run_id, status="FINISHED")
    if not _is_marked_complete(client.get_run(run_id), content):
        raise TrackerError(f"MLflow did not mark run `mlflow:{run_id}` as finished", hint="try again.")


def _is_marked_complete(run: Run, content: _Content) -> bool:
    tags = run.data.tags
    return (
        tags.get(STATE_TAG) == DONE
        and tags.get(DIGEST_TAG) == content.digest
        and run.info.status == "FINISHED"
    )


def _differences(client: MlflowClient, run: Run, content: _Content) -> list[str]:
    """List the values of the run that differ from `content`."""
    found = [] if run.info.run_name == content.name else ["its name"]
    found += [
        f"metric `{name}`"
        for name, value in content.metrics.items()
        if not _same(run.data.metrics.get(name), value)
    ]
    found += [f"tag `{name}`" for name, value in content.tags.items() if run.data.tags.get(name) != value]
    sizes = {
        info.path: info.file_size
        for folder in sorted({posixpath.dirname(path) for path in content.files})
        for info in client.list_artifacts(run.info.run_id, folder or None)
        if not info.is_dir
    }
    for path, data in content.files.items():
        if path not in sizes or sizes[path] not in (None, len(data)):
            found.append(f"artifact `{path}`")
    return found


def _same(kept: float | None, value: float) -> bool:
    """Whether a store kept `value`; some databases change the last digit."""
    return kept is not None and math.isclose(kept, value, rel_tol=1e-14)
