"""The command line: parse, call, print, exit code.

Exit codes: 0 done, 2 bad input, 3 the tracker failed, 4 what was verified does not match. (70 is a fault of
trackperm itself.) Those of `trackperm gate` are in its own module.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

import trackperm
from trackperm.cli import family as family_command
from trackperm.cli import gate as gate_command
from trackperm.cli import inspect as inspect_command
from trackperm.cli import leaderboard as leaderboard_command
from trackperm.cli import log as log_command
from trackperm.cli import mlflow as mlflow_commands
from trackperm.cli import policy as policy_commands
from trackperm.cli import power as power_command
from trackperm.cli import receive as receive_command
from trackperm.cli import report as report_commands
from trackperm.cli import statistic as statistic_commands
from trackperm.cli import verify as verify_command
from trackperm.cli import watch as watch_command
from trackperm.cli.arguments import (
    Alternative,
    ByPosition,
    Compat,
    Correction,
    IdColumn,
    Label,
    Labels,
    Method,
    Missing,
    OtherColumns,
    Prediction,
    ResolutionOption,
    Settings,
    TrackingUri,
    artifacts,
    assignment,
    column,
    statistics,
)
from trackperm.credentials import without_credentials
from trackperm.errors import FaultError, TrackpermError

if TYPE_CHECKING:
    from trackperm.comparison import Comparison
    from trackperm.compat import Reproduction

app = typer.Typer(
    name="trackperm",
    help="Exact paired-permutation tests for logged runs: is that difference real?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(statistic_commands.app, name="statistic")
app.add_typer(report_commands.app, name="report")
app.add_typer(mlflow_commands.app, name="mlflow")
app.add_typer(policy_commands.app, name="policy")
app.command("gate")(gate_command.gate)
app.command("watch")(watch_command.watch)
app.command("receive")(receive_command.receive)
app.command("inspect")(inspect_command.inspect)
app.command("leaderboard")(leaderboard_command.leaderboard)
app.command("family")(family_command.family)
app.command("verify")(verify_command.verify)
app.command("power")(power_command.power)
app.command("install-chart")(log_command.install_chart)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"trackperm {trackperm.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Ask of two logged runs whether their difference is real, by exact paired-permutation tests."""


@app.command()
def compare(
    baseline: Annotated[
        str,
        typer.Argument(
            help="mlflow:RUN_ID, mlflow:EXPERIMENT/RUN_NAME, wandb:ENTITY/PROJECT/RUN, wandb:OFFLINE_FOLDER, "
            "FILE or FILE::PART."
        ),
    ],
    candidate: Annotated[str, typer.Argument(help="The run to be judged against the baseline.")],
    statistic: Annotated[
        list[str] | None,
        typer.Option(
            "--statistic",
            "-s",
            metavar="NAME|FILE.yaml",
            help="Repeatable. [default: accuracy]",
            show_default=False,
        ),
    ] = None,
    alternative: Annotated[
        Alternative | None, typer.Option(help="Which values are extreme; as the spec says by default.")
    ] = None,
    alpha: Annotated[float, typer.Option(help="Significance level of the verdict.")] = 0.05,
    margin: Annotated[
        float | None,
        typer.Option(
            metavar="SIZE", help="Call runs equivalent that differ by less, in the statistic's units."
        ),
    ] = None,
    slices: Annotated[
        list[str] | None,
        typer.Option(
            "--slice",
            metavar="COLUMN",
            help="Compare on the examples of each value as well; exploratory unless the spec declares it.",
        ),
    ] = None,
    correction: Annotated[
        Correction,
        typer.Option("--correction", help="Correction of several statistics and slices for each other."),
    ] = Correction.HOLM,
    second_opinions: Annotated[
        bool, typer.Option("--second-opinions", help="Add what t, Wilcoxon, sign and McNemar tests say.")
    ] = False,
    settings: Settings = None,
    id_column: IdColumn = None,
    prediction: Prediction = None,
    label: Label = None,
    labels: Labels = None,
    other_columns: OtherColumns = None,
    artifact: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|BASE,CAND", help="Artifact PATH or PATH::PART in both runs, or one for each."
        ),
    ] = None,
    missing: Annotated[
        Missing, typer.Option(help="What to do with examples only one run has.")
    ] = Missing.ERROR,
    by_position: ByPosition = False,
    resolution: ResolutionOption = None,
    mid_p: Annotated[
        bool, typer.Option("--mid-p", help="Count ties with the observed value half; says so.")
    ] = False,
    method: Annotated[Method, typer.Option(help="Numerical engine.")] = Method.AUTO,
    n_samples: Annotated[
        int | None,
        typer.Option(
            "--samples",
            metavar="N",
            help="Random swaps, for Monte Carlo. [default: 100000; 10000 with --compat]",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Seed of the random swaps. [default: 0; 12345 with --compat sacrebleu]",
            show_default=False,
        ),
    ] = None,
    exceedances: Annotated[
        int | None,
        typer.Option(metavar="N", help="Stop drawing after so many swaps as extreme as the observed one."),
    ] = None,
    compat: Annotated[
        Compat | None, typer.Option(help="Print what an older program computes as well, and why it differs.")
    ] = None,
    tracking_uri: TrackingUri = None,
    log_to: Annotated[
        str | None,
        typer.Option(
            metavar="mlflow:EXPERIMENT|wandb:ENTITY/PROJECT",
            help="Log here instead of where the candidate is.",
        ),
    ] = None,
    no_log: Annotated[bool, typer.Option("--no-log", help="Print only.")] = False,
    alert: Annotated[
        bool, typer.Option("--alert", help="Raise an alert if the candidate is significantly worse (W&B).")
    ] = False,
    tag_runs: Annotated[
        bool, typer.Option("--tag-runs", help="Tag both runs, which have to be finished, with the verdict.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON array, one object per statistic.")
    ] = False,
) -> None:
    """Compare two runs exactly, print the verdict, and log it where the candidate lives."""
    from trackperm.cli.progress import Steps
    from trackperm.comparison import (
        compare_together,
        load_run,
        reference_answers,
        require_artifacts_of_runs,
    )
    from trackperm.compat import BIKEL_STATISTICS, N_SHUFFLES, reproduce
    from trackperm.exact.outcome import N_SAMPLES

    destination = log_command.Destination.of(
        log_to, tracking_uri, no_log=no_log, alert=alert, tag_runs=tag_runs
    )
    first, second = artifacts(artifact)
    require_artifacts_of_runs(artifact, baseline, candidate)
    parameters = dict(assignment(text) for text in settings or [])
    roles = {"id": id_column, "prediction": prediction, "label": label}
    columns = dict(column(text) for text in other_columns or [])
    columns |= {role: column for role, column in roles.items() if column is not None}
    gold = reference_answers(labels, columns, by_position=by_position)
    if compat is Compat.BIKEL and statistic is None:
        statistic = list(BIKEL_STATISTICS)
    specs = statistics(statistic or ["accuracy"], parameters, columns, resolution)
    with Steps(2 + len(specs)) as steps:
        steps.begin("reading the baseline")
        first_run = load_run(baseline, "baseline", artifact=first, gold=gold, tracking_uri=tracking_uri)
        steps.begin("reading the candidate")
        second_run = load_run(candidate, "candidate", artifact=second, gold=gold, tracking_uri=tracking_uri)
        destination.require_options(second_run)
        comparisons = compare_together(
            first_run,
            second_run,
            specs,
            slices=slices or (),
            correction=None if correction is Correction.NONE else correction.value,
            begin=lambda what: steps.begin(f"pairing and testing: {what}"),
            alternative=None if alternative is None else alternative.value,
            alpha=alpha,
            margin=margin,
            missing=missing.value,
            by_position=by_position,
            mid_p=mid_p,
            method=method.value,
            n_samples=N_SAMPLES if n_samples is None else n_samples,
            seed=seed or 0,
            exceedances=exceedances,
            progress=steps.advance,
        )
    reproductions = [
        None
        if compat is None
        else reproduce(compat.value, comparison, n_shuffles=n_samples or N_SHUFFLES, seed=seed)
        for comparison in comparisons
    ]
    if second_opinions:
        comparisons = [comparison.with_second_opinions() for comparison in comparisons]
    _print(comparisons, reproductions, as_json=as_json)
    destination.log(comparisons)


def _print(
    comparisons: Sequence[Comparison],
    reproductions: Sequence[Reproduction | None],
    *,
    as_json: bool,
) -> None:
    from trackperm.report import text

    rows = list(zip(comparisons, reproductions, strict=True))
    if as_json:
        results: list[dict[str, Any]] = [
            comparison.to_dict() | ({} if reproduction is None else {"compat": reproduction.to_dict()})
            for comparison, reproduction in rows
        ]
        typer.echo(json.dumps(results, indent=2, ensure_ascii=False, allow_nan=False))
        return
    blocks = [
        [
            *text.lines(comparison),
            *(() if reproduction is None else reproduction.lines()),
        ]
        for comparison, reproduction in rows
    ]
    typer.echo("\n\n".join("\n".join(block) for block in blocks))


def _print_error(error: object) -> None:
    typer.echo(f"error: {without_credentials(str(error))}", err=True)


def main() -> None:
    """Run the command line; the console script's entry point."""
    try:
        app()
    except TrackpermError as error:
        _print_error(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(130)
    except (OSError, UnicodeError) as error:
        _print_error(f"the result could not be written: {error}")
        sys.exit(2)
    except Exception as error:
        if os.environ.get("TRACKPERM_DEBUG"):
            raise
        _print_error(FaultError.of(error))
        sys.exit(FaultError.exit_code)
