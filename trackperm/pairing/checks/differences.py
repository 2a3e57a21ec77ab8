"""Differences that keep two runs from being paired: counted, with the first cases of each kind."""

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
_LOOKED_AT = 10_000  # rows among which there are enough examples to show
_SLICE = 2**18  # rows that are looked at at once


@dataclass(frozen=True)
class Cases:
    """Cases of one kind: how many there are, and the first of them as they are shown."""

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


def ids_of(engine: Engine, run: KeyedRun, ids: Sequence[str]) -> RunDifferences:
    """Find rows that have no id, or share it with another."""
    found = RunDifferences(run.origin, run.n_rows, run.n_keyed, _without_id(run, ids))
    f = engine.functions
    repeated = run.frame.group_by(KEY).agg(f.len().alias("n")).filter(f.col("n") > 1)
    sizes = engine.collected(repeated.select(f.col("n").sum()))
    first = engine.collected(repeated.sort(KEY).head(_SHOWN).select(KEY))
    return replace(found, repeated=Cases(int(sizes.item() or 0), Cases.of(first[KEY]).first))


def differences(rows: JoinedRows) -> Differences:
    """Find what keeps two runs from being paired: one query counts it, others show the first of it."""
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
    """Count the examples on which a condition holds, and show the first of them."""
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
    """Whether a column differs; of labels that are only checked, a null counts too."""
    columns = rows.columns
    sides = [rows.functions.col(of(side, name)) for side in SIDES]
    both = rows.keyed("baseline") & rows.keyed("candidate")
    differ = (sides[0] != sides[1]).fill_null(False)
    if name == columns.label and name not in columns.used:
        differ = differ | (sides[0].is_null() != sides[1].is_null())
    return both & differ


def shown(value: Any) -> str:
    """Value as Python writes it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def few(values: nw.Series[Any] | pl.Series) -> list[str]:
    """Return the first values as they are shown."""
    return [shown(value) for value in values.head(_SHOWN).to_list()]
