"""Comparisons and leaderboards on a W&B server, read back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from trackperm.errors import SourceError
from trackperm.trackers.publication import (
    CREATED_TAG,
    KINDS,
    TEST_SET_TAG,
    LoggedComparison,
    creation,
    is_recent,
)
from trackperm.trackers.references import TrackedRun
from trackperm.trackers.wandb.offline import TABLE_TYPE, numbers_of_summary, tags_of_config
from trackperm.trackers.wandb.runs import find_comparison, is_complete, list_comparisons
from trackperm.trackers.wandb.store import Store, downloaded
from trackperm.trackers.wandb.write import newest_result

_FOLDER = "trackperm/"


def logged_comparison(store: Store, locator: str) -> LoggedComparison:
    """Find the comparison at ``entity/project/id``, or at the address of its page.

    Raise InputError if the run does not exist or is not a comparison.
    """
    run = find_comparison(store, locator)
    with store.calls(f"reading comparison `wandb:{locator}`"):
        return _logged(store, run)


def logged_comparisons(store: Store, container: str, test_set: str | None) -> list[LoggedComparison]:
    """Find all comparisons and leaderboards of a project, or those on one test set.

    Test sets are filtered here, as a dot in a name of the config means nesting in W&B's search.
    """
    with store.calls(f"listing the comparisons of `{container}`"):
        found = [_logged(store, run) for run in list_comparisons(store, container, KINDS)]
    return [each for each in found if test_set in (None, each.tags.get(TEST_SET_TAG))]


def logged_files(store: Store, run: TrackedRun) -> dict[str, bytes]:
    """Download the files from which a comparison can be verified, by their path in its artifact.

    Raise SourceError if the run has no such files.
    """
    doing = f"downloading the files of comparison `{run.reference}`"
    with store.calls(doing):
        found = store.run_or_none(run.reference.locator)
        result = None if found is None else newest_result(found)
        if result is None:
            raise SourceError(f"comparison `{run.reference}` has no result artifact")
        paths = [path for path in result.manifest.entries if path.startswith(_FOLDER)]
        return {path: downloaded(result, path) for path in paths}


def logged_tables(store: Store, run: TrackedRun) -> dict[str, bytes]:
    """Download the tables that the run of a comparison shows, by key, as JSON; missing files are left out."""
    with (
        store.calls(f"downloading the tables of comparison `{run.reference}`"),
        TemporaryDirectory(prefix="trackperm-") as folder,
    ):
        found = store.run_or_none(run.reference.locator)
        files = {} if found is None else {file.name: file for file in found.files()}
        paths = {
            key: str(entry.get("path", ""))
            for key, entry in ({} if found is None else dict(found.summary_metrics)).items()
            if isinstance(entry, Mapping) and entry.get("_type") == TABLE_TYPE
        }
        for path in {*paths.values()} & {*files}:
            files[path].download(root=folder, replace=True).close()
        return {key: Path(folder, path).read_bytes() for key, path in paths.items() if path in files}


def _logged(store: Store, run: Any) -> LoggedComparison:
    tags = tags_of_config(run.config)
    metrics = numbers_of_summary(dict(run.summary_metrics))
    created = creation(tags)
    begun = creation({CREATED_TAG: str(run.created_at).replace("Z", "+00:00")})
    is_beginning = created is None and begun is not None and is_recent(begun)
    return LoggedComparison(
        store.tracked(run), created, is_complete(run), tags, metrics, is_beginning, labels=tuple(run.tags)
    )
