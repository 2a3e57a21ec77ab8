"""Pairing of two runs: prove that they hold the same examples, or refuse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import polars as pl

from trackperm.choices import EngineName, Missing, require_choice
from trackperm.errors import InputError, PairingError
from trackperm.exact import CountTable
from trackperm.pairing.by_unit import CountsByUnit, by_unit
from trackperm.pairing.checks.differences import (
    Differences,
    differences,
    ids_of,
    refuse_differences,
    require_distinct_ids,
    require_same_length,
    require_unique_ids,
)
from trackperm.pairing.checks.pairing_warnings import Evidence, other_ids, pairing_warnings
from trackperm.pairing.classes import KIND, ClassCounts, class_types, counted_by_class
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.counting import DIFFERS, STRATUM, count_table, counted, differ, discordant_rows
from trackperm.pairing.digests import Digests, digests
from trackperm.pairing.discordant import few_discordant_rows
from trackperm.pairing.engines import Engine, Frame, Types, engine_for
from trackperm.pairing.joined import SIDES, JoinedRows, count_columns
from trackperm.pairing.keyed_run import KEY, KeyedRun, keyed_runs
from trackperm.pairing.notes import design, lacking_predictions, n_changed, predictions_missing, rewritten_ids
from trackperm.pairing.paired_counts import PairedCounts
from trackperm.pairing.pairwise import RANKS, PairedShares, shares_of_pairs
from trackperm.pairing.rank_codes import RANKED_ANEW, codes_of_ranks
from trackperm.pairing.repeats import (
    ADDED,
    RowNumbers,
    asymptotic,
    require_equal_rows,
    unit_note,
)
from trackperm.pairing.report import OUTCOMES, PairingReport
from trackperm.statistic import Statistic, load_statistic
from trackperm.tables.table import ExampleTable

_SAMPLED = 2**16
"""Size of the sample of ids in which equal ids are sought, if the engine does not count them exactly.

A sample of m of n ids, of which k pairs are equal, contains none of these pairs with probability
exp(-k m^2 / n^2). Among 10^9 ids, 7 * 10^8 equal pairs, which a join turns into as many rows, are missed once
in twenty times.
"""


@dataclass(frozen=True, eq=False)
class PairingResult:
    """Result of pairing two runs.

    Attributes
    ----------
    statistic : Statistic
        The statistic, with the units of the counts and the weights of the strata or classes.
    count_table : CountTable
        The counts, grouped: a row is an exchangeable unit, and each stratum or class has its own columns.
    report : PairingReport
        Report on how the examples were paired.
    discordant : polars.DataFrame
        Examples with any count that differs between the runs, ordered by id. The columns are ``id``,
        ``label`` if labels were checked, ``stratum`` if there are strata, then ``baseline.<name>`` and
        ``candidate.<name>`` for every other column that the statistic reads and for every count, in the units
        of the spec; if a column has the name of a count, only the count is included. Clusters, and examples
        with several rows, have only the counts.
    """

    statistic: Statistic
    count_table: CountTable
    report: PairingReport
    discordant: pl.DataFrame


@dataclass(frozen=True, eq=False)
class Pairing(PairingResult):
    """Result of pairing two runs in memory, with the counts of every example.

    Attributes
    ----------
    counts : PairedCounts
        Counts of both runs by example or by cluster; a cluster in several strata has a row for each stratum.
        Counts of several classes are added up.
    strata : polars.Series or None
        The stratum of every row of `counts`; None if the statistic has no strata.
    by_class : CountsByUnit or None
        The counts of every class; None if the statistic has no classes.
    """

    counts: PairedCounts
    strata: pl.Series | None
    by_class: CountsByUnit | None = None

    def by_unit(self) -> CountsByUnit:
        """Return the counts of every exchangeable unit: an example or a cluster.

        Raises
        ------
        InputError
            If the counts of all units in all strata would not fit in memory.
        """
        return self.by_class or CountsByUnit.of(self.counts, self.strata, self.statistic)


def pair(
    baseline: ExampleTable,
    candidate: ExampleTable,
    statistic: Statistic,
    *,
    missing: Missing = "error",
    by_position: bool = False,
    engine: EngineName = "auto",
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
    require_usable(baseline, candidate, missing, by_position=by_position)
    columns = PairedColumns.find(baseline, candidate, statistic, by_position, missing)
    # The rows of a query have no order: pairing by position is always done in memory.
    named: EngineName = "polars" if columns.id is None else engine
    with engine_for(named, (baseline, candidate), columns.names) as chosen:
        return _paired(chosen, (baseline, candidate), statistic, columns, missing)


def pair_in_memory(
    baseline: ExampleTable,
    candidate: ExampleTable,
    statistic: Statistic,
    *,
    missing: Missing = "error",
    by_position: bool = False,
) -> Pairing:
    """Match the examples of two runs as :func:`pair`, in memory, and keep the counts of every example."""
    found = pair(baseline, candidate, statistic, missing=missing, by_position=by_position, engine="polars")
    assert isinstance(found, Pairing)  # noqa: S101
    return found


def _paired(
    engine: Engine,
    tables: tuple[ExampleTable, ExampleTable],
    statistic: Statistic,
    columns: PairedColumns,
    missing: Missing,
) -> PairingResult:
    runs, types = keyed_runs(engine, *tables, columns)
    outcomes, read_types = OUTCOMES.get(missing), types
    if statistic.has_classes:
        read_types = {**types, **class_types(statistic, columns, types)}
    for outcome in outcomes or ():
        statistic.missing_counts(read_types, outcome)
    rows = _joined(engine, runs, columns, types, missing)
    found = differences(rows)
    refuse_differences(found, columns, missing, has_wrong=statistic.counts_missing)
    # The codes of strata and clusters are counts of a rank statistic, whose rows are examples.
    has_strata = columns.strata is not None and statistic.rank_score is None

    by_class: ClassCounts | None = None
    shares: PairedShares | None = None
    counted_rows, count_notes = rows, tuple[str, ...]()
    if (term := statistic.pair_term) is not None:
        shares = shares_of_pairs(rows, statistic, term, types)
        counted_rows, frame, statistic = shares.rows, shares.frame, shares.statistic
        engine = counted_rows.engine
    elif (score := statistic.rank_score) is not None:
        coded = codes_of_ranks(rows, statistic, score, types)
        counted_rows, frame, statistic = coded.rows, coded.frame, coded.statistic
        engine = counted_rows.engine
    elif statistic.has_classes:
        frame, by_class = counted_by_class(rows, statistic, read_types, outcomes)
        statistic, count_notes = by_class.statistic, by_class.notes
    else:
        own = counted(rows, rows.examples, statistic, types, outcomes)
        frame, statistic, count_notes = own.frame, own.statistic, own.notes
    if has_strata:
        frame = frame.with_columns(
            counted_rows.example(str(columns.strata)).cast(counted_rows.functions.String).alias(STRATUM)
        )
    if has_strata and shares is None:
        names = engine.collected(frame.select(STRATUM).unique())[STRATUM].sort().to_list()
        statistic = load_statistic(statistic, strata=names)
    numbers = RowNumbers.of(rows) if columns.repeats else None
    if numbers is not None:
        _require_takeable(numbers, columns, statistic)
    is_unit = (columns.cluster is not None or bool(columns.repeats)) and statistic.rank_score is None
    if is_unit:
        frame, statistic, by_class = by_unit(counted_rows, frame, statistic, by_class)
    else:
        frame = frame.with_columns(counted_rows.functions.col(KEY).alias("id"))
    table = (
        count_table(engine, frame, statistic, strata=has_strata, units=is_unit)
        if by_class is None
        else by_class.count_table()
    )
    if by_class is None:
        frame = frame.with_columns(differ(counted_rows.functions, statistic).alias(DIFFERS))
    units = frame
    if columns.cluster is not None and not is_unit:
        units = frame.with_columns(counted_rows.example(columns.cluster).alias("id"))
    notes = (
        *rewritten_ids(*tables, columns, types),
        *count_notes,
        *([] if numbers is None else [unit_note(numbers, columns)]),
        *design(rows if columns.cluster is None else counted_rows, units, statistic),
        *predictions_missing(lacking_predictions(rows), missing),
        *(other_ids(*tables, statistic.columns["id"]) if columns.id is None else []),
    )
    evidence = Evidence.of(rows)
    report = reported(
        found,
        columns,
        missing,
        (*notes, *pairing_warnings(evidence, columns, types)),
        digests(rows),
        n_changed(rows, statistic, evidence.n_different),
    )
    if numbers is not None:
        report = replace(report, asymptotic=asymptotic(numbers, columns.repeats))
    if (term := statistic.pair_term) is not None and shares is not None:
        level = RANKS if term.scale == "ranks" else None
        report = replace(report, asymptotic=level, influences=shares.influences)
    if (score := statistic.rank_score) is not None and score.scale == "ranks":
        report = replace(report, asymptotic=RANKED_ANEW)
    has_values = not is_unit
    discordant = (
        discordant_rows(counted_rows, frame, statistic, has_values=has_values)
        if engine.is_local or not has_values
        else few_discordant_rows(rows, statistic, read_types, outcomes)
    )
    if len(discordant) < table.n_discordant and not engine.is_local and has_values:
        report = replace(report, n_shown=len(discordant))
    result = PairingResult(statistic, table, report, discordant)
    return _with_counts(engine, frame, result, by_class, has_strata=has_strata) if engine.is_local else result


def _with_counts(
    engine: Engine, frame: Frame, found: PairingResult, by_class: ClassCounts | None, *, has_strata: bool
) -> Pairing:
    names = found.statistic.count_names
    order = ["id", STRATUM] if has_strata else ["id"]
    kind = [KIND] if KIND in frame.collect_schema() else []
    rows = engine.collected(frame.select(*order, *kind, *count_columns(names)).sort(order))
    of_classes = None
    if by_class is not None:
        kinds = rows[KIND].to_numpy() if kind else np.arange(len(rows))
        of_classes = CountsByUnit.of_classes(by_class.candidate, by_class.baseline, kinds)
    public = [f"{side}.{name}" for side in reversed(SIDES) for name in names]
    counted_rows = rows.select("id", *count_columns(names))
    counted_rows.columns = ["id", *public]
    return Pairing(
        found.statistic,
        found.count_table,
        found.report,
        found.discordant,
        counts=PairedCounts(counted_rows, names),
        strata=rows[STRATUM] if has_strata else None,
        by_class=of_classes,
    )


def _joined(
    engine: Engine,
    runs: tuple[KeyedRun, KeyedRun],
    columns: PairedColumns,
    types: Types,
    missing: Missing,
) -> JoinedRows:
    """Join two runs, and prove that every example has one row, or as many as the statistic allows.

    Ids that repeat often are refused before the join, which would multiply their rows. Repeats that the
    sample missed are found after the join: it has more rows than the runs.

    Raises
    ------
    PairingError
        If an example has more rows than the statistic allows.
    """
    if columns.id is None:
        require_same_length(*runs)
    elif not columns.repeats and any(_some_repeat(engine, run) for run in runs):
        require_unique_ids([ids_of(engine, run, columns.ids) for run in runs], columns.id)
    if columns.id is not None:
        require_distinct_ids(engine, *runs, id_=columns.id)
    rows = JoinedRows.of(engine, runs, columns, types, missing)
    if columns.repeats:
        require_equal_rows(rows)
    elif columns.id is not None and not engine.is_local:
        f, alone = rows.functions, rows.keyed("baseline") != rows.keyed("candidate")
        n = rows.counted(alone=alone, **{side: rows.there(side) for side in SIDES})
        repeated = rows.rows.filter(alone).group_by(KEY).agg(f.len().alias("n")).filter(f.col("n") > 1)
        is_repeated = any(n[side] != run.n_keyed for side, run in zip(SIDES, runs, strict=True))
        if is_repeated or (n["alone"] and len(engine.collected(repeated.head(1)))):
            require_unique_ids([ids_of(engine, run, columns.ids) for run in runs], columns.id)
        changed = [run.origin for side, run in zip(SIDES, runs, strict=True) if n[side] != run.n_keyed]
        if changed:
            raise PairingError(
                f"`{changed[0]}` does not have the same rows each time it is read",
                hint="a sample, or a limit without an order, changes with every read: write the table to a"
                " file.",
            )
    return rows


def _some_repeat(engine: Engine, run: KeyedRun) -> bool:
    """Whether several rows have the same id; in memory all ids are checked, in other engines a sample."""
    if engine.is_local:
        return engine.n_distinct(run.frame, KEY) < run.n_keyed
    f, ids = engine.functions, engine.sampled(run.frame.select(KEY), _SAMPLED)
    repeated = ids.group_by(KEY).agg(f.len().alias("n")).filter(f.col("n") > 1)
    return len(engine.collected(repeated.head(1))) > 0


def require_usable(
    baseline: ExampleTable, candidate: ExampleTable, missing: Missing, *, by_position: bool
) -> None:
    """Refuse runs that cannot be paired, as far as this is known before any column is read."""
    require_choice("missing", missing, get_args(Missing))
    for table in (baseline, candidate):
        if not len(table):
            raise PairingError(f"`{table.origin}` has no examples")
        if by_position and not table.ordered:
            raise PairingError(
                f"the rows of `{table.origin}` have no fixed order, so they cannot be paired by position",
                hint="pair them by id, or collect the table in a known order.",
            )


def reported(
    found: Differences,
    columns: PairedColumns,
    missing: Missing,
    notes: tuple[str, ...],
    found_digests: Digests,
    n_changed: int | None,
) -> PairingReport:
    """Build the report of a successful pairing; `notes` follow the notes on columns."""
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
        baseline_digest=found_digests.baseline,
        candidate_digest=found_digests.candidate,
        test_set=found_digests.test_set,
        n_changed=n_changed,
    )


def _require_takeable(numbers: RowNumbers, columns: PairedColumns, statistic: Statistic) -> None:
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
