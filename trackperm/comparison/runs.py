"""Runs of a comparison: the arguments that name them, their tables and reference answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trackperm.errors import DisjointError, InputError, InputTypeError, PairingError, TrackerError
from trackperm.messages import listed
from trackperm.pairing.columns.facts import dataset_names
from trackperm.pairing.columns.shared_values import have_same_values
from trackperm.statistic import Statistic
from trackperm.tables import References, labelled, split_part
from trackperm.tables.columns.renamed import like_names, with_renamed_columns
from trackperm.tables.remote import shown_locator
from trackperm.tables.table import ExampleTable, holds_values, shared_columns
from trackperm.trackers.base import Tracker, open_tracker
from trackperm.trackers.files import read_file
from trackperm.trackers.references import RunReference, TrackedRun

_NAMES_OF_TEST_SETS = ("task", "dataset", "scenario", "dataset artifact")
"""Facts of logs that name the test set of a run."""

_DEFAULT_DATASET = "dataset"  # name that MLflow gives to a data set without one

_RUNS = ("baseline", "candidate")
_ARRAYS = ("y_true", "y_baseline", "y_candidate")
_FORMS = (
    "`trackperm.compare(baseline, candidate, statistic)` takes paths, references and data frames;"
    " `trackperm.compare(y_true, y_baseline, y_candidate, statistic=...)` takes arrays."
)


@dataclass(frozen=True)
class RunData:
    """Per-example table of one run, with the run in its tracker if it has one.

    Attributes
    ----------
    table : ExampleTable
        The table of examples.
    name : str
        Display name of the run.
    run : TrackedRun or None
        The run in its tracker; None for a file or data frame.
    tracker : Tracker or None
        The tracker that has the run.
    artifact : str or None
        Artifact that was chosen in the run, as ``PATH`` or ``PATH::PART``; None if the run has only one.
    columns : mapping of str to str
        This run's own names of columns, by those in the comparison, where they differ.
    labels : References or None
        Separate reference answers that were added to the table.
    """

    table: ExampleTable
    name: str
    run: TrackedRun | None = None
    tracker: Tracker | None = field(default=None, compare=False, repr=False)
    artifact: str | None = field(default=None, compare=False, repr=False)
    columns: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    labels: References | None = field(default=None, compare=False, repr=False)

    def for_statistic(self, statistic: Statistic) -> RunData:
        """Return the run with the examples to which the scores that `statistic` reads belong."""
        table = self.table.for_scores(statistic.columns.values())
        return self if table is self.table else replace(self, table=table)

    def under(self, reference: str) -> RunData:
        """Return the run under another reference, such as one that it had before."""
        return replace(self, table=replace(self.table, origin=reference))


class TwoRuns:
    """Base of results about two runs: their names, and what they are in their trackers."""

    baseline_data: RunData
    candidate_data: RunData

    @property
    def baseline(self) -> str:
        """The baseline in messages: a run reference, a path or ``baseline``."""
        return self.baseline_data.table.origin

    @property
    def candidate(self) -> str:
        """The candidate in messages: a run reference, a path or ``candidate``."""
        return self.candidate_data.table.origin

    @property
    def baseline_name(self) -> str:
        """Display name of the baseline."""
        return self.baseline_data.name

    @property
    def candidate_name(self) -> str:
        """Display name of the candidate."""
        return self.candidate_data.name

    @property
    def shown_names(self) -> tuple[str, str]:
        """Display names of baseline and candidate; their references, or roles, where the names are equal."""
        named = (self.baseline_name, self.candidate_name), (self.baseline, self.candidate)
        return next((names for names in named if names[0] != names[1]), ("the baseline", "the candidate"))

    @property
    def baseline_run(self) -> TrackedRun | None:
        """The baseline in its tracker; None if it is not in one."""
        return self.baseline_data.run

    @property
    def candidate_run(self) -> TrackedRun | None:
        """The candidate in its tracker; None if it is not in one."""
        return self.candidate_data.run


@dataclass(frozen=True)
class Inputs:
    """Arguments of :func:`trackperm.compare` by name, in either of its two forms.

    Attributes
    ----------
    baseline, candidate : object
        Runs, or arrays of predictions or scores.
    statistic : object
        The statistic or statistics.
    y_true : object
        Labels; None without them.
    are_arrays : bool
        Whether the runs are arrays.
    """

    baseline: Any
    candidate: Any
    statistic: Any
    y_true: Any = None
    are_arrays: bool = False


def inputs_of(positional: Sequence[Any], named: Mapping[str, Any]) -> Inputs:
    """Recognise the form of a call by its first argument.

    Raises
    ------
    InputTypeError
        If arguments are missing, too many, given twice, or of both forms.
    """
    given = {name: value for name, value in named.items() if value is not None}
    arrays = [name for name in _ARRAYS if name in given]
    first = positional[0] if positional else given.get("baseline")
    if not arrays and not holds_values(first):
        return _inputs_of_runs(positional, given)
    if len(positional) == 3 and isinstance(positional[2], str | Path | Statistic):
        raise InputTypeError(
            "arrays are followed by a statistic without its name",
            hint="name it: `trackperm.compare(y_true, y_baseline, y_candidate, statistic=...)`.",
        )
    if not positional and not arrays:
        positional = [given.pop("baseline"), given.pop("candidate", None)]
    if any(name in given for name in _RUNS):
        raise InputTypeError("the arguments name runs and arrays; expected one of them", hint=_FORMS)
    names = _ARRAYS if len(positional) + len(arrays) == 3 or "y_true" in given else _ARRAYS[1:]
    bound = _bound(positional, given, names)
    for name in names:
        if not holds_values(bound.get(name)):
            raise InputTypeError(f"`{name}` is {_kind(bound.get(name))}; expected an array", hint=_FORMS)
    return Inputs(
        bound["y_baseline"],
        bound["y_candidate"],
        bound.get("statistic"),
        bound.get("y_true"),
        are_arrays=True,
    )


def _inputs_of_runs(positional: Sequence[Any], given: Mapping[str, Any]) -> Inputs:
    bound = _bound(positional, given, (*_RUNS, "statistic"))
    for name in _RUNS:
        value = bound.get(name)
        if value is None or holds_values(value):
            raise InputTypeError(
                f"`{name}` is {_kind(value)}; expected a path, a reference or a data frame", hint=_FORMS
            )
    return Inputs(bound["baseline"], bound["candidate"], bound.get("statistic"))


def _bound(positional: Sequence[Any], given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Give arguments by position the names that no keyword has."""
    twice = [
        name for name, _ in zip(names, positional, strict=False) if name in given and name == "statistic"
    ]
    free = [name for name in names if name not in given]
    if twice or len(positional) > len(free):
        raise InputTypeError(
            f"{len(positional)} arguments by position and {listed(given) or 'no'} by name are too many",
            hint=_FORMS,
        )
    return {**given, **dict(zip(free, positional, strict=False))}


def _kind(value: object) -> str:
    if value is None:
        return "missing"
    return f"{'an array' if holds_values(value) else 'of another kind'} (`{type(value).__name__}`)"


def reference_answers(labels: Any, columns: Mapping[str, str], *, by_position: bool) -> References | None:
    """Locate separate reference answers, if there are any; options as in :func:`compare`."""
    if labels is None:
        return None
    id_, label, prediction = (columns.get(role, role) for role in ("id", "label", "prediction"))
    references = References("labels", None, id_, label, by_position, prediction)
    if isinstance(labels, str | Path):
        path, part = split_part(str(labels))
        return replace(references, path=path, part=part)
    try:
        table = ExampleTable.from_native(labels, "labels")
    except InputTypeError as error:
        raise InputTypeError(
            f"`labels` is of type `{type(labels).__name__}`; expected the path of a file, or a data frame",
            hint="it has columns of ids and labels: `polars.DataFrame({'id': ..., 'label': ...})`. Labels in"
            " the order of the rows are a column of each run instead.",
        ) from error
    return replace(references, table=table)


def require_artifacts_of_runs(artifact: object, baseline: object, candidate: object) -> None:
    """Refuse an artifact path if neither source is a run of a tracker."""
    if artifact is not None and not (is_tracked(baseline) or is_tracked(candidate)):
        raise InputError(
            "`--artifact` needs a run in a tracker; expected `mlflow:...` or `wandb:...`, not files",
            hint="to choose a part of a file, write `FILE::PART`.",
        )


def load_run(
    source: Any,
    role: str,
    *,
    artifact: str | None = None,
    references: References | None = None,
    tracking_uri: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> RunData:
    """Read the per-example table of one run, with separate reference answers if there are any.

    `role`, ``baseline`` or ``candidate``, is the name of a data frame in messages; `columns` gives this run's
    names of columns that have other names in the comparison. Other options are those of :func:`compare`.
    """
    if columns:
        run = load_run(source, role, artifact=artifact, tracking_uri=tracking_uri)
        table = with_renamed_columns(run.table, columns, f"{role}-column")
        table = table if references is None else labelled(table, references)
        return replace(run, table=table, columns=columns, labels=references)
    return replace(_loaded(source, role, artifact, references, tracking_uri), labels=references)


def _loaded(
    source: Any, role: str, artifact: str | None, references: References | None, tracking_uri: str | None
) -> RunData:
    if isinstance(source, TrackedRun):
        return _of_tracked_run(source, artifact, references, tracking_uri)
    if not isinstance(source, str | Path):
        table = replace(ExampleTable.from_native(source, role), is_in_program=True)
        return RunData(table if references is None else labelled(table, references), role)
    reference = RunReference.parse(source) if isinstance(source, str) else RunReference("file", str(source))
    if reference.scheme == "file":
        return RunData(read_file(reference.locator, references), Path(shown_locator(reference.locator)).name)
    tracker = open_tracker(reference.scheme, tracking_uri)
    return _read(tracker, tracker.find(reference.locator), artifact, references)


def load_runs(
    baseline: Any,
    candidate: Any,
    *,
    artifact: str | tuple[str | None, str | None] | None = None,
    references: References | None = None,
    tracking_uri: str | None = None,
    columns: Mapping[str, str] | None = None,
    own_columns: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
    begin: Callable[[str], object] = lambda _: None,
) -> tuple[RunData, RunData]:
    """Read the two runs of a comparison.

    `columns` has the names of both runs' columns, and `own_columns` those in which one run differs. `begin`
    receives a description of each step; other options are those of :func:`compare`.
    """

    def read(place: int, source: Any, role: str) -> RunData:
        begin(f"reading the {role}")
        named = {(columns or {}).get(name, name): own for name, own in own_columns[place].items()}
        path = artifact[place] if isinstance(artifact, tuple) else artifact
        return load_run(
            source, role, artifact=path, references=references, tracking_uri=tracking_uri, columns=named
        )

    both = read(0, baseline, "baseline"), read(1, candidate, "candidate")
    return _with_distinct_names(*with_like_names(*both), own_columns)


def with_like_names(baseline: RunData, candidate: RunData) -> tuple[RunData, RunData]:
    """Rename columns of the candidate as the baseline spells them: ``Question ID`` for ``question_id``.

    Columns that a run spells in two ways are left.
    """
    are_same = {*baseline.table.columns} == {*candidate.table.columns}
    names = {} if are_same else like_names(baseline.table, candidate.table)
    if not names:
        return baseline, candidate
    table = with_renamed_columns(candidate.table, names, "candidate-column")
    note = f"its columns {listed(names.values())} are read as {listed(names)}"
    own = {name: candidate.columns.get(old, old) for name, old in names.items()}
    columns = {name: old for name, old in candidate.columns.items() if name not in names.values()} | own
    return baseline, replace(candidate, table=replace(table, notes=(*table.notes, note)), columns=columns)


def _with_distinct_names(
    baseline: RunData, candidate: RunData, own_columns: tuple[Mapping[str, str], Mapping[str, str]]
) -> tuple[RunData, RunData]:
    """Add what is compared of each to the names, if both are of one run: artifacts, or else columns."""
    first, second = baseline.run, candidate.run
    if first is None or second is None or run_identity(first) != run_identity(second):
        return baseline, candidate
    columns = [", ".join(own.values()) for own in own_columns]
    by_artifact = baseline.artifact != candidate.artifact
    parts = [baseline.artifact, candidate.artifact] if by_artifact else columns
    if parts[0] == parts[1]:
        return baseline, candidate
    named = (
        replace(run, name=f"{run.name} ({part})" if part else run.name)
        for run, part in zip((baseline, candidate), parts, strict=True)
    )
    return next(named), next(named)


def require_two_runs(
    baseline: RunData,
    candidate: RunData,
    artifact: str | tuple[str, str] | None = None,
    own_columns: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
) -> None:
    """Refuse two references to one run of a tracker, unless other artifacts or columns of it are compared.

    Raises
    ------
    InputError
        If baseline and candidate are the same: the result would replace that of a comparison of two runs.
    """
    first, second = baseline.run, candidate.run
    if first is None or second is None or run_identity(first) != run_identity(second):
        return
    has_two_paths = isinstance(artifact, tuple) and artifact[0] != artifact[1]
    if has_two_paths or own_columns[0] != own_columns[1]:
        return
    raise InputError(
        f"baseline and candidate are the same run, `{first.reference}` (`{first.name}`)",
        hint="name two runs; `--artifact BASE,CAND` compares two artifacts of one run, and `--baseline-column"
        " NAME=COLUMN` with `--candidate-column NAME=COLUMN` two columns.",
    )


def run_identity(run: TrackedRun) -> tuple[str, str | None]:
    """Return reference and store of a run, since two stores can have equal references."""
    return str(run.reference), run.tracking_uri


@contextmanager
def named_test_sets(baseline: RunData, candidate: RunData, id_: str) -> Iterator[None]:
    """Replace errors of pairing by `id_` by a PairingError that names the test sets, if these differ."""
    try:
        yield
    except (PairingError, InputTypeError) as error:
        reason = _test_sets_of_logs(baseline, candidate, id_)
        if reason is None and isinstance(error, DisjointError | InputTypeError):
            reason = _experiments(baseline, candidate)
        if reason is None:
            raise
        hint = "compare runs on one test set."
        if isinstance(error, PairingError) and error.hint is not None:
            hint = f"{hint} {error.hint[:1].upper()}{error.hint[1:]}"
        raise PairingError(f"{reason}\n\n{error.message}", hint=hint) from error


def _test_sets_of_logs(baseline: RunData, candidate: RunData, id_: str) -> str | None:
    """Describe the names of the test sets in the logs; None if they do not differ."""
    first, second = baseline.table.facts, candidate.table.facts
    for name in _NAMES_OF_TEST_SETS:
        if name not in first or name not in second or first[name] == second[name]:
            continue
        names = dataset_names(first[name])
        if names == dataset_names(second[name]):
            # MLflow's digest of a data frame includes the outputs beside its inputs.
            is_named = names != {_DEFAULT_DATASET}
            tables = baseline.table, candidate.table
            have_ids = id_ in shared_columns(tables)
            if not is_named or (have_ids and have_same_values(tables, id_, if_unknown=False)):
                continue
        return (
            f"the test sets of the runs differ: {name} `{first[name]}` in `{baseline.table.origin}`,"
            f" {name} `{second[name]}` in `{candidate.table.origin}`"
        )
    return None


def _experiments(baseline: RunData, candidate: RunData) -> str | None:
    """Describe the experiments or projects of the runs; None if they do not differ."""
    places = _place(baseline), _place(candidate)
    if None in places or places[0] == places[1]:
        return None
    return (
        f"`{baseline.table.origin}` is in the experiment `{places[0]}` and `{candidate.table.origin}` in"
        f" `{places[1]}`, whose test sets seem to differ"
    )


def _place(data: RunData) -> str | None:
    """Return the name of the experiment or project of a run; None for files."""
    if data.run is None or data.tracker is None:
        return None
    find = getattr(data.tracker, "container_name", None)
    try:
        return data.run.container if find is None else str(find(data.run))
    except TrackerError:  # the pairing error is reported, not this one
        return data.run.container


def is_tracked(source: object) -> bool:
    """Whether `source` is a run of a tracker: a reference or a :class:`TrackedRun`."""
    if isinstance(source, TrackedRun):
        return source.reference.scheme != "file"
    return isinstance(source, str) and RunReference.parse(source).scheme != "file"


def _of_tracked_run(
    run: TrackedRun, artifact: str | None, references: References | None, tracking_uri: str | None
) -> RunData:
    if run.reference.scheme == "file":
        return RunData(read_file(run.reference.locator, references), run.name, run)
    return _read(
        open_tracker(run.reference.scheme, run.tracking_uri or tracking_uri), run, artifact, references
    )


def _read(tracker: Tracker, run: TrackedRun, artifact: str | None, references: References | None) -> RunData:
    table = tracker.read(run, artifact)
    table = table if references is None else labelled(table, references)
    return RunData(table, run.name, run, tracker, artifact)
