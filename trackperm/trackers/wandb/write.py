"""Writer of comparisons and leaderboards to W&B, each as a run that is marked complete last.

Online the order is: run (with the tag ``unfinished``), lineage, result artifact, tables and charts, numbers;
the run ends; everything is read back; tags and notes with the verdict are set last. After a crash the next
call finds the run by its id, which the key determines, and repeats these steps; content that is already there
is not written again. Offline each run is a folder. If the log in it has no end, the folder stays as it is,
and the next call writes another with the same id; if both are synced, the later one counts.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import wandb

from trackperm.errors import SourceError, TrackerError
from trackperm.tables.wandb.run_folder import manifest_digest
from trackperm.tables.wandb.run_log import read_run_log
from trackperm.trackers.environment import environment
from trackperm.trackers.publication import (
    CREATED_TAG,
    GROUP,
    KINDS,
    LEADERBOARD,
    LOGGED_TAG,
    TEST_SET_TAG,
    Publication,
    Published,
    beginning,
    creation,
    last_logged,
)
from trackperm.trackers.references import RunReference, TrackedRun
from trackperm.trackers.wandb.charts import presets_in
from trackperm.trackers.wandb.content import Content
from trackperm.trackers.wandb.offline import folders_of_comparisons, tags_of_config
from trackperm.trackers.wandb.runs import UNFINISHED, is_complete, list_comparisons
from trackperm.trackers.wandb.store import (
    SETTLING_SECONDS,
    UPLOAD_SECONDS,
    Store,
    ended,
    newest_version,
    start_run,
)

_UNFINISHED_NOTES = "This {} is being written, or its writing broke off: run it again to complete it."


def write_online(
    store: Store,
    publication: Publication,
    container: str,
    *,
    used: Sequence[str] = (),
    alert: bool = False,
) -> Published:
    """Write `publication` to the run with its key in an existing project, creating the run if necessary.

    The artifacts `used` become the lineage of the run. With `alert`, a candidate that is worse raises an
    alert when the run is first written.
    """
    content = Content.of(publication)
    path = f"{container}/{content.run_id}"
    doing = f"logging {publication.kind} `{publication.name}` as run `wandb:{path}`"
    with store.calls(doing, writes=True):
        before = store.run_or_none(path)
        if before is not None and not _differences(before, content, final=True):
            if publication.kind == LEADERBOARD:
                _make_newest(store, container, before)
            return Published(store.tracked(before), created=False)
        entity, project = container.split("/")
        # some parts of wandb read these settings from the environment alone
        with _scratch() as folder, environment(WANDB_DATA_DIR=folder, WANDB_BASE_URL=store.base_url):
            started = store.start(
                entity=entity,
                project=project,
                dir=folder,
                resume="allow",
                **_initial_options(content),
            )
            with ended(started) as run:
                created = None if before is None else before.config.get(CREATED_TAG)
                others = partial(_beginnings, store, container, publication)
                _record_start(run, created or beginning(publication.begun_after, others))
                for name in used:
                    run.use_artifact(name)
                result = run.log_artifact(content.artifact(_subfolder(folder, "files")))
                result.wait(timeout=UPLOAD_SECONDS)
                run.log(content.media(_subfolder(folder, "media")))
                run.summary.update(dict(content.summary))
                if alert and before is None:
                    _alert(run, publication)
        _verify(store, path, content, final=False)
        finished = store.run_or_none(path)
        finished.tags, finished.notes = list(content.tags), content.notes
        for name in _stale(finished, content):
            del finished.summary[name]
        finished.update()
        finished = _verify(store, path, content, final=True)
        if publication.kind == LEADERBOARD:
            _make_newest(store, container, finished)
    return Published(store.tracked(finished), created=before is None)


def write_offline(
    publication: Publication, folder: Path, container: str = "", *, alert: bool = False
) -> Published:
    """Write `publication` as an offline run in `folder`, unless the folder has it already.

    ``wandb sync`` uploads it to `container` (``entity/project`` or ``project``; by default wandb decides),
    and raises its `alert`. Raise TrackerError if the content cannot be read back.
    """
    content = Content.of(publication)
    earlier = folders_of_comparisons(folder, content.run_id)
    for there in reversed(earlier):
        if not _differences_offline(there, content):
            return Published(_tracked_offline(there, content, container), created=False)
    root = folder.parent if folder.name == "wandb" else folder
    entity, _, project = container.rpartition("/")
    doing = f"logging {publication.kind} `{publication.name}` in `{folder}`"
    if earlier:  # names of folders contain the time to the second
        time.sleep(1.0 - time.time() % 1.0)
    try:
        # manifests name the folder for copies of logged files; wandb reads it from the environment alone
        beside = os.environ.get("WANDB_DATA_DIR") or str((folder / "artifacts").resolve())
        with _scratch() as scratch, environment(WANDB_DATA_DIR=beside):
            started = start_run(
                "offline",
                {},
                entity=entity or None,
                project=project or None,
                dir=root,
                **_initial_options(content),
            )
            with ended(started) as run:
                created = min(filter(None, map(_created_offline, earlier)), default=None)
                others = partial(_beginnings_offline, folder)
                _record_start(run, created or beginning(publication.begun_after, others))
                run.log_artifact(content.artifact(_subfolder(scratch, "files")))
                run.log(content.media(_subfolder(scratch, "media")))
                run.summary.update(dict(content.summary))
                if alert:
                    _alert(run, publication)
                run.tags, run.notes = content.tags, content.notes
                written = Path(run.dir).parent
    except (wandb.Error, OSError, ValueError, TypeError) as error:
        raise TrackerError(
            f"W&B failed while {doing}: {error}", hint="is there space, and is the folder writable?"
        ) from error
    for seconds in SETTLING_SECONDS:  # wandb's process may still be writing when the run has ended
        time.sleep(seconds)
        differences = _differences_offline(written, content)
        if not differences:
            return Published(_tracked_offline(written, content, container), created=True)
    raise TrackerError(f"W&B did not store what was written to `{written}`: {', '.join(differences)}")


def _record_start(run: Any, created: str) -> None:
    run.config.update({CREATED_TAG: created}, allow_val_change=True)


def _beginnings(store: Store, container: str, publication: Publication) -> list[datetime | None]:
    """Return the times at which publications on the same test set were begun."""
    found = [tags_of_config(run.config) for run in list_comparisons(store, container, KINDS)]
    test_set = publication.tags.get(TEST_SET_TAG)
    return [creation(tags) for tags in found if tags.get(TEST_SET_TAG) == test_set]


def newest_leaderboard(store: Store, container: str, test_sets: Collection[str]) -> Any:
    """Return the last logged finished leaderboard of a project on one of these test sets, if any."""
    found = [
        (moment, run.id, run)
        for run in list_comparisons(store, container, (LEADERBOARD,))
        if is_complete(run) and run.rawconfig.get(TEST_SET_TAG) in test_sets
        if (moment := last_logged(run.rawconfig)) is not None
    ]
    return max(found)[-1] if found else None


def _make_newest(store: Store, container: str, run: Any) -> None:
    """Give a leaderboard a time after all others on its test set, unless it is the newest already."""
    newest = newest_leaderboard(store, container, [run.rawconfig.get(TEST_SET_TAG)])
    if newest is not None and newest.id != run.id:
        run.config[LOGGED_TAG] = beginning(last_logged(newest.rawconfig), list)
        run.update()


def _beginnings_offline(folder: Path) -> list[datetime | None]:
    """Return the times at which the publications in `folder` were begun, on whichever test set."""
    found = []
    for path in folders_of_comparisons(folder):
        with suppress(SourceError, OSError):  # another process may be writing its first record
            found.append(creation({CREATED_TAG: _created_offline(path) or ""}))
    return found


def _initial_options(content: Content) -> dict[str, Any]:
    """Return the options of a comparison's run at its start, which mark it as unfinished."""
    return {
        "id": content.run_id,
        "name": content.name,
        "job_type": content.kind,
        "group": GROUP,
        "tags": [*content.tags[:1], UNFINISHED],
        "notes": _UNFINISHED_NOTES.format(content.kind),
        "config": dict(content.config),
        "allow_val_change": True,
    }


def _scratch() -> TemporaryDirectory[str]:
    """Create a temporary folder; wandb's process may still write to it when it is removed."""
    return TemporaryDirectory(prefix="trackperm-", ignore_cleanup_errors=True)


def _subfolder(folder: str, name: str) -> Path:
    made = Path(folder, name)
    made.mkdir()
    return made


def _alert(run: Any, publication: Publication) -> None:
    verdict = publication.tags.get("trackperm.verdict", "")
    if verdict.endswith("worse"):
        run.alert(
            title=f"{verdict.partition(' ')[0]} {publication.name}",
            text=publication.description,
            level="WARN",
        )


def _verify(store: Store, path: str, content: Content, *, final: bool) -> Any:
    """Read the run back until it has the expected content; a server may take a moment to show it.

    Raise TrackerError if the content still differs in the end.
    """
    differences: list[str] = []
    for seconds in SETTLING_SECONDS:
        time.sleep(seconds)
        run = store.run_or_none(path)
        differences = ["the run itself"] if run is None else _differences(run, content, final=final)
        if not differences:
            return run
    raise TrackerError(
        f"W&B did not store what was written to run `wandb:{path}`: {', '.join(differences)}",
        hint=f"the run stays tagged `{UNFINISHED}`; try again.",
    )


def _differences(run: Any, content: Content, *, final: bool) -> list[str]:
    """List the values of a run of :class:`wandb.Api` that differ from `content`."""
    found = [] if run.state == "finished" else [f"its end (it is {run.state})"]
    if (run.job_type, run.group) != (content.kind, GROUP):
        found.append("job type and group")
    found += _lost_values(run.rawconfig, run.summary_metrics, content)
    if final and (sorted(run.tags), run.notes) != (sorted(content.tags), content.notes):
        found.append("tags and notes")
    if final:
        found += [f"summary `{name}`, which is stale" for name in _stale(run, content)]
    return found or [*_lost_files(run, content), *_lost_media(run, content)]


def _stale(run: Any, content: Content) -> list[str]:
    """List the entries of the summary that an earlier version of the comparison has left."""
    wanted = {*content.summary, *content.media_keys}
    return [name for name in run.summary_metrics if not name.startswith("_") and name not in wanted]


def newest_result(run: Any) -> Any:
    """Return the newest artifact with the files of a comparison; None if it has none."""
    results = [artifact for artifact in run.logged_artifacts() if artifact.type in KINDS]
    return newest_version(results)


def _lost_files(run: Any, content: Content) -> list[str]:
    """List the files that the newest result artifact of `run` lacks or holds with other digests."""
    newest = newest_result(run)
    if newest is None:
        return ["the result artifact"]
    kept = {path: entry.digest for path, entry in newest.manifest.entries.items()}
    wanted = {path: manifest_digest(data) for path, data in content.files.items()}
    return [f"file `{path}`" for path in sorted(wanted) if kept.get(path) != wanted[path]]


def _lost_media(run: Any, content: Content) -> list[str]:
    """List tables, pictures and pages that the summary does not name or that were not uploaded."""
    summary = run.summary_metrics
    uploaded = {file.name for file in run.files()}
    found = []
    for name in content.media_keys:
        entry = summary.get(name)
        if not isinstance(entry, Mapping) or entry.get("path") not in uploaded:
            found.append(f"`{name}`")
        elif name in content.tables and entry.get("nrows") != len(content.tables[name].rows):
            found.append(f"rows of `{name}`")
    return found


def _differences_offline(folder: Path, content: Content) -> list[str]:
    """List the values of the offline run in `folder` that differ from `content`."""
    logs = list(folder.glob("run-*.wandb"))
    if not logs:
        return ["its log"]
    log = read_run_log(logs[0], str(folder), with_summary=True)
    found = [] if log.exit_code == 0 else ["its end"]
    if (log.run_id, log.name, log.job_type, log.group) != (content.run_id, content.name, content.kind, GROUP):
        found.append("its name, job type and group")
    if (sorted(log.tags), log.notes) != (sorted(content.tags), content.notes):
        found.append("tags and notes")
    found += _lost_values(log.config, log.summary, content)
    for name in content.media_keys:
        entry = log.media[name][-1] if name in log.media else {}
        file = folder / "files" / str(entry.get("path", ""))
        if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != entry.get("sha256"):
            found.append(f"`{name}`")
        elif name in content.tables and entry.get("nrows") != len(content.tables[name].rows):
            found.append(f"rows of `{name}`")
    results = [artifact for artifact in log.artifacts if artifact.type in KINDS]
    if not results:
        return [*found, "the result artifact"]
    for path, data in content.files.items():
        entry_of_file = results[-1].entries.get(path)
        staged = Path(entry_of_file.local_path) if entry_of_file is not None else None
        if staged is None or not staged.is_file():
            found.append(f"file `{path}`")
        elif staged.read_bytes() != data:
            found.append(f"contents of `{path}`")
    return found


def _created_offline(folder: Path) -> str | None:
    """Read when the comparison in `folder` was begun; None where the log does not say it."""
    logs = list(folder.glob("run-*.wandb"))
    created = read_run_log(logs[0], str(folder)).config.get(CREATED_TAG) if logs else None
    return created if isinstance(created, str) else None


def _lost_values(config: Mapping[str, Any], summary: Mapping[str, Any], content: Content) -> list[str]:
    """List the numbers, settings and charts that were not stored as written."""
    found = [f"config `{name}`" for name, value in content.config.items() if config.get(name) != value]
    found += [f"summary `{name}`" for name, value in content.summary.items() if summary.get(name) != value]
    drawn = presets_in(config)
    found += [f"chart `{name}`" for name, preset in content.presets.items() if drawn.get(name) != preset]
    return found


def _tracked_offline(folder: Path, content: Content, container: str) -> TrackedRun:
    return TrackedRun(
        reference=RunReference("wandb", str(folder.resolve())),
        name=content.name,
        container=container,
    )
