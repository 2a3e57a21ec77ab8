"""Refusals of a pairing, with the first differences side by side."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import polars as pl

from trackperm.choices import Missing
from trackperm.errors import DisjointError, PairingError
from trackperm.pairing.checks.differences import Differences, RunDifferences
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.engines.base import Engine
from trackperm.pairing.keyed_run import KEY, KeyedRun

_NORMAL_FORM = "normal_form"


def require_same_length(baseline: KeyedRun, candidate: KeyedRun) -> None:
    """Refuse to pair by position where one run has more rows than the other."""
    if baseline.n_rows != candidate.n_rows:
        raise PairingError(
            f"`{baseline.origin}` has {baseline.n_rows} examples and `{candidate.origin}` has"
            f" {candidate.n_rows}:"
            " they cannot be paired by position",
            hint="`--id NAME` names a column that identifies the examples.",
        )


def require_unique_ids(runs: Sequence[RunDifferences], id_: str) -> None:
    """Refuse ids that several rows share."""
    messages = [
        f"{run.repeated.n} of {run.n_keyed} rows of `{run.origin}` share their `{id_}` with another row"
        f" {run.repeated.listed()}"
        for run in runs
        if run.repeated.n
    ]
    if messages:
        raise PairingError(
            "\n\n".join(messages),
            hint="each example has one row. MLflow's `log_table` appends to an existing table, so a table"
            " that was logged twice has every row twice. `--id NAME` names another column, `--id NAME,NAME`"
            " names several columns that identify an example together.",
        )


def require_distinct_ids(engine: Engine, *runs: KeyedRun, id_: str) -> None:
    """Refuse ids of one run that are the same text in different Unicode normal forms."""
    f = engine.functions
    for run in runs:
        if run.frame.collect_schema()[KEY] != f.String:
            continue
        beyond_ascii = engine.beyond_ascii(run.frame, KEY).select(KEY)
        if not len(engine.collected(beyond_ascii.head(1))):
            continue
        ids = f.col(KEY)
        twins = (
            engine.mapped(beyond_ascii.unique(), _with_normal_form)
            .group_by(_NORMAL_FORM)
            .agg(f.len().alias("n"), ids.min().alias("first"), ids.max().alias("last"))
            .filter(f.col("n") > 1)
        )
        for first, last in engine.collected(twins.sort("first").head(1).select("first", "last")).iter_rows():
            raise PairingError(
                f"`{run.origin}` has the `{id_}` {first!a} and {last!a}, which are the same text in two"
                " Unicode normal forms; expected one form of each text",
                hint="normalise the ids with `unicodedata.normalize('NFC', id)`, or name another column by"
                " `--id NAME`.",
            )


def _with_normal_form(batch: pl.DataFrame) -> pl.DataFrame:
    normal = [unicodedata.normalize("NFC", id_value) for id_value in batch[KEY].to_list()]
    return batch.with_columns(pl.Series(_NORMAL_FORM, normal, pl.String))


def refuse_differences(
    found: Differences, columns: PairedColumns, missing: Missing, *, has_wrong: bool
) -> None:
    """Refuse runs with different examples, or whose examples differ in their labels or inputs.

    The message lists all differences, and its hint the options that accept them; `has_wrong` states that the
    statistic defines what a missing prediction counts. If no example is left, the error is a
    :class:`~trackperm.errors.DisjointError`.
    """
    messages, hints = [], []
    if missing != "drop" or not found.n_paired:
        messages = _absences(found, columns.id, columns.needed(missing))
        if messages and found.n_paired:
            hint = f"`--missing drop` tests the {found.n_paired} paired examples only, and the result says so"
            hints.append(
                f"{hint}; `--missing wrong` counts the others as wrong." if has_wrong else f"{hint}."
            )
        elif messages and columns.id:
            hints.append(f"No example is left to test. `--id NAME` names another column than `{columns.id}`.")
        elif messages:
            hints.append("No example is left to test.")
    for name, cases in found.disagreements.items():
        if not cases.n:
            continue
        table = side_by_side(("example", *(f"`{run.origin}`" for run in found.runs)), cases.first)
        messages.append(
            f"`{name}` differs between the runs on {cases.n} of {found.n_matched} examples{table}"
        )
        if name == columns.label:
            hints.append(
                "Rows in different orders need `--id NAME` instead of `--by-position`."
                if columns.id is None
                else "Both runs need the same reference answers: `--label NAME` names another column of"
                " answers, `--id NAME` another column of ids."
            )
        elif name in columns.identity:
            hints.append("The inputs differ: evaluate both runs on the same data and prompts.")
        else:
            hints.append(
                "Clusters, strata, classes and the columns that define pairs belong to the examples and"
                " must be the same in both runs."
                if columns.of_pairs
                else "Clusters, strata and classes belong to the examples and must be the same in both runs."
            )
    if messages:
        refusal = PairingError if found.n_paired else DisjointError
        raise refusal("\n\n".join(messages), hint=" ".join(dict.fromkeys(hints)))


def without_id(run: RunDifferences, id_: str | None) -> str:
    """List the rows that have no id."""
    rows = ", ".join(row for (row,) in run.without_id.first)
    return (
        f"{run.without_id.n} of {run.n_rows} examples of `{run.origin}` have no `{id_}` (rows counted"
        f" from 0: {rows})"
    )


def _absences(found: Differences, id_: str | None, needed: Sequence[str]) -> list[str]:
    """List the examples that have no id, no partner, or no value that the statistic reads."""
    messages = [without_id(run, id_) for run in found.runs if run.without_id.n]
    if any(run.n_keyed > found.n_matched for run in found.runs):
        messages.append(_no_partner(found))
    for run in found.runs:
        if run.lacking.n:
            names = " or ".join(f"`{name}`" for name in needed if name in run.lacking_in)
            messages.append(
                f"{run.lacking.n} of {run.n_keyed} examples of `{run.origin}` have no value in {names}"
                f" {run.lacking.listed()}"
            )
    return messages


def _no_partner(found: Differences) -> str:
    message = " and ".join(
        f"{run.n_keyed - found.n_matched} of {run.n_keyed} examples of `{run.origin}`" for run in found.runs
    )
    alone = [run for run in found.runs if run.alone.n]
    if len(alone) == 1:
        return f"{message} have no partner {alone[0].alone.listed()}"
    rows = zip_longest(*((case for (case,) in run.alone.first) for run in alone), fillvalue="")
    table = side_by_side([f"only in `{run.origin}`" for run in alone], rows)
    return f"{message} have no partner{table}" + trivial_difference(alone[0].alone_ids, alone[1].alone_ids)


def trivial_difference(first: Sequence[str], second: Sequence[str]) -> str:
    """Name a trivial difference between texts of two sides, such as case; empty if they differ in more."""
    for difference, plain in _PLAIN.items():
        sides = [{plain(text) for text in side} for side in (first, second)]
        n_equal = len(sides[0] & sides[1])
        if n_equal:
            return f"\n\n{n_equal} of them differ only in {difference}."
    return ""


def _without_zeros(text: str) -> str:
    return text.lstrip("0") or "0" if text.isdecimal() else text


_PLAIN: dict[str, Callable[[str], str]] = {
    "leading zeros": _without_zeros,
    "white space": lambda text: "".join(text.split()),
    "Unicode normal form": lambda text: unicodedata.normalize("NFC", text),
    "upper and lower case": str.casefold,
}


def side_by_side(header: Sequence[str], rows: Any) -> str:
    """Format rows of cells as a table below a header, as a paragraph that follows another."""
    lines = [tuple(header), *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n\n" + "\n".join(
        "    " + "   ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
