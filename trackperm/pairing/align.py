"""Prove that examples of two runs belong together, or refuse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import narwhals as nw

from trackperm.documents import listed
from trackperm.errors import InputError, PairingError
from trackperm.exact import CountTable
from trackperm.pairing.classes import class_types, counted_by_class
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.counting import discordant_rows, paired_counts, read_columns
from trackperm.pairing.digest import digest
from trackperm.pairing.folds import are_folds, fold_warning
from trackperm.pairing.grouping import grouped, summed
from trackperm.pairing.missing import counted_runs, with_absent
from trackperm.pairing.paired_counts import PairedCounts
from trackperm.pairing.refusals import (
    absences,
    label_disagreement,
    require_distinct_ids,
    require_same_length,
    require_same_repeats,
    require_unique_ids,
)
from trackperm.pairing.report import OUTCOMES, Missing, PairingReport
from trackperm.pairing.run import KeyedRun, keyed_runs
from trackperm.pairing.suspicions import other_ids, suspicions
from trackperm.statistic import Outcome, Statistic, load_statistic
from trackperm.tables import ColumnType, ExampleTable


@dataclass(frozen=True, eq=False)
class Pairing:
    """Two runs on the same examples.

    Attributes
    ----------
    counts : PairedCounts
        Counts of both runs by example, or by cluster; where a cluster is in several strata, by both. Those
        of several classes are added up.
    strata : narwhals.Series or None
        The stratum of every row of `counts`, where the statistic has strata.
    statistic : Statistic
        What was counted, with the units of the counts and the weights of the strata or classes.
    count_table : CountTable
        The counts grouped: what is exchanged together is one row, and counts of a stratum or class stand
        apart.
    report : PairingReport
        How the examples were paired.
    discordant : narwhals.DataFrame
        Examples whose counts differ, if only those of one class, ordered by id: ``id``, ``label`` where
        labels were checked, then ``baseline.<name>`` and ``candidate.<name>`` for every other column that the
        statistic reads and every count, in the units of the spec; where a column has the name of a count, the
        count alone.
        ``stratum`` stands before them where there are strata. Of clusters, and of examples that have several
        rows, only the counts are there.
    """

    counts: PairedCounts
    strata: nw.Series[Any] | None
    statistic: Statistic
    count_table: CountTable
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
    missing : {"error", "drop", "wrong", "worst", "best"}
        Whether examples without a partner, or without a value that the statistic reads, are refused, left
        out, or counted as the statistic says of a missing prediction; or, for the worst or best case of the
        candidate, as the worst possible one in one run and as the best possible one in the other.
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
        raise InputError(f"`missing` is one of {listed(get_args(Missing))}, not {missing!r}")
    for table in (baseline, candidate):
        if not len(table):
            raise PairingError(f"`{table.origin}` has no examples")
        if by_position and not table.ordered:
            raise PairingError(
                f"the rows of `{table.origin}` have no certain order, so they cannot be paired by position",
                hint="pair them by an id, or collect the table in an order that you know.",
            )
    columns = PairedColumns.find(baseline, candidate, statistic, by_position, missing)
    runs, types = keyed_runs(baseline, candidate, columns)
    if columns.id is None:
        require_same_length(*runs)
    else:
        if not columns.repeats:
            require_unique_ids(*runs, id_=columns.id)
        require_distinct_ids(*runs, id_=columns.id)
    full, needed, outcomes = runs, columns.used, OUTCOMES.get(missing)
    read_types = {**types, **class_types(statistic, columns, types)}
    if outcomes is not None:
        for outcome in outcomes:
            statistic.missing_counts(read_types, outcome)
        needed = tuple(name for name in columns.used if name in columns.of_examples)
        full = with_absent(*runs, columns)

    matched = _matched(full, columns)
    complete = _complete(matched, needed, columns)
    paired = matched
    if not complete.all():
        paired = matched[0].filter(complete), matched[1].filter(complete)
    _refuse_differences(
        full, matched, len(paired[0]), columns, needed, missing, has_wrong=statistic.counts_missing
    )

    units, strata, by_class = None, None, None
    if columns.cluster is not None or columns.repeats:
        units = paired[0].keys if columns.cluster is None else paired[0].frame.get_column(columns.cluster)
    if statistic.has_classes:
        by_class = counted_by_class(paired, statistic, columns, read_types, outcomes)
        statistic, count_notes = by_class.statistic, by_class.notes
        counts = by_class.pooled(paired[0].keys)
    else:
        own = counted_runs(paired, statistic, columns, types, outcomes)
        statistic, count_notes = own.statistic, own.notes
        counts = paired_counts(paired[0].keys, own.baseline, own.candidate)
    if columns.strata is not None:
        strata = paired[0].frame.get_column(columns.strata).cast(nw.String)
        statistic = load_statistic(statistic, strata=strata.unique().sort().to_list())
    read = read_columns(*paired, columns) if units is None else None
    if units is not None:
        counts, strata = summed(counts, units, strata, statistic)
        by_class = None if by_class is None else by_class.summed(units)
    if by_class is not None:
        count_table, differ = by_class.count_table(), by_class.differ()
    else:
        count_table, differ = grouped(counts, strata, statistic), _differ(counts)
    n_dropped = len(baseline) + len(candidate) - len(matched[0]) - len(paired[0])
    report = PairingReport(
        by="id" if columns.id else "position",
        n_baseline=len(baseline),
        n_candidate=len(candidate),
        n_paired=len(paired[0]),
        n_dropped=0 if outcomes is not None else n_dropped,
        labels_checked=columns.label is not None,
        inputs_checked=columns.identity,
        missing=missing,
        notes=(
            *columns.notes,
            *_rewritten_ids(baseline, candidate, columns, types),
            *count_notes,
            *_design(paired[0], counts, columns, statistic),
            *([] if outcomes is None else _predictions_missing(paired, columns, outcomes)),
            *(other_ids(baseline, candidate, statistic.columns["id"]) if by_position else []),
            *suspicions(paired, columns, types),
        ),
        baseline_digest=digest(runs[0].frame, types),
        candidate_digest=digest(runs[1].frame, types),
    )
    discordant = discordant_rows(counts, differ, strata, read, statistic)
    return Pairing(counts, strata, statistic, count_table, report, discordant)


def _differ(counts: PairedCounts) -> nw.Series[Any]:
    return counts.frame.select(counts.differ().alias("differ")).get_column("differ")


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
    for name in columns.identity:
        disagreement = label_disagreement(*matched, name, nulls=False)
        if disagreement:
            messages.append(disagreement)
            hints.append("The inputs are not the same: were the runs evaluated on the same data and prompts?")
    for name in columns.groups:
        disagreement = label_disagreement(*matched, name, nulls=False) if name != columns.label else None
        if disagreement:
            messages.append(disagreement)
            hints.append("Clusters, strata and classes are those of the examples, the same in both runs.")
    if messages:
        raise PairingError("\n\n".join(messages), hint=" ".join(dict.fromkeys(hints)))


def _design(run: KeyedRun, counts: PairedCounts, columns: PairedColumns, statistic: Statistic) -> list[str]:
    """Say what is exchanged together, scored apart and contrasted otherwise than by difference."""
    notes = []
    if columns.repeats:
        n_ids = run.keys.n_unique()
        notes.append(f"repeats: the counts of {len(run)} rows were added up for {n_ids} examples")
    if columns.cluster is not None:
        n_units = counts.frame.get_column("id").n_unique()
        notes.append(
            f"clusters: the examples of one `{columns.cluster}` are exchanged together, so that the"
            f" {n_units} clusters count as the examples"
        )
    if statistic.weights:
        noun, column = ("classes", columns.classes) if statistic.has_classes else ("strata", columns.strata)
        equal = len(set(statistic.weights.values())) == 1
        notes.append(
            f"{noun}: the mean of the scores of {len(statistic.weights)} {noun}"
            f"{'' if column is None else f' (`{column}`)'},"
            f" weighted {'equally' if equal else 'as the statistic says'}"
        )
    unit = columns.id if columns.cluster is None else columns.cluster
    if unit is not None and are_folds(unit, counts.frame.get_column("id")):
        notes.append(fold_warning(unit))
    if statistic.contrast == "log ratio":
        notes.append("contrast: the difference is that of the logarithms of the scores")
    return notes


def _predictions_missing(
    runs: tuple[KeyedRun, KeyedRun], columns: PairedColumns, outcomes: tuple[Outcome, Outcome]
) -> list[str]:
    baseline, candidate = (int((~run.is_complete(columns.of_runs)).sum()) for run in runs)
    if not baseline and not candidate:
        return []
    if outcomes[0] == outcomes[1]:
        counted = f"{baseline} of the baseline, {candidate} of the candidate"
        return [f"missing predictions counted as wrong: {counted}"]
    counted = f"{baseline} of the baseline at their {outcomes[0]}, {candidate} of the candidate at their"
    return [f"missing predictions: {counted} {outcomes[1]}"]


def _rewritten_ids(
    baseline: ExampleTable, candidate: ExampleTable, columns: PairedColumns, types: dict[str, ColumnType]
) -> list[str]:
    return [
        f"`{name}` of `{table.origin}` has integers, which were compared as text"
        for name in columns.ids
        for table in (baseline, candidate)
        if types[name] is ColumnType.TEXT and table.schema[name].is_numeric()
    ]
