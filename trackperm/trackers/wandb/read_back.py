"""Comparisons and leaderboards on a W&B server, read back."""

from __future__ import annotations

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
from trackperm.trackers.wandb.offline import tags_of_config
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


def _logged(store: Store, run: Any) -> LoggedComparison:
    tags = tags_of_config(run.config)
    metrics = {
        name: float(value)
        for name, value in dict(run.summary_metrics).items()
        if isinstance(value, int | float) and not name.startswith("_")
    }
    created = creation(tags)
    begun = creation({CREATED_TAG: str(run.created_at).replace("Z", "+00:00")})
    is_beginning = created is None and begun is not None and is_recent(begun)
    return LoggedComparison(store.tracked(run), created, is_complete(run), tags, metrics, is_beginning)
