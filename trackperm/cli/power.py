"""`trackperm power`: how many examples it takes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trackperm.cli.arguments import Alternative, Settings, TrackingUri, assignment
from trackperm.errors import InputError

if TYPE_CHECKING:
    from trackperm.planning import PastPlan, Plan


def power(
    baseline: Annotated[str | None, typer.Argument(help="The baseline of a pilot comparison.")] = None,
    candidate: Annotated[str | None, typer.Argument(help="Its candidate.")] = None,
    experiment: Annotated[
        str | None,
        typer.Option(
            metavar="mlflow:EXPERIMENT|wandb:ENTITY/PROJECT",
            help="Plan from the comparisons that are logged there, in place of a pilot.",
        ),
    ] = None,
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
    alternative: Annotated[
        Alternative, typer.Option(help="Which values are extreme.")
    ] = Alternative.TWO_SIDED,
    n_resamples: Annotated[
        int, typer.Option("--samples", metavar="N", help="Resampled comparisons of a pilot.")
    ] = 1000,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the resampling of a pilot.")] = 0,
    tracking_uri: TrackingUri = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object; with --experiment an array.")
    ] = False,
) -> None:
    """Say how many examples it takes to see a difference: by a pilot, a discordance, or past comparisons."""
    sources = [baseline is not None, discordance is not None, experiment is not None]
    if sum(sources) != 1:
        raise InputError(
            "`trackperm power` plans from a pilot, two runs, or from `--discordance`, or from `--experiment`",
            hint="`trackperm power --difference 0.03 --discordance 0.1`, for example.",
        )
    if experiment is None and test_set is not None:
        raise InputError("`--test-set` is one of those in an experiment", hint="add `--experiment`.")
    if baseline is None and difference is None:
        source = "discordance" if experiment is None else "experiment"
        raise InputError(f"`--{source}` needs the `--difference` that is to be seen")
    names = statistic or ["accuracy"]
    options: dict[str, Any] = {"n_examples": n_examples, "power": wanted}
    drawn = {"n_resamples": n_resamples, "seed": seed}
    test: dict[str, Any] = {"alpha": alpha, "alternative": alternative.value}
    plans: list[Plan] | list[PastPlan]
    if experiment is not None and difference is not None:
        if settings:
            raise InputError(
                "`--set` is for a pilot; logged comparisons have the spec that they were made by"
            )
        past = {"test_set": test_set, "difference": difference, **drawn, **options, **test}
        plans = _from_past(experiment, names, tracking_uri, past)
    elif discordance is not None and difference is not None:
        from trackperm.planning import plan_paired

        plans = [plan_paired(difference, discordance, **options, **test)]
    else:
        from trackperm.comparison import compare
        from trackperm.planning import plan_from_pilot

        if candidate is None:
            raise InputError("a pilot has two runs", hint="`trackperm power BASELINE CANDIDATE`.")
        if len(names) > 1:
            raise InputError("a pilot is compared by one statistic", hint="give `--statistic` once.")
        parameters = dict(assignment(text) for text in settings or [])
        pilot = compare(
            baseline, candidate, names[0], parameters=parameters, tracking_uri=tracking_uri, **test
        )
        plans = [plan_from_pilot(pilot, difference=difference, **drawn, **options)]
    if as_json:
        data: Any = [plan.to_dict() for plan in plans]
        typer.echo(json.dumps(data if experiment else data[0], indent=2, allow_nan=False))
        return
    typer.echo("\n\n".join("\n".join(plan.lines()) for plan in plans))


def _from_past(
    experiment: str, statistics: list[str], tracking_uri: str | None, options: dict[str, Any]
) -> list[PastPlan]:
    """Plan by every statistic from what is logged in an experiment, a project or a folder."""
    from trackperm.cli.tracked import opened
    from trackperm.planning import plan_from_past

    tracker, container = opened(experiment, tracking_uri, hint="`--experiment mlflow:EXPERIMENT`.")
    return [plan_from_past(tracker, container, statistic, **options) for statistic in statistics]
