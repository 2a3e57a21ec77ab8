"""Pairing of two runs: prove that they hold the same examples, or refuse."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import get_args

import numpy as np

from trackperm.choices import EngineName, Missing
from trackperm.errors import InputError, PairingError
from trackperm.exact.options import require_choice
from trackperm.pairing.changed_predictions import unread_changes
from trackperm.pairing.checked_join import joined_runs
from trackperm.pairing.checks.differences import differences, refuse_differences
from trackperm.pairing.checks.empty_sets import empty_sets_hint
from trackperm.pairing.checks.inputs import input_notes
from trackperm.pairing.checks.pairing_warnings import Evidence, fold_warnings, other_ids, pairing_warnings
from trackperm.pairing.checks.splits import training_rows
from trackperm.pairing.checks.verdicts import note_on_verdicts
from trackperm.pairing.cluster_sums import summed_clusters, with_cluster_columns
from trackperm.pairing.columns.numbers import require_numbers, with_computed_numbers
from trackperm.pairing.columns.roles import PairedColumns, rewritten_ids
from trackperm.pairing.counts.by_unit import CountsByUnit
from trackperm.pairing.counts.classes import KIND, class_types
from trackperm.pairing.counts.counting import STRATUM
from trackperm.pairing.counts.paired_counts import PairedCounts
from trackperm.pairing.counts.repeats import ADDED, RowNumbers, asymptotic, unit_note
from trackperm.pairing.counts.row_counts import RowCounts, row_counts
from trackperm.pairing.digests import Digests, digests
from trackperm.pairing.discordant import few_discordant_rows
from trackperm.pairing.engines.base import Engine
from trackperm.pairing.engines.duckdb import DuckDB
from trackperm.pairing.engines.in_memory import InMemory
from trackperm.pairing.engines.spark import Spark
from trackperm.pairing.joined import (
    IN_TEST,
    MATCHED,
    SIDES,
    JoinedRows,
    KeyedRun,
    count_columns,
    keyed_runs,
    real_of,
)
from trackperm.pairing.notes import design, missing_predictions
from trackperm.pairing.report import OUTCOMES, ExampleCounts, PairingReport
from trackperm.pairing.result import Pairing, PairingResult
from trackperm.statistic import Statistic
from trackperm.statistic.count_expressions import missing_count_expressions
from trackperm.statistic.expressions.frames import Decimals
from trackperm.tables.columns.names import SPLITS
from trackperm.tables.columns.truths import with_like_truths
from trackperm.tables.columns.whole_numbers import with_like_whole_numbers
from trackperm.tables.lazy.query import Query
from trackperm.tables.table import ExampleTable, id_columns, may_write_truths, shared_columns

MANY_ROWS = 500_000
"""Fewest rows of a run for which "auto" chooses DuckDB, which needs less memory than polars."""


def pair(
    baseline: ExampleTable,
    candidate: ExampleTable,
    statistic: Statistic,
    *,
    missing: Missing = "error",
    by_position: bool = False,
    engine: EngineName = "auto",
    decimals: Mapping[str, Decimals] | None = None,
    check_logs: bool = True,
    may_be_empty: bool = False,
) -> PairingResult:
    """Match the examples of two runs and count the outcomes of each.

    Parameters
    ----------
    baseline, candidate : ExampleTable
        The runs.
    statistic : Statistic
        The statistic, which names the columns and counts the outcomes.
    missing : {"error", "drop", "wrong", "worst", "best"}
        Treatment of examples without a partner, or without a value that the statistic reads: refuse them
        ("error"), leave them out ("drop"), or count them as the statistic counts a missing prediction
        ("wrong"). "worst" and "best" bound the result: a missing prediction of the candidate counts as the
        worst or best possible one, and one of the baseline as the opposite.
    by_position : bool
        Whether rows are matched by their order instead of by id.
    engine : {"auto", "polars", "duckdb", "spark"}
        Engine that joins and counts the rows.
    decimals : mapping of str to Decimals, optional
        Columns whose values are decimals in all runs of a leaderboard, if these are two of them. By default
        they are found in both runs together.
    check_logs : bool
        Whether to warn of predictions that look wrongly logged, for which slices are too uniform, and to add
        up the clusters of rows that are not in memory.
    may_be_empty : bool
        Whether a run may have no examples, as in a slice that only the other run has.

    Returns
    -------
    PairingResult
        A :class:`Pairing` if the rows are in memory.

    Raises
    ------
    PairingError
        If the runs cannot be proved to hold the same examples; the message shows the first differences.
    InputError
        If a column is missing, a count is out of range or undefined, or the statistic does not define what a
        missing prediction counts.
    InputTypeError
        If a column has values of the wrong type.
    SpecError
        If the counts cannot be computed from columns of these types.
    """
    require_usable(baseline, candidate, missing, by_position=by_position, may_be_empty=may_be_empty)
    runs = baseline, candidate
    if not all(map(len, runs)):  # a run without examples has the types of the other one
        baseline = candidate = max(runs, key=len)
    if statistic.ordered_columns:
        baseline, candidate = with_computed_numbers((baseline, candidate), statistic)
    if may_write_truths((baseline, candidate), statistic.answer_columns):
        baseline, candidate = with_like_truths((baseline, candidate), statistic.answer_columns)
    if baseline.untyped or candidate.untyped:
        ids = () if by_position else id_columns(statistic.columns["id"], (baseline, candidate))
        baseline, candidate = with_like_whole_numbers((baseline, candidate), ids)
    if not all(map(len, runs)):
        baseline, candidate = (
            replace(candidate.head(len(run)), origin=run.origin, notes=run.notes) for run in runs
        )
    columns = PairedColumns.find(baseline, candidate, statistic, by_position, missing)
    # The rows of a query have no order: pairing by position is always done in memory.
    named: EngineName = "polars" if columns.id is None else engine
    with engine_for(named, (baseline, candidate), columns.names) as chosen:
        if check_logs and not chosen.is_local and _may_depend(statistic):
            columns = with_cluster_columns(columns, (baseline, candidate), statistic)
        return _paired(chosen, (baseline, candidate), statistic, columns, missing, decimals, check_logs)


def pair_in_memory(
    baseline: ExampleTable,
    candidate: ExampleTable,
    statistic: Statistic,
    *,
    missing: Missing = "error",
    by_position: bool = False,
    decimals: Mapping[str, Decimals] | None = None,
) -> Pairing:
    """Match the examples of two runs as :func:`pair`, in memory, and keep the counts of every example."""
    found = pair(
        baseline,
        candidate,
        statistic,
        missing=missing,
        by_position=by_position,
        engine="polars",
        decimals=decimals,
    )
    assert isinstance(found, Pairing)  # noqa: S101
    return found


def engine_for(
    name: EngineName, tables: tuple[ExampleTable, ExampleTable], columns: Collection[str]
) -> Engine:
    """Return the named engine, or for "auto" the engine that suits the tables.

    With any name, rows are paired in memory if the type of a column can only be found from all of its values,
    as that of Python objects.
    """
    if name == "auto":
        name = _suiting(tables)
    if name == "polars" or not all(table.has_representatives(columns) for table in tables):
        return InMemory()
    return Spark(tables) if name == "spark" else DuckDB()


def _suiting(tables: tuple[ExampleTable, ExampleTable]) -> EngineName:
    if any(isinstance(table.data, Query) and table.data.is_spark for table in tables):
        return "spark"
    return "duckdb" if max(map(len, tables)) >= MANY_ROWS else "polars"


def _may_depend(statistic: Statistic) -> bool:
    """Whether clusters are searched among rows that are not in memory; rows that are compared always are."""
    is_ranked = statistic.pair_term is not None or statistic.rank_score is not None
    return not is_ranked and statistic.cluster is None and statistic.repeats != "attempts"


def _paired(
    engine: Engine,
    tables: tuple[ExampleTable, ExampleTable],
    statistic: Statistic,
    columns: PairedColumns,
    missing: Missing,
    decimals: Mapping[str, Decimals] | None,
    check_logs: bool,
) -> PairingResult:
    runs, types = keyed_runs(engine, *tables, columns)
    if statistic.number_columns:
        require_numbers(tables, statistic, types)
    outcomes, read_types = OUTCOMES.get(missing), types
    if statistic.has_classes:
        read_types = {**types, **class_types(statistic, columns, types)}
    for outcome in outcomes or ():
        missing_count_expressions(statistic, read_types, outcome)
    rows = joined_runs(engine, runs, columns, types, missing)
    examples = _example_counts(rows)
    if (note := _verdicts_not_labels(tables, statistic, columns, examples)) is not None:
        return _paired(engine, tables, statistic, columns.without_labels(note), missing, decimals, check_logs)
    if not _are_acceptable(examples, runs, missing):
        found = differences(rows, examples)
        refuse_differences(
            found,
            columns,
            missing,
            tables,
            has_wrong=statistic.counts_missing,
            of_sets=empty_sets_hint(tables, found, statistic),
        )
    others = {*shared_columns(tables)}.difference(columns.names)
    on_inputs = input_notes(tables, statistic, columns) if others else ()
    by_row = row_counts(rows, statistic, read_types, outcomes, decimals).with_strata()
    numbers = RowNumbers.of(rows) if columns.repeats else None
    if numbers is not None:
        _require_combinable(numbers, columns, by_row.statistic)
    counts = by_row.of_units()
    table = counts.table()
    evidence = Evidence.of(rows)
    warnings = pairing_warnings(evidence, columns, types, check_logs=check_logs)
    report = reported(
        examples,
        columns,
        missing,
        (*_notes(rows, counts, numbers), *on_inputs, *warnings),
        digests(rows),
        n_changed(rows, counts.statistic, evidence.n_different),
    )
    of_repeats = None if numbers is None else asymptotic(numbers, columns.repeats)
    report = replace(report, asymptotic=counts.asymptotic or of_repeats, influences=counts.influences)
    if counts.rows.engine.is_local or counts.has_units:
        discordant = counts.discordant()
    else:
        discordant = few_discordant_rows(rows, counts.statistic, read_types, outcomes, counts.decimals)
        if len(discordant) < table.n_discordant:
            report = replace(report, n_shown=len(discordant))
    result = PairingResult(counts.statistic, table, report, discordant)
    if counts.rows.engine.is_local:
        return _with_counts(result, counts)
    return replace(result, clusters=summed_clusters(counts)) if table.n_discordant else result


def _notes(rows: JoinedRows, counts: RowCounts, numbers: RowNumbers | None) -> tuple[str, ...]:
    """Return what a reader has to know about the joined rows and their counts."""
    columns, statistic = rows.columns, counts.statistic
    tables = rows.runs[0].table, rows.runs[1].table
    unit_rows = rows if columns.cluster is None else counts.rows
    units = counts.frame
    if columns.cluster is not None and not counts.has_units:
        units = units.with_columns(unit_rows.example(columns.cluster).alias("id"))
    return (
        *rewritten_ids(*tables, columns, rows.types),
        *(training_rows(tables) if any(name in tables[0].columns for name in SPLITS) else ()),
        *counts.notes,
        *([] if numbers is None else [unit_note(numbers, columns)]),
        *(design(unit_rows, units, statistic) if _has_design(statistic, columns) else []),
        *fold_warnings(unit_rows, counts.frame),
        *(missing_predictions(rows) if rows.counts_missing else []),
        *(other_ids(*tables, statistic.columns["id"]) if columns.id is None else []),
    )


def _with_counts(found: PairingResult, counts: RowCounts) -> Pairing:
    """Add the counts of every example to a result whose rows are in memory."""
    names, frame = found.statistic.count_names, counts.frame
    order = ["id", STRATUM] if counts.has_strata else ["id"]
    schema = frame.collect_schema()
    kind = [KIND] if KIND in schema else []
    reals = {real_of(name): name for name in names if real_of(name) in schema}
    rows = counts.rows.engine.collected(
        frame.select(*order, *kind, *count_columns(names), *reals).sort(order)
    )
    of_classes = None
    if (by_class := counts.by_class) is not None:
        kinds = rows[KIND].to_numpy() if kind else np.arange(len(rows))
        of_classes = CountsByUnit.of_classes(by_class.candidate, by_class.baseline, kinds)
    public = [f"{side}.{name}" for side in reversed(SIDES) for name in names]
    counted_rows = rows.select("id", *count_columns(names), *reals)
    counted_rows.columns = ["id", *public, *map(PairedCounts.real, reals.values())]
    return Pairing(
        found.statistic,
        found.count_table,
        found.report,
        found.discordant,
        counts=PairedCounts(counted_rows, names),
        strata=rows[STRATUM] if counts.has_strata else None,
        by_class=of_classes,
    )


def _example_counts(rows: JoinedRows) -> ExampleCounts:
    """Count the examples of two runs, in one query."""
    columns, f, first = rows.columns, rows.functions, rows.is_first()
    conditions = {"matched": f.col(MATCHED) & first, "paired": f.col(IN_TEST) & first}
    for side in SIDES:
        conditions[side] = (f.col(MATCHED) if rows.counts_missing else rows.keyed(side)) & first
    conditions |= {f"disagreeing {name}": rows.disagree(name) for name in columns.agreeing}
    n = rows.counted(**conditions)
    n_keyed = tuple(n[side] for side in SIDES)
    n_examples = tuple(
        n_of_run + run.n_rows - run.n_keyed if columns.repeats else run.n_rows
        for n_of_run, run in zip(n_keyed, rows.runs, strict=True)
    )
    n_disagreeing = {name: n[f"disagreeing {name}"] for name in columns.agreeing}
    return ExampleCounts(n_examples, n_keyed, n["matched"], n["paired"], n_disagreeing)


def _verdicts_not_labels(
    tables: Sequence[ExampleTable], statistic: Statistic, columns: PairedColumns, counts: ExampleCounts
) -> str | None:
    """Return a note if labels that differ are the verdicts of a judge; None for other labels."""
    label, scores = columns.label, columns.of_runs
    if label is None or label in columns.used or len(scores) != 1 or not counts.n_disagreeing[label]:
        return None
    return note_on_verdicts(tables, label, scores[0], greater_is_better=statistic.greater_is_better)


def _are_acceptable(counts: ExampleCounts, runs: Iterable[KeyedRun], missing: Missing) -> bool:
    """Whether columns agree, and both runs have all examples with all values, or others are dropped."""
    if any(counts.n_disagreeing.values()):
        return False
    if missing == "drop" and counts.n_paired:
        return True
    are_paired = {*counts.n_keyed, counts.n_matched} == {counts.n_paired}
    return are_paired and all(run.n_keyed == run.n_rows for run in runs)


def _has_design(statistic: Statistic, columns: PairedColumns) -> bool:
    """Whether readers of the result need a note on clusters, strata, classes, single rows or a log ratio."""
    is_plain = columns.cluster is None and not statistic.weights and statistic.repeats != "rows"
    return not is_plain or statistic.contrast != "difference"


def n_changed(rows: JoinedRows, statistic: Statistic, n_different: Mapping[str, int]) -> int | None:
    """Count the rows in the test whose predictions differ; a prediction of only one run differs.

    `n_different` has the number of rows in which the runs differ, by column that the statistic reads from
    each run. None if predictions cannot be compared, or an example has several rows, whose predictions have
    no partners.
    """
    name = statistic.columns.get("prediction", "prediction")
    if rows.columns.repeats:
        return None
    return n_different[name] if name in n_different else unread_changes(rows, name)


def require_usable(
    baseline: ExampleTable,
    candidate: ExampleTable,
    missing: Missing,
    *,
    by_position: bool,
    may_be_empty: bool = False,
) -> None:
    """Refuse runs that cannot be paired, as far as this is known before any column is read."""
    require_choice("missing", missing, get_args(Missing))
    for table in (baseline, candidate):
        if not may_be_empty and not len(table):
            raise PairingError(f"`{table.origin}` has no examples")
        if by_position and not table.ordered:
            raise PairingError(
                f"the rows of `{table.origin}` have no fixed order, so they cannot be paired by position",
                hint="pair them by id, or collect the table in a known order.",
            )


def reported(
    counts: ExampleCounts,
    columns: PairedColumns,
    missing: Missing,
    notes: tuple[str, ...],
    found_digests: Digests,
    n_changed: int | None,
) -> PairingReport:
    """Build the report of a successful pairing; `notes` follow the notes on columns."""
    n_baseline, n_candidate = counts.n_examples
    n_dropped = n_baseline + n_candidate - counts.n_matched - counts.n_paired
    return PairingReport(
        by="id" if columns.id else "position",
        n_baseline=n_baseline,
        n_candidate=n_candidate,
        n_paired=counts.n_paired,
        n_dropped=0 if missing in OUTCOMES else n_dropped,
        labels_checked=columns.label is not None,
        inputs_checked=columns.identity,
        missing=missing,
        notes=(*columns.notes, *notes),
        baseline_digest=found_digests.baseline,
        candidate_digest=found_digests.candidate,
        test_set=found_digests.test_set,
        n_changed=n_changed,
    )


def _require_combinable(numbers: RowNumbers, columns: PairedColumns, statistic: Statistic) -> None:
    """Refuse treatments of several rows that cannot be combined with classes, strata or clusters."""
    if columns.repeats == "attempts" and (columns.groups or statistic.has_classes):
        raise InputError(
            "attempts cannot be exchanged within examples with the clusters, strata or classes of"
            f" `{statistic.name}`",
            hint="`--repeats mean` exchanges the means of examples.",
        )
    if not statistic.has_classes or (columns.repeats in ADDED and numbers.is_equal):
        return
    raise InputError(
        f"`{statistic.name}` has classes, which need the sum of the same number of rows of an example in both"
        f" runs; found {numbers}, and the rule `{columns.repeats}`",
        hint="use `--repeats sum`, or a statistic without classes.",
    )
