"""``trackperm report``: reports of logged comparisons on the pages of a tracker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trackperm.cli.help import Commands
from trackperm.cli.output import Renderers, emit, require_formats
from trackperm.cli.progress import working
from trackperm.errors import InputError, MissingDependencyError

app = Commands(no_args_is_help=True)


@app.callback()
def root() -> None:
    """Write reports of logged comparisons in the tracker that holds them."""


@app.command()
def wandb(
    comparison: Annotated[
        str,
        typer.Argument(
            metavar="COMPARISON|BASELINE",
            help="Run of a comparison or leaderboard, wandb:ENTITY/PROJECT/ID or its page; or a baseline.",
        ),
    ],
    candidate: Annotated[
        str | None,
        typer.Argument(
            metavar="CANDIDATE",
            help="With a baseline: report all comparisons of these two runs in its project.",
        ),
    ] = None,
    is_saved: Annotated[
        bool,
        typer.Option("--save/--no-save", help="Save the draft, or only print the request to W&B."),
    ] = True,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output", "-o", metavar="FILE.json", help="Write the request to W&B also to a file; repeatable."
        ),
    ] = None,
    tracking_uri: Annotated[str | None, typer.Option(metavar="URI", help="W&B's server.")] = None,
) -> None:
    """Save a W&B report as a draft, and print its address; the next call replaces the draft."""
    require_formats(output, ("json",))
    references = [_locator(text) for text in (comparison, candidate) if text is not None]
    try:
        from trackperm.trackers.wandb.report import draft_of, save, specification
        from trackperm.trackers.wandb.store import Store
    except ImportError as error:
        raise MissingDependencyError(
            f"reports at W&B need a library that is not installed: {error}",
            hint="pip install 'trackperm[wandb-reports]'",
        ) from error
    store = Store(tracking_uri)
    with working("reading the comparisons"):
        draft = draft_of(store, *references)
    renderers: Renderers = {"json": lambda: specification(store, draft)}
    if not is_saved:
        emit(renderers, "json", output)
        return
    with working("saving the report"):
        url, created = save(store, draft)
    emit({**renderers, "text": lambda: url}, "text", output)
    typer.echo("saved as a draft" if created else "replaced the earlier draft", err=True)


def _locator(text: str) -> str:
    from trackperm.trackers.references import RunReference
    from trackperm.trackers.wandb.offline import is_offline_run

    reference = RunReference.parse(text)
    if reference.scheme != "wandb":
        raise InputError(f"`{text}` is not a run at W&B", hint="write `wandb:ENTITY/PROJECT/RUN`.")
    if is_offline_run(reference.locator):
        raise InputError(f"`{text}` is an offline run", hint="upload it by `wandb sync` first.")
    return reference.locator
