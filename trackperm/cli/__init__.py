"""The command line: parse, call, print, exit code.

Exit codes: 0 done, 2 bad input, 3 the tracker failed. (1 is a fault of trackperm itself.)
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

import trackperm
from trackperm import documents
from trackperm.cli import statistic as statistic_commands
from trackperm.errors import InputError, TrackpermError

if TYPE_CHECKING:
    from trackperm.comparison import Comparison
    from trackperm.statistic import Statistic
    from trackperm.trackers.base import Tracker

app = typer.Typer(
    name="trackperm",
    help="Exact paired-permutation tests for logged runs: is that difference real?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(statistic_commands.app, name="statistic")


class Alternative(str, Enum):
    """Which values count as extreme."""

    TWO_SIDED = "two-sided"
    LESS = "less"
    GREATER = "greater"


class Missing(str, Enum):
    """What to do with examples that only one run has."""

    ERROR = "error"
    DROP = "drop"
    WRONG = "wrong"
    WORST = "worst"
    BEST = "best"
    BOUNDS = "bounds"


class Method(str, Enum):
    """Numerical engines."""

    AUTO = "auto"
    BINOMIAL = "binomial"
    ENUMERATE = "enumerate"
    DP = "dp"
    LATTICE = "lattice"
    BRACKET = "bracket"
    MONTE_CARLO = "monte-carlo"


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
    baseline: Annotated[str, typer.Argument(help="mlflow:RUN_ID, mlflow:EXPERIMENT/RUN_NAME or a file.")],
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
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A parameter of the statistic, such as positive=yes."
        ),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="Column of example ids.")
    ] = None,
    prediction: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of predictions.")] = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of reference labels.")] = None,
    artifact: Annotated[
        str | None,
        typer.Option(metavar="NAME|BASE,CAND", help="Artifact path in both runs, or one for each."),
    ] = None,
    missing: Annotated[
        Missing, typer.Option(help="What to do with examples only one run has.")
    ] = Missing.ERROR,
    by_position: Annotated[
        bool, typer.Option("--by-position", help="Pair rows by position where there is no id column.")
    ] = False,
    resolution: Annotated[
        str | None,
        typer.Option(metavar="UNIT", help="Round decimal scores to multiples of this, such as 0.001."),
    ] = None,
    mid_p: Annotated[
        bool, typer.Option("--mid-p", help="Count ties with the observed value half; says so.")
    ] = False,
    method: Annotated[Method, typer.Option(help="Numerical engine.")] = Method.AUTO,
    n_samples: Annotated[
        int, typer.Option("--samples", metavar="N", help="Random swaps, for Monte Carlo.")
    ] = 100_000,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the random swaps.")] = 0,
    exceedances: Annotated[
        int | None,
        typer.Option(metavar="N", help="Stop drawing after so many swaps as extreme as the observed one."),
    ] = None,
    tracking_uri: Annotated[str | None, typer.Option(metavar="URI", help="Tracking server or store.")] = None,
    log_to: Annotated[
        str | None,
        typer.Option(metavar="mlflow:EXPERIMENT", help="Log here instead of where the candidate is."),
    ] = None,
    no_log: Annotated[bool, typer.Option("--no-log", help="Print only.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON array, one object per statistic.")
    ] = False,
) -> None:
    """Compare two runs exactly, print the verdict, and log it where the candidate lives."""
    from trackperm.comparison import compare_runs, load_run

    if no_log and log_to is not None:
        raise InputError("`--no-log` and `--log-to` contradict each other", hint="give one of them.")
    tracker, container = (None, None) if log_to is None else _target(log_to, tracking_uri)
    first, second = _artifacts(artifact)
    parameters = dict(_assignment(text) for text in settings or [])
    roles = {"id": id_column, "prediction": prediction, "label": label}
    columns = {role: column for role, column in roles.items() if column is not None}
    specs = _statistics(statistic or ["accuracy"], parameters, columns, resolution)
    runs = (
        load_run(baseline, "baseline", artifact=first, tracking_uri=tracking_uri),
        load_run(candidate, "candidate", artifact=second, tracking_uri=tracking_uri),
    )
    comparisons = [
        compare_runs(
            *runs,
            spec,
            alternative=None if alternative is None else alternative.value,
            alpha=alpha,
            missing=missing.value,
            by_position=by_position,
            mid_p=mid_p,
            method=method.value,
            n_samples=n_samples,
            seed=seed,
            exceedances=exceedances,
        )
        for spec in specs
    ]
    _print(comparisons, as_json=as_json)
    if not no_log:
        _log(comparisons, tracker, container)


def _statistics(
    names: Sequence[str], parameters: dict[str, object], columns: dict[str, str], resolution: str | None
) -> list[Statistic]:
    """Load the statistics, each with those of the parameters that it has; some has to have each."""
    from trackperm.statistic import load_statistic

    specs = [load_statistic(name, columns=columns, resolution=resolution) for name in names]
    known = {parameter for spec in specs for parameter in spec.parameters}
    if len(specs) == 1 or not parameters.keys() <= known:
        return [load_statistic(spec, parameters=parameters) for spec in specs]
    return [
        load_statistic(spec, parameters={k: v for k, v in parameters.items() if k in spec.parameters})
        for spec in specs
    ]


def _artifacts(text: str | None) -> tuple[str | None, str | None]:
    if text is None or "," not in text:
        return text, text
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(parts):
        raise InputError(
            f"`--artifact {text}` is neither a path nor two paths", hint="`--artifact BASE,CAND`."
        )
    return parts[0], parts[1]


def _assignment(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"`--set {text}` is no assignment", hint="`--set positive=1`, for example.")
    return name.strip(), documents.scalar(value.strip())


def _print(comparisons: Sequence[Comparison], *, as_json: bool) -> None:
    from trackperm.report import text

    if as_json:
        results: list[dict[str, Any]] = [comparison.to_dict() for comparison in comparisons]
        typer.echo(json.dumps(results, indent=2, ensure_ascii=False, allow_nan=False))
        return
    typer.echo("\n\n".join("\n".join(text.lines(comparison)) for comparison in comparisons))


def _target(log_to: str, tracking_uri: str | None) -> tuple[Tracker, str]:
    from trackperm.trackers.base import RunReference, open_tracker

    target = RunReference.parse(log_to)
    if target.scheme == "file":
        raise InputError(f"`--log-to {log_to}` names no tracker", hint="`--log-to mlflow:EXPERIMENT`.")
    return open_tracker(target.scheme, tracking_uri), target.locator


def _log(comparisons: Sequence[Comparison], tracker: Tracker | None, container: str | None) -> None:
    for comparison in comparisons:
        if tracker is None and comparison.candidate_run is None:
            if comparison.baseline_run is not None:
                typer.echo("not logged: the candidate is in no tracker; `--log-to` says where", err=True)
            continue
        published = comparison.log(tracker, container)
        verb = "logged" if published.created else "already logged, brought up to date"
        typer.echo(f"{verb}: {published.run.url or published.run.reference}", err=True)


def main() -> None:
    """Run the command line; the console script's entry point."""
    try:
        app()
    except TrackpermError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(130)
    except (OSError, UnicodeError) as error:
        typer.echo(f"error: the result could not be written: {error}", err=True)
        sys.exit(2)
    except Exception as error:
        if os.environ.get("TRACKPERM_DEBUG"):
            raise
        typer.echo(
            f"error: a fault in trackperm itself: {type(error).__name__}: {error}\n\n"
            "Hint: set TRACKPERM_DEBUG=1 to see where, and please report it.",
            err=True,
        )
        sys.exit(1)
