"""History of MLflow's experiments: finished runs by tag and time, model versions by alias."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import ClassVar

from mlflow.entities import Run
from mlflow.exceptions import MlflowException

from trackperm.errors import InputError, NoSuchAliasError
from trackperm.trackers.history import Aliased, RunRecord
from trackperm.trackers.mlflow.store import FAILED_STATUSES, Store, moment
from trackperm.trackers.mlflow.write import STATE_TAG
from trackperm.trackers.publication import KIND_TAG, LoggedComparison
from trackperm.trackers.references import TrackedRun

SUPERSEDED = "superseded"
REASON_TAG = "trackperm.superseded_by"

_ALIAS = re.compile(r"models:/([^@/:]+)@([^@/]+)")
_VERSION = re.compile(r"models:/([^@/:]+)/([0-9]+)")
_ABSENT = ("RESOURCE_DOES_NOT_EXIST", "NOT_FOUND", "INVALID_PARAMETER_VALUE")
_GOING = ("RUNNING", "SCHEDULED")
_FEW = 50  # runs of the first page, which nearly always contains the newest match


class MlflowHistory:
    """History of the experiments in one store; see :class:`trackperm.trackers.history.History`."""

    branch_tag: ClassVar[str] = "mlflow.source.git.branch"

    def __init__(self, store: Store) -> None:
        self._store = store

    def record(self, run: TrackedRun) -> RunRecord:
        """Read the state of a run now."""
        with self._store.calls(f"looking up run `{run.reference}`") as client:
            return self._record(client.get_run(run.reference.locator))

    def finished(self, container: str, since: datetime | None = None) -> list[RunRecord]:
        """List the finished runs of an experiment, oldest first, without those that trackperm logged."""
        wanted = [] if since is None else [f"attributes.end_time >= {_milliseconds(since)}"]
        return list(self._search(self._store.experiment_id(container), wanted, "ASC"))

    def newest(
        self, near: TrackedRun | str, tags: Mapping[str, str], name: str | None, before: datetime | None
    ) -> RunRecord | None:
        """Find the finished run that started last among those with `tags` and a matching name."""
        experiment_id = self._store.experiment_id(near) if isinstance(near, str) else near.container
        wanted = [_having(tag, value) for tag, value in tags.items()]
        if before is not None:
            wanted.append(f"attributes.start_time < {_milliseconds(before)}")
        own = None if isinstance(near, str) else near.reference
        found = self._search(experiment_id, wanted, "DESC", per_page=_FEW)
        return next((each for each in found if each.run.reference != own and each.has(tags, name)), None)

    def aliased(self, alias: str) -> Aliased:
        """Find the run that made the model version ``models:/NAME@ALIAS`` or ``models:/NAME/VERSION``."""
        by_alias, by_number = _ALIAS.fullmatch(alias), _VERSION.fullmatch(alias)
        if by_alias is None and by_number is None:
            raise InputError(
                f"`{alias}` is not a version of a model in MLflow; expected `models:/NAME@ALIAS`",
                hint="`models:/NAME/VERSION` names one by its number.",
            )
        with self._store.calls(f"looking up `{alias}`") as client:
            try:
                if by_alias is not None:
                    version = client.get_model_version_by_alias(*by_alias.groups())
                else:
                    version = client.get_model_version(*_VERSION.findall(alias)[0])
            except MlflowException as error:
                if error.error_code not in _ABSENT:
                    raise
                hint = "`MlflowClient.set_registered_model_alias` sets it, as does the model's page."
                raise NoSuchAliasError(
                    f"MLflow at `{self._store.label}` has no `{alias}`",
                    hint=hint if by_alias is not None else None,
                ) from error
            what = f"version {version.version} of the model `{version.name}`"
            if not version.run_id:
                raise InputError(
                    f"{what} was not made by a run, so there are no predictions to compare",
                    hint="register it from the run that logged them, as `mlflow.register_model` does with"
                    " `runs:/RUN_ID/model`, or name that run: `mlflow:RUN_ID`.",
                )
            run = client.get_run(version.run_id)
            if run.info.lifecycle_stage != "active":
                raise InputError(
                    f"{what} was made by run `{version.run_id}`, which is deleted",
                    hint=f"`mlflow runs restore --run-id {version.run_id}` restores it.",
                )
            return Aliased(self._store.tracked(run))

    def champion(self, model: str) -> Aliased:
        """Find the run that made the version of a registered model with the alias ``champion``."""
        return self.aliased(f"models:/{model}@champion")

    def holds(self, container: str, run: TrackedRun) -> bool:
        """Whether `run` is in the experiment called `container`."""
        experiment = self._store.experiment(container)
        return experiment is not None and str(experiment.experiment_id) == run.container

    def withdraw(self, comparison: LoggedComparison, reason: str) -> None:
        """Mark a comparison as superseded and delete its run."""
        run_id = comparison.run.reference.locator
        with self._store.calls(f"withdrawing comparison `{comparison.run.reference}`", writes=True) as client:
            try:
                if client.get_run(run_id).info.lifecycle_stage == "active":
                    client.set_tag(run_id, STATE_TAG, SUPERSEDED)
                    client.set_tag(run_id, REASON_TAG, reason)
                    client.delete_run(run_id)
            except MlflowException as error:
                if error.error_code not in _ABSENT:  # permanently deleted in the meantime
                    raise

    def _search(
        self, experiment_id: str, wanted: list[str], order: str, per_page: int = 1000
    ) -> Iterator[RunRecord]:
        """Yield the finished runs in the order of their start, without those that trackperm logged."""
        runs = self._store.search(
            f"listing the runs of experiment {experiment_id}",
            [experiment_id],
            " and ".join(["attributes.status = 'FINISHED'", *wanted]),
            order,
            per_page=per_page,
        )
        return (self._record(run) for run in runs if KIND_TAG not in run.data.tags)

    def _record(self, run: Run) -> RunRecord:
        return RunRecord(
            run=self._store.tracked(run),
            tags=dict(run.data.tags),
            started=moment(run.info.start_time),
            # a run that was resumed still has the time at which it ended before
            ended=None if run.info.status in _GOING else moment(run.info.end_time),
            is_finished=run.info.status == "FINISHED" and run.info.lifecycle_stage == "active",
            is_failed=run.info.status in FAILED_STATUSES,
        )


def _having(tag: str, value: str) -> str:
    """Write the filter for runs with a tag; MLflow's filters have no escapes.

    Raise InputError if the tag or value contains characters that a filter cannot hold.
    """
    quote = next((mark for mark in "'\"" if mark not in value), None)
    if quote is None or "`" in tag:
        raise InputError(f"MLflow cannot search for the tag `{tag}` with the value `{value}`")
    return f"tags.`{tag}` = {quote}{value}{quote}"


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
