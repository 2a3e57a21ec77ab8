"""``trackperm compare``: comparison of two runs by one or several statistics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from trackperm.cli import arguments as a
from trackperm.cli.log import Destination
from trackperm.cli.output import (
    FORMAT,
    LABELS,
    RUNS,
    SUFFIXES,
    OutputFiles,
    Renderers,
    as_json,
    emit,
    require_formats,
    require_other_files,
)
from trackperm.errors import InputError

if TYPE_CHECKING:
    from trackperm.comparison import Comparison, Question
    from trackperm.comparison.reproductions import Reproduction
    from trackperm.statistic import Statistic
    from trackperm.tables.table import ExampleTable

Format = Literal["text", "json", "markdown", "html"]

FORMATS = (*get_args(Format), "png", "svg")
"""Formats of files."""

_OF_ONE = ("html", "png", "svg")


def compare(
    baseline: a.BaselineRun,
    candidate: a.CandidateRun,
    statistic: a.StatisticNames = None,
    metrics: a.Metrics = None,
    alternative: a.Alternative = None,
    alpha: a.Alpha = 0.05,
    margin: a.Margin = None,
    slices: a.Slices = None,
    correction: a.Correction = "holm",
    second_opinions: a.SecondOpinions = False,
    studentized: a.Studentized = False,
    settings: a.Settings = None,
    id_column: a.IdColumn = None,
    prediction: a.Prediction = None,
    label: a.Label = None,
    labels: a.Labels = None,
    other_columns: a.OtherColumns = None,
    baseline_columns: a.BaselineColumns = None,
    candidate_columns: a.CandidateColumns = None,
    artifact: a.ArtifactPair = None,
    missing: a.Missing = "error",
    by_position: a.ByPosition = False,
    engine: a.Engine = "auto",
    unit: a.Unit = None,
    repeats: a.Repeats = None,
    cluster: a.Cluster = None,
    allow_unseen: a.AllowUnseen = False,
    resolution: a.Resolution = None,
    mid_p: a.MidP = False,
    method: a.Method = "auto",
    n_samples: a.Samples = None,
    seed: a.Seed = None,
    exceedances: a.Exceedances = None,
    interval: a.IntervalOfDifference = "auto",
    memory: a.Memory = None,
    compat: a.Compat = None,
    tracking_uri: a.TrackingUri = None,
    log: Annotated[
        bool, typer.Option(help="Log the result where the candidate is.", rich_help_panel=a.TRACKER)
    ] = True,
    log_to: a.LogTo = None,
    alert: a.Alert = False,
    tag_runs: a.TagRuns = False,
    format_: Annotated[Format, FORMAT] = "text",
    output: OutputFiles = None,
) -> None:
    """Compare two runs, print the verdict, and log it where the candidate is logged."""
    from trackperm.cli.progress import Steps
    from trackperm.comparison import (
        Question,
        compare_statistics,
        load_runs,
        reference_answers,
        require_artifacts_of_runs,
    )
    from trackperm.comparison.runs import require_two_runs

    destination = Destination.of(log_to, tracking_uri, log=log, alert=alert, tag_runs=tag_runs)
    require_formats(output, FORMATS)
    require_other_files(output, {RUNS: (baseline, candidate), LABELS: (labels,)})
    options = a.options_of_test(
        alternative, alpha, mid_p, method, n_samples, seed, exceedances, interval, memory
    )
    columns = a.columns(other_columns, id=id_column, prediction=prediction, label=label)
    question = Question(
        statistics=tuple(statistic or ([] if metrics else a.default_statistics(compat))),
        metrics=tuple(metrics or ()),
        parameters=a.assignments(settings),
        columns=columns,
        resolution=resolution,
        unit=unit,
        repeats=repeats,
        cluster=cluster,
        by_position=by_position,
        allow_unseen=allow_unseen,
    )
    question.require_loadable()
    paths = a.artifacts(artifact)
    require_artifacts_of_runs(paths, baseline, candidate)
    own = a.columns_of_one(baseline_columns, "baseline"), a.columns_of_one(candidate_columns, "candidate")
    references = reference_answers(labels, columns, by_position=by_position)
    how: dict[str, Any] = {"margin": margin, "missing": missing, "by_position": by_position, "engine": engine}
    with Steps(4) as steps:
        runs = load_runs(
            baseline,
            candidate,
            artifact=paths,
            references=references,
            tracking_uri=tracking_uri,
            columns=columns,
            own_columns=own,
            begin=steps.begin,
        )
        require_two_runs(*runs, paths, own)
        destination.require_options(runs[1])
        if compat == "bikel":
            _require_evalb(question, [run.table for run in runs])
        specs = question.statistics_of([run.table for run in runs])
        _require_one_page(format_, output, specs, slices)
        steps.expect(3 + len(specs))
        how["begin"] = steps.begin
        found = compare_statistics(*runs, specs, options, slices=slices or (), correction=correction, **how)
        steps.begin("other tests and intervals")
        found = [
            _with_other_tests(each, second_opinions=second_opinions, studentized=studentized)
            for each in found
        ]
        older = a.reproductions(compat, found, n_samples, seed)
    emit(_renderers(found, older), format_, output, is_prose=True)
    destination.log(found)


def _with_other_tests(comparison: Comparison, *, second_opinions: bool, studentized: bool) -> Comparison:
    """Add the other tests that the user named, and compute the interval now, as it may be resampled."""
    if second_opinions:
        comparison = comparison.with_second_opinions()
    if studentized:
        comparison = comparison.with_studentized()
    _ = comparison.interval
    return comparison


def _require_evalb(question: Question, tables: Sequence[ExampleTable]) -> None:
    """Refuse runs without any count of evalb, if the statistics are those of Bikel's comparator."""
    from trackperm.cli.inspect import format_of
    from trackperm.comparison.reproductions import BIKEL_STATISTICS

    is_default = question.statistics == BIKEL_STATISTICS
    for table in tables if is_default else ():
        if not {"matched", "gold", "test"} & {*table.columns, *question.columns}:
            raise InputError(
                f"`--compat bikel` reads evalb's output; `{table.origin}` is {format_of(table.origin)}",
                hint="name two outputs of evalb, or leave `--compat` out.",
            )


def _renderers(comparisons: Sequence[Comparison], reproductions: Sequence[Reproduction | None]) -> Renderers:
    """Return renderers of the comparisons, each with the result of an older program if there is one."""
    from trackperm import report
    from trackperm.report import description, text
    from trackperm.report.drawings import picture
    from trackperm.report.markdown_rows import table_of

    rows = list(zip(comparisons, reproductions, strict=True))
    return {
        "text": lambda: "\n\n".join(
            "\n".join([*text.lines(each), *(older.lines() if older else [])]) for each, older in rows
        ),
        "json": lambda: as_json(
            [each.to_dict() | ({"compat": older.to_dict()} if older else {}) for each, older in rows]
        ),
        "markdown": lambda: "\n\n".join(
            [
                *([table_of(comparisons)] if len(comparisons) > 1 else []),
                *(description.markdown(each).rstrip() for each in comparisons),
            ]
        ),
        "html": lambda: report.html(comparisons[0]),
        "svg": lambda: picture.picture(comparisons[0]),
        "png": lambda: picture.png(comparisons[0]),
    }


def _require_one_page(
    format_: Format, files: Sequence[Path] | None, specs: Sequence[Statistic], slices: Sequence[str] | None
) -> None:
    """Refuse a page or a picture of several comparisons, before the tests run."""
    wanted = {format_, *(SUFFIXES[file.suffix.lower()] for file in files or ())}
    if wanted.intersection(_OF_ONE) and (len(specs) > 1 or slices or specs[0].slices):
        raise InputError(
            "an HTML page or a picture shows one comparison, not several statistics or slices",
            hint="write several as Markdown or JSON: `-o FILE.md`, `-o FILE.json` or `--format markdown`.",
        )
