"""Counts of all runs on the same examples, and the table of counts of a pair of runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.comparison.scores import score_of, scores_of
from trackperm.comparison.single import is_empty, is_rounded_away
from trackperm.exact import CountTable
from trackperm.exact.counts import exact_column_sums, group_rows
from trackperm.exact.pairwise import Influences
from trackperm.exact.scores.scaling import scale_scores
from trackperm.exact.types import IntArray
from trackperm.leaderboards.cross_tables import MOST_CODES, CrossTables
from trackperm.leaderboards.paired_runs import Entry, PairedRuns, own_values, side_values
from trackperm.pairing import Pairing
from trackperm.pairing.counts.counting import STRATUM, count_table
from trackperm.pairing.counts.paired_counts import PairedCounts
from trackperm.pairing.engines.in_memory import InMemory
from trackperm.pairing.joined import SIDES, SIZE, count_of
from trackperm.pairing.pair import pair_in_memory
from trackperm.statistic import Statistic, load_statistic

Array = npt.NDArray[Any]

MOST_CELLS = 2**20
"""Most cells of the array in which pairs of rows of counts are counted: 8 MiB, about a processor's cache."""


@dataclass(frozen=True, eq=False)
class RunCounts:
    """Counts of k runs on N examples.

    Attributes
    ----------
    statistic : Statistic
        The statistic with its declared units and its strata.
    entries : tuple of Entry
        The runs.
    values : tuple of tuple of ndarray, shape (N,)
        Values by run and count: integers in units of `statistic`, or float64 for `decimals`. For a statistic
        of classes, sums over classes; for one of pairs, nothing.
    decimals : frozenset of str
        Counts that are decimals in some run. Their unit depends on the pair.
    declared : Statistic
        The statistic as declared, by which two runs are paired anew.
    is_read_by_pair : bool
        Whether decimals were added up or averaged in units of a pair, or are computed in floats in some pairs
        only, so that each pair is paired anew.
    """

    statistic: Statistic
    entries: tuple[Entry, ...]
    values: tuple[tuple[Array, ...], ...]
    decimals: frozenset[str]
    declared: Statistic
    is_read_by_pair: bool = False
    _with_units: dict[tuple[Fraction, ...], Statistic] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, runs: PairedRuns) -> RunCounts:
        """Collect the counts of all paired runs; those of pairs of examples depend on both runs of a test."""
        if runs.statistic.depends_on_both:
            strata = _strata(runs.entries[0].pairing.statistic)
            statistic = load_statistic(runs.statistic, strata=strata)
            values = tuple(() for _ in runs.entries)
            return cls(statistic, runs.entries, values, frozenset(), runs.statistic)
        declared, first = runs.statistic.resolution, runs.entries[0].pairing.statistic
        read = {name for entry in runs.entries for name in _units(entry.pairing.statistic)}
        named = dict.fromkeys(read, declared) if isinstance(declared, Fraction) else dict(declared)
        columns: list[list[Array]] = []
        is_read_by_pair = runs.is_read_by_pair
        for name in runs.statistic.count_names:
            own: list[Array] = []
            for entry in runs.entries:
                written = None if name in named else own_values(entry.pairing, name)
                unit = _units(entry.pairing.statistic).get(name)
                is_averaged = name in named and unit not in (None, named[name])
                is_read_by_pair |= is_averaged or (written is None and name not in named)
                column = side_values(entry.pairing, name, "candidate") if written is None else written
                if name in named:
                    column = np.rint(column.astype(np.float64) / float(named[name])).astype(np.int64)
                column = _narrowed(column.astype(np.float64) if name in read - named.keys() else column)
                # Equal columns of different runs share memory.
                own.append(own[0] if own and np.array_equal(own[0], column) else column)
            columns.append(own)
        statistic = load_statistic(first, resolution=named, strata=_strata(first))
        if runs.statistic.has_classes:
            statistic = first
        return cls(
            statistic,
            runs.entries,
            tuple(zip(*columns, strict=True)),
            frozenset(read - named.keys()),
            runs.statistic,
            is_read_by_pair and all(entry.pairing.report.missing == "error" for entry in runs.entries),
        )

    def __len__(self) -> int:
        return len(self.entries)

    @cached_property
    def totals(self) -> list[tuple[Statistic, tuple[int, ...]]]:
        """Statistic in the units of each run, and the totals from which its score is computed."""
        return [_totals(entry) for entry in self.entries]

    @cached_property
    def scores(self) -> list[float | None]:
        """Scores of the runs, equal to those of :func:`trackperm.compare`."""
        if self.statistic.rank_score is not None:
            pairings = [entry.pairing for entry in self.entries]
            return [scores_of(each.statistic, each.count_table)[0] for each in pairings]
        return [score_of(statistic, totals) for statistic, totals in self.totals]

    def is_empty(self, i: int) -> bool:
        """Whether every division in the score of run `i` is 0/0, in every stratum or class."""
        return is_empty(*self.totals[i])

    def is_rounded_away(self, i: int) -> bool:
        """Whether the rounding of counts leaves fewer than three digits of a divisor of run `i`."""
        return is_rounded_away(*self.totals[i], self.entries[i].pairing.report.n_paired)

    @cached_property
    def varying(self) -> tuple[int, ...]:
        """Indices of the counts that differ between some runs on some example."""
        first = self.values[0]
        return tuple(c for c in range(len(first)) if any(own[c] is not first[c] for own in self.values))

    def count_table(
        self, candidate: int, baseline: int, cross_table: IntArray | None = None
    ) -> tuple[CountTable, Statistic]:
        """Return the table of counts of a pair, as :func:`trackperm.compare` makes it, and the statistic.

        If counts are decimals, the statistic has the units of this pair. `cross_table` is the pair's table of
        :attr:`cross_tables`, if it is already known.
        """
        u = self.entries[candidate]
        if self.statistic.depends_on_both or self.is_read_by_pair:
            pairing = self._paired(candidate, baseline)
            return pairing.count_table, pairing.statistic
        if self.statistic.has_classes:
            table = self._table_of_classes(candidate, baseline)
            if table is not None:
                return table, self.statistic
            pairing = self._paired(candidate, baseline)
            return pairing.count_table, pairing.statistic
        if self._codes is not None:
            codes, rows = self._codes
            if cross_table is None:
                cells = np.bincount(codes[candidate] * len(rows) + codes[baseline], minlength=len(rows) ** 2)
            else:
                cells = cross_table.ravel()
            present = np.flatnonzero(cells)
            first, second = np.divmod(present, len(rows))
            counts = cells[present].astype(np.int64)
            return CountTable(self.statistic.total_names, rows[first], rows[second], counts), self.statistic
        own, other, statistic = self._integers(candidate, baseline)
        if u.pairing.strata is None:
            return CountTable.from_counts(statistic.total_names, own, other), statistic
        columns: dict[str, Any] = {"id": u.pairing.counts.frame.get_column("id")}
        for c, name in enumerate(statistic.count_names):
            columns |= {f"candidate.{name}": own[:, c], f"baseline.{name}": other[:, c]}
        paired = PairedCounts(pl.DataFrame(columns), statistic.count_names)
        return _over_strata(paired, u.pairing.strata, statistic), statistic

    def influences(self, candidate: int, baseline: int) -> Influences | None:
        """Return the influences of examples, if the statistic is a mean over pairs."""
        if self.statistic.pair_term is None:
            return None
        return self._paired(candidate, baseline).report.influences

    def _paired(self, candidate: int, baseline: int) -> Pairing:
        """Pair the examples of two runs with each other."""
        u, v = self.entries[candidate], self.entries[baseline]
        by_position = u.pairing.report.by == "position"
        return pair_in_memory(v.data.table, u.data.table, self.declared, by_position=by_position)

    def _table_of_classes(self, candidate: int, baseline: int) -> CountTable | None:
        """Return the counts of every class in two runs; None if the two have to be paired anew."""
        if self._class_codes is None:
            return None
        codes, rows = self._class_codes
        cells, counts = np.unique(codes[candidate] * len(rows) + codes[baseline], return_counts=True)
        sides = [rows[places] for places in np.divmod(cells, len(rows))]
        is_counted = (sides[0] != 0).any(axis=0) | (sides[1] != 0).any(axis=0)
        if not is_counted.reshape(-1, len(self.statistic.count_names)).any(axis=1).all():
            return None  # pairing reports the class that does not occur
        return CountTable.from_counts(self.statistic.total_names, sides[0], sides[1], counts)

    @cached_property
    def _class_codes(self) -> tuple[list[IntArray], IntArray] | None:
        """Codes of the rows of class counts, by run and unit, and the distinct rows that they index.

        None if counts have units, since these depend on the pair.
        """
        names = self.statistic.total_names
        statistics = [entry.pairing.statistic for entry in self.entries]
        if self.statistic.predicts_classes or any(
            _units(each) or each.total_names != names for each in statistics
        ):
            return None
        own: list[tuple[IntArray, IntArray]] = []
        for entry in self.entries:
            units = entry.pairing.by_unit()
            distinct, places = np.unique(units.candidate, axis=0, return_inverse=True)
            own.append((distinct, places.ravel()[units.rows]))
        rows, numbers = np.unique(
            np.concatenate([distinct for distinct, _ in own]), axis=0, return_inverse=True
        )
        ends = np.cumsum([len(distinct) for distinct, _ in own])[:-1]
        parts = np.split(numbers.ravel().astype(np.int64), ends)
        return [part[places] for part, (_, places) in zip(parts, own, strict=True)], rows

    def _integers(self, candidate: int, baseline: int) -> tuple[IntArray, IntArray, Statistic]:
        """Return the counts of two runs as integers, shape (N, p) each, and the statistic in their units."""
        sides: tuple[list[Array], list[Array]] = ([], [])
        units: dict[str, Fraction] = {}
        for c, name in enumerate(self.statistic.count_names):
            own, other = self.values[candidate][c], self.values[baseline][c]
            if name in self.decimals:
                own, other, units[name] = scaled_pair(own, other)
            sides[0].append(own)
            sides[1].append(other)
        u, v = (np.stack([column.astype(np.int64) for column in side], axis=1) for side in sides)
        return u, v, self._statistic(units)

    def _statistic(self, units: Mapping[str, Fraction]) -> Statistic:
        if not units:
            return self.statistic
        key = tuple(units.values())
        if key not in self._with_units:
            self._with_units[key] = load_statistic(
                self.statistic,
                resolution={**_units(self.statistic), **units},
                strata=_strata(self.statistic),
            )
        return self._with_units[key]

    @cached_property
    def cross_tables(self) -> CrossTables | None:
        """Cross tables of the rows of counts of two runs; None if there are too many distinct rows."""
        if self._codes is None or len(self._codes[1]) > MOST_CODES:
            return None
        return CrossTables(self._codes[0], len(self._codes[1]))

    @cached_property
    def _codes(self) -> tuple[list[Array], IntArray] | None:
        """Codes of the rows of counts, by run and example, and the distinct rows that they index.

        None if there are too many distinct rows, strata, or decimals.
        """
        if self.decimals or self.statistic.strata is not None or self.statistic.depends_on_both:
            return None
        if self.is_read_by_pair:
            return None
        rows = np.empty((0, len(self.statistic.count_names)), dtype=np.int64)
        for own in self.values:
            found = np.concatenate([rows, _distinct(own)])
            rows, _ = group_rows(found, np.ones(len(found), dtype=np.int64))
            if len(rows) ** 2 > min(MOST_CELLS, max(4096, 4 * own[0].size)):
                return None
        low = rows.min(axis=0)
        spans = (rows.max(axis=0) - low + 1).tolist()
        if math.prod(spans) >= 2**62:
            return None
        strides = [math.prod(spans[c + 1 :]) for c in range(len(spans))]
        keys = (rows - low) @ np.array(strides, dtype=np.int64)
        narrow = np.min_scalar_type(len(rows) ** 2)
        return [np.searchsorted(keys, _keys(own, low, strides)).astype(narrow) for own in self.values], rows


def scaled_pair(own: Array, other: Array) -> tuple[IntArray, IntArray, Fraction]:
    """Convert decimals of two runs to integers of one unit, found from their distinct pairs of values."""
    pairs, places = np.unique(own + 1j * other, return_inverse=True)
    scaled = scale_scores(pairs.real.copy(), pairs.imag.copy(), None, wide=False)
    u, v = (each[places.ravel()] for each in (scaled.candidate, scaled.baseline))
    return u, v, scaled.unit


def _keys(own: tuple[Array, ...], low: IntArray, strides: list[int]) -> IntArray:
    keys = np.zeros(own[0].size, dtype=np.int64)
    for column, start, stride in zip(own, low.tolist(), strides, strict=True):
        keys += (column.astype(np.int64) - start) * stride
    return keys


def _distinct(own: tuple[Array, ...]) -> IntArray:
    matrix = np.stack([column.astype(np.int64) for column in own], axis=1)
    return group_rows(matrix, np.ones(len(matrix), dtype=np.int64))[0]


def _totals(entry: Entry) -> tuple[Statistic, tuple[int, ...]]:
    pairing = entry.pairing
    statistic, frame = pairing.statistic, pairing.counts.frame
    if statistic.has_classes or statistic.depends_on_both:
        return statistic, pairing.count_table.totals()[0]
    if pairing.strata is not None:
        return statistic, _over_strata(pairing.counts, pairing.strata, statistic).totals()[0]
    own = frame.select(f"candidate.{name}" for name in statistic.count_names).to_numpy().astype(np.int64)
    return statistic, exact_column_sums(own, np.ones(len(own), dtype=np.int64))


def _over_strata(counts: PairedCounts, strata: pl.Series, statistic: Statistic) -> CountTable:
    names = {f"{side}.{name}": count_of(side, name) for side in SIDES for name in statistic.count_names}
    frame = counts.frame.rename(names)
    frame = frame.with_columns(strata.alias(STRATUM), pl.lit(1, pl.Int64).alias(SIZE))
    engine = InMemory()
    return count_table(engine, engine.local(frame), statistic, strata=True, units=True)


def _units(statistic: Statistic) -> Mapping[str, Fraction]:
    return {} if isinstance(statistic.resolution, Fraction) else statistic.resolution


def _strata(statistic: Statistic) -> list[str] | None:
    return list(statistic.weights) if statistic.strata is not None else None


def _narrowed(column: Array) -> Array:
    """Convert integers to the narrowest type that holds them."""
    if column.dtype.kind == "f":
        return column
    low, high = int(column.min()), int(column.max())
    return column.astype(np.promote_types(np.min_scalar_type(low), np.min_scalar_type(high)), copy=False)
