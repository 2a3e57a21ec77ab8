"""Short tags of compared runs, as columns of W&B's runs table: the only change that is made to these runs.

wandb sends the whole summary of a run back, so that the last of two writers wins. Only finished runs are
therefore changed, and their summary is read just before and checked after.
"""

from __future__ import annotations

from collections.abc import Sequence

from trackperm.errors import InputError, TrackerError
from trackperm.trackers.publication import RunTags
from trackperm.trackers.references import TrackedRun
from trackperm.trackers.wandb.artifacts import is_artifact
from trackperm.trackers.wandb.offline import is_offline_run
from trackperm.trackers.wandb.store import Store


def require_taggable(store: Store, runs: Sequence[TrackedRun]) -> None:
    """Refuse runs that cannot get tags.

    Raise InputError if a run is not on the server, or not finished.
    """
    for run in runs:
        locator = run.reference.locator
        if is_artifact(locator) or is_offline_run(locator):
            what = "an artifact" if is_artifact(locator) else "offline"
            raise InputError(
                f"`{run.reference}` is {what}, so it cannot get tags",
                hint="`--tag-runs` is for finished runs on a server.",
            )
        with store.calls(f"looking up run `{run.reference}`"):
            found = store.run_or_none(locator)
        if found is None or found.state != "finished":
            state = "deleted" if found is None else found.state
            raise InputError(
                f"run `{run.reference}` is {state}, so it cannot get tags",
                hint="an unfinished run overwrites what others add; compare it when it is finished.",
            )


def tag_run(store: Store, run: TrackedRun, tags: RunTags) -> None:
    """Add `tags` to the summary of a finished run.

    Raise TrackerError if the run's summary is not as expected afterwards.
    """
    path = run.reference.locator
    with store.calls(f"tagging run `{run.reference}`", writes=True):
        found = store.run_or_none(path)
        before = dict(found.summary_metrics)
        if tags.items() <= before.items():
            return
        found.summary.update(dict(tags))
        after = store.run_or_none(path)
        kept = {} if after is None else dict(after.summary_metrics)
    if lost := sorted(name for name, value in {**before, **tags}.items() if kept.get(name) != value):
        raise TrackerError(
            f"W&B did not store the summary of run `{run.reference}`: {', '.join(lost)}",
            hint="did another program write to it at the same moment?",
        )
