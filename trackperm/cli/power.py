"""``trackperm power``: sample size of a planned comparison."""

from __future__ import annotations

from typing import Annotated

import typer

from trackperm.choices import Alternative
from trackperm.cli.arguments import Experiment, Settings, TrackingUri, assignment
from trackperm.cli.output import OutputFiles, Renderers, TextOrJson, as_json, emit, require_formats


def power(
    baseline: Annotated[str | None, typer.Argument(help="The baseline of a pilot comparison.")] = None,
    candidate: Annotated[str | None, typer.Argument(help="Its candidate.")] = None,
    experiment: Experiment = None,
    test_set: Annotated[
        str | None,
        typer.Option(metavar="DIGEST", help="With --experiment: of the test set; its first digits."),
    ] = None,
    statistic: Annotated[
        list[str] | None,
        typer.Option(
            "--statistic",
            "-s",
            metavar="NAME|FILE.yaml",
            help="Of the pilot; with --experiment a name that was logged, repeatable. [default: accuracy]",
            show_default=False,
        ),
    ] = None,
    settings: Settings = None,
    difference: Annotated[
        float | None,
        typer.Option(help="The true difference to be seen. [default: that of a pilot]", show_default=False),
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
    alternative: Annotated[Alternative, typer.Option(help="Which values are extreme.")] = "two-sided",
    n_resamples: Annotated[
        int, typer.Option("--samples", metavar="N", help="Resampled comparisons of a pilot.")
    ] = 1000,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the resampling of a pilot.")] = 0,
    tracking_uri: TrackingUri = None,
    format_: TextOrJson = "text",
    output: OutputFiles = None,
) -> None:
    """Say how many examples it takes to see a difference: by a pilot, a discordance, or past comparisons."""
    from trackperm.ledger.power import power as planned

    require_formats(output, ("text", "json"))
    found = planned(
        baseline,
        candidate,
        experiment=experiment,
        test_set=test_set,
        statistic=statistic,
        difference=difference,
        discordance=discordance,
        n_examples=n_examples,
        power=wanted,
        alpha=alpha,
        alternative=alternative,
        n_resamples=n_resamples,
        seed=seed,
        parameters=dict(assignment(text) for text in settings or []),
        tracking_uri=tracking_uri,
    )
    plans = found if isinstance(found, list) else [found]
    renderers: Renderers = {
        "text": lambda: "\n\n".join("\n".join(plan.lines()) for plan in plans),
        "json": lambda: as_json(
            [plan.to_dict() for plan in found] if isinstance(found, list) else found.to_dict()
        ),
    }
    emit(renderers, format_, output)
