"""``trackperm inspect``: description of a file or run, and of the statistics that it supports."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trackperm.cli.arguments import TrackingUri
from trackperm.cli.output import OutputFiles, Renderers, TextOrJson, as_json, emit, require_formats
from trackperm.cli.progress import working
from trackperm.errors import ChoiceError, TrackpermError
from trackperm.messages import printable, without_credentials

if TYPE_CHECKING:
    from trackperm.comparison import RunData
    from trackperm.statistic import Statistic
    from trackperm.tables import Source
    from trackperm.tables.table import ExampleTable

_WIDEST = 40  # characters of a table cell
_TRIED = 1_000
"""Examples on which statistics are tried, so that all statistics together take little time."""

_DESCRIBED = 100_000
"""Rows of a query that are read to describe its columns, so that a large file is not loaded."""

_COMMON = (
    "accuracy",
    "span_f1",
    "las",
    "bracket_f1",
    "pooled_error_rate",
    "roc_auc",
    "multiclass_log_loss",
    "rmse",
    "mean",
    "pass_at_1",
    "squad_em",
    "multilabel_f1",
)
"""Statistics in order of preference for the example command; the mean is that of a metric."""

_OPTIONS = {"id": "--id", "prediction": "--prediction", "label": "--label"}


@dataclass(frozen=True)
class _Column:
    """Description of a column; `why_not` is the reason why it cannot be used, or empty."""

    name: str
    type: str
    n_distinct: int
    n_null: int
    example: object
    why_not: str = ""

    @property
    def usable(self) -> bool:
        """Whether the column has values of a supported type."""
        return not self.why_not and self.type != "nothing"

    @property
    def is_number(self) -> bool:
        return self.type in ("integer", "decimal", "boolean")


def inspect(
    run: Annotated[str, typer.Argument(metavar="FILE|RUN", help="As in `trackperm compare`.")],
    labels: Annotated[
        str | None, typer.Option(metavar="FILE", help="Reference labels, if they are in a separate file.")
    ] = None,
    artifact: Annotated[
        str | None, typer.Option(metavar="NAME", help="Artifact PATH or PATH::PART in the run.")
    ] = None,
    tracking_uri: TrackingUri = None,
    format_: TextOrJson = "text",
    output: OutputFiles = None,
) -> None:
    """Describe a file or run: its format, examples and columns, and the statistics that it supports."""
    from trackperm.comparison import load_run, reference_answers, require_artifacts_of_runs
    from trackperm.tables.remote import is_remote, shown_locator

    require_formats(output, ("text", "json"))
    shown = shown_locator(run) if is_remote(run) else run
    require_artifacts_of_runs(artifact, run, run)
    references = reference_answers(labels, {}, by_position=False)
    try:
        with working("reading the run"):
            data = load_run(run, "run", artifact=artifact, references=references, tracking_uri=tracking_uri)
    except ChoiceError as error:
        emit(_parts(shown, _format(run, None), error), format_, output)
        return
    options = [*_option("--labels", labels and shown_locator(labels)), *_option("--artifact", artifact)]
    options += _option("--tracking-uri", tracking_uri and without_credentials(tracking_uri))
    with working("describing the columns"):
        found = _Inspection.of(shown, data, options)
    emit(found.renderers(), format_, output)


def _parts(run: str, format_: str, error: ChoiceError) -> Renderers:
    """Describe a file with several parts, one of which the user has to choose."""
    lines = [f"{run}: {format_}, with {len(error.parts)} {error.what}s"]
    lines += [f"  trackperm inspect {shlex.quote(f'{run}::{part}')}" for part in error.parts]
    data = {"run": run, "format": format_, "what": error.what, "parts": error.parts}
    return {"text": lambda: "\n".join(map(printable, lines)), "json": lambda: as_json(data)}


@dataclass(frozen=True)
class _Testable:
    """Statistics that can be tested on a run, with a command that tests one of them.

    Attributes
    ----------
    default : str
        The default statistics of such runs, or the reason why there are none.
    statistics : tuple of str
        Names of built-in statistics.
    command : tuple of str
        Words of the command; empty if no statistic can be tested.
    is_of_systems : bool
        Whether the command compares columns of the file as two systems.
    """

    default: str
    statistics: tuple[str, ...]
    command: tuple[str, ...]
    is_of_systems: bool = False

    def lines(self) -> Iterator[str]:
        yield f"by default: {self.default.removesuffix(' (by default)')}"
        if self.statistics:
            yield f"can be tested: {', '.join(self.statistics)}"
        elif not self.command:
            yield "no built-in statistic reads these columns; `trackperm statistic list` lists their columns"
        if self.command:
            if self.is_of_systems:
                yield "for example, if its columns belong to two systems:"
            else:
                yield "for example, with the other run as the second argument:"
            yield f"  {shlex.join(self.command)}"


@dataclass(frozen=True)
class _Inspection:
    """Description of a run, for people and programs."""

    run: str
    format: str
    data: RunData
    n_examples: int
    columns: tuple[_Column, ...]
    tests: _Testable

    @classmethod
    def of(cls, run: str, data: RunData, options: Sequence[str]) -> _Inspection:
        from trackperm.tables.query import Query

        n_examples = len(data.table)
        if isinstance(data.table.data, Query):
            data = replace(data, table=data.table.head(_DESCRIBED).loaded())
        table = data.table
        columns = tuple(_described(table.only([name]), name) for name in table.columns)
        tests = _tests(run, data, columns, options)
        return cls(run, _format(run, data), data, n_examples, columns, tests)

    def renderers(self) -> Renderers:
        return {
            "text": lambda: "\n".join(map(printable, _lines(self))),
            "json": lambda: as_json(self._plain()),
        }

    def _plain(self) -> dict[str, Any]:
        table = self.data.table
        return {
            "run": self.run,
            "format": self.format,
            "n_examples": self.n_examples,
            "columns": [
                {**asdict(column), "example": _shown(column.example), "why_not": column.why_not or None}
                for column in self.columns
            ],
            "could_be": _candidates(self.columns, len(table)),
            "probabilities": _classes_of(self.columns),
            "facts": {name: str(value) for name, value in table.facts.items()},
            "identity": list(table.identity),
            "notes": list(table.notes),
            "metrics": dict(table.metrics),
            "default": self.tests.default,
            "statistics": list(self.tests.statistics),
            "command": list(self.tests.command),
        }


def _option(name: str, value: str | None) -> list[str]:
    return [] if value is None else [name, value]


def _lines(found: _Inspection) -> Iterator[str]:
    run, table, columns = found.run, found.data.table, found.columns
    number = "1 example" if found.n_examples == 1 else f"{found.n_examples:,} examples"
    described = f", described by the first {len(table):,}" if len(table) < found.n_examples else ""
    yield f"{run}: {found.format}, {number}{described}"
    yield ""
    yield from _grid(columns)
    yield ""
    for column in columns:
        if column.why_not and column.type != "objects":
            yield f"{column.name} cannot be used: it {column.why_not}"
    for role, names in _candidates(columns, len(table)).items():
        yield f"could be {role}: {', '.join(names) or 'no column'}"
    for pattern, classes in _classes_of(columns).items():
        yield f"could be probabilities of classes: {pattern} ({', '.join(classes)})"
    systems = [name for name in table.columns if _holds_objects(table.only([name]), name)]
    if systems:
        command = shlex.join(["trackperm", "inspect", f"{run}::{systems[0]}"])
        yield f"could be one system each: {', '.join(systems)}; as in `{command}`"
    if table.metrics:
        yield f"metrics of the log: {', '.join(table.metrics)}"
    for name, value in table.facts.items():
        yield f"{name}: {value}"
    if table.identity:
        yield f"identify the input, and have to agree between runs: {', '.join(table.identity)}"
    for note in table.notes:
        yield f"note: {note}"
    yield ""
    yield from found.tests.lines()


def _format(run: str, data: RunData | None) -> str:
    from trackperm.tables import split_part
    from trackperm.tables.spark_tables import is_spark_table
    from trackperm.trackers.references import RunReference

    reference = RunReference.parse(run)
    if reference.scheme != "file":
        return f"{reference.scheme} run" + (f" `{data.name}`" if data else "")
    path, part = split_part(reference.locator)
    if (source := _source(run)) is not None:
        title = source.title
    else:
        title = "table of Spark" if is_spark_table(str(path)) else "table at a URL"
    return title if part is None else f"{title}, part `{part}`"


def _described(table: ExampleTable, name: str) -> _Column:
    from trackperm.tables.column_types import typed_columns

    raw = table.frame.get_column(name)
    n_null = raw.null_count()
    try:
        typed, _, types = typed_columns(table, table, [name])
    except TrackpermError as error:
        why = error.message.partition("\n")[0].partition(f"`{table.origin}` ")[2]
        type_ = "objects" if _holds_objects(table, name) else "none"
        return _Column(name, type_, 0, n_null, None, why)
    values = typed.frame.get_column(name).to_polars()
    present = values.drop_nulls()
    example = present[0] if len(present) else None
    type_ = types[name].value if len(present) else "nothing"
    return _Column(name, type_, present.n_unique(), values.null_count(), example)


def _holds_objects(table: ExampleTable, name: str) -> bool:
    import polars as pl

    values = table.frame.get_column(name).to_polars()
    if values.dtype == pl.Object:
        return all(value is None or isinstance(value, Mapping) for value in values.to_list())
    return isinstance(values.dtype, pl.Struct)


def _grid(columns: Sequence[_Column]) -> list[str]:
    from trackperm.report.text import aligned

    rows = [("column", "type", "distinct", "null", "example")]
    for column in columns:
        known = ("", "") if column.why_not else (f"{column.n_distinct:,}", _shown(column.example))
        rows.append((column.name, column.type, known[0], f"{column.n_null:,}", known[1]))
    return aligned(rows, right={2, 3})


def _shown(value: object) -> str:
    text = "" if value is None else repr(value.to_list() if hasattr(value, "to_list") else value)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def _candidates(columns: Sequence[_Column], n_rows: int) -> dict[str, list[str]]:
    """Return the columns that could have each role, likeliest first."""
    usable = [column for column in columns if column.usable]
    ids = [
        column.name
        for column in usable
        if column.type in ("integer", "text") and not column.n_null and column.n_distinct == n_rows
    ]
    others = [column for column in usable if column.name not in ids or _is_called(column.name, "score")]
    numbers = [
        column.name
        for column in others
        if column.is_number and (_is_called(column.name, "score") or not _is_called(column.name, "label"))
    ]

    def named(role: str) -> list[str]:
        names = [column.name for column in usable if _is_called(column.name, role)]
        return sorted(names, key=lambda name: _names(role).index(name.lower()))

    return {
        "id": sorted(ids, key=lambda name: not _is_called(name, "id")),
        "prediction": named("prediction"),
        "label": named("label"),
        "score": sorted(numbers, key=lambda name: not _is_called(name, "score")),
    }


def _classes_of(columns: Sequence[_Column]) -> dict[str, list[str]]:
    """Return the classes of columns of probabilities, by the pattern of their names."""
    from trackperm.statistic.class_columns import classes_of
    from trackperm.tables.column_names import CLASS_PROBABILITIES

    numbers = [column.name for column in columns if column.usable and column.is_number]
    found = {pattern: list(classes_of(pattern, numbers)) for pattern in CLASS_PROBABILITIES}
    return {pattern: classes for pattern, classes in found.items() if len(classes) > 1}


def _is_called(name: str, role: str) -> bool:
    name = name.lower()
    return name in _names(role) or (role == "id" and name.endswith(("_id", "_hash")))


def _names(role: str) -> Sequence[str]:
    """Return common column names of a role, the most common first; ``answer`` has two roles."""
    from trackperm.tables.column_names import IDS, LABELS, PREDICTIONS, SCORES

    return {
        "id": IDS,
        "prediction": (*PREDICTIONS, "answer"),
        "label": (*LABELS, "answer"),
        "score": SCORES,
    }[role]


def _tests(run: str, data: RunData, columns: Sequence[_Column], options: Sequence[str]) -> _Testable:
    """Find the built-in statistics by which the run can be compared with itself."""
    from trackperm.statistic import builtin_names, load_statistic

    candidates = _candidates(columns, len(data.table))
    data = replace(data, table=data.table.head(_TRIED).loaded())
    finds_ids = _finds_ids(data)
    by_position = not candidates["id"] and not finds_ids
    default, plain = _default(data, by_position=by_position)
    found: dict[str, list[str]] = {}
    ids = {"id": candidates["id"][0]} if candidates["id"] and not finds_ids else {}
    for name in builtin_names():
        arguments = _arguments(data, load_statistic(name), candidates, ids, by_position)
        if arguments is not None:
            found[name] = arguments
    systems = _systems(run, data)
    if systems:
        of_systems = "pooled_f1" if len(columns) == 4 else "mean"
        command = ("trackperm", "compare", *systems, "-s", of_systems, "--by-position", *options)
        return _Testable(default, tuple(found), command, is_of_systems=True)
    logs = [] if data.tracker is None else ["--no-log"]
    if plain is None:
        never_equal = "accuracy" in found and _is_never_equal(data, candidates)
        metric = _metric(data, candidates, ids, by_position)
        ways = {name: ["-s", name, *options] for name, options in found.items()} | {"mean": metric or []}
        plain = next((way for name in _COMMON[never_equal:] if (way := ways.get(name))), None)
        if plain is None:
            return _Testable(default, tuple(found), ())
    return _Testable(default, tuple(found), ("trackperm", "compare", run, run, *plain, *options, *logs))


def _is_never_equal(data: RunData, candidates: Mapping[str, Sequence[str]]) -> bool:
    """Whether the likeliest predictions never equal the likeliest labels."""
    from trackperm.comparison.default_statistics import why_no_accuracy

    roles = [role if role in data.table.columns else candidates[role][0] for role in ("prediction", "label")]
    return why_no_accuracy([data.table], *roles) is not None


def _metric(
    data: RunData, candidates: Mapping[str, Sequence[str]], ids: Mapping[str, str], by_position: bool
) -> list[str] | None:
    """Find options that compare a column of scores, or else the share of a word; None if there are none."""
    from trackperm.comparison import Question
    from trackperm.comparison.share_of_value import PLACEHOLDER, option_of_column
    from trackperm.tables.column_names import ATTEMPT

    table = data.table
    outputs = {*candidates["prediction"], *candidates["label"]}
    others = [name for name in table.columns if name not in outputs]
    words = [option for name in others if (option := option_of_column([table], name)) is not None]
    numbers = [name for name in candidates["score"] if name in others and not ATTEMPT.fullmatch(name)]
    scores = [name for name in numbers if _is_called(name, "score")]
    verdicts = [option for option in words if not option.endswith(f"={PLACEHOLDER}")]
    for metric in dict.fromkeys((*scores, *verdicts, *numbers)):
        question = Question(metrics=(metric,), columns=ids, by_position=by_position)
        try:
            statistic = question.statistic_of([table, table])
        except TrackpermError:
            continue
        for missing in ("error", "drop"):
            if _can_be_tested(data, statistic, by_position, missing):
                options = ["--by-position"] * by_position + ["--missing", missing] * (missing == "drop")
                return ["--metric", metric, *_option("--id", ids.get("id")), *options]
    return None


def _default(data: RunData, *, by_position: bool) -> tuple[str, list[str] | None]:
    """Describe the default statistics of two such runs, with the options that a test needs."""
    from trackperm.comparison import Question

    try:
        statistics = Question(by_position=by_position).statistics_of([data.table, data.table])
    except TrackpermError as error:
        return error.message.partition("\n")[0], None
    default = f"{', '.join(statistic.name for statistic in statistics)} ({statistics[0].chosen})"
    options = ["--by-position"] * by_position
    for missing, words in (("error", []), ("drop", ["--missing", "drop"])):
        if all(_can_be_tested(data, statistic, by_position, missing) for statistic in statistics):
            return default, [*options, *words]
    return default, None


def _systems(run: str, data: RunData) -> list[str]:
    """Return the parts of the two systems in a file of numbers without a header."""
    n_columns, source = len(data.table.columns), _source(run)
    is_headerless = source is not None and source.name == "headerless"
    if not is_headerless or n_columns not in (2, 4) or data.table.origin != run:
        return []
    return [f"{run}::{part}" for part in (("1", "2") if n_columns == 2 else ("A", "B"))]


def _source(run: str) -> Source | None:
    """Return the format of a file; None for a run of a tracker or a URL."""
    from trackperm.tables import SourceFile, split_part
    from trackperm.tables.registry import detect_format
    from trackperm.trackers.references import RunReference

    reference = RunReference.parse(run)
    path = split_part(reference.locator)[0] if reference.scheme == "file" else None
    return detect_format(SourceFile.opened(path)) if isinstance(path, Path) else None


def _finds_ids(data: RunData) -> bool:
    """Whether a comparison finds the column of ids by itself."""
    from trackperm.comparison import Question
    from trackperm.statistic import load_statistic

    (adapted,) = Question((load_statistic("mean"),)).statistics_of([data.table, data.table])
    return adapted.columns["id"] in data.table.columns


def _arguments(
    data: RunData,
    statistic: Statistic,
    candidates: Mapping[str, Sequence[str]],
    ids: Mapping[str, str],
    by_position: bool,
) -> list[str] | None:
    """Find options with which a statistic can be tested on the run; None if it cannot."""
    table = data.table
    columns = {
        role: names[0]
        for role, names in candidates.items()
        if role in statistic.columns and role not in table.columns and names
    }
    columns.pop("id", None)
    ways: dict[object, tuple[Mapping[str, str], object, Statistic]] = {}
    for named in (ids, {**ids, **columns}) if columns else (ids,):
        for positive in _positives(table, statistic, columns):
            if (adapted := _adapted(data, statistic, named, by_position, positive)) is not None:
                read = frozenset(adapted.columns.items())
                ways.setdefault((read, positive), (named, positive, adapted))
    for missing in ("error", "drop"):
        for named, positive, adapted in ways.values():
            if _can_be_tested(data, adapted, by_position, missing):
                options = [
                    argument
                    for role, column in named.items()
                    for argument in (
                        (_OPTIONS[role], column) if role in _OPTIONS else ("--column", f"{role}={column}")
                    )
                ]
                options += [] if positive is None else ["--set", f"positive={positive}"]
                options += ["--by-position"] if by_position else []
                return [*options, *([] if missing == "error" else ["--missing", missing])]
    return None


def _positives(table: ExampleTable, statistic: Statistic, columns: Mapping[str, str]) -> Sequence[object]:
    """Return candidates for the positive label: the default of the statistic (None), and the rarer of two."""
    label = columns.get("label", "label")
    if "positive" not in statistic.parameters or label not in table.columns or label in table.unusable:
        return (None,)
    values = table.frame.get_column(label).to_polars().drop_nulls()
    if values.dtype.is_nested() or values.n_unique() != 2:
        return (None,)
    return (None, values.value_counts(name="n").sort("n", label)[label][0])


def _adapted(
    data: RunData, statistic: Statistic, columns: Mapping[str, str], by_position: bool, positive: Any
) -> Statistic | None:
    """Give a statistic the columns of the run; None if the run lacks one or its labels do not suit."""
    from trackperm.comparison import Question
    from trackperm.pairing.checks.label_values import require_label_values
    from trackperm.statistic.document import scalar

    parameters = {} if positive is None else {"positive": scalar(str(positive))}
    question = Question((statistic,), parameters=parameters, columns=columns, by_position=by_position)
    tables = [data.table, data.table]
    try:
        adapted = question.statistic_of(tables, check_labels=False)
        if not set(adapted.used_columns) <= set(data.table.columns):
            return None
        return require_label_values(tables, adapted)
    except TrackpermError:
        return None


def _can_be_tested(data: RunData, statistic: Statistic, by_position: bool, missing: Any) -> bool:
    from trackperm.comparison import compare_runs

    try:
        compare_runs(data, data, statistic, by_position=by_position, missing=missing, look_for_clusters=False)
    except TrackpermError:
        return False
    return True
