"""``trackperm compare``: comparison of two runs by one or several statistics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from trackperm.cli import arguments as a
from trackperm.cli.log import Destination
from trackperm.cli.output import FORMAT, SUFFIXES, OutputFiles, Renderers, emit, require_formats
from trackperm.errors import InputError

if TYPE_CHECKING:
    from trackperm.comparison import Comparison
    from trackperm.comparison.reproductions import Reproduction
    from trackperm.statistic import Statistic

Format = Literal["text", "json", "markdown", "html"]


def compare(
    baseline: a.BaselineRun,
    candidate: a.CandidateRun,
    log: Annotated[bool, typer.Option(help="Log the result where the candidate is.")] = True,
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
    compat: a.Compat = None,
    tracking_uri: a.TrackingUri = None,
    log_to: a.LogTo = None,
    alert: a.Alert = False,
    tag_runs: a.TagRuns = False,
    format_: Annotated[Format, FORMAT] = "text",
    output: OutputFiles = None,
) -> None:
    """Compare two runs, print the verdict, and log it where the candidate is unless told --no-log."""
    from trackperm.cli.progress import Steps
    from trackperm.comparison import Question, compare_statistics, reference_answers

    destination = Destination.of(log_to, tracking_uri, log=log, alert=alert, tag_runs=tag_runs)
    require_formats(output, get_args(Format))
    options = a.options_of_test(alternative, alpha, mid_p, method, n_samples, seed, exceedances)
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
    references = reference_answers(labels, columns, by_position=by_position)
    how: dict[str, Any] = {"margin": margin, "missing": missing, "by_position": by_position, "engine": engine}
    with Steps(3) as steps:
        runs = a.read_pair(baseline, candidate, artifact, references, tracking_uri, steps.begin)
        destination.require_options(runs[1])
        specs = question.statistics_of([run.table for run in runs])
        _require_one_page(format_, output, specs, slices)
        steps.expect(2 + len(specs))
        how["begin"] = steps.begin
        found = compare_statistics(*runs, specs, options, slices=slices or (), correction=correction, **how)
    if second_opinions:
        found = [comparison.with_second_opinions() for comparison in found]
    if studentized:
        found = [comparison.with_studentized() for comparison in found]
    emit(_renderers(found, a.reproductions(compat, found, n_samples, seed)), format_, output)
    destination.log(found)


def _renderers(comparisons: Sequence[Comparison], reproductions: Sequence[Reproduction | None]) -> Renderers:
    """Return renderers of the comparisons, each with the result of an older program if there is one."""
    rows = list(zip(comparisons, reproductions, strict=True))
    return {
        "text": lambda: "\n\n".join("\n".join(_lines(*row)) for row in rows),
        "json": lambda: json.dumps(
            [_plain(*row) for row in rows], indent=2, ensure_ascii=False, allow_nan=False
        ),
        "markdown": lambda: _markdown(comparisons),
        "html": lambda: _html(comparisons),
    }


def _lines(comparison: Comparison, reproduction: Reproduction | None) -> list[str]:
    from trackperm.report import text

    return [*text.lines(comparison), *(() if reproduction is None else reproduction.lines())]


def _plain(comparison: Comparison, reproduction: Reproduction | None) -> dict[str, Any]:
    return comparison.to_dict() | ({} if reproduction is None else {"compat": reproduction.to_dict()})


def _markdown(comparisons: Sequence[Comparison]) -> str:
    from trackperm.report import description

    return "\n\n".join(description.markdown(comparison).rstrip() for comparison in comparisons)


def _html(comparisons: Sequence[Comparison]) -> str:
    from trackperm.report import html

    (comparison,) = comparisons
    return html(comparison)


def _require_one_page(
    format_: Format, files: Sequence[Path] | None, specs: Sequence[Statistic], slices: Sequence[str] | None
) -> None:
    """Refuse an HTML page of several comparisons, before the tests run.

    Raises
    ------
    InputError
        If HTML is requested for more than one comparison.
    """
    is_wanted = format_ == "html" or any(SUFFIXES[file.suffix.lower()] == "html" for file in files or ())
    if is_wanted and (len(specs) > 1 or slices or specs[0].slices):
        raise InputError(
            "a page shows one comparison, and several statistics or slices are compared",
            hint="`--format markdown` shows several.",
        )
