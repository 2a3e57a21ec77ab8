"""Differences that prevent a pairing: the number and the first cases of each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import polars as pl

from trackperm.pairing.engines.base import Engine
from trackperm.pairing.joined import IN_TEST, MATCHED, SIDES, JoinedRows, of
from trackperm.pairing.keyed_run import KEY, KeyedRun

_SHOWN = 5
_WIDTH = 40
_COMPARED = 100_000
_LOOKED_AT = 10_000  # rows that are read to find a few different examples to show
_SLICE = 2**18  # rows that are read at once


@dataclass(frozen=True)
class Cases:
    """Cases of one kind: their number, and the first cases as text."""

    n: int = 0
    first: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, *columns: pl.Series) -> Cases:
        """Take every row of `columns`, which are ordered by example, as a case."""
        return cls(len(columns[0]), tuple(zip(*map(few, columns), strict=True)))

    def listed(self) -> str:
        """Write the first cases, of one column, in brackets."""
        return f"(first: {', '.join(case for (case,) in self.first)})"


@dataclass(frozen=True)
class RunDifferences:
    """Differences of one run that prevent a pairing.

    Attributes
    ----------
    origin : str
        Name of the run in messages.
    n_rows, n_keyed : int
        Number of examples, and of examples that have an id; each row without an id counts as an example.
    without_id : Cases
        Rows without an id, by row number.
    repeated : Cases
        Number of rows that share their id with another row, and the first such ids.
    alone : Cases
        Examples that the other run lacks.
    alone_ids : tuple of str
        Ids of the first examples that the other run lacks, if ids are text.
    lacking : Cases
        Examples without a value that the statistic reads.
    lacking_in : frozenset of str
        Columns in which these examples have no value.
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


@dataclass(frozen=True)
class Differences:
    """Differences of two runs that prevent a pairing.

    Attributes
    ----------
    runs : (RunDifferences, RunDifferences)
        Differences of baseline and candidate.
    n_matched, n_paired : int
        Number of examples that both runs have, and of these the number that have all values.
    disagreements : mapping of str to Cases
        For each column that has to agree, the matched rows on which it differs: example and both values.
    """

    runs: tuple[RunDifferences, RunDifferences]
    n_matched: int
    n_paired: int
    disagreements: Mapping[str, Cases]


def ids_of(engine: Engine, run: KeyedRun, ids: Sequence[str]) -> RunDifferences:
    """Find rows that have no id, or share their id with another row."""
    found = RunDifferences(run.origin, run.n_rows, run.n_keyed, _without_id(run, ids))
    f = engine.functions
    repeated = run.frame.group_by(KEY).agg(f.len().alias("n")).filter(f.col("n") > 1)
    sizes = engine.collected(repeated.select(f.col("n").sum()))
    first = engine.collected(repeated.sort(KEY).head(_SHOWN).select(KEY))
    return replace(found, repeated=Cases(int(sizes.item() or 0), Cases.of(first[KEY]).first))


def differences(rows: JoinedRows) -> Differences:
    """Find the differences that prevent a pairing: one query counts them, others read the first cases."""
    columns, f = rows.columns, rows.functions
    needed = columns.needed(rows.missing)
    first = rows.is_first()
    conditions = {"matched": f.col(MATCHED) & first, "paired": f.col(IN_TEST) & first}
    for side, other in (SIDES, tuple(reversed(SIDES))):
        is_of_run = f.col(MATCHED) if rows.counts_missing else rows.there(side)
        conditions[f"{side} keyed"] = (f.col(MATCHED) if rows.counts_missing else rows.keyed(side)) & first
        conditions[f"{side} alone"] = rows.keyed(side) & ~rows.keyed(other) & ~f.col(MATCHED)
        conditions[f"{side} lacking"] = is_of_run & ~rows.present(side, needed)
        for name in needed:
            conditions[f"{side} lacking {name}"] = is_of_run & f.col(of(side, name)).is_null()
    for name in columns.agreeing:
        conditions[f"disagreeing {name}"] = disagree(rows, name)
    n = rows.counted(**conditions)
    return Differences(
        (
            _run_differences(rows, 0, conditions, n, needed),
            _run_differences(rows, 1, conditions, n, needed),
        ),
        n["matched"],
        n["paired"],
        {
            name: _cases(rows, conditions[f"disagreeing {name}"], n[f"disagreeing {name}"], name)
            for name in columns.agreeing
        },
    )


def _run_differences(
    rows: JoinedRows, place: int, conditions: dict[str, nw.Expr], n: dict[str, int], needed: Sequence[str]
) -> RunDifferences:
    run, side = rows.runs[place], SIDES[place]
    alone, ids = conditions[f"{side} alone"], tuple[str, ...]()
    if n[f"{side} alone"] and n[f"{SIDES[1 - place]} alone"]:
        found = rows.first(alone & rows.is_first(), _COMPARED)[KEY]
        ids = tuple(found.to_list()) if found.dtype == pl.String else ()
    without_id = _without_id(run, rows.columns.ids)
    n_examples = n[f"{side} keyed"]
    return RunDifferences(
        run.origin,
        n_examples + without_id.n if rows.columns.repeats else run.n_rows,
        n_examples,
        without_id,
        Cases(),
        _cases(rows, alone, n[f"{side} alone"]),
        ids,
        _cases(rows, conditions[f"{side} lacking"], n[f"{side} lacking"]),
        frozenset(name for name in needed if n[f"{side} lacking {name}"]),
    )


def _cases(rows: JoinedRows, condition: nw.Expr, n: int, name: str | None = None) -> Cases:
    """Count the examples on which a condition holds, and list the first of them."""
    if not n:
        return Cases()
    names = () if name is None else tuple(of(side, name) for side in SIDES)
    if not rows.columns.repeats:
        found = rows.first(condition, _SHOWN, *names)
        return Cases(n, Cases.of(*found.get_columns()).first)
    n = int(
        rows.engine.collected(rows.frame.filter(condition).select(rows.functions.col(KEY).n_unique())).item()
    )
    found = rows.first(condition, _LOOKED_AT, *names).unique(KEY, keep="first", maintain_order=True)
    return Cases(n, Cases.of(*found.head(_SHOWN).get_columns()).first)


def _without_id(run: KeyedRun, ids: Sequence[str]) -> Cases:
    n = run.n_rows - run.n_keyed
    if not n:
        return Cases()
    rows: list[int] = []
    if run.table.ordered:
        start = 0
        for part in run.table.slices(ids, _SLICE):
            lacks = part.select(pl.any_horizontal(pl.all().is_null()).alias("lacks"))["lacks"]
            rows += (lacks.arg_true() + start).to_list()
            start += len(part)
            if len(rows) >= _SHOWN:
                break
    return Cases(n, tuple((str(row),) for row in rows[:_SHOWN]))


def disagree(rows: JoinedRows, name: str) -> nw.Expr:
    """Whether a column differs; in labels that the statistic does not read, a null differs from a value."""
    columns = rows.columns
    sides = [rows.functions.col(of(side, name)) for side in SIDES]
    both = rows.keyed("baseline") & rows.keyed("candidate")
    differ = (sides[0] != sides[1]).fill_null(False)
    if name == columns.label and name not in columns.used:
        differ = differ | (sides[0].is_null() != sides[1].is_null())
    return both & differ


def shown(value: Any) -> str:
    """Return the `repr` of a value, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def few(values: pl.Series) -> list[str]:
    """Return the first values as text."""
    return [shown(value) for value in values.head(_SHOWN).to_list()]
