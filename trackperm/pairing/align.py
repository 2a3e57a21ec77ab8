"""Prove that examples of two runs belong together, or refuse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import narwhals as nw

from trackperm.errors import InputError, PairingError
from trackperm.exact import CountTable
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.counting import (
    ScaledCounts,
    counted,
    discordant_rows,
    paired_counts,
    read_columns,
    scaled,
)
from trackperm.pairing.digest import digest
from trackperm.pairing.grouping import count_table, summed
from trackperm.pairing.missing import counted_with_missing, with_absent
from trackperm.pairing.refusals import (
    absences,
    label_disagreement,
    require_same_length,
    require_same_repeats,
    require_unique_ids,
)
from trackperm.pairing.report import Missing, PairingReport
from trackperm.pairing.run import KeyedRun, keyed_runs
from trackperm.statistic import Statistic, load_statistic
from trackperm.tables import ColumnType, ExampleTable, PairedCounts


@dataclass(frozen=True, eq=False)
class Pairing:
    """Two runs on the same examples.

    Attributes
    ----------
    counts : PairedCounts
        Counts of both runs by example, or by cluster; where a cluster is in several strata, by both.
    strata : narwhals.Series or None
        The stratum of every row of `counts`, where the statistic has strata.
    statistic : Statistic
        What was counted, with the units of the counts and the weights of the strata.
    report : PairingReport
        How the examples were paired.
    discordant : narwhals.DataFrame
        Examples whose counts differ, ordered by id: ``id``, ``label`` where labels were checked, then
        ``baseline.<name>`` and ``candidate.<name>`` for every other column that the statistic reads and
        every count, in the units of the spec; where a column has the name of a count, the count alone.
        ``stratum`` stands before them where there are strata. Of clusters, and of examples that have several
        rows, only the counts are there.
    """

    counts: PairedCounts
    strata: nw.Series[Any] | None
    statistic: Statistic
    report: PairingReport
    discordant: nw.DataFrame[Any]

    def count_table(self) -> CountTable:
        """Group the counts: what is exchanged together is one row, and counts of a stratum stand apart."""
        return count_table(self.counts, self.strata, self.statistic)


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
    missing : {"error", "drop", "wrong"}
        Whether examples without a partner, or without a value that the statistic reads, are refused, left
        out, or counted as the statistic says of a missing prediction.
    by_position : bool
        Whether rows are matched in the order in which they stand, instead of by id.

    Raises
    ------
    PairingError
        If the runs cannot be proved to hold the same examples; says the first differences side by side.
    InputError
        If a column is missing, a count is out of range or undefined, or the statistic does not say what a
        missing prediction counts.
    InputTypeError
        If a column has values of the wrong type.
    SpecError
        If the counts cannot be computed from columns of these types.
    """
    if missing not in get_args(Missing):
        raise InputError(f"`missing` is 'error', 'drop' or 'wrong', not {missing!r}")
    for table in (baseline, candidate):
        if not len(table):
            raise PairingError(f"`{table.origin}` has no examples")
    columns = PairedColumns.find(baseline, candidate, statistic, by_position, missing)
    runs, types = keyed_runs(baseline, candidate, columns)
    if columns.id is None:
        require_same_length(*runs)
    elif not columns.repeats:
        require_unique_ids(*runs, columns.id)
    full, needed, lacking = runs, columns.used, None
    if missing == "wrong":
        lacking = statistic.missing_counts(types)
        needed = tuple(name for name in columns.used if name in columns.of_examples)
        full = with_absent(*runs, columns)

    matched = _matched(full, columns)
    complete = _complete(matched, needed, columns)
    paired = matched[0].filter(complete), matched[1].filter(complete)
    _refuse_differences(
        full, matched, len(paired[0]), columns, needed, missing, has_wrong=statistic.counts_missing
    )

    own, n_missing = _counted(paired, statistic, columns, types, lacking)
    statistic = own.statistic
    counts = paired_counts(paired[0].keys, own.baseline, own.candidate)
    strata = None
    if columns.strata is not None:
        strata = paired[0].frame.get_column(columns.strata).cast(nw.String)
        statistic = load_statistic(statistic, strata=strata.unique().sort().to_list())
    read = None
    if columns.cluster is not None or columns.repeats:
        units = paired[0].keys if columns.cluster is None else paired[0].frame.get_column(columns.cluster)
        counts, strata = summed(counts, units, strata, statistic)
    else:
        read = read_columns(*paired, columns)
    n_dropped = len(baseline) + len(candidate) - len(matched[0]) - len(paired[0])
    report = PairingReport(
        by="id" if columns.id else "position",
        n_baseline=len(baseline),
        n_candidate=len(candidate),
        n_paired=len(paired[0]),
        n_dropped=0 if missing == "wrong" else n_dropped,
        labels_checked=columns.label is not None,
        missing=missing,
        notes=(
            *columns.notes,
            *_rewritten_ids(baseline, candidate, columns, types),
            *own.notes,
            *_design(paired[0], counts, columns, statistic),
            *_predictions_missing(*n_missing),
        ),
        baseline_digest=digest(runs[0].frame, types),
        candidate_digest=digest(runs[1].frame, types),
    )
    discordant = discordant_rows(counts, strata, read, statistic)
    return Pairing(counts, strata, statistic, report, discordant)


def _matched(runs: tuple[KeyedRun, KeyedRun], columns: PairedColumns) -> tuple[KeyedRun, KeyedRun]:
    """Rows whose key both runs have, in the same order."""
    baseline, candidate = runs
    if len(baseline) == len(candidate) and (baseline.keys == candidate.keys).all():
        return runs
    matched = baseline.join(candidate, "semi"), candidate.join(baseline, "semi")
    if columns.repeats:
        matched = matched[0].ordered(columns.tie_breakers), matched[1].ordered(columns.tie_breakers)
        require_same_repeats(*matched)
    return matched


def _complete(
    matched: tuple[KeyedRun, KeyedRun], needed: tuple[str, ...], columns: PairedColumns
) -> nw.Series[Any]:
    """Whether all rows of an example have what is needed, in both runs, by row."""
    complete = matched[0].is_complete(needed) & matched[1].is_complete(needed)
    if columns.repeats:
        keys = matched[0].keys
        complete = ~keys.is_in(keys.filter(~complete).unique().to_list())
    return complete


def _counted(
    paired: tuple[KeyedRun, KeyedRun],
    statistic: Statistic,
    columns: PairedColumns,
    types: Mapping[str, ColumnType],
    lacking: Mapping[str, nw.Expr] | None,
) -> tuple[ScaledCounts, tuple[int, int]]:
    """Count the outcomes of both runs, and the missing predictions that are counted by `lacking`."""
    expressions = statistic.counts(types)
    if lacking is None:
        baseline, candidate = (counted(run, statistic, expressions) for run in paired)
        return scaled(baseline, candidate, statistic), (0, 0)
    (baseline, n_baseline), (candidate, n_candidate) = (
        counted_with_missing(run, statistic, columns, expressions, lacking) for run in paired
    )
    return scaled(baseline, candidate, statistic), (n_baseline, n_candidate)


def _refuse_differences(
    runs: tuple[KeyedRun, KeyedRun],
    matched: tuple[KeyedRun, KeyedRun],
    n_paired: int,
    columns: PairedColumns,
    needed: tuple[str, ...],
    missing: Missing,
    *,
    has_wrong: bool,
) -> None:
    messages, hints = [], []
    if missing != "drop" or not n_paired:
        messages = absences(runs, len(matched[0]), columns.id, needed)
        if messages and n_paired:
            hint = f"`--missing drop` tests the {n_paired} that are paired and says so in the result"
            hints.append(
                f"{hint}; `--missing wrong` counts the others as wrong." if has_wrong else f"{hint}."
            )
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
    for name in columns.groups:
        disagreement = label_disagreement(*matched, name, nulls=False) if name != columns.label else None
        if disagreement:
            messages.append(disagreement)
            hints.append("Clusters and strata are those of the examples, the same in both runs.")
    if messages:
        raise PairingError("\n\n".join(messages), hint=" ".join(dict.fromkeys(hints)))


def _design(run: KeyedRun, counts: PairedCounts, columns: PairedColumns, statistic: Statistic) -> list[str]:
    """Say what is exchanged together, scored apart and contrasted otherwise than by difference."""
    notes = []
    n_units = counts.frame.get_column("id").n_unique()
    if columns.repeats:
        n_ids = run.keys.n_unique()
        notes.append(f"repeats: the counts of {len(run)} rows were added up for {n_ids} examples")
    if columns.cluster is not None:
        notes.append(
            f"clusters: the examples of one `{columns.cluster}` are exchanged together, so that the"
            f" {n_units} clusters count as the examples"
        )
    if columns.strata is not None:
        equal = len(set(statistic.weights.values())) == 1
        notes.append(
            f"strata: the mean of the scores of {len(statistic.weights)} strata (`{columns.strata}`),"
            f" weighted {'equally' if equal else 'as the statistic says'}"
        )
    if statistic.contrast == "log ratio":
        notes.append("contrast: the difference is that of the logarithms of the scores")
    return notes


def _predictions_missing(baseline: int, candidate: int) -> list[str]:
    if not baseline and not candidate:
        return []
    return [f"missing predictions counted as wrong: {baseline} of the baseline, {candidate} of the candidate"]


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
