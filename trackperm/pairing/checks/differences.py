"""What two runs differ in that keeps them from being paired, counted, with the first cases of each kind.

Differences of some examples and those of the examples that follow add up to those of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw

from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.keyed_run import KeyedRun

_SHOWN = 5
_WIDTH = 40
_COMPARED = 100_000


@dataclass(frozen=True)
class Cases:
    """Cases of one kind: how many there are, and the first of them as they are shown."""

    n: int = 0
    first: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, *columns: nw.Series[Any]) -> Cases:
        """Take every row of `columns`, which are ordered by example, as a case."""
        return cls(len(columns[0]), tuple(zip(*map(few, columns), strict=True)))

    def __add__(self, later: Cases) -> Cases:
        return Cases(self.n + later.n, (*self.first, *later.first)[:_SHOWN])

    def listed(self) -> str:
        """Write the first cases, of one column, in brackets."""
        return f"(first: {', '.join(case for (case,) in self.first)})"


@dataclass(frozen=True)
class RunDifferences:
    """What one run has that keeps it from being paired.

    Attributes
    ----------
    origin : str
        What messages call the run.
    n_rows, n_keyed : int
        Number of its examples, and of those that have an id; an example without an id is a row.
    without_id : Cases
        Numbers of the rows that have none.
    repeated : Cases
        How many rows share their id with another, and the first such ids.
    alone : Cases
        Examples that the other run lacks.
    alone_ids : tuple of str
        Ids of the first of them, where they are text.
    lacking : Cases
        Examples without a value that the statistic reads.
    lacking_in : frozenset of str
        The columns in which they have none.
    """

    origin: str
    n_rows: int = 0
    n_keyed: int = 0
    without_id: Cases = Cases()
    repeated: Cases = Cases()
    alone: Cases = Cases()
    alone_ids: tuple[str, ...] = ()
    lacking: Cases = Cases()
    lacking_in: frozenset[str] = frozenset()

    @classmethod
    def of_ids(cls, run: KeyedRun) -> RunDifferences:
        """Find rows that have no id, or share it with another."""
        found = cls(run.origin, run.n_rows, len(run), _without_id(run))
        if not (run.keys[1:] == run.keys[:-1]).any():  # they are in ascending order
            return found
        repeated = run.keys.filter(run.keys.is_duplicated())
        return replace(found, repeated=Cases(len(repeated), Cases.of(repeated.unique().sort()).first))

    def __add__(self, later: RunDifferences) -> RunDifferences:
        return RunDifferences(
            self.origin,
            self.n_rows + later.n_rows,
            self.n_keyed + later.n_keyed,
            self.without_id + later.without_id,
            self.repeated + later.repeated,
            self.alone + later.alone,
            (*self.alone_ids, *later.alone_ids)[:_COMPARED],
            self.lacking + later.lacking,
            self.lacking_in | later.lacking_in,
        )


@dataclass(frozen=True)
class Differences:
    """What keeps two runs from being paired.

    Attributes
    ----------
    runs : (RunDifferences, RunDifferences)
        Of baseline and candidate.
    n_matched, n_paired : int
        Number of examples that both runs have, and of those among them that have all values.
    disagreements : mapping of str to Cases
        Matched rows on which a column differs that should not: the example and both values.
    """

    runs: tuple[RunDifferences, RunDifferences]
    n_matched: int
    n_paired: int
    disagreements: Mapping[str, Cases]

    @classmethod
    def none(cls, runs: tuple[RunDifferences, RunDifferences], columns: PairedColumns) -> Differences:
        """Begin with runs of which no rows are matched."""
        return cls(runs, 0, 0, {name: Cases() for name in columns.agreeing})

    def __add__(self, later: Differences) -> Differences:
        return Differences(
            (self.runs[0] + later.runs[0], self.runs[1] + later.runs[1]),
            self.n_matched + later.n_matched,
            self.n_paired + later.n_paired,
            {name: cases + later.disagreements[name] for name, cases in self.disagreements.items()},
        )


def differences(
    runs: tuple[KeyedRun, KeyedRun],
    matched: tuple[KeyedRun, KeyedRun],
    paired: KeyedRun,
    columns: PairedColumns,
    needed: Sequence[str],
) -> Differences:
    """Find what keeps two runs from being paired.

    Parameters
    ----------
    runs : (KeyedRun, KeyedRun)
        Baseline and candidate.
    matched : (KeyedRun, KeyedRun)
        Rows whose example both have, in the same order.
    paired : KeyedRun
        Those of them that have all values that are needed.
    columns : PairedColumns
        Which columns have to agree.
    needed : sequence of str
        Columns in which rows need a value.
    """
    baseline, candidate = runs
    return Differences(
        (
            _run_differences(baseline, candidate, matched[0], columns, needed),
            _run_differences(candidate, baseline, matched[1], columns, needed),
        ),
        _n_examples(matched[0], columns),
        _n_examples(paired, columns),
        {name: _disagreement(*matched, name, columns) for name in columns.agreeing},
    )


def _run_differences(
    run: KeyedRun, other: KeyedRun, matched: KeyedRun, columns: PairedColumns, needed: Sequence[str]
) -> RunDifferences:
    lacking = run.filter(~run.is_complete(needed))
    alone = run.join(other, "anti").keys if len(run) > matched.n_own_rows else run.keys.head(0)
    keys = lacking.keys
    if columns.repeats:
        alone, keys = alone.unique().sort(), keys.unique().sort()
    return RunDifferences(
        run.origin,
        run.n_rows,
        _n_examples(run, columns),
        _without_id(run),
        Cases(),
        Cases.of(alone),
        tuple(alone.head(_COMPARED).to_list()) if alone.dtype == nw.String else (),
        Cases.of(keys),
        frozenset(name for name in needed if lacking.frame.get_column(name).is_null().any()),
    )


def _n_examples(run: KeyedRun, columns: PairedColumns) -> int:
    return run.keys.n_unique() if columns.repeats else len(run)


def _without_id(run: KeyedRun) -> Cases:
    rows = run.rows_without_id
    return Cases(len(rows), tuple((str(row),) for row in rows[:_SHOWN]))


def _disagreement(baseline: KeyedRun, candidate: KeyedRun, name: str, columns: PairedColumns) -> Cases:
    """Find the examples on which a column differs; of labels that are only checked, a null counts too."""
    nulls = name == columns.label and name not in columns.used
    sides = [run.frame.get_column(name) for run in (baseline, candidate)]
    is_null = [side.is_null() for side in sides]
    differ = (sides[0] != sides[1]).fill_null(False) & ~is_null[0] & ~is_null[1]
    if nulls:
        differ = differ | (is_null[0] != is_null[1])
    found = [series.filter(differ) for series in (baseline.keys, *sides)]
    if columns.repeats:
        is_first = found[0].is_first_distinct()
        found = [series.filter(is_first) for series in found]
    return Cases.of(*found)


def shown(value: Any) -> str:
    """Value as Python writes it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def few(values: nw.Series[Any]) -> list[str]:
    """Return the first values as they are shown."""
    return [shown(value) for value in values.head(_SHOWN).to_list()]
