"""``trackperm family``: what was compared on a test set before, with p-values adjusted for all of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from trackperm.errors import InputError

if TYPE_CHECKING:
    from trackperm.family import Family, Look
    from trackperm.trackers.base import Tracker
    from trackperm.trackers.publication import LoggedComparison

_DIGEST = 12  # digits of a test set that are shown
_WIDEST = 60  # of a comparison's name


class Adjust(str, Enum):
    """Corrections for many tests."""

    HOLM = "holm"
    BY = "by"
    BH = "bh"
    HOMMEL = "hommel"
    BONFERRONI = "bonferroni"


def family(
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN|COMPARISON]", help="A logged comparison, or a run.")
    ] = None,
    experiment: Annotated[
        str | None,
        typer.Option(metavar="mlflow:EXPERIMENT", help="All test sets that were compared on there."),
    ] = None,
    test_set: Annotated[
        str | None, typer.Option(metavar="DIGEST", help="Only this test set; its first digits are enough.")
    ] = None,
    correction: Annotated[Adjust, typer.Option(help="Correction for all that is listed.")] = Adjust.HOLM,
    spend: Annotated[
        bool, typer.Option("--spend", help="Also spend alpha on the comparisons in their order.")
    ] = False,
    tracking_uri: Annotated[str | None, typer.Option(metavar="URI", help="Tracking server or store.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON array, one object per test set.")
    ] = False,
) -> None:
    """List the logged comparisons on a test set in their order, with p-values adjusted for all of them."""
    from trackperm.family import families, without_test_set

    if (run is None) == (experiment is None):
        raise InputError(
            "one run, or `--experiment`, says where to look",
            hint="`trackperm family mlflow:RUN_ID`, or `trackperm family --experiment mlflow:EXPERIMENT`.",
        )
    found = _of_experiment(experiment, tracking_uri) if run is None else _of_run(run, tracking_uri)
    tracker, logged, wanted = found
    listed = [
        each.with_pairs(tracker)
        for each in families(logged)
        if (wanted is None or each.test_set in wanted) and each.test_set.startswith(test_set or "")
    ]
    if not listed:
        raise InputError(
            f"no comparison {f'on the test set `{test_set}`' if test_set else 'with a test set'} is logged"
            f" for `{run or experiment}`",
            hint="`trackperm compare` logs one where the candidate is, unless it is told `--no-log`.",
        )
    if as_json:
        data = [each.to_dict(correction.value, spend=spend) for each in listed]
        typer.echo(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))
        return
    typer.echo("\n\n".join("\n".join(_lines(each, correction.value, spend=spend)) for each in listed))
    strays = len(without_test_set(logged)) if run is None else 0
    if strays:
        typer.echo(f"\nin no family: {strays} logged without a test set, as older versions did")


def _of_experiment(
    text: str | None, tracking_uri: str | None
) -> tuple[Tracker, list[LoggedComparison], set[str] | None]:
    from trackperm.cli.tracked import opened

    tracker, container = opened(text or "", tracking_uri, hint="`--experiment mlflow:EXPERIMENT`.")
    return tracker, tracker.comparisons(container), None


def _of_run(text: str, tracking_uri: str | None) -> tuple[Tracker, list[LoggedComparison], set[str] | None]:
    """List the comparisons beside a run, and say on which test sets it was compared."""
    from trackperm.cli.tracked import found, opened
    from trackperm.family import families
    from trackperm.trackers.publication import TEST_SET_TAG, LoggedComparison

    tracker, locator = opened(text, tracking_uri, hint="`mlflow:RUN_ID` or `wandb:ENTITY/PROJECT/RUN`.")
    run = found(tracker, locator)
    if isinstance(run, LoggedComparison):
        test_set = run.tags.get(TEST_SET_TAG, "")
        return tracker, tracker.comparisons(run.run, test_set), {test_set}
    logged, reference = tracker.comparisons(run), str(run.reference)
    return tracker, logged, {each.test_set for each in families(logged) if _names(each, reference, tracker)}


def _names(family: Family, reference: str, tracker: Tracker) -> bool:
    """Whether a run is in a comparison of a family, or in a pair of one of its leaderboards."""
    if any(reference in (look.tag("baseline"), look.tag("candidate")) for look in family.looks):
        return True
    pairs = (pair for look in family.with_pairs(tracker).looks for pair in look.pairs)
    return any(reference in (pair.baseline, pair.candidate) for pair in pairs)


def _lines(family: Family, method: str, *, spend: bool) -> Iterator[str]:
    data = family.to_dict(method, spend=spend)
    n, left = family.n_comparisons, sum(look.n_pairs for look in family.looks if not look.is_finished)
    boards = [look for look in family.looks if look.is_leaderboard]
    of_pairs = f", {sum(look.n_pairs for look in boards)} of them pairs of leaderboards" if boards else ""
    state = f", {left} of them unfinished and in no adjustment" if left else ""
    yield f"test set {family.test_set[:_DIGEST]}: {n} logged comparison{'s' * (n != 1)}{of_pairs}{state}"
    columns = {method: family.adjusted(method), **({"spent": family.spent()} if spend else {})}
    rows = [("", "begun (UTC)", "comparison", "p", *columns, "verdict")]
    for look in family.looks:
        adjusted = [_written(values.get(look.number)) for values in columns.values()]
        last = f"-{look.number + look.n_pairs - 1}" if look.n_pairs > 1 else ""
        rows.append(
            (f"{look.number}{last}", *_described(look), *adjusted, look.tag("verdict") * look.is_finished)
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        first, *others = zip(row, widths, strict=True)
        cells = [first[0].rjust(first[1]), *(cell.ljust(width) for cell, width in others)]
        yield "  ".join(cells).rstrip()
    yield from data["adjustments"]
    yield from data["notes"]


def _described(look: Look) -> tuple[str, str, str]:
    name = look.run.name if len(look.run.name) <= _WIDEST else f"{look.run.name[: _WIDEST - 1]}…"
    if look.is_leaderboard:
        name += f", {look.n_pairs} pair{'s' * (look.n_pairs != 1)}"
    return _begun(look), name, _pvalue(look)


def _pvalue(look: Look) -> str:
    return _written(look.log10_pvalue) or ("unreadable" if look.is_finished else "unfinished")


def _begun(look: Look) -> str:
    return "" if look.created is None else look.created.strftime("%Y-%m-%d %H:%M:%S")


def _written(log10_pvalue: float | None) -> str:
    from trackperm.exact.result import format_log10_pvalue

    return "" if log10_pvalue is None else format_log10_pvalue(log10_pvalue)
