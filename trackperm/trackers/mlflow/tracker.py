"""Adapter of MLflow: find a run, read its per-example table, log a comparison."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import mlflow
from mlflow.entities import Run
from mlflow.exceptions import MlflowException

from trackperm.errors import InputError, InputTypeError, TrackpermError
from trackperm.messages import did_you_mean, listing
from trackperm.statistic import Statistic
from trackperm.tables import read_examples
from trackperm.tables.table import ExampleTable
from trackperm.trackers.base import require_options, table_or_error
from trackperm.trackers.mlflow.artifacts import (
    RunArtifacts,
    TableArtifact,
    find_table,
    named_table,
    table_paths,
    write_predictions,
)
from trackperm.trackers.mlflow.description import describe_experiment
from trackperm.trackers.mlflow.evaluated import as_evaluated
from trackperm.trackers.mlflow.evaluations import TRACES, is_evaluation, read_evaluation
from trackperm.trackers.mlflow.history import MlflowHistory
from trackperm.trackers.mlflow.read_back import (
    is_comparison,
    logged_comparison,
    logged_comparisons,
    logged_files,
    logged_tables,
)
from trackperm.trackers.mlflow.statistics import store_statistic, stored_statistics
from trackperm.trackers.mlflow.store import FAILED_STATUSES, Store, moment, restoring
from trackperm.trackers.mlflow.view import SavedView, set_up_view
from trackperm.trackers.mlflow.write import write_comparison
from trackperm.trackers.predictions import Predictions
from trackperm.trackers.publication import (
    KIND_TAG,
    LEADERBOARD,
    LoggedComparison,
    Publication,
    Published,
    logged_by_trackperm,
    nowhere_to_log,
)
from trackperm.trackers.references import RunReference, TrackedRun

_RUN_ID = re.compile(r"[a-zA-Z0-9][\w-]{0,255}")
_PAGE = 1000  # run names that are searched for one similar to a wrong name
_READERS = 8  # threads: a server answers several requests at once, and transfer takes longer than answering
_SHOWN = 20  # references in a hint
_NAMED_BY = "a run is named by its id, or as `mlflow:<experiment>/<run name>`."


class MlflowTracker:
    """Adapter of MLflow, over HTTP or on a local store; see :class:`trackperm.trackers.base.Tracker`.

    A run is named ``<run id>`` or ``<experiment>/<run name>``. If a name contains several ``/``, the split is
    the one at which an experiment and a run of it exist. ``models:/<name>/<version>`` and
    ``models:/<name>@<alias>`` name the run that made a version of a registered model. Without `tracking_uri`,
    the store is the one that ``mlflow.set_tracking_uri`` or ``MLFLOW_TRACKING_URI`` names; a store is never
    created.
    """

    scheme: ClassVar[str] = "mlflow"
    options: ClassVar[frozenset[str]] = frozenset({"tag_runs"})

    def __init__(self, tracking_uri: str | None = None) -> None:
        self._store = Store(tracking_uri)

    @classmethod
    def of_run(cls, run: Any, tracking_uri: str | None = None) -> MlflowTracker:  # noqa: ARG003
        """Connect to the store that MLflow's own functions use, as `run` does not name one."""
        return cls(tracking_uri or mlflow.get_tracking_uri())

    def find(self, locator: str) -> TrackedRun:
        """Find the run that `locator` names; comparisons and deleted runs are refused."""
        if locator.startswith("models:/"):
            return self.history().aliased(locator).run
        run = self._named(locator) if "/" in locator else self._identified(locator)
        self._require_active(run)
        if is_comparison(run):
            raise logged_by_trackperm(f"mlflow:{run.info.run_id}", run.data.tags[KIND_TAG])
        return self._store.tracked(run)

    def read(self, run: TrackedRun, artifact: str | None = None) -> ExampleTable:
        """Read the per-example table that `run` logged, with the names of its input datasets.

        The table of a run of ``mlflow.genai.evaluate`` is its evaluation. Where such a run has logged a table
        as well, the artifact ``traces`` names the evaluation.
        """
        found = self._store.run(run)
        path, _, part = (artifact or "").partition("::")
        if artifact is None:
            logged = find_table(self._store, run, is_evaluation=is_evaluation(found))
        else:
            logged = TableArtifact(path) if path == TRACES else named_table(self._store, run, path)
        if logged.path == TRACES:
            return _with_facts(read_evaluation(self._store, run), found)
        with TemporaryDirectory(prefix="trackperm-") as folder:
            with self._store.calls(f"downloading `{logged.path}` of run `{run.reference}`") as client:
                file = RunArtifacts(client, found).fetch(logged, folder)
            table = read_examples(file, origin=str(run.reference), part=part or None).loaded()
        return _with_facts(as_evaluated(table, found.data.tags, logged.path), found)

    def tables(self, run: TrackedRun) -> list[str]:
        """List the artifacts of `run` that can hold per-example predictions."""
        return table_paths(self._store, run)

    def read_all(
        self, runs: Sequence[TrackedRun], artifact: str | None = None
    ) -> Iterator[ExampleTable | InputError]:
        """Read the tables of many runs in parallel, and yield them in the order of the runs."""
        with self._store.shared(), ThreadPoolExecutor(_READERS, "trackperm-mlflow") as readers:
            yield from readers.map(partial(table_or_error, self, artifact=artifact), runs)

    def log_predictions(self, run: Any, predictions: Predictions) -> RunReference:
        """Log `predictions` as an artifact of `run`, finished or not; its status and times stay.

        `run` is an ``mlflow.ActiveRun``, an ``mlflow.entities.Run`` or a locator. Deleted runs and
        comparisons are refused, and other objects raise :class:`~trackperm.errors.InputTypeError`.
        """
        if not isinstance(run, str | Run):
            raise InputTypeError(
                f"{type(run).__module__}.{type(run).__qualname__} is not a run of MLflow",
                hint="pass what `mlflow.start_run` returned, or `mlflow:RUN_ID`.",
            )
        found = self.find(run if isinstance(run, str) else run.info.run_id)
        write_predictions(self._store, found, predictions)
        return found.reference

    def publish(
        self,
        publication: Publication,
        container: str | None = None,
        *,
        alert: bool = False,
        tag_runs: bool = False,
    ) -> Published:
        """Write `publication` as a run nested under the candidate, or update that run.

        A candidate in the same experiment gets its tags; other runs only with `tag_runs`, and then the two
        runs of a comparison get its page as well. A leaderboard is a run of its own, and the description of
        the experiment shows it too. With a `container`, nothing is written to the candidate's experiment, so
        that it need not be writable.

        Two writers at the same moment can leave several runs with one key; the newest complete one counts.
        MLflow has no alerts, so `alert` is refused.
        """
        require_options(self, alert=alert)
        candidate, home = (
            run if run is not None and run.reference.scheme == "mlflow" else None
            for run in (publication.candidate, publication.home)
        )
        if container is not None:
            experiment_id = self._store.experiment_id(container)
        elif home is not None:
            experiment_id = home.container
        else:
            raise nowhere_to_log(
                publication.kind, "MLflow", "`--log-to mlflow:EXPERIMENT` names an experiment."
            )
        published = write_comparison(self._store, publication, candidate, experiment_id, tag_runs=tag_runs)
        if publication.kind != LEADERBOARD:
            return published
        run_id = published.run.reference.locator
        return replace(published, remarks=describe_experiment(self._store, experiment_id, run_id))

    def set_up_view(self, experiment: str, statistics: Sequence[str] = ()) -> SavedView:
        """Save the view ``Significance`` in `experiment`; see :func:`set_up_view`."""
        return set_up_view(self._store, self._store.experiment_id(experiment), statistics)

    def store_statistic(self, experiment: str, file: Path, *, is_replaced: bool = False) -> str:
        """Store a spec in `experiment`; see :func:`store_statistic`."""
        return store_statistic(
            self._store, self._store.experiment_id(experiment), file, is_replaced=is_replaced
        )

    def stored_statistics(self, experiment_id: str) -> dict[str, Statistic | TrackpermError]:
        """Read the statistics that are stored in an experiment; see :func:`stored_statistics`."""
        return stored_statistics(self._store, experiment_id)

    def comparison(self, locator: str) -> LoggedComparison:
        """Find the comparison or leaderboard with this run id, or ``<experiment>/<name>``."""
        run = self._named(locator, comparisons=True) if "/" in locator else self._identified(locator)
        if not is_comparison(run):
            raise InputError(
                f"run `mlflow:{locator}` is not a comparison",
                hint="name the run that trackperm logged; `trackperm family` lists those of a test set.",
            )
        self._require_active(run)
        return logged_comparison(self._store, run)

    def comparisons(self, near: TrackedRun | str, test_set: str | None = None) -> list[LoggedComparison]:
        """List the comparisons and leaderboards in the experiment `near`, or in that of the run `near`."""
        if isinstance(near, str):
            experiment_id = self._store.experiment_id(near)
        elif near.reference.scheme == "mlflow":
            experiment_id = near.container
        else:
            raise InputError(f"run `{near.reference}` is not in MLflow", hint="name an experiment.")
        return logged_comparisons(self._store, experiment_id, test_set)

    def files(self, run: TrackedRun) -> dict[str, bytes]:
        """Read the artifacts of a comparison under ``trackperm/``, by path."""
        return logged_files(self._store, run)

    def shown_tables(self, run: TrackedRun) -> dict[str, bytes]:
        """Read the tables that the page of a comparison shows, by name, as JSON."""
        return logged_tables(self._store, run)

    def runs(self, container: str) -> list[TrackedRun]:
        """List the finished runs of the experiment called `container`, oldest first."""
        return [record.run for record in self.history().finished(container)]

    def container_name(self, run: TrackedRun) -> str:
        """Return the name of the experiment that holds `run`."""
        with self._store.calls(f"looking up experiment {run.container}") as client:
            return str(client.get_experiment(run.container).name)

    def status(self) -> str:
        """Return the store that answers, with the number of its experiments, up to a page of them."""
        with self._store.calls("listing experiments") as client:
            n = len(client.search_experiments(max_results=_PAGE))
        return f"MLflow {mlflow.__version__} at `{self._store.label}` answers; experiments: {n}"

    def history(self) -> MlflowHistory:
        """Return the history of the store: past runs and registered models."""
        return MlflowHistory(self._store)

    def _identified(self, run_id: str) -> Run:
        if _RUN_ID.fullmatch(run_id):
            with self._store.calls(f"looking up run `mlflow:{run_id}`") as client:
                try:
                    return client.get_run(run_id)
                except MlflowException as error:
                    if error.error_code not in ("RESOURCE_DOES_NOT_EXIST", "NOT_FOUND"):
                        raise
        raise InputError(
            f"MLflow at `{self._store.label}` has no run with id `{run_id}`", hint=self._hint_for_name(run_id)
        )

    def _hint_for_name(self, name: str) -> str:
        """Suggest references for a name that is not a run id."""
        with self._store.calls(f"looking up runs called `{name}`") as client:
            experiments = {
                exp.experiment_id: exp.name for exp in client.search_experiments(max_results=_SHOWN * 5)
            }
        runs = self._runs_called(name, list(experiments)) if experiments else []
        if not runs and name in experiments.values():
            if self.runs(name):
                return f"`{name}` is an experiment: `mlflow:{name}/<run name>` names a run of it."
            return f"`{name}` is an experiment without a finished run."
        if not runs:
            return _NAMED_BY
        references = sorted({f"`mlflow:{experiments[run.info.experiment_id]}/{name}`" for run in runs})
        return f"Did you mean {' or '.join(references[:_SHOWN])}?"

    def _require_active(self, run: Run) -> None:
        """Refuse a deleted run, with the command that restores it."""
        if run.info.lifecycle_stage != "active":
            with self._store.calls(f"looking up run `mlflow:{run.info.run_id}`") as client:
                hint = restoring(client, run)
            raise InputError(f"run `mlflow:{run.info.run_id}` is deleted", hint=hint)

    def _named(self, locator: str, *, comparisons: bool = False) -> Run:
        """Find the only run of that experiment and name, or else the only comparison."""
        parts = locator.split("/")
        splits = [("/".join(parts[:i]), "/".join(parts[i:])) for i in range(len(parts) - 1, 0, -1)]
        splits = [(experiment, name) for experiment, name in splits if experiment and name]
        if not splits:
            raise InputError(
                f"`mlflow:{locator}` is not a run; expected `mlflow:<experiment>/<run name>`",
                hint="write both the experiment and the name of the run.",
            )
        known = [split for split in splits if self._store.experiment(split[0]) is not None]
        runs = [
            (experiment, run)
            for experiment, name in known or splits
            for run in self._called(experiment, name, comparisons=comparisons)
        ]
        if len(runs) == 1:
            return runs[0][1]
        if not runs:
            experiment, name = (known or splits)[0]
            there = self._run_names(self._store.experiment_id(experiment), comparisons=comparisons)
            raise InputError(
                f"experiment `{experiment}` has no {'comparison' if comparisons else 'run'} called `{name}`",
                hint=did_you_mean(name, there).strip() or _NAMED_BY if there else "the experiment is empty.",
            )
        lines = [
            f"mlflow:{run.info.run_id}  run `{run.info.run_name}` of experiment `{experiment}`, started"
            f" {moment(run.info.start_time):%Y-%m-%d %H:%M:%S UTC}, {run.info.status}"
            for experiment, run in runs
        ]
        raise InputError(
            f"{len(runs)} {'comparisons' if comparisons else 'runs'} are called `mlflow:{locator}`:"
            f"\n\n{listing(lines)}",
            hint="name one by its id.",
        )

    def _called(self, experiment: str, name: str, *, comparisons: bool) -> list[Run]:
        return self._runs_called(name, [self._store.experiment_id(experiment)], comparisons=comparisons)

    def _runs_called(self, name: str, experiment_ids: list[str], *, comparisons: bool = False) -> list[Run]:
        """List the active runs of that name, newest first, without comparisons, or only these."""
        quote = next((mark for mark in "'\"" if mark not in name), None)
        if quote is None:
            raise InputError(
                f"MLflow cannot search for a run called `{name}`", hint="name the run by its id."
            )
        wanted = f"attributes.run_name = {quote}{name}{quote}"
        runs = self._store.search(f"looking up runs called `{name}`", experiment_ids, wanted)
        return [run for run in runs if run.info.run_name == name and is_comparison(run) == comparisons]

    def _run_names(self, experiment_id: str, *, comparisons: bool) -> list[str]:
        with self._store.calls("listing runs") as client:
            runs = client.search_runs([experiment_id], max_results=_PAGE)
        return [run.info.run_name for run in runs if is_comparison(run) == comparisons]


def _with_facts(table: ExampleTable, found: Run) -> ExampleTable:
    """Add the input datasets of a run to its table, and a note if the run did not end well."""
    datasets = [] if found.inputs is None else found.inputs.dataset_inputs
    names = sorted(f"{used.dataset.name} {used.dataset.digest}" for used in datasets)
    facts = {"dataset": ", ".join(names)} if names else {}
    ended = FAILED_STATUSES.get(found.info.status)
    notes = () if ended is None else (f"the run {ended}",)
    return replace(table, facts={**table.facts, **facts}, notes=(*table.notes, *notes))
