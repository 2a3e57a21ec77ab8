"""Slices of two runs: their examples with one value in a column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from trackperm.choices import EngineName
from trackperm.comparison.context import Slice
from trackperm.comparison.runs import RunData
from trackperm.errors import InputError, InputTypeError
from trackperm.messages import amount, did_you_mean, echoed, listed
from trackperm.pairing.slices import require_same_slices
from trackperm.statistic import Statistic
from trackperm.tables.columns.types import typed_columns, unusable
from trackperm.tables.columns.whole_numbers import with_like_whole_numbers
from trackperm.tables.lazy.table import COUNT
from trackperm.tables.table import ExampleTable, id_columns

MOST_SLICES = 100
"""Most values of a column that make slices.

A column with more is usually an id or free text, and a correction for so many tests leaves little power.
"""

_COUNTED = 2**16  # distinct values that are counted; beyond, messages say "more than"


def slices_of(
    baseline: RunData,
    candidate: RunData,
    statistic: Statistic,
    columns: Sequence[str],
    *,
    by_position: bool,
    engine: EngineName = "auto",
    note: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[Slice, RunData, RunData]]:
    """Yield both runs restricted to each slice, by the columns of the statistic and `columns`.

    `note` receives a sentence for each column that has no value in some rows.

    Raises
    ------
    InputError
        If a run lacks a column, or a column has no values or too many.
    PairingError
        If an example is in different slices in the two runs.
    """
    for column in dict.fromkeys([*statistic.slices, *columns]):
        sides = _sides(baseline, candidate, statistic, column, by_position=by_position, engine=engine)
        values = sorted({value for side in sides for value in side.texts.drop_nulls()})
        if not 1 <= len(values) <= MOST_SLICES:
            more = "more than " if any(len(side.texts) > _COUNTED for side in sides) else ""
            raise InputError(
                f"column `{column}` has {more}{len(values)} values; expected 1 to {MOST_SLICES} slices",
                hint="name a column with few values, such as `--slice language`.",
            )
        for side in sides:
            if side.n_without:
                n = amount(len(side.run.table), "row")
                note(
                    f"{side.n_without:,} of {n} of `{side.run.table.origin}` have no value in `{column}`"
                    " and are in no slice"
                )
                break
        for value in values:
            part = Slice(column, value, declared=column in statistic.slices)
            yield part, sides[0].rows(value), sides[1].rows(value)


def runs_of_slice(
    baseline: RunData, candidate: RunData, statistic: Statistic, part: Slice, *, by_position: bool
) -> tuple[RunData, RunData]:
    """Return both runs restricted to one slice; errors as in :func:`slices_of`."""
    sides = _sides(baseline, candidate, statistic, part.column, by_position=by_position)
    return sides[0].rows(part.value), sides[1].rows(part.value)


@dataclass(frozen=True, eq=False)
class _Side:
    """Distinct values of a column in one run, as stored in its table and as text; rows without a value."""

    run: RunData
    values: pl.Series
    texts: pl.Series
    n_without: int

    def rows(self, text: str) -> RunData:
        """Return the run restricted to rows whose value has the text `text`."""
        values = self.values.filter((self.texts == text).fill_null(False))
        return replace(self.run, table=self.run.table.among(self.values.name, values))


def _sides(
    baseline: RunData,
    candidate: RunData,
    statistic: Statistic,
    column: str,
    *,
    by_position: bool,
    engine: EngineName = "auto",
) -> tuple[_Side, _Side]:
    """Return the values of a column in both runs, after checking that they agree on each example."""
    tables = baseline.table, candidate.table
    if not isinstance(column, str):
        raise InputTypeError(f"the slice {echoed(column)} is not the name of a column")
    for table in tables:
        if column not in table.columns:
            raise InputError(
                f"`{table.origin}` has no column `{column}` for slices",
                hint=f"its columns are {listed(table.columns)}.{did_you_mean(column, table.columns)}",
            )
    first, second = with_like_whole_numbers(tables, [column])
    tables = first, second
    ids = () if by_position else id_columns(statistic.columns["id"], tables)
    if ids and (baseline.labels is not None or candidate.labels is not None):
        tables = _filled(tables[0], tables[1], column, ids), _filled(tables[1], tables[0], column, ids)
    require_same_slices(tables, column, ids, by_position=by_position, engine=engine)
    counts = _counted(tables[0], column), _counted(tables[1], column)
    few = [table.with_rows(own.select(column)) for table, own in zip(tables, counts, strict=True)]
    typed = typed_columns(few[0], few[1], [column], text=[column])[:2]
    baseline_side, candidate_side = (
        _Side(
            replace(run, table=table),
            own[column],
            texts.frame.get_column(column).to_polars().cast(pl.String),
            int(own.filter(pl.col(column).is_null())[COUNT].sum()),
        )
        for run, table, own, texts in zip((baseline, candidate), tables, counts, typed, strict=True)
    )
    return baseline_side, candidate_side


def _filled(table: ExampleTable, other: ExampleTable, column: str, ids: Sequence[str]) -> ExampleTable:
    """Fill empty cells of a column by the other run, as of rows that only a file of labels supplied."""
    if column in (*table.unusable, *other.unusable):
        return table
    rows, others = (each.loaded().frame.to_polars() for each in (table, other))
    keys = [pl.col(name).cast(pl.String) for name in ids]
    known = others.select(*keys, pl.col(column).cast(pl.String).alias(COUNT)).drop_nulls().unique(ids)
    found = rows.select(keys).join(known, on=list(ids), how="left", maintain_order="left")[COUNT]
    values = rows[column].fill_null(found.cast(rows[column].dtype, strict=False))
    return table.loaded().with_rows(rows.with_columns(values.alias(column)))


def _counted(table: ExampleTable, column: str) -> pl.DataFrame:
    """Count the rows of each value of a column."""
    counts = table.value_counts(column, _COUNTED)
    if counts is None:
        raise InputTypeError(
            unusable(table, column) or f"column `{column}` of `{table.origin}` holds lists",
            hint="a column of slices has text, integers or booleans.",
        )
    return counts
