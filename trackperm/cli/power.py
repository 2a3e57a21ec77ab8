"""`trackperm power`: how many examples it takes."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from trackperm.cli.arguments import Alternative, Settings, TrackingUri, assignment
from trackperm.errors import InputError


def power(
    baseline: Annotated[str | None, typer.Argument(help="The baseline of a pilot comparison.")] = None,
    candidate: Annotated[str | None, typer.Argument(help="Its candidate.")] = None,
    statistic: Annotated[
        str, typer.Option("--statistic", "-s", metavar="NAME|FILE.yaml", help="Of the pilot.")
    ] = "accuracy",
    settings: Settings = None,
    difference: Annotated[
        float | None,
        typer.Option(help="The true difference to be seen. [default: the pilot's]", show_default=False),
    ] = None,
    discordance: Annotated[
        float | None,
        typer.Option(help="Share of examples on which one run alone is right, in place of a pilot."),
    ] = None,
    n_examples: Annotated[
        int | None, typer.Option("--examples", metavar="N", help="A number of examples to ask about.")
    ] = None,
    wanted: Annotated[float, typer.Option("--power", help="The chance of p < alpha to be had.")] = 0.8,
    alpha: Annotated[float, typer.Option(help="Level of the test.")] = 0.05,
    alternative: Annotated[
        Alternative, typer.Option(help="Which values are extreme.")
    ] = Alternative.TWO_SIDED,
    n_resamples: Annotated[
        int, typer.Option("--samples", metavar="N", help="Resampled comparisons of a pilot.")
    ] = 1000,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the resampling of a pilot.")] = 0,
    tracking_uri: TrackingUri = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Say how many examples it takes to see a difference: from a pilot, or from a discordance."""
    from trackperm.comparison import compare
    from trackperm.planning import plan_from_pilot, plan_paired

    if (baseline is None) == (discordance is None):
        raise InputError(
            "`trackperm power` plans from a pilot, two runs, or from `--discordance`",
            hint="`trackperm power --difference 0.03 --discordance 0.1`, for example.",
        )
    if discordance is not None:
        if difference is None:
            raise InputError("`--discordance` needs the `--difference` that is to be seen")
        plan = plan_paired(
            difference,
            discordance,
            n_examples=n_examples,
            power=wanted,
            alpha=alpha,
            alternative=alternative.value,
        )
    else:
        if candidate is None:
            raise InputError("a pilot has two runs", hint="`trackperm power BASELINE CANDIDATE`.")
        pilot = compare(
            baseline,
            candidate,
            statistic,
            parameters=dict(assignment(text) for text in settings or []),
            alpha=alpha,
            alternative=alternative.value,
            tracking_uri=tracking_uri,
        )
        plan = plan_from_pilot(
            pilot,
            difference=difference,
            n_examples=n_examples,
            power=wanted,
            n_resamples=n_resamples,
            seed=seed,
        )
    if as_json:
        typer.echo(json.dumps(plan.to_dict(), indent=2, allow_nan=False))
        return
    typer.echo("\n".join(plan.lines()))
