"""``trackperm family``: list of logged comparisons on a test set, with adjusted p-values."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from trackperm.choices import CorrectionOfLogged
from trackperm.cli.arguments import Experiment, TrackingUri
from trackperm.cli.output import FORMAT, OutputFiles, Renderers, as_json, emit, require_formats
from trackperm.cli.progress import working


def family(
    run: Annotated[
        str | None, typer.Argument(metavar="RUN|COMPARISON", help="A logged comparison, or a run.")
    ] = None,
    experiment: Experiment = None,
    test_set: Annotated[
        str | None, typer.Option(metavar="DIGEST", help="First digits of the digest of a test set.")
    ] = None,
    correction: Annotated[
        CorrectionOfLogged, typer.Option(help="Correction for all listed comparisons.")
    ] = "holm",
    spend: Annotated[
        bool,
        typer.Option("--spend", help="Add p-values by alpha spending, in the order of logging."),
    ] = False,
    tracking_uri: TrackingUri = None,
    format_: Annotated[Literal["text", "json", "csv"], FORMAT] = "text",
    output: OutputFiles = None,
) -> None:
    """List the logged comparisons on a test set in order, with p-values adjusted for all of them."""
    from trackperm.ledger.family import family as listed
    from trackperm.ledger.family_text import families_csv, family_lines

    require_formats(output, ("text", "json", "csv"))
    with working("reading logged comparisons"):
        found = listed(run, experiment=experiment, test_set=test_set, tracking_uri=tracking_uri)
    renderers: Renderers = {
        "text": lambda: "\n\n".join("\n".join(family_lines(each, correction, spend=spend)) for each in found),
        "json": lambda: as_json([each.to_dict(correction, spend=spend) for each in found]),
        "csv": lambda: families_csv(found, correction, spend=spend),
    }
    emit(renderers, format_, output)
