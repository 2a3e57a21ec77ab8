"""Many runs paired with the same run at once, where nothing stands in the way.

What :func:`~trackperm.pairing.pair.pair` does for one run after the other is done here for all that hold the
same examples, complete and with the same types: the reference run is looked at once, and the outcomes of all
are counted together. Every other run is left to it, which says what is in the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.choices import Missing
from trackperm.errors import InputError, InputTypeError, PairingError
from trackperm.exact import CountTable
from trackperm.pairing.by_unit import CountsByUnit
from trackperm.pairing.changed import n_changed
from trackperm.pairing.checks.differences import RunDifferences
from trackperm.pairing.checks.quick import Unsuspicious
from trackperm.pairing.checks.refusals import require_distinct_ids
from trackperm.pairing.checks.suspicions import Evidence, suspicions
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.counting import counted, scaled
from trackperm.pairing.digest import digest
from trackperm.pairing.examples_digest import digest_of_test_set
from trackperm.pairing.grouping import grouped
from trackperm.pairing.keyed_run import KEY, KeyedRun, read_types, with_key
from trackperm.pairing.pair import design, rewritten_ids
from trackperm.pairing.paired_counts import PairedCounts
from trackperm.pairing.report import PairingReport
from trackperm.pairing.text_order import text_order
from trackperm.statistic import Statistic
from trackperm.tables.column_types import ColumnType
from trackperm.tables.table import ExampleTable

MOST_ROWS = 2**14
"""Rows up to which a run is paired with others at once: of larger ones the overhead does not matter."""
_TOGETHER = 2**20  # rows that are counted together


@dataclass(frozen=True, eq=False)
class PairedRun:
    """A run beside the reference run: of a :class:`~trackperm.pairing.pair.Pairing`, what many need.

    Attributes
    ----------
    statistic : Statistic
        What was counted, with the units of the counts.
    report : PairingReport
        How the examples were paired.
    counts : PairedCounts
        Counts of both runs by example.
    strata : None
        Statistics of strata are left to :func:`~trackperm.pairing.pair.pair`.
    """

    statistic: Statistic
    report: PairingReport
    counts: PairedCounts
    strata: nw.Series[Any] | None = None

    @cached_property
    def count_table(self) -> CountTable:
        """The counts grouped: what is exchanged together is one row."""
        return grouped(self.counts, self.strata, self.statistic)

    def by_unit(self) -> CountsByUnit:
        """Return the counts of every example; see :meth:`trackperm.pairing.pair.Pairing.by_unit`."""
        return CountsByUnit.of(self.counts, self.strata, self.statistic)


def pair_many(
    reference: ExampleTable,
    candidates: Sequence[ExampleTable],
    statistic: Statistic,
    *,
    missing: Missing = "error",
    by_position: bool = False,
) -> list[PairedRun | None]:
    """Pair runs with a reference run, those that hold exactly its examples.

    Parameters
    ----------
    reference : ExampleTable
        The baseline of all.
    candidates : sequence of ExampleTable
        The runs.
    statistic, missing, by_position
        As of :func:`~trackperm.pairing.pair.pair`.

    Returns
    -------
    list of PairedRun or None
        By run, what :func:`~trackperm.pairing.pair.pair` finds too; None where it has to be asked.
    """
    found: list[PairedRun | None] = [None] * len(candidates)
    is_grouped = statistic.has_classes or statistic.strata or statistic.cluster or statistic.has_several_rows
    if by_position or is_grouped or missing not in ("error", "drop") or not 0 < len(reference) <= MOST_ROWS:
        return found
    groups: list[_Group] = []
    for place, candidate in enumerate(candidates):
        if len(candidate) != len(reference):
            continue
        try:
            columns = PairedColumns.find(reference, candidate, statistic, by_position, missing)
            own, typed, types = read_types(reference, candidate, columns)
        except (InputError, InputTypeError):
            continue
        base = own.frame.to_polars()
        group = next((group for group in groups if group.takes(columns, types, base)), None)
        if group is None:
            group = _Group(base, columns, types)
            groups.append(group)
        rows = group.matched(typed.frame.to_polars())
        if rows is not None:
            notes = tuple(rewritten_ids(reference, candidate, columns, types))
            group.members.append(_Member(place, candidate, columns, notes, rows))
    for group in groups:
        for place, paired in group.paired(reference, statistic, missing):
            found[place] = paired
    return found


class _Member(NamedTuple):
    """A run that holds the examples of the reference run, in ascending order of their keys."""

    place: int
    table: ExampleTable
    columns: PairedColumns
    notes: tuple[str, ...]
    frame: pl.DataFrame


class _Group:
    """Runs beside which the columns of the reference run are read alike."""

    def __init__(self, base: pl.DataFrame, columns: PairedColumns, types: Mapping[str, ColumnType]) -> None:
        self.members: list[_Member] = []
        self._base, self._columns, self._types = base, columns, types
        self._keys = _keys(base, columns)
        # Ids without a value have no order; `paired` leaves their runs to others.
        is_ordered = self._keys.null_count() > 0 or self._keys.is_sorted()
        self._order = None if is_ordered else _order(self._keys)
        self._ordered = self._in_order(base.with_columns(self._keys))

    def takes(self, columns: PairedColumns, types: Mapping[str, ColumnType], base: pl.DataFrame) -> bool:
        """Whether a run is read with these columns and types, and the reference run beside it as here."""
        alike = columns.same_as(self._columns) and types == self._types
        return alike and base.equals(self._base)

    def matched(self, frame: pl.DataFrame) -> pl.DataFrame | None:
        """Order the rows of a run; None where examples, labels or values are not all there and the same."""
        keys = _keys(frame, self._columns)
        if keys.null_count():
            return None
        frame = frame.with_columns(keys)
        frame = self._in_order(frame) if keys.equals(self._keys) else frame[_order(keys)]
        if not frame[KEY].equals(self._ordered[KEY]):
            return None
        if any(frame[name].null_count() for name in self._columns.used):
            return None
        same = all(frame[name].equals(self._ordered[name]) for name in self._columns.agreeing)
        return frame if same else None

    def _in_order(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame if self._order is None else frame[self._order]

    def paired(
        self, reference: ExampleTable, statistic: Statistic, missing: Missing
    ) -> Iterator[tuple[int, PairedRun]]:
        """Count the outcomes of all members, beside the reference run."""
        base = _keyed(self._ordered, reference.origin)
        if not self.members or not self._is_proper(base):
            return
        try:
            expressions = statistic.counts(self._types)
            own = counted(base, statistic, expressions)
            counts = [part for chunk in self._chunks() for part in _counted(chunk, statistic, expressions)]
        except InputError:
            return
        keys, names = self._ordered[KEY].alias("id"), statistic.count_names
        digests = digest(base.frame, self._types)
        test_set = digest_of_test_set((base, base), self._columns)
        unsuspicious = Unsuspicious.of(self._ordered, self._columns, self._types)
        shared = design(nw.from_native(keys, series_only=True), self._columns, statistic)
        for member, other in zip(self.members, counts, strict=True):
            try:
                both = scaled(own, other, statistic)
            except InputError:
                continue
            look = [] if unsuspicious(member.frame) else self._suspicions(base, member)
            report = PairingReport(
                by="id",
                n_baseline=len(base),
                n_candidate=len(base),
                n_paired=len(base),
                n_dropped=0,
                labels_checked=self._columns.label is not None,
                inputs_checked=self._columns.identity,
                missing=missing,
                notes=(*member.columns.notes, *member.notes, *both.notes, *shared, *look),
                baseline_digest=digests,
                candidate_digest=digest(nw.from_native(member.frame, eager_only=True), self._types),
                test_set=test_set,
                n_changed=n_changed(
                    (base, _keyed(member.frame, member.table.origin)),
                    self._columns,
                    statistic,
                    (reference, member.table),
                ),
            )
            frame = pl.DataFrame(
                [
                    keys,
                    *(both.candidate[name].to_polars().alias(f"candidate.{name}") for name in names),
                    *(both.baseline[name].to_polars().alias(f"baseline.{name}") for name in names),
                ]
            )
            paired = PairedCounts(nw.from_native(frame, eager_only=True), names)
            yield member.place, PairedRun(both.statistic, report, paired)

    def _is_proper(self, base: KeyedRun) -> bool:
        """Whether the reference run has a value everywhere and ids that tell its examples apart."""
        if self._keys.null_count() or any(self._ordered[name].null_count() for name in self._columns.used):
            return False
        if RunDifferences.of_ids(base).repeated.n:
            return False
        try:
            require_distinct_ids(base, id_=KEY)
        except PairingError:
            return False
        return True

    def _chunks(self) -> Iterator[list[_Member]]:
        size = max(1, _TOGETHER // len(self._base))
        for start in range(0, len(self.members), size):
            yield self.members[start : start + size]

    def _suspicions(self, base: KeyedRun, member: _Member) -> list[str]:
        runs = base, _keyed(member.frame, member.table.origin)
        return suspicions(Evidence.of(runs, self._columns, self._types), self._columns, self._types)


def _keys(frame: pl.DataFrame, columns: PairedColumns) -> pl.Series:
    if len(columns.ids) == 1:
        return frame[columns.ids[0]].alias(KEY)
    return with_key(nw.from_native(frame, eager_only=True), columns.ids)[KEY].to_polars()


def _order(keys: pl.Series) -> npt.NDArray[np.int64]:
    return text_order(keys) if keys.dtype == pl.String else np.asarray(keys.arg_sort())


def _keyed(frame: pl.DataFrame, origin: str) -> KeyedRun:
    return KeyedRun(nw.from_native(frame, eager_only=True), origin, frame.height)


def _counted(
    members: Sequence[_Member], statistic: Statistic, expressions: Mapping[str, nw.Expr]
) -> list[nw.DataFrame[Any]]:
    """Count the outcomes of runs of the same length, one below the other."""
    together = pl.concat([member.frame for member in members])
    counts = counted(_keyed(together, members[0].table.origin), statistic, expressions)
    n = members[0].frame.height
    return [counts[i * n : (i + 1) * n] for i in range(len(members))]
