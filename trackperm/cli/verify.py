"""``trackperm verify``: recompute a logged comparison."""

from __future__ import annotations

from typing import Annotated

import typer

from trackperm.cli import arguments as a
from trackperm.cli.output import (
    LABELS,
    OutputFiles,
    Renderers,
    TextOrJson,
    as_json,
    emit,
    require_formats,
    require_other_files,
)
from trackperm.cli.progress import working

MISMATCH = 4
"""Exit code of a mismatch."""


def verify(
    comparison: Annotated[
        str,
        typer.Argument(
            metavar="COMPARISON",
            help="mlflow:RUN_ID or mlflow:EXPERIMENT/NAME of a comparison, wandb:ENTITY/PROJECT/ID, or a"
            " folder with its files.",
        ),
    ],
    from_runs: Annotated[
        bool, typer.Option("--from-runs", help="Read and compare the runs again as well.")
    ] = False,
    artifact: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|BASE,CAND",
            help="With --from-runs: as for `trackperm compare`. [default: as logged]",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="With --from-runs: as for `trackperm compare`. [default: as logged]"
        ),
    ] = None,
    baseline_columns: a.BaselineColumns = None,
    candidate_columns: a.CandidateColumns = None,
    tracking_uri: a.TrackingUri = None,
    format_: TextOrJson = "text",
    output: OutputFiles = None,
) -> None:
    """Compute a logged comparison again from its counts and spec, and check each logged value.

    Exit code 4 if a value does not match.
    """
    from trackperm.ledger.verification.verify import verify as verified

    require_formats(output, ("text", "json"))
    require_other_files(output, {"the comparison that is verified": (comparison,), LABELS: (labels,)})
    with working("verifying"):
        result = verified(
            comparison,
            from_runs=from_runs,
            artifact=a.artifacts(artifact),
            labels=labels,
            baseline_columns=a.columns_of_one(baseline_columns, "baseline"),
            candidate_columns=a.columns_of_one(candidate_columns, "candidate"),
            tracking_uri=tracking_uri,
        )
    require_other_files(output, {"a file that the verification reads": result.files})
    renderers: Renderers = {
        "text": lambda: "\n".join(result.lines()),
        "json": lambda: as_json(result.to_dict()),
    }
    emit(renderers, format_, output, is_prose=True)
    if not result.matches:
        raise typer.Exit(MISMATCH)
