"""``trackperm inspect``: description of a file or run, and of the statistics that it supports."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trackperm.cli.arguments import TrackingUri
from trackperm.cli.column_roles import Column, candidates_of, classes_of_columns, described, holds_objects
from trackperm.cli.output import (
    LABELS,
    OutputFiles,
    Renderers,
    TextOrJson,
    as_json,
    emit,
    require_formats,
    require_other_files,
)
from trackperm.cli.progress import working
from trackperm.cli.testable import Testable, source_of, testable
from trackperm.errors import ChoiceError
from trackperm.messages import printable, without_credentials

if TYPE_CHECKING:
    from trackperm.comparison import RunData
    from trackperm.tables.table import ExampleTable

_WIDEST = 40  # characters of a table cell

_DESCRIBED = 100_000
"""Rows of a query that are read to describe its columns, so that a large file is not loaded."""


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
    require_other_files(output, {"the run that is described": (run,), LABELS: (labels,)})
    shown = shown_locator(run) if is_remote(run) else run
    require_artifacts_of_runs(artifact, run, run)
    references = reference_answers(labels, {}, by_position=False)
    try:
        with working("reading the run"):
            data = load_run(run, "run", artifact=artifact, references=references, tracking_uri=tracking_uri)
    except ChoiceError as error:
        emit(_parts(shown, format_of(run), error), format_, output)
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
class _Inspection:
    """Description of a run, for people and programs.

    If examples have several rows, `repeated_id` is their column of ids, and `n_examples` is None where the
    table is too large to be read.
    """

    run: str
    format: str
    data: RunData
    n_rows: int
    n_examples: int | None
    repeated_id: str | None
    columns: tuple[Column, ...]
    tests: Testable

    @classmethod
    def of(cls, run: str, data: RunData, options: Sequence[str]) -> _Inspection:
        from trackperm.comparison.question.example_columns import columns_of_examples
        from trackperm.tables.lazy.query import Query

        n_rows = len(data.table)
        if isinstance(data.table.data, Query):
            data = replace(data, table=data.table.head(_DESCRIBED).loaded())
        table = data.table
        columns = tuple(described(table.only([name]), name) for name in table.columns)
        tests = testable(run, data, columns, options)
        id_, attempts = columns_of_examples([table])
        n_examples: int | None = n_rows
        if attempts:
            n_distinct = next(column.n_distinct for column in columns if column.name == id_)
            n_examples = n_distinct if len(table) == n_rows else None
        repeated_id = id_ if attempts else None
        return cls(run, format_of(run, data), data, n_rows, n_examples, repeated_id, columns, tests)

    @property
    def candidates(self) -> dict[str, list[str]]:
        """The columns that could have each role."""
        return candidates_of(self.columns, len(self.data.table), self.repeated_id)

    @property
    def size(self) -> str:
        """The number of examples, and of rows if examples have several."""
        if self.n_examples is None:
            return f"{self.n_rows:,} rows, several for an example"
        examples = "1 example" if self.n_examples == 1 else f"{self.n_examples:,} examples"
        return examples if self.n_examples == self.n_rows else f"{examples} in {self.n_rows:,} rows"

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
            "n_rows": self.n_rows,
            "columns": [
                {**asdict(column), "example": _shown(column.example), "why_not": column.why_not or None}
                for column in self.columns
            ],
            "could_be": self.candidates,
            "probabilities": classes_of_columns(self.columns),
            "facts": {name: str(value) for name, value in table.facts.items()},
            "identity": list(table.identity),
            "notes": list(table.notes),
            "metrics": dict(table.metrics),
            "greater_is_better": dict(table.greater_is_better),
            "whole_log_metrics": dict(table.whole_log_metrics),
            "default": self.tests.default,
            "statistics": list(self.tests.statistics),
            "command": list(self.tests.command),
        }


def _option(name: str, value: str | None) -> list[str]:
    return [] if value is None else [name, value]


def _lines(found: _Inspection) -> Iterator[str]:
    run, table, columns = found.run, found.data.table, found.columns
    described = f", described by the first {len(table):,}" if len(table) < found.n_rows else ""
    yield f"{run}: {found.format}, {found.size}{described}"
    yield ""
    yield from _grid(columns)
    yield ""
    for column in columns:
        if column.why_not and column.type != "objects":
            yield f"{column.name} cannot be used: it {column.why_not}"
    for role, names in found.candidates.items():
        yield f"could be {role}: {', '.join(names) or 'no column'}"
    for pattern, classes in classes_of_columns(columns).items():
        yield f"could be probabilities of classes: {pattern} ({', '.join(classes)})"
    systems = [name for name in table.columns if holds_objects(table.only([name]), name)]
    if systems and found.tests.has_examples:
        command = shlex.join(["trackperm", "inspect", f"{run}::{systems[0]}"])
        yield f"could be one system each: {', '.join(systems)}; as in `{command}`"
    if table.metrics:
        yield f"metrics of the log: {', '.join(_metrics(table))}"
    if table.whole_log_metrics:
        yield f"metrics over all samples, with no number for each: {', '.join(table.whole_log_metrics)}"
    for name, value in table.facts.items():
        yield f"{name}: {value}"
    if table.identity:
        yield f"identify the input, and have to agree between runs: {', '.join(table.identity)}"
    for note in table.notes:
        yield f"note: {note}"
    yield ""
    yield from found.tests.lines()


def _metrics(table: ExampleTable) -> Iterator[str]:
    for name, column in table.metrics.items():
        is_lower = table.greater_is_better.get(column) is False
        yield f"{name} (lower is better)" if is_lower else name


def format_of(run: str, data: RunData | None = None) -> str:
    """Return the title of a file's format, or what else a run is."""
    from trackperm.tables import split_part
    from trackperm.tables.spark_tables import is_spark_table
    from trackperm.trackers.references import RunReference

    reference = RunReference.parse(run)
    if reference.scheme != "file":
        return f"{reference.scheme} run" + (f" `{data.name}`" if data else "")
    path, part = split_part(reference.locator)
    if (source := source_of(run)) is not None:
        title = source.title
    else:
        title = "table of Spark" if is_spark_table(str(path)) else "table at a URL"
    return title if part is None else f"{title}, part `{part}`"


def _grid(columns: Sequence[Column]) -> list[str]:
    from trackperm.report.formatting import aligned

    rows = [("column", "type", "distinct", "null", "example")]
    for column in columns:
        known = ("", "") if column.why_not else (f"{column.n_distinct:,}", _shown(column.example))
        rows.append((column.name, column.type, known[0], f"{column.n_null:,}", known[1]))
    return aligned(rows, right={2, 3})


def _shown(value: object) -> str:
    text = "" if value is None else repr(value.to_list() if hasattr(value, "to_list") else value)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
