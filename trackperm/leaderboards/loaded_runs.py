"""Loading of the runs of a leaderboard from files, frames, trackers or a whole experiment."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trackperm.comparison import RunData, load_run
from trackperm.comparison.runs import is_tracked, run_identity
from trackperm.errors import InputError
from trackperm.leaderboards.paired_runs import ExcludedRun, Progress, too_few_runs
from trackperm.tables import References, labelled
from trackperm.tables.remote import shown_locator
from trackperm.tables.table import ExampleTable
from trackperm.trackers.base import Tracker, open_tracker
from trackperm.trackers.references import RunReference, TrackedRun


@dataclass(frozen=True, eq=False)
class LoadedRuns:
    """Loaded runs of a leaderboard.

    Attributes
    ----------
    runs : tuple of RunData
        The runs, with distinct names.
    unreadable : tuple of ExcludedRun
        Runs of an experiment whose tables cannot be read.
    baseline : RunData or None
        The baseline, one of `runs`.
    """

    runs: tuple[RunData, ...]
    unreadable: tuple[ExcludedRun, ...] = ()
    baseline: RunData | None = None


def load_runs(
    sources: Sequence[Any] | Mapping[str, Any],
    *,
    baseline: Any = None,
    experiment: str | None = None,
    artifact: str | None = None,
    references: References | None = None,
    tracking_uri: str | None = None,
    progress: Progress = lambda _: None,
) -> LoadedRuns:
    """Read the per-example tables of runs; options as in :func:`trackperm.leaderboard`.

    `progress` receives a description of each step before it begins.

    Raises
    ------
    InputError
        If fewer than two runs can be read, or if a named source cannot be read.
    TrackerError
        If a tracker cannot be reached.
    """
    read = _Reader(artifact, references, tracking_uri, progress)
    named: list[tuple[str | None, Any]] = [(None, each) for each in sources]
    if isinstance(sources, Mapping):
        named = [(str(name), each) for name, each in sources.items()]
    runs = read.sources(named)
    errors: list[tuple[TrackedRun, InputError]] = []
    if experiment is not None:
        found, errors = read.experiment(experiment)
        if not (found or errors or runs):
            raise InputError(f"`{experiment}` has no finished run; expected at least two")
        known = {run.table.origin for run in runs}
        runs += [run for run in found if run.table.origin not in known]
    elif not runs:
        raise InputError("there are no runs; a leaderboard needs at least two")
    chosen = None
    if baseline is not None:
        chosen = _named(baseline, named, runs)
        if chosen is None:
            (found_baseline,) = read.sources([(None, baseline)], first=0)
            chosen = next((i for i, run in enumerate(runs) if _is_same(run, found_baseline, baseline)), None)
            if chosen is None:
                runs.insert(0, found_baseline)
                chosen = 0
    runs = _with_distinct_names(runs)
    unreadable = tuple(
        ExcludedRun(run.name, str(run.reference), error.message, error.hint) for run, error in errors
    )
    if len(runs) < 2:
        hint = "name another run, or all runs of an experiment by `--experiment mlflow:NAME`."
        if experiment is not None:
            hint = "name another run beside `--experiment`, which takes finished runs."
        raise too_few_runs(runs, unreadable, next((error.hint for _, error in errors if error.hint), hint))
    return LoadedRuns(tuple(runs), unreadable, None if chosen is None else runs[chosen])


_Identity = tuple[str, str | None]


@dataclass(frozen=True)
class _Reader:
    artifact: str | None
    references: References | None
    tracking_uri: str | None
    progress: Callable[[str], None]

    def sources(self, named: Sequence[tuple[str | None, Any]], first: int = 1) -> list[RunData]:
        """Read the named sources, those in trackers first; an unreadable source is an error."""
        runs = self._tracked([source for _, source in named if is_tracked(source)])
        found = []
        for number, (name, source) in enumerate(named, start=first):
            if is_tracked(source):
                run = runs[_identity(source)]
            else:
                shown = shown_locator(source) if isinstance(source, str) else f"run {number}"
                self.progress(f"reading: {name or shown}")
                run = load_run(
                    source, name or (f"run {number}" if number else "baseline"), references=self.references
                )
            found.append(run if name is None else replace(run, name=name))
        _require_distinct(named, found)
        return found

    def experiment(self, experiment: str) -> tuple[list[RunData], list[tuple[TrackedRun, InputError]]]:
        """Read all runs of an experiment or project; return also the errors of those that cannot be read."""
        tracker, found = experiment_runs(experiment, self.tracking_uri)
        runs, errors = [], []
        for run, read in self._tables(tracker, found):
            if isinstance(read, InputError):
                errors.append((run, read))
            else:
                runs.append(RunData(read, run.name, run, tracker))
        return runs, errors

    def _tracked(self, sources: Sequence[str | TrackedRun]) -> dict[_Identity, RunData]:
        stores: dict[tuple[str, str | None], list[str | TrackedRun]] = {}
        for source in {_identity(source): source for source in sources}.values():
            if isinstance(source, TrackedRun):
                store = source.reference.scheme, source.tracking_uri or self.tracking_uri
            else:
                store = RunReference.parse(source).scheme, self.tracking_uri
            stores.setdefault(store, []).append(source)
        runs: dict[_Identity, RunData] = {}
        for (scheme, tracking_uri), of_store in stores.items():
            tracker = open_tracker(scheme, tracking_uri)
            found = [
                source if isinstance(source, TrackedRun) else tracker.find(RunReference.parse(source).locator)
                for source in of_store
            ]
            for source, (run, read) in zip(of_store, self._tables(tracker, found), strict=True):
                if isinstance(read, InputError):
                    raise read
                runs[_identity(source)] = RunData(read, run.name, run, tracker)
        return runs

    def _tables(
        self, tracker: Tracker, runs: Sequence[TrackedRun]
    ) -> list[tuple[TrackedRun, ExampleTable | InputError]]:
        read = zip(self._announced(runs), tracker.read_all(runs, self.artifact), strict=True)
        return [(run, self._labelled(table)) for run, table in read]

    def _announced(self, runs: Sequence[TrackedRun]) -> Iterator[TrackedRun]:
        for run in runs:
            self.progress(f"reading: {run.name}")
            yield run

    def _labelled(self, table: ExampleTable | InputError) -> ExampleTable | InputError:
        if self.references is None or isinstance(table, InputError):
            return table
        try:
            return labelled(table, self.references)
        except InputError as error:
            return error


def experiment_runs(experiment: str, tracking_uri: str | None = None) -> tuple[Tracker, Sequence[TrackedRun]]:
    """List the finished runs of an experiment or project, with the tracker that holds them."""
    reference = RunReference.parse(experiment)
    if reference.scheme == "file":
        raise InputError(
            f"`--experiment {experiment}` does not name a tracker",
            hint=f"write `--experiment mlflow:{experiment}`, or `--experiment wandb:ENTITY/PROJECT`.",
        )
    tracker = open_tracker(reference.scheme, tracking_uri)
    return tracker, tracker.runs(reference.locator)


def _identity(source: str | TrackedRun) -> _Identity:
    """Return the reference and store of a run, since two stores can have equal references."""
    return (source, None) if isinstance(source, str) else run_identity(source)


def _require_distinct(named: Sequence[tuple[str | None, Any]], runs: Sequence[RunData]) -> None:
    """Refuse two references to one run of a tracker, unless they are given names."""
    seen: dict[_Identity, Any] = {}
    for (name, source), run in zip(named, runs, strict=True):
        if run.run is not None and name is None:
            other = seen.setdefault(run_identity(run.run), source)
            if other != source:
                raise InputError(f"`{other}` and `{source}` are the same run", hint="name each run once.")


def _is_same(run: RunData, other: RunData, source: Any) -> bool:
    """Whether two runs are one run of a tracker, or one file; `source` is what the second was read from."""
    if run.run is not None and other.run is not None:
        return run_identity(run.run) == run_identity(other.run)
    is_file = isinstance(source, str | Path) and run.run is None and other.run is None
    return is_file and os.path.realpath(run.table.origin) == os.path.realpath(other.table.origin)


def _named(baseline: Any, named: Sequence[tuple[str | None, Any]], runs: Sequence[RunData]) -> int | None:
    """Return the index of the baseline: the same source, or a run of that name or reference."""
    for i, (name, source) in enumerate(named):
        is_comparable = isinstance(baseline, str | TrackedRun) and isinstance(source, type(baseline))
        if source is baseline or (isinstance(baseline, str) and baseline == name):
            return i
        if is_comparable and baseline == source:
            return i
    if isinstance(baseline, TrackedRun):
        baseline = str(baseline.reference)
    if not isinstance(baseline, str):
        return None
    places = [i for i, run in enumerate(runs) if baseline in (run.table.origin, run.name)]
    places = places or [
        i for i, run in enumerate(runs) if run.run is not None and baseline == run.run.reference.locator
    ]
    if len(places) > 1:
        raise InputError(
            f"{len(places)} runs have the name `{baseline}`", hint="name the baseline by its reference."
        )
    return places[0] if places else None


def _with_distinct_names(runs: Sequence[RunData]) -> list[RunData]:
    """Make names of runs distinct, by their origins, or by numbers if these are equal as well."""
    shared = Counter(run.name for run in runs)
    names = [run.name if shared[run.name] == 1 else run.table.origin for run in runs]
    seen: Counter[str] = Counter()
    result = []
    for run, name in zip(runs, names, strict=True):
        seen[name] += 1
        result.append(replace(run, name=name if seen[name] == 1 else f"{name} ({seen[name]})"))
    return result
