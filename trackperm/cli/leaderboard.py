"""``trackperm leaderboard``: many runs on the same examples, ranked, grouped and corrected."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trackperm.cli.arguments import (
    Alternative,
    ByPosition,
    IdColumn,
    Label,
    Labels,
    OtherColumns,
    Prediction,
    ResolutionOption,
    Settings,
    TrackingUri,
    assignment,
    column,
)
from trackperm.cli.log import Destination
from trackperm.errors import InputError

if TYPE_CHECKING:
    from trackperm.leaderboards import Leaderboard


class Correction(str, Enum):
    """Corrections that hold under any dependence."""

    HOLM = "holm"
    BY = "by"
    BONFERRONI = "bonferroni"


class Missing(str, Enum):
    """What to do with examples that only some runs have."""

    ERROR = "error"
    DROP = "drop"
    WRONG = "wrong"


class Format(str, Enum):
    """What is printed."""

    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    LATEX = "latex"
    CSV = "csv"
    JSON = "json"


def leaderboard(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN...", help="As in `trackperm compare`: references, FILE or FILE::SYSTEM."),
    ] = None,
    experiment: Annotated[
        str | None,
        typer.Option(
            metavar="mlflow:NAME|wandb:PROJECT", help="All finished runs of an experiment or project."
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Compare all others with this run alone, instead of all pairs."),
    ] = None,
    statistic: Annotated[
        str, typer.Option("--statistic", "-s", metavar="NAME|FILE.yaml", help="What runs are scored by.")
    ] = "accuracy",
    correction: Annotated[
        Correction, typer.Option(help="Correction for the number of comparisons.")
    ] = Correction.HOLM,
    alternative: Annotated[
        Alternative | None, typer.Option(help="One-sided needs a baseline; as the spec says by default.")
    ] = None,
    alpha: Annotated[float, typer.Option(help="Level of the verdicts.")] = 0.05,
    settings: Settings = None,
    id_column: IdColumn = None,
    prediction: Prediction = None,
    label: Label = None,
    labels: Labels = None,
    other_columns: OtherColumns = None,
    artifact: Annotated[
        str | None, typer.Option(metavar="NAME", help="Artifact PATH or PATH::PART in the runs.")
    ] = None,
    missing: Annotated[
        Missing, typer.Option(help="What to do with examples that only some runs have.")
    ] = Missing.ERROR,
    by_position: ByPosition = False,
    resolution: ResolutionOption = None,
    intervals: Annotated[
        bool, typer.Option("--intervals/--no-intervals", help="Intervals for the differences.")
    ] = True,
    n_samples: Annotated[
        int | None,
        typer.Option(
            "--samples",
            metavar="N",
            help="Random swaps, for Monte Carlo. [default: 100000]",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the random swaps.")] = 0,
    tracking_uri: TrackingUri = None,
    format_: Annotated[Format, typer.Option("--format", help="What is printed.")] = Format.TEXT,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write a file as well: .txt, .md, .html, .tex, .csv, .json or .png. Repeatable.",
        ),
    ] = None,
    stars: Annotated[bool, typer.Option("--stars", help="Stars beside adjusted p-values.")] = False,
    log: Annotated[
        bool, typer.Option("--log", help="Log it where the runs are; each pair counts in `trackperm family`.")
    ] = False,
    log_to: Annotated[
        str | None,
        typer.Option(metavar="mlflow:EXPERIMENT|wandb:ENTITY/PROJECT", help="Log it here instead."),
    ] = None,
    tag_runs: Annotated[
        bool,
        typer.Option(
            "--tag-runs", help="Tag the logged runs, which have to be finished, with verdict and adjusted p."
        ),
    ] = False,
) -> None:
    """Rank many runs on the same examples, and say which differences are real after correction."""
    from trackperm.cli.progress import Steps
    from trackperm.comparison import reference_answers
    from trackperm.exact.outcome import N_SAMPLES
    from trackperm.leaderboards import leaderboard_of_runs, load_runs
    from trackperm.report.leaderboard_formats import format_of, render
    from trackperm.statistic import load_statistic

    if not runs and experiment is None:
        raise InputError(
            "there is nothing to rank", hint="name runs, or `--experiment mlflow:NAME` for all of its runs."
        )
    destination = _destination(
        log, log_to, tracking_uri, tag_runs=tag_runs, has_baseline=baseline is not None
    )
    files = [(Path(path), format_of(path)) for path in output or []]
    columns = dict(column(text) for text in other_columns or [])
    roles = {"id": id_column, "prediction": prediction, "label": label}
    columns |= {role: column for role, column in roles.items() if column is not None}
    spec = load_statistic(
        statistic,
        parameters=dict(assignment(text) for text in settings or []),
        columns=columns,
        resolution=resolution,
    )
    with Steps(4 * len(runs or []) + 1) as steps:
        entrants = load_runs(
            runs or [],
            baseline=baseline,
            experiment=experiment,
            artifact=artifact,
            gold=reference_answers(labels, columns, by_position=by_position),
            tracking_uri=tracking_uri,
            progress=steps.begin,
        )
        board = leaderboard_of_runs(
            entrants,
            spec,
            correction=correction.value,
            alternative=None if alternative is None else alternative.value,
            alpha=alpha,
            intervals=intervals,
            missing=missing.value,
            by_position=by_position,
            n_samples=N_SAMPLES if n_samples is None else n_samples,
            seed=seed,
            progress=steps.begin,
        )
    written = [(path, render(board, format_name, stars=stars)) for path, format_name in files]
    for path, content in written:
        path.write_bytes(content)
    typer.echo(render(board, format_.value, stars=stars).decode(), nl=False)
    for path, _ in written:
        typer.echo(f"written: {path}", err=True)
    if destination is not None:
        _log(board, destination)


def _destination(
    log: bool, log_to: str | None, tracking_uri: str | None, *, tag_runs: bool, has_baseline: bool
) -> Destination | None:
    """Say where it is logged, if that was asked for; what cannot be granted is refused at once."""
    if not (log or log_to):
        if tag_runs:
            raise InputError("`--tag-runs` goes with `--log` or `--log-to`", hint="add one of them.")
        return None
    if tag_runs and not has_baseline:
        raise InputError(
            "`--tag-runs` writes the verdict against a baseline, and all pairs are compared",
            hint="`--baseline RUN` compares with one run.",
        )
    return Destination.of(log_to, tracking_uri, no_log=False, alert=False, tag_runs=tag_runs)


def _log(board: Leaderboard, destination: Destination) -> None:
    """Log `board`, and say where, and what it counts for."""
    from trackperm.publish import looks_sentence

    published = board.log(destination.tracker, destination.container, tag_runs=destination.tag_runs)
    verb = "logged" if published.created else "already logged, brought up to date"
    typer.echo(f"{verb}: {published.run.url or published.run.reference}", err=True)
    if published.look is not None:
        typer.echo(looks_sentence(published.look, len(board.pairs), published.in_leaderboards), err=True)
    for remark in published.remarks:
        typer.echo(f"note: {remark}", err=True)
