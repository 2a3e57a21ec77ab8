"""Prove that examples of two runs belong together, or refuse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, get_args

import narwhals as nw

from trackperm.choices import Missing, require_choice
from trackperm.errors import InputError, PairingError
from trackperm.exact import CountTable
from trackperm.pairing.by_unit import CountsByUnit
from trackperm.pairing.changed import n_changed
from trackperm.pairing.checks.differences import Differences, RunDifferences, differences
from trackperm.pairing.checks.refusals import (
    refuse_differences,
    require_distinct_ids,
    require_same_length,
    require_unique_ids,
)
from trackperm.pairing.checks.suspicions import Evidence, other_ids, sampled_every, suspicions
from trackperm.pairing.classes import ClassCounts, class_types, counted_by_class
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.counting import discordant_rows, paired_counts, read_columns
from trackperm.pairing.digest import digest
from trackperm.pairing.examples_digest import digest_of_test_set
from trackperm.pairing.folds import are_folds, fold_warning
from trackperm.pairing.grouping import grouped, summed
from trackperm.pairing.keyed_run import KEY, KeyedRun, keyed_runs
from trackperm.pairing.missing import counted_runs, with_absent
from trackperm.pairing.paired_counts import PairedCounts
from trackperm.pairing.repeats import (
    ADDED,
    RowNumbers,
    asymptotic,
    combined,
    unit_note,
    with_equal_rows,
    without_padding,
)
from trackperm.pairing.report import OUTCOMES, PairingReport
from trackperm.statistic import Statistic, load_statistic
from trackperm.tables.column_types import ColumnType
from trackperm.tables.table import ExampleTable


@dataclass(frozen=True, eq=False)
class PairedRuns:
    """What two runs on the same examples come to.

    Attributes
    ----------
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

    statistic: Statistic
    count_table: CountTable
    report: PairingReport
    discordant: nw.DataFrame[Any]


@dataclass(frozen=True, eq=False)
class Pairing(PairedRuns):
    """Two runs on the same examples, with the counts of each.

    Attributes
    ----------
    counts : PairedCounts
        Counts of both runs by example, or by cluster; where a cluster is in several strata, by both. Those
        of several classes are added up.
    strata : narwhals.Series or None
        The stratum of every row of `counts`, where the statistic has strata.
    by_class : ClassCounts or None
        The counts of every class, where the statistic has classes.
    """

    counts: PairedCounts
    strata: nw.Series[Any] | None
    by_class: ClassCounts | None = None

    def by_unit(self) -> CountsByUnit:
        """Return the counts of what is exchanged together: of an example, or of a cluster.

        Raises
        ------
        InputError
            If there are too many for the counts of every stratum.
        """
        if self.by_class is not None:
            return CountsByUnit.of_classes(self.by_class)
        return CountsByUnit.of(self.counts, self.strata, self.statistic)


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
    require_usable(baseline, candidate, missing, by_position=by_position)
    columns = PairedColumns.find(baseline, candidate, statistic, by_position, missing)
    runs, types = keyed_runs(baseline, candidate, columns)
    outcomes, read_types = OUTCOMES.get(missing), {**types, **class_types(statistic, columns, types)}
    for outcome in outcomes or ():
        statistic.missing_counts(read_types, outcome)
    if columns.id is None:
        require_same_length(*runs)
    else:
        if not columns.repeats:
            require_unique_ids([RunDifferences.of_ids(run) for run in runs], columns.id)
        require_distinct_ids(*runs, id_=columns.id)
    found, paired = matched(runs, columns, missing)
    refuse_differences(found, columns, missing, has_wrong=statistic.counts_missing)

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
    numbers = RowNumbers.of(paired) if columns.repeats else None
    if numbers is not None:
        _require_takeable(numbers, columns, statistic)
        counts = without_padding(counts, paired)
        if columns.repeats not in ADDED:
            counts, strata, statistic = combined(counts, paired, strata, statistic)
            units = None if columns.cluster is None else _clusters(counts, paired[0], columns.cluster)
    if units is not None:
        counts, strata = summed(counts, units, strata, statistic)
        by_class = None if by_class is None else by_class.summed(units)
    if by_class is not None:
        count_table, discordant = by_class.count_table(), by_class.differ()
    else:
        count_table, discordant = grouped(counts, strata, statistic), differ(counts)
    units = counts.frame.get_column("id")
    notes = (
        *rewritten_ids(baseline, candidate, columns, types),
        *count_notes,
        *([] if numbers is None else [unit_note(numbers, columns)]),
        *design(units, columns, statistic),
        *predictions_missing(lacking_predictions(paired, columns, missing), missing),
        *(other_ids(baseline, candidate, statistic.columns["id"]) if by_position else []),
    )
    every = sampled_every(baseline, candidate, columns)
    report = reported(
        found,
        columns,
        missing,
        (*notes, *suspicions(Evidence.of(paired, columns, types, every=every), columns, types)),
        (digest(runs[0].frame, types), digest(runs[1].frame, types)),
        digest_of_test_set(runs, columns),
        n_changed(paired, columns, statistic, (baseline, candidate)),
    )
    if numbers is not None:
        report = replace(report, asymptotic=asymptotic(numbers, columns.repeats))
    return Pairing(
        statistic=statistic,
        count_table=count_table,
        report=report,
        discordant=discordant_rows(counts, discordant, strata, read, statistic),
        counts=counts,
        strata=strata,
        by_class=by_class,
    )


def require_usable(
    baseline: ExampleTable, candidate: ExampleTable, missing: Missing, *, by_position: bool
) -> None:
    """Refuse what no columns need to be read for.

    Raises
    ------
    InputError
        If `missing` is none of its values.
    PairingError
        If a run has no examples, or is to be paired by an order that it has not.
    """
    require_choice("missing", missing, get_args(Missing))
    for table in (baseline, candidate):
        if not len(table):
            raise PairingError(f"`{table.origin}` has no examples")
        if by_position and not table.ordered:
            raise PairingError(
                f"the rows of `{table.origin}` have no certain order, so they cannot be paired by position",
                hint="pair them by an id, or collect the table in an order that you know.",
            )


def differ(counts: PairedCounts) -> nw.Series[Any]:
    """Whether any count differs between the runs, by row."""
    return counts.frame.select(counts.differ().alias("differ")).get_column("differ")


def matched(
    runs: tuple[KeyedRun, KeyedRun], columns: PairedColumns, missing: Missing
) -> tuple[Differences, tuple[KeyedRun, KeyedRun]]:
    """Match rows by their key; return what differs, and the rows that are in the test, in the same order.

    Raises
    ------
    PairingError
        If an example that may have several rows has more of them in one run than in the other.
    """
    needed = columns.needed(missing)
    full = with_absent(*runs, columns) if missing in OUTCOMES else runs
    both = _same_keys(full, columns)
    complete = _complete(both, needed, columns)
    paired = both if complete.all() else (both[0].filter(complete), both[1].filter(complete))
    return differences(full, both, paired[0], columns, needed), paired


def _same_keys(runs: tuple[KeyedRun, KeyedRun], columns: PairedColumns) -> tuple[KeyedRun, KeyedRun]:
    """Rows whose key both runs have, in the same order."""
    baseline, candidate = runs
    if len(baseline) == len(candidate) and (baseline.keys == candidate.keys).all():
        return runs
    both = baseline.join(candidate, "semi"), candidate.join(baseline, "semi")
    if columns.repeats:
        both = both[0].ordered(columns.tie_breakers), both[1].ordered(columns.tie_breakers)
        both = with_equal_rows(*both, columns.repeats)
    return both


def _complete(
    both: tuple[KeyedRun, KeyedRun], needed: tuple[str, ...], columns: PairedColumns
) -> nw.Series[Any]:
    """Whether all rows of an example have what is needed, in both runs, by row."""
    complete = both[0].is_complete(needed) & both[1].is_complete(needed)
    if columns.repeats:
        keys = both[0].keys
        complete = ~keys.is_in(keys.filter(~complete).unique().to_list())
    return complete


def reported(
    found: Differences,
    columns: PairedColumns,
    missing: Missing,
    notes: tuple[str, ...],
    digests: tuple[str, str],
    test_set: str,
    n_changed: int | None,
) -> PairingReport:
    """Report how runs were paired that were not refused; `notes` go behind those of the columns."""
    n_baseline, n_candidate = (run.n_rows for run in found.runs)
    n_dropped = n_baseline + n_candidate - found.n_matched - found.n_paired
    return PairingReport(
        by="id" if columns.id else "position",
        n_baseline=n_baseline,
        n_candidate=n_candidate,
        n_paired=found.n_paired,
        n_dropped=0 if missing in OUTCOMES else n_dropped,
        labels_checked=columns.label is not None,
        inputs_checked=columns.identity,
        missing=missing,
        notes=(*columns.notes, *notes),
        baseline_digest=digests[0],
        candidate_digest=digests[1],
        test_set=test_set,
        n_changed=n_changed,
    )


def _require_takeable(numbers: RowNumbers, columns: PairedColumns, statistic: Statistic) -> None:
    """Refuse what rows of an example cannot come to where there are classes, strata or clusters.

    Raises
    ------
    InputError
        If there are classes, and rows are not to be added up, or are not as many in both runs; or if there
        are any of these, and attempts are exchanged within examples.
    """
    if columns.repeats == "attempts" and (columns.groups or statistic.has_classes):
        raise InputError(
            f"the attempts within each example are exchanged, and `{statistic.name}` has clusters, strata or"
            " classes",
            hint="`--repeats mean` exchanges the means of examples.",
        )
    if not statistic.has_classes or (columns.repeats in ADDED and numbers.is_equal):
        return
    raise InputError(
        f"`{statistic.name}` has classes, whose counts are added up over as many rows of an example in both"
        f" runs; here there are {numbers}, to be taken by `{columns.repeats}`",
        hint="`--repeats sum`, or a statistic without classes.",
    )


def _clusters(counts: PairedCounts, run: KeyedRun, cluster: str) -> nw.Series[Any]:
    """Return the cluster of every row of counts, by its id."""
    of_ids = run.frame.select(nw.col(KEY).alias("id"), nw.col(cluster).alias(KEY)).unique("id")
    return counts.frame.select("id").join(of_ids, on="id", how="left").get_column(KEY)


def design(units: nw.Series[Any], columns: PairedColumns, statistic: Statistic) -> list[str]:
    """Say what is exchanged together, scored apart and contrasted otherwise than by difference.

    Parameters
    ----------
    units : Series
        What the examples, or clusters, that are exchanged are called.
    """
    notes = []
    if columns.cluster is not None:
        notes.append(
            f"clusters: the examples of one `{columns.cluster}` are exchanged together, so that the"
            f" {units.n_unique()} clusters count as the examples"
        )
    if statistic.weights:
        noun, column = ("classes", columns.classes) if statistic.has_classes else ("strata", columns.strata)
        equal = len(set(statistic.weights.values())) == 1
        notes.append(
            f"{noun}: the mean of the scores of {len(statistic.weights)} {noun}"
            f"{'' if column is None else f' (`{column}`)'},"
            f" weighted {'equally' if equal else 'as the statistic says'}"
        )
    if statistic.repeats == "rows" and columns.cluster is None:
        notes.append(
            f"look: unit: each row of `{columns.id}` counts as an example, as was asked for; rows of one"
            " example depend on each other, so that p can be far too small"
        )
    unit = columns.id if columns.cluster is None else columns.cluster
    if unit is not None and are_folds(unit, units):
        notes.append(fold_warning(unit))
    if statistic.contrast == "log ratio":
        notes.append("contrast: the difference is that of the logarithms of the scores")
    return notes


def lacking_predictions(
    runs: tuple[KeyedRun, KeyedRun], columns: PairedColumns, missing: Missing
) -> tuple[int, int]:
    """Count the examples of each run without a value that the statistic reads, where such are in the test."""
    if missing not in OUTCOMES:
        return 0, 0
    baseline, candidate = (int((~run.is_complete(columns.of_runs) & ~run.is_padding).sum()) for run in runs)
    return baseline, candidate


def predictions_missing(n: tuple[int, int], missing: Missing) -> list[str]:
    """Say how many predictions of baseline and candidate are missing, and what they were taken for."""
    if not any(n):
        return []
    outcomes = OUTCOMES[missing]
    if outcomes[0] == outcomes[1]:
        return [f"missing predictions counted as wrong: {n[0]} of the baseline, {n[1]} of the candidate"]
    counted = f"{n[0]} of the baseline at their {outcomes[0]}, {n[1]} of the candidate at their"
    return [f"missing predictions: {counted} {outcomes[1]}"]


def rewritten_ids(
    baseline: ExampleTable, candidate: ExampleTable, columns: PairedColumns, types: dict[str, ColumnType]
) -> list[str]:
    """Say where integers of one run were compared with the texts of the other."""
    return [
        f"`{name}` of `{table.origin}` has integers, which were compared as text"
        for name in columns.ids
        for table in (baseline, candidate)
        if types[name] is ColumnType.TEXT and table.schema[name].is_numeric()
    ]
