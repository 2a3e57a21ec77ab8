"""Fast pairing of many complete runs with the same reference run, in one query.

The rows of all runs are concatenated in one table, with the number of their run, and joined with the rows of
the reference run. Checks, digests and the evidence for warnings are computed by run. A run that lacks an
example or a value, or disagrees with the reference run, is not paired here:
:func:`~trackperm.pairing.pair.pair_in_memory` pairs it, or refuses it with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import polars as pl

from trackperm.choices import Missing
from trackperm.errors import InputError, InputTypeError, PairingError
from trackperm.exact import CountTable
from trackperm.pairing.checks.differences import require_distinct_ids
from trackperm.pairing.checks.inputs import input_notes
from trackperm.pairing.checks.pairing_warnings import (
    ENOUGH,
    Evidence,
    compared,
    fold_warnings,
    pairing_warnings,
    pairs_of_values,
    questions,
    shared_inputs,
)
from trackperm.pairing.checks.splits import training_rows
from trackperm.pairing.columns.roles import PairedColumns, require_id_types, rewritten_ids
from trackperm.pairing.counts.by_unit import CountsByUnit
from trackperm.pairing.counts.counting import outcomes_of
from trackperm.pairing.counts.paired_counts import PairedCounts
from trackperm.pairing.counts.scaling import CountedRows, scaled
from trackperm.pairing.digests import digests_of, with_sums
from trackperm.pairing.engines.base import Frame, Types
from trackperm.pairing.engines.in_memory import InMemory
from trackperm.pairing.joined import (
    IN_TEST,
    KEY,
    SIDES,
    JoinedRows,
    KeyedRun,
    count_columns,
    count_of,
    has_beyond_ascii,
    keyed_run,
    with_key,
    with_key_hash,
)
from trackperm.pairing.notes import design
from trackperm.pairing.pair import n_changed, reported
from trackperm.pairing.report import OUTCOMES, ExampleCounts, PairingReport
from trackperm.statistic import Statistic
from trackperm.statistic.count_expressions import computed_decimals
from trackperm.statistic.expressions.frames import Decimals
from trackperm.tables.table import ExampleTable

_RUN = "run_number"
_PLACE = "place_of_key"
_TOGETHER = 2**18  # rows of the concatenated table from which on it is joined: a bound on memory


@dataclass(frozen=True, eq=False)
class PairedRun:
    """Result of pairing one of many runs: the attributes of `Pairing` that a leaderboard needs.

    Attributes
    ----------
    statistic : Statistic
        The statistic, with the units of the counts.
    report : PairingReport
        Report on how the examples were paired.
    counts : PairedCounts
        Counts of both runs by example.
    strata : polars.Series or None
        Always None: :func:`~trackperm.pairing.pair.pair_in_memory` pairs runs with strata.
    """

    statistic: Statistic
    report: PairingReport
    counts: PairedCounts
    strata: pl.Series | None = None

    @cached_property
    def count_table(self) -> CountTable:
        """The counts grouped: examples with the same counts in both runs are one row."""
        counts = self.by_unit()
        return CountTable.from_counts(self.statistic.count_names, counts.candidate, counts.baseline)

    def by_unit(self) -> CountsByUnit:
        """Return the counts of every example; see :meth:`trackperm.pairing.Pairing.by_unit`."""
        return CountsByUnit.of(self.counts, None, self.statistic)


def pair_many(
    reference: ExampleTable,
    candidates: Sequence[ExampleTable],
    statistic: Statistic,
    *,
    missing: Missing = "error",
    by_position: bool = False,
    decimals: Mapping[str, Decimals] | None = None,
) -> list[PairedRun | None]:
    """Pair with a reference run all runs that hold exactly its examples.

    `decimals` are the columns that are decimals in all runs; without them, runs that need them are left. For
    each run the result equals that of :func:`~trackperm.pairing.pair.pair_in_memory`, with the same
    arguments; it is None if that function has to be called instead.
    """
    found: list[PairedRun | None] = [None] * len(candidates)
    is_grouped = statistic.has_classes or statistic.strata or statistic.cluster or statistic.has_several_rows
    if (
        by_position
        or is_grouped
        or statistic.looks_up_labels
        or statistic.depends_on_both
        or missing in OUTCOMES
        or not len(reference)
    ):
        return found
    engine, groups = InMemory(), list[_Group]()
    for number, candidate in enumerate(candidates):
        if len(candidate) != len(reference):
            continue
        try:
            columns = PairedColumns.find(reference, candidate, statistic, by_position, missing)
            tables = reference, candidate
            typed, types = engine.typed(tables, columns.names, (*columns.texts, *columns.ids))
            require_id_types(columns.ids, types)
            on_inputs = input_notes(tables, statistic, columns)
        except (InputError, InputTypeError):
            continue
        own, frame = map(engine.collected, typed)
        if decimals is None and computed_decimals(statistic, types):
            continue
        group = next((group for group in groups if group.takes(columns, types, own)), None)
        if group is None:
            group = _Group(engine, reference, own, columns, types, statistic, missing, decimals or {})
            groups.append(group)
        if group.add(_Member(number, candidate, columns, frame, on_inputs)):
            for place, paired in group.paired():
                found[place] = paired
    for group in groups:
        for place, paired in group.paired():
            found[place] = paired
    return found


class _Member(NamedTuple):
    """A run with its columns, typed rows and the notes on its inputs."""

    number: int
    table: ExampleTable
    columns: PairedColumns
    frame: pl.DataFrame
    on_inputs: tuple[str, ...]


class _Group:
    """Runs with the same columns and types, so that they share one typed reference run."""

    def __init__(
        self,
        engine: InMemory,
        reference: ExampleTable,
        own: pl.DataFrame,
        columns: PairedColumns,
        types: Types,
        statistic: Statistic,
        missing: Missing,
        decimals: Mapping[str, Decimals],
    ) -> None:
        self._engine, self._own, self._columns, self._types = engine, own, columns, types
        self._statistic, self._missing, self._decimals = statistic, missing, decimals
        self._members: list[_Member] = []
        run = keyed_run(engine, engine.local(own), reference, columns.ids)
        ordered = engine.collected(with_key_hash(engine, run.frame)).sort(KEY).with_row_index(_PLACE)
        self._keys = ordered[KEY].alias("id")
        self._run = replace(run, frame=engine.local(ordered))
        self._known = dict[str, pl.Series]()

    def takes(self, columns: PairedColumns, types: Types, own: pl.DataFrame) -> bool:
        """Whether a run has this group's columns and types, and needs the same typed reference run."""
        return columns.same_as(self._columns) and types == self._types and own.equals(self._own)

    def add(self, member: _Member) -> bool:
        """Add a run; return whether the group has enough rows for a query."""
        self._members.append(member)
        return len(self._members) * len(self._own) >= _TOGETHER

    def paired(self) -> Iterator[tuple[int, PairedRun]]:
        """Pair the runs that were added since the last call; yield each with its number."""
        members = {member.number: member for member in self._members}
        self._members = []
        if not members or not self._is_proper:
            return
        rows = self._joined(members.values())
        answers = self._by_run(rows.frame, {**self._checks(rows), **questions(rows)})
        whole = sorted(number for number, found in answers.items() if self._is_complete(found))
        if not whole:
            return
        rows = self._only(rows, whole)
        try:
            counted, decimals = outcomes_of(
                rows, rows.rows, self._statistic, self._types, None, self._decimals
            )
        except InputError:
            return
        parts = self._in_order(counted, whole)
        if not parts:
            return
        n, first = self._run.n_rows, self._only(rows, list(parts)[:1])
        sums, pairs = self._sums(rows, first, next(iter(parts))), self._pairs(rows)
        shared = (*design(rows, rows.frame, self._statistic), *fold_warnings(rows, rows.frame))
        inputs = shared_inputs(first, n)
        for number, own_rows in parts.items():
            member, part = members[number], self._engine.local(own_rows)
            try:
                scores = scaled(self._engine, part, self._statistic, decimals)
            except InputError:
                continue
            own = replace(rows, runs=(self._run, KeyedRun(part, member.table, n, n)), rows=part, frame=part)
            of_values = {name: of_run[number,] for name, of_run in pairs.items()}
            evidence = Evidence.answered(own, answers[number], of_values, pl.DataFrame(), inputs)
            notes = (
                *rewritten_ids(self._run.table, member.table, member.columns, self._types),
                *training_rows((self._run.table, member.table)),
                *scores.notes,
                *shared,
                *member.on_inputs,
                *pairing_warnings(evidence, self._columns, self._types),
            )
            report = reported(
                ExampleCounts((n, n), (n, n), n, n),
                member.columns,
                self._missing,
                notes,
                digests_of(rows, sums[number]),
                n_changed(own, self._statistic, evidence.n_different),
            )
            reals = [
                own_rows[count_of(SIDES[1], name)].alias(PairedCounts.real(name)) for name in sorted(decimals)
            ]
            yield number, PairedRun(scores.statistic, report, self._counts(scores, reals))

    @cached_property
    def _is_proper(self) -> bool:
        """Whether the ids of the reference run identify its examples."""
        if self._run.n_keyed < self._run.n_rows or self._keys.n_unique() < len(self._keys):
            return False
        if not has_beyond_ascii(self._engine, self._run):
            return True
        try:
            require_distinct_ids(self._engine, self._run, str(self._columns.id))
        except PairingError:
            return False
        return True

    def _joined(self, members: Iterable[_Member]) -> JoinedRows:
        """Join the rows of all members with those of the reference run."""
        f = self._engine.functions
        numbered = [member.frame.with_columns(pl.lit(member.number).alias(_RUN)) for member in members]
        table = pl.concat(numbered)
        frame = with_key(f, self._engine.local(table), self._columns.ids).filter(~f.col(KEY).is_null())
        run = KeyedRun(frame, self._run.table, len(table), len(table))
        return JoinedRows.of_many(
            self._engine,
            (self._run, run),
            self._columns,
            self._types,
            self._missing,
            by=_RUN,
            beside=[_PLACE],
        )

    def _only(self, rows: JoinedRows, numbers: Sequence[int]) -> JoinedRows:
        """Keep the rows of some runs."""
        is_of_these = rows.functions.col(_RUN).is_in(numbers)
        return replace(rows, rows=rows.rows.filter(is_of_these), frame=rows.frame.filter(is_of_these))

    def _in_order(self, counted: Frame, numbers: Sequence[int]) -> dict[int, pl.DataFrame]:
        """Return the counts, in the order of keys, of all runs that have each example exactly once."""
        n, columns = self._run.n_rows, count_columns(self._statistic.count_names)
        table = self._engine.collected(counted.select(_RUN, _PLACE, *columns))
        runs = np.searchsorted(numbers, table[_RUN].to_numpy())
        places = runs * n + table[_PLACE].to_numpy()
        has_each_once = (np.bincount(places, minlength=len(numbers) * n) == 1).reshape(-1, n).all(axis=1)
        order = np.zeros(len(places), dtype=np.int64)
        order[places] = np.arange(len(places))
        table = table.select(columns)[order]
        keys = [
            self._keys.alias(KEY),
            pl.Series(_PLACE, range(n)),
            pl.Series(IN_TEST, [True]).new_from_index(0, n),
        ]
        return {
            number: table[i * n : (i + 1) * n].hstack(keys)
            for i, number in enumerate(numbers)
            if has_each_once[i]
        }

    def _checks(self, rows: JoinedRows) -> dict[str, nw.Expr]:
        """Return the expressions that decide whether a run is complete and agrees with the reference."""
        columns, f = self._columns, rows.functions
        asked = {"in test": rows.n_rows(f.col(IN_TEST))}
        asked |= {f"disagrees {name}": rows.n_rows(rows.disagree(name)) for name in columns.agreeing}
        return asked

    def _is_complete(self, found: Mapping[str, Any]) -> bool:
        """Whether a run has as many rows as the reference run, with all values, and agrees with it."""
        is_whole = found["in test"] == found["n"] == self._run.n_rows
        return is_whole and not any(found[f"disagrees {name}"] for name in self._columns.agreeing)

    def _by_run(self, frame: Frame, asked: Mapping[str, nw.Expr]) -> dict[int, dict[str, Any]]:
        """Compute expressions for the rows of each run."""
        values = (value.alias(f"answer_{i}") for i, value in enumerate(asked.values()))
        found = self._engine.collected(
            frame.filter(~self._engine.functions.col(_RUN).is_null()).group_by(_RUN).agg(*values)
        )
        return {number: dict(zip(asked, row, strict=True)) for number, *row in found.iter_rows()}

    def _sums(self, rows: JoinedRows, first: JoinedRows, number: int) -> dict[int, dict[str, Any]]:
        """Compute the sums for the digests of each run; the part of the baseline is computed only once."""
        of_first = self._by_run(*with_sums(first))[number]
        own = self._by_run(*with_sums(rows, SIDES[1:]))
        return {number: {**of_first, **sums} for number, sums in own.items()}

    def _pairs(self, rows: JoinedRows) -> dict[str, dict[tuple[Any, ...], pl.DataFrame]]:
        """Return the pairs of values of each column by run, if there are enough examples for warnings."""
        names = compared(rows) if self._run.n_rows >= ENOUGH else []
        return {
            name: pairs_of_values(rows, name, _RUN).partition_by(_RUN, as_dict=True, include_key=False)
            for name in names
        }

    def _counts(self, scores: CountedRows, reals: Sequence[pl.Series]) -> PairedCounts:
        """Return the counts of one run and the reference run, whose columns all runs share in memory."""
        names = scores.statistic.count_names
        found = self._engine.collected(scores.frame.sort(_PLACE).select(count_columns(names)))
        columns = [self._keys]
        for side in reversed(SIDES):
            for name in names:
                values = found[count_of(side, name)]
                known = self._known.setdefault(name, found[count_of(SIDES[0], name)].shrink_dtype().rechunk())
                values = values.shrink_dtype()
                columns.append((known if known.equals(values) else values).alias(f"{side}.{name}"))
        return PairedCounts(pl.DataFrame([*columns, *reals]), names)
