"""History of W&B's projects: finished runs by tag and time, artifacts and registered models by alias."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, ClassVar

from trackperm.errors import InputError, NoSuchAliasError
from trackperm.trackers.history import Aliased, RunRecord
from trackperm.trackers.publication import LoggedComparison
from trackperm.trackers.references import TrackedRun
from trackperm.trackers.wandb.artifacts import FAILED_STATES, is_artifact, with_predictions
from trackperm.trackers.wandb.offline import has_crashed, is_offline_run
from trackperm.trackers.wandb.runs import is_comparison, require_project
from trackperm.trackers.wandb.store import Store

_ALIAS = re.compile(r"([^/:]+/){1,2}[^/:]+:[^/:]+")
REGISTRY = "wandb-registry-model"
"""Project of an organization's registered models."""


class WandbHistory:
    """History of the projects on one server; see :class:`trackperm.trackers.history.History`.

    Offline runs have no history, as W&B selects runs by properties that are set when a run is synced.
    """

    branch_tag: ClassVar[str] = "branch"

    def __init__(self, store: Store) -> None:
        self._store = store

    def record(self, run: TrackedRun) -> RunRecord:
        """Read the state of a run now; offline runs are refused, but for those that failed."""
        if is_offline_run(run.reference.locator):
            if has_crashed(run.reference.locator):
                return RunRecord(run, {}, None, None, is_finished=False, is_failed=True)
            raise InputError(
                f"run `{run.reference}` is offline, so earlier runs cannot be searched",
                hint="`wandb sync` uploads it; `baseline: {run: ...}` names a baseline.",
            )
        if is_artifact(run.reference.locator):
            return self._of_artifact(run)
        with self._store.calls(f"looking up run `{run.reference}`"):
            return self._record(self._store.fresh_api().run(run.reference.locator))

    def _of_artifact(self, artifact: TrackedRun) -> RunRecord:
        """Read the state of the run that logged an artifact; one that no run logged is finished."""
        with self._store.calls(f"looking up the run of artifact `{artifact.reference}`"):
            found = self._store.fresh_api().artifact(artifact.reference.locator).logged_by()
            if found is None:
                return RunRecord(artifact, {}, None, None, is_finished=True, is_failed=False)
            return replace(self._record(found), run=artifact)

    def finished(self, container: str, since: datetime | None = None) -> list[RunRecord]:
        """List the finished runs of a project, oldest first, without those that trackperm logged."""
        project = require_project(self._store, container)
        found = self._search(project, "+created_at")
        return [each for each in found if since is None or each.ended is None or each.ended >= since]

    def newest(
        self, near: TrackedRun | str, tags: Mapping[str, str], name: str | None, before: datetime | None
    ) -> RunRecord | None:
        """Find the finished run that started last among those with `tags` and a matching name."""
        project = require_project(self._store, near) if isinstance(near, str) else near.container
        own = None if isinstance(near, str) else near.reference
        for each in self._search(project, "-created_at"):
            is_earlier = before is None or (each.started is not None and each.started < before)
            if is_earlier and each.run.reference != own and each.has(tags, name):
                return each
        return None

    def aliased(self, alias: str) -> Aliased:
        """Find the artifact ``ENTITY/PROJECT/NAME:ALIAS``, and the run that logged it."""
        locator = alias.removeprefix("wandb:")
        with self._store.calls(f"looking up artifact `wandb:{locator}`"):
            if _ALIAS.fullmatch(locator) is None:
                raise _no_alias(locator)
            artifact = self._store.artifact_or_none(locator)
            if artifact is None:
                raise NoSuchAliasError(
                    f"W&B at `{self._store.base_url}` has no artifact `{locator}`",
                    hint="write `ENTITY/PROJECT/NAME:ALIAS`, as its page shows it.",
                )
            run = artifact.logged_by()
            if run is None:
                raise InputError(f"the artifact `wandb:{locator}` was not logged by a run")
            return Aliased(self._store.tracked(run), with_predictions(self._store, artifact))

    def champion(self, model: str) -> Aliased:
        """Find the version of a registered model with the alias ``champion``, and the run that logged it."""
        return self.aliased(f"{model if '/' in model else f'{REGISTRY}/{model}'}:champion")

    def holds(self, container: str, run: TrackedRun) -> bool:
        """Whether `run` is in ``ENTITY/PROJECT``, or in that project of the default entity."""
        if "/" in container:
            return container == run.container
        with self._store.calls("looking up the default entity") as api:
            return f"{api.default_entity}/{container}" == run.container

    def withdraw(self, comparison: LoggedComparison, reason: str) -> None:
        """Mark a comparison as superseded and delete its run; a comparison in a folder stays."""
        reference = comparison.run.reference
        if is_offline_run(reference.locator):
            return
        with self._store.calls(f"withdrawing comparison `{reference}`", writes=True):
            run = self._store.run_or_none(reference.locator)
            if run is not None:
                run.tags = [*run.tags, "superseded"]
                run.config["trackperm.superseded_by"] = reason
                run.update()
                run.delete()

    def _search(self, project: str, order: str) -> Iterator[RunRecord]:
        """Yield the finished runs in the order of their start, without those that trackperm logged."""
        with self._store.calls(f"listing the runs of project `{project}`"):
            found = self._store.fresh_api().runs(
                project, filters={"state": "finished"}, order=order, lazy=False
            )
            for run in found:
                if run.state == "finished" and not is_comparison(run):
                    yield self._record(run)

    def _record(self, run: Any) -> RunRecord:
        return RunRecord(
            run=self._store.tracked(run),
            tags=_tags(run),
            started=_moment(run.created_at),
            ended=_moment(getattr(run, "heartbeat_at", None)) if run.state != "running" else None,
            is_finished=run.state == "finished",
            is_failed=run.state in FAILED_STATES,
        )


def _no_alias(locator: str) -> InputError:
    return InputError(
        f"`{locator}` is not an alias in W&B; expected `ENTITY/PROJECT/NAME:ALIAS`",
        hint="copy it from the artifact's page.",
    )


def _tags(run: Any) -> dict[str, str]:
    """Return the tags that select a run; tags precede config, as they can be set later."""
    found = {
        name: _text(value)
        for name, value in dict(run.config).items()
        if isinstance(value, str | int | float | bool)
    }
    for field, value in (("group", run.group), ("job_type", run.job_type)):
        if value:
            found[field] = str(value)
    for tag in run.tags:
        name, colon, value = tag.partition(":")
        found[name.strip()] = value.strip() if colon else "true"
    return found


def _text(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _moment(text: str | None) -> datetime | None:
    if not text:
        return None
    moment = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
