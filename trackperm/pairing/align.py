"""Prove that examples of two runs belong together, or refuse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import narwhals as nw

from trackperm.errors import InputError, PairingError
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.counting import counted, discordant_examples, paired_counts, scaled
from trackperm.pairing.digest import digest
from trackperm.pairing.refusals import absences, label_disagreement, require_same_length, require_unique_ids
from trackperm.pairing.report import Missing, PairingReport
from trackperm.pairing.run import KeyedRun, keyed_runs
from trackperm.statistic import Statistic
from trackperm.tables import ColumnType, ExampleTable, PairedCounts


@dataclass(frozen=True, eq=False)
class Pairing:
    """Two runs on the same examples.

    Attributes
    ----------
    counts : PairedCounts
        Counts of both runs by example.
    statistic : Statistic
        What was counted, with the units of the counts.
    report : PairingReport
        How the examples were paired.
    discordant : narwhals.DataFrame
        Examples whose counts differ, ordered by id: ``id``, ``label`` where labels were checked, then
        ``baseline.<name>`` and ``candidate.<name>`` for every other column that the statistic reads and
        every count, in the units of the spec; where a column has the name of a count, the count alone.
    """

    counts: PairedCounts
    statistic: Statistic
    report: PairingReport
    discordant: nw.DataFrame[Any]


def pair(
    baseline: ExampleTable,
    candidate: ExampleTable,
    statistic: Statistic,
    *,
    missing: Missing = "error",
    by_position: bool = False,
) -> Pairing:
    """Match the examples of two runs and count the outcomes of each.

    Parameters
    ----------
    baseline, candidate : ExampleTable
        The runs.
    statistic : Statistic
        Names the columns and counts the outcomes.
    missing : {"error", "drop"}
        Whether examples without a partner, or without a value that the statistic reads, are refused or
        left out.
    by_position : bool
        Whether rows are matched in the order in which they stand, instead of by id.

    Raises
    ------
    PairingError
        If the runs cannot be proved to hold the same examples; says the first differences side by side.
    InputError
        If a column is missing, or a count is out of range or undefined.
    InputTypeError
        If a column has values of the wrong type.
    SpecError
        If the counts cannot be computed from columns of these types.
    """
    if missing not in get_args(Missing):
        raise InputError(f"`missing` is 'error' or 'drop', not {missing!r}")
    for table in (baseline, candidate):
        if not len(table):
            raise PairingError(f"`{table.origin}` has no examples")
    columns = PairedColumns.find(baseline, candidate, statistic, by_position)
    runs, types = keyed_runs(baseline, candidate, columns)
    if columns.id is None:
        require_same_length(*runs)
    else:
        require_unique_ids(*runs, columns.id)

    matched = _matched(*runs)
    complete = matched[0].is_complete(columns.used) & matched[1].is_complete(columns.used)
    paired = matched[0].filter(complete), matched[1].filter(complete)
    _refuse_differences(runs, matched, len(paired[0]), columns, missing)

    own = scaled(counted(paired[0], statistic, types), counted(paired[1], statistic, types), statistic)
    counts = paired_counts(paired[0].keys, own.baseline, own.candidate)
    report = PairingReport(
        by="id" if columns.id else "position",
        n_baseline=len(baseline),
        n_candidate=len(candidate),
        n_paired=len(paired[0]),
        n_dropped=len(baseline) + len(candidate) - len(matched[0]) - len(paired[0]),
        labels_checked=columns.label is not None,
        missing=missing,
        notes=(*columns.notes, *_rewritten_ids(baseline, candidate, columns, types), *own.notes),
        baseline_digest=digest(runs[0].frame, types),
        candidate_digest=digest(runs[1].frame, types),
    )
    discordant = discordant_examples(*paired, counts, columns, own.statistic)
    return Pairing(counts, own.statistic, report, discordant)


def _matched(baseline: KeyedRun, candidate: KeyedRun) -> tuple[KeyedRun, KeyedRun]:
    """Rows whose key both runs have, in the same order."""
    if len(baseline) == len(candidate) and (baseline.keys == candidate.keys).all():
        return baseline, candidate
    return baseline.join(candidate, "semi"), candidate.join(baseline, "semi")


def _refuse_differences(
    runs: tuple[KeyedRun, KeyedRun],
    matched: tuple[KeyedRun, KeyedRun],
    n_paired: int,
    columns: PairedColumns,
    missing: Missing,
) -> None:
    messages, hints = [], []
    if missing == "error" or not n_paired:
        messages = absences(runs, len(matched[0]), columns.id, columns.used)
        if messages and n_paired:
            hints.append(f"`--missing drop` tests the {n_paired} that are paired and says so in the result.")
        elif messages and columns.id:
            hints.append(f"No example is left to test. `--id NAME` names another column than `{columns.id}`.")
        elif messages:
            hints.append("No example is left to test.")
    if columns.label is not None:
        disagreement = label_disagreement(*matched, columns.label, nulls=columns.label not in columns.used)
        if disagreement:
            messages.append(disagreement)
            hints.append(
                "Rows in different orders need `--id NAME` instead of `--by-position`."
                if columns.id is None
                else "Runs can be compared on the same reference answers only: `--label NAME` names another"
                " column of answers, `--id NAME` another of examples."
            )
    if messages:
        raise PairingError("\n\n".join(messages), hint=" ".join(hints))


def _rewritten_ids(
    baseline: ExampleTable, candidate: ExampleTable, columns: PairedColumns, types: dict[str, ColumnType]
) -> list[str]:
    if columns.id is None or types[columns.id] is not ColumnType.TEXT:
        return []
    return [
        f"`{columns.id}` of `{table.origin}` has integers, which were compared as text"
        for table in (baseline, candidate)
        if table.frame.schema[columns.id].is_numeric()
    ]
