"""``trackperm power``: sample size of a planned comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from trackperm.choices import Alternative
from trackperm.cli import arguments as a
from trackperm.cli.arguments import Experiment, Settings, TrackingUri, assignments
from trackperm.cli.output import (
    RUNS,
    OutputFiles,
    Renderers,
    TextOrJson,
    as_json,
    emit,
    require_formats,
    require_other_files,
)
from trackperm.cli.progress import working


def power(
    baseline: Annotated[
        str | None, typer.Argument(metavar="BASELINE", help="The baseline of a pilot comparison.")
    ] = None,
    candidate: Annotated[str | None, typer.Argument(metavar="CANDIDATE", help="Its candidate.")] = None,
    experiment: Experiment = None,
    test_set: Annotated[
        str | None,
        typer.Option(metavar="DIGEST", help="With --experiment: first digits of the digest of a test set."),
    ] = None,
    statistic: Annotated[
        list[str] | None,
        typer.Option(
            "--statistic",
            "-s",
            metavar="NAME|FILE.yaml",
            help="Statistic of the pilot; with --experiment a logged name, repeatable."
            " [default: as the runs say; with --experiment accuracy]",
            show_default=False,
        ),
    ] = None,
    metric: a.Metric = None,
    settings: Settings = None,
    id_column: a.IdColumn = None,
    prediction: a.Prediction = None,
    label: a.Label = None,
    other_columns: a.OtherColumns = None,
    missing: a.Missing = "error",
    by_position: a.ByPosition = False,
    unit: a.Unit = None,
    repeats: a.Repeats = None,
    cluster: a.Cluster = None,
    allow_unseen: a.AllowUnseen = False,
    difference: Annotated[
        float | None,
        typer.Option(
            metavar="SIZE",
            help="True difference to detect. [default: that of the pilot; 0 with `--margin`]",
            show_default=False,
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            metavar="SIZE",
            help="Smallest difference that matters: plan for equivalence within it, if `--difference`,"
            " by default 0, is true.",
            show_default=False,
        ),
    ] = None,
    discordance: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", help="Share of examples on which exactly one run is right, instead of a pilot."
        ),
    ] = None,
    n_examples: Annotated[
        int | None,
        typer.Option(
            "--examples",
            metavar="N",
            help="Compute also the power of N examples; with --unit row, of N rows.",
        ),
    ] = None,
    wanted: Annotated[
        float, typer.Option("--power", metavar="SHARE", help="Required probability of p < alpha.")
    ] = 0.8,
    alpha: Annotated[float, typer.Option(metavar="LEVEL", help="Level of the test.")] = 0.05,
    alternative: Annotated[Alternative, typer.Option(help="Which values are extreme.")] = "two-sided",
    n_resamples: Annotated[
        int, typer.Option("--samples", metavar="N", help="Resampled comparisons of a pilot.")
    ] = 1000,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the resampling of a pilot.")] = 0,
    tracking_uri: TrackingUri = None,
    format_: TextOrJson = "text",
    output: OutputFiles = None,
) -> None:
    """Compute how many examples detect a difference, from a pilot, a discordance or past comparisons.

    With `--margin`, compute how many examples show equivalence within it.
    """
    from trackperm.exact.options import checked_integer
    from trackperm.ledger.power import AnyPlan
    from trackperm.ledger.power import power as overloaded

    planned: Callable[..., AnyPlan] = overloaded

    require_formats(output, ("text", "json"))
    require_other_files(output, {RUNS: (baseline, candidate)})
    checked_integer("samples", n_resamples, 1)  # Python has another name for it
    with working("computing power"):
        found = planned(
            baseline,
            candidate,
            experiment=experiment,
            test_set=test_set,
            statistic=statistic,
            difference=difference,
            margin=margin,
            discordance=discordance,
            n_examples=n_examples,
            power=wanted,
            alpha=alpha,
            alternative=alternative,
            n_resamples=n_resamples,
            seed=seed,
            metric=next(iter(a.at_most_one("--metric", metric)), None),
            parameters=assignments(settings),
            columns=a.columns(other_columns, id=id_column, prediction=prediction, label=label),
            missing=missing,
            by_position=by_position,
            unit=unit,
            repeats=repeats,
            cluster=cluster,
            allow_unseen=allow_unseen,
            tracking_uri=tracking_uri,
        )
    plans = found if isinstance(found, list) else [found]
    renderers: Renderers = {
        "text": lambda: "\n\n".join("\n".join(plan.lines()) for plan in plans),
        "json": lambda: as_json([plan.to_dict() for plan in plans] if experiment else plans[0].to_dict()),
    }
    emit(renderers, format_, output, is_prose=True)
