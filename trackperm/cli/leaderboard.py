"""``trackperm leaderboard``: ranking of many runs on the same examples, with corrected tests."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from trackperm.cli import arguments as a
from trackperm.cli.log import Destination
from trackperm.cli.output import FORMAT, LABELS, RUNS, OutputFiles, emit, require_formats, require_other_files
from trackperm.errors import InputError
from trackperm.messages import printable

if TYPE_CHECKING:
    from trackperm.leaderboards import Leaderboard

Format = Literal["text", "json", "markdown", "html", "latex", "csv"]


def leaderboard(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN...", help="As in `trackperm compare`: references, FILE or FILE::SYSTEM."),
    ] = None,
    log: Annotated[
        bool | None,
        typer.Option(
            "--log/--no-log",
            help="Log the leaderboard where the runs are logged; this changes the description of an MLflow"
            " experiment, and each pair counts in `trackperm family`. [default: no-log]",
            show_default=False,
        ),
    ] = None,
    experiment: a.Experiment = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Compare all other runs with this one only, instead of all pairs."),
    ] = None,
    statistic: a.StatisticName = None,
    metric: a.Metric = None,
    correction: a.CorrectionOfPairs = "holm",
    alternative: a.Alternative = None,
    alpha: a.Alpha = 0.05,
    settings: a.Settings = None,
    id_column: a.IdColumn = None,
    prediction: a.Prediction = None,
    label: a.Label = None,
    labels: a.Labels = None,
    other_columns: a.OtherColumns = None,
    artifact: Annotated[
        str | None, typer.Option(metavar="NAME", help="Artifact PATH or PATH::PART in the runs.")
    ] = None,
    missing: a.MissingOfMany = "error",
    by_position: a.ByPosition = False,
    unit: a.Unit = None,
    repeats: a.Repeats = None,
    cluster: a.Cluster = None,
    allow_unseen: a.AllowUnseen = False,
    resolution: a.Resolution = None,
    intervals: Annotated[
        bool, typer.Option("--intervals/--no-intervals", help="Compute intervals for the differences.")
    ] = True,
    n_samples: Annotated[
        int | None,
        typer.Option(
            "--samples",
            metavar="N",
            help="Number of random swaps. [default: 20000 tilted ones; 100000 for Monte Carlo]",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the random swaps.")] = 0,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Memory that a test may take: bytes, or a size such as 512MB or 2GiB. [default: 1GiB]",
            show_default=False,
        ),
    ] = None,
    tracking_uri: a.TrackingUri = None,
    log_to: Annotated[
        str | None,
        typer.Option(metavar="mlflow:EXPERIMENT|wandb:ENTITY/PROJECT", help="Log to this place instead."),
    ] = None,
    tag_runs: a.TagRuns = False,
    format_: Annotated[Format, FORMAT] = "text",
    output: OutputFiles = None,
    stars: Annotated[
        bool, typer.Option("--stars", help="Mark adjusted p-values below 0.05, 0.01, 0.001 by *, **, ***.")
    ] = False,
) -> None:
    """Rank many runs on the same examples, with tests that are corrected for the number of comparisons.

    The result is logged only with --log or --log-to.
    """
    from trackperm.cli.progress import Steps
    from trackperm.comparison import Question, reference_answers
    from trackperm.leaderboards import leaderboard_of_runs, load_runs
    from trackperm.report.leaderboard.formats import FORMATS, render
    from trackperm.report.leaderboard.text import lines

    if not runs and experiment is None:
        raise InputError(
            "no runs are named", hint="name runs, or all runs of an experiment by `--experiment mlflow:NAME`."
        )
    destination = _destination(
        log, log_to, tracking_uri, tag_runs=tag_runs, has_baseline=baseline is not None
    )
    require_formats(output, FORMATS)
    require_other_files(output, {RUNS: (*(runs or ()), baseline), LABELS: (labels,)})
    options = a.options_of_test(alternative, alpha, n_samples=n_samples, seed=seed, memory=memory)
    columns = a.columns(other_columns, id=id_column, prediction=prediction, label=label)
    question = Question(
        statistics=a.at_most_one("--statistic", statistic),
        metrics=a.at_most_one("--metric", metric),
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
    with Steps(4 * len(runs or []) + 1) as steps:
        loaded = load_runs(
            runs or [],
            baseline=baseline,
            experiment=experiment,
            artifact=artifact,
            references=reference_answers(labels, columns, by_position=by_position),
            tracking_uri=tracking_uri,
            progress=steps.begin,
        )
        board = leaderboard_of_runs(
            loaded,
            question.statistic_of([run.table for run in loaded.runs], check_labels=False),
            options,
            correction=correction,
            intervals=intervals,
            missing=missing,
            by_position=by_position,
            allow_unseen=allow_unseen,
            progress=steps.begin,
        )
    emit(
        {name: partial(render, board, name, stars=stars) for name in FORMATS},
        format_,
        output,
        fitted=lambda width: "\n".join(lines(board, stars=stars, width=width)),
    )
    if destination is not None:
        _log(board, destination)


def _destination(
    log: bool | None, log_to: str | None, tracking_uri: str | None, *, tag_runs: bool, has_baseline: bool
) -> Destination | None:
    """Return where to log the leaderboard, or None; refuse contradictory options at once."""
    if log is not False and not (log or log_to):
        if tag_runs:
            raise InputError("`--tag-runs` needs `--log` or `--log-to`", hint="add one of them.")
        return None
    if tag_runs and not has_baseline:
        raise InputError(
            "`--tag-runs` needs a baseline, because tags have the verdict against it",
            hint="add `--baseline RUN`.",
        )
    destination = Destination.of(log_to, tracking_uri, log=log is not False, alert=False, tag_runs=tag_runs)
    return destination if destination.wanted else None


def _log(board: Leaderboard, destination: Destination) -> None:
    """Log `board`; report where, and how many comparisons it adds to the ledger."""
    from trackperm.cli.progress import working
    from trackperm.ledger.comparison_publication import looks_sentence
    from trackperm.ledger.log import log

    with working("logging"):
        published = log(board, destination.tracker, destination.container, tag_runs=destination.tag_runs)
    verb = "logged" if published.created else "already logged, updated"
    typer.echo(f"{verb}: {published.run.url or published.run.reference}", err=True)
    if published.look is not None:
        typer.echo(looks_sentence(published.look, len(board.pairs), published.in_leaderboards), err=True)
    for remark in published.remarks:
        typer.echo(f"note: {printable(remark)}", err=True)
