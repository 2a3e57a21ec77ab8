"""``trackperm mlflow``: set up a view of verdicts, and store statistics, in an MLflow experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from trackperm.cli.arguments import TrackingUri
from trackperm.cli.help import Commands
from trackperm.cli.output import echo
from trackperm.cli.progress import working
from trackperm.errors import InputError

if TYPE_CHECKING:
    from trackperm.trackers.mlflow.tracker import MlflowTracker

app = Commands(no_args_is_help=True)

Experiment = Annotated[
    str, typer.Argument(metavar="EXPERIMENT", help="Name of an experiment, or `mlflow:NAME`.")
]


@app.callback()
def root() -> None:
    """Set up an experiment in MLflow: a view of verdicts, and its own statistics."""


@app.command("setup-view")
def setup_view(
    experiment: Experiment,
    statistic: Annotated[
        list[str] | None,
        typer.Option(
            "--statistic",
            "-s",
            metavar="NAME",
            help="Statistic that is shown; repeatable. [default: all that the runs have]",
            show_default=False,
        ),
    ] = None,
    tracking_uri: TrackingUri = None,
) -> None:
    """Save the view "Significance" of an experiment: its runs, best first, with verdicts and scores."""
    with working("setting up the view"):
        tracker, name = _opened(experiment, tracking_uri)
        view = tracker.set_up_view(name, statistic or ())
    echo("saved" if view.is_written else "already saved, unchanged")
    for column in view.columns:
        echo(f"  {column}")
    for unused in view.unused:
        typer.echo(f"no run has a verdict by `{unused}` yet", err=True)
    if not view.hides_comparisons:
        typer.echo("this MLflow cannot search for runs without a tag, so comparisons are shown too", err=True)
    echo(view.link)


@app.command("store-statistic")
def store_statistic(
    experiment: Experiment,
    file: Annotated[Path, typer.Argument(metavar="FILE.yaml", help="A spec.")],
    replace: Annotated[bool, typer.Option("--replace", help="Replace another spec with this name.")] = False,
    tracking_uri: TrackingUri = None,
) -> None:
    """Check a spec, and store it in an experiment for its comparison page."""
    with working("storing the statistic"):
        tracker, name = _opened(experiment, tracking_uri)
        stored = tracker.store_statistic(name, file, is_replaced=replace)
    echo(f"stored as `{stored}`")


def _opened(experiment: str, tracking_uri: str | None) -> tuple[MlflowTracker, str]:
    from trackperm.trackers.base import open_tracker
    from trackperm.trackers.references import RunReference

    tracker = open_tracker("mlflow", tracking_uri)
    reference = RunReference.parse(experiment)
    if reference.scheme not in ("file", "mlflow"):
        raise InputError(
            f"`{experiment}` is not an experiment of MLflow",
            hint=f"write `mlflow:{experiment}` if this is its name.",
        )
    return cast("MlflowTracker", tracker), reference.locator
