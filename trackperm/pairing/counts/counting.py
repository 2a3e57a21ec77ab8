"""Counts of two runs on their joined rows: their table, and the rows on which they differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, reduce
from operator import or_
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import InputError, UncountableError
from trackperm.exact import CountTable
from trackperm.messages import listed
from trackperm.pairing.checks.differences import shown
from trackperm.pairing.counts.decimal_columns import decimals_of_pair
from trackperm.pairing.counts.scaling import CountedRows, scaled
from trackperm.pairing.engines.base import Engine, Frame, Types
from trackperm.pairing.joined import (
    COLUMN_OF,
    KEY,
    SIDES,
    SIZE,
    JoinedRows,
    count_columns,
    count_of,
    of,
    real_of,
)
from trackperm.statistic import OUT_OF_RANGE, Outcome, Statistic
from trackperm.statistic.count_expressions import (
    computed_decimals,
    count_expressions,
    missing_count_expressions,
    with_counters_of,
)
from trackperm.statistic.counters.base import LabelCounts
from trackperm.statistic.definition import CLASS_COLUMN
from trackperm.statistic.expressions.frames import Decimals
from trackperm.statistic.expressions.functions import Functions
from trackperm.tables.columns.types import ColumnType

STRATUM = "stratum"

DIFFERS = "counts_differ"
"""Boolean column: whether any count of a row differs between the runs."""

MULTIPLICITY = "multiplicity"

_LARGEST = 2**62
_SMALL = 10**6
"""Magnitude up to which products of three numbers, or of their differences, are below 2^62."""

MAX_CELLS = 2**26
"""Most counts in a table of all units by all strata or classes: 512 MB of int64."""


def counted(
    rows: JoinedRows,
    frame: Frame,
    statistic: Statistic,
    types: Types,
    outcomes: tuple[Outcome, Outcome] | None,
    *,
    decimals: Mapping[str, Decimals] | None = None,
    units: Mapping[str, Fraction] | None = None,
    labels: LabelCounts | None = None,
) -> CountedRows:
    """Count the outcomes of both runs on `frame`, the rows that are counted.

    `types` has the columns that the counts read; `outcomes` replace missing predictions of baseline and
    candidate; `decimals`, the columns whose values are decimals, `units` and `labels` are known if `frame` is
    a part of the rows by which they were found. Decimals are found in both runs together, by default.

    Raises
    ------
    InputError
        If a count is undefined on an example or out of range, if the statistic does not define what a missing
        prediction counts, or if the resolution of a count is too fine, or so coarse that no difference is
        left.
    """
    frame, decimals = with_decimals(rows, frame, statistic, types, decimals)
    frame, reals = outcomes_of(rows, frame, statistic, types, outcomes, decimals, labels)
    if not reals and not statistic.resolution:
        return CountedRows(frame, statistic, (), decimals)
    if rows.engine.is_local:
        f = rows.functions
        columns = (f.col(count_of(SIDES[1], name)).alias(real_of(name)) for name in sorted(reals))
        frame = frame.with_columns(*columns)
    return replace(scaled(rows.engine, frame, statistic, reals, units), decimals=decimals)


def with_decimals(
    rows: JoinedRows,
    frame: Frame,
    statistic: Statistic,
    types: Types,
    decimals: Mapping[str, Decimals] | None = None,
) -> tuple[Frame, Mapping[str, Decimals]]:
    """Return the columns of both runs whose values are decimals, if they are not known, beside `frame`."""
    if decimals is not None:
        return frame, decimals
    computed = computed_decimals(statistic, types)
    if not computed:
        return frame, {}
    frame = rows.engine.kept(frame)
    return frame, decimals_of_pair(rows.engine, frame, computed)


def outcomes_of(
    rows: JoinedRows,
    frame: Frame,
    statistic: Statistic,
    types: Types,
    outcomes: tuple[Outcome, Outcome] | None,
    decimals: Mapping[str, Decimals],
    labels: LabelCounts | None = None,
) -> tuple[Frame, frozenset[str]]:
    """Count as :func:`counted` does, but do not scale decimals; also return the names of decimal counts.

    `decimals` are the columns whose values are decimals in all runs that are compared.
    """
    f, taken = rows.functions, (None, None) if outcomes is None else outcomes
    _require_ranges(rows, frame, statistic, types)
    # Types are checked before counters are called.
    expressions = {
        count_of(side, name): expression
        for side, outcome in zip(SIDES, taken, strict=True)
        for name, expression in _expressions(rows, statistic, types, decimals, side, outcome).items()
    }
    frame = with_counters(rows, frame, statistic, taken, labels or label_counts(rows, statistic))
    frame = frame.with_columns(expression.alias(name) for name, expression in expressions.items())
    frame = rows.engine.kept(frame)
    schema = frame.collect_schema()
    reals = frozenset(
        name
        for name in statistic.count_names
        if any(schema[count_of(side, name)].is_float() for side in SIDES)
    )
    _require_known(rows, frame, statistic, reals)
    frame = frame.with_columns(
        f.col(count_of(side, name)).cast(f.Float64 if name in reals else f.Int64)
        for side in SIDES
        for name in statistic.count_names
    )
    return frame, reals


def _expressions(
    rows: JoinedRows,
    statistic: Statistic,
    types: Types,
    decimals: Mapping[str, Decimals],
    side: str,
    outcome: Outcome | None,
) -> dict[str, nw.Expr]:
    """Return the expressions of the counts of one run; padding counts 0."""
    f = rows.functions
    expressions = count_expressions(statistic, types, COLUMN_OF[side], f, decimals)
    if outcome is not None:
        instead = missing_count_expressions(statistic, types, outcome, COLUMN_OF[side], f, decimals)
        expressions = {
            name: f.when(rows.present(side, rows.columns.of_runs)).then(expression).otherwise(instead[name])
            for name, expression in expressions.items()
        }
    if rows.columns.repeats:
        zero = f.lit(0, f.Int64)
        expressions = {
            name: f.when(rows.padding(side)).then(zero).otherwise(expression)
            for name, expression in expressions.items()
        }
    return expressions


def label_counts(rows: JoinedRows, statistic: Statistic) -> LabelCounts | None:
    """Count the examples in the test by label, if the statistic looks that up."""
    if not statistic.looks_up_labels:
        return None
    f, name = rows.functions, str(rows.columns.label)
    labels = rows.in_test.select(rows.example(name).alias("label"), SIZE)
    sizes = labels.group_by("label").agg(f.col(SIZE).sum().cast(f.Int64).alias("n"))
    found = rows.engine.collected(sizes).sort("label")
    return LabelCounts(name, found["label"], found["n"].to_numpy())


def with_counters(
    rows: JoinedRows,
    frame: Frame,
    statistic: Statistic,
    outcomes: Sequence[Outcome | None],
    labels: LabelCounts | None,
) -> Frame:
    """Add the columns of counters to both runs, which are computed in batches of rows.

    It raises InputError if a counter refuses an example.
    """
    if not statistic.has_counters:
        return frame
    counters = [
        _Counters(statistic, side, run.origin, outcome, rows.columns.names, rows.columns.of_runs, labels)
        for side, run, outcome in zip(SIDES, rows.runs, outcomes, strict=True)
    ]
    return rows.engine.mapped(frame, partial(_counted, counters=counters))


def _counted(batch: pl.DataFrame, counters: Sequence[_Counters]) -> pl.DataFrame:
    for each in counters:
        batch = batch.with_columns(each.count(batch))
    return batch


@dataclass(frozen=True)
class _Counters:
    """Counters of one run, as plain values that an engine can send to other processes.

    Attributes
    ----------
    side, origin : str
        The run's side, and its name in messages.
    outcome : Outcome or None
        Outcome that replaces missing predictions; None where they are not counted.
    names, of_runs : tuple of str
        Columns that were read, and columns that the statistic reads from each run.
    labels : LabelCounts or None
        Labels of the test, if counters look them up.
    """

    statistic: Statistic
    side: str
    origin: str
    outcome: Outcome | None
    names: tuple[str, ...]
    of_runs: tuple[str, ...]
    labels: LabelCounts | None

    def count(self, batch: pl.DataFrame) -> list[pl.Series]:
        """Return the counters of rows; rows without a prediction are counted as `outcome`."""
        own = batch.select(
            pl.col(of(self.side, name)).alias(name)
            for name in (*self.names, CLASS_COLUMN)
            if of(self.side, name) in batch.columns
        )
        if self.outcome is None:
            parts: list[tuple[pl.Series, Outcome | None]] = [(batch[KEY].is_not_null(), None)]
        else:
            has_value = [pl.col(name).is_not_null() for name in self.of_runs]
            is_there = batch[KEY].is_not_null()
            if has_value:
                is_there = is_there & own.select(pl.all_horizontal(has_value)).to_series()
            parts = [(is_there, None), (~is_there, self.outcome)]
        found: dict[str, pl.Series] = {}
        for chosen, missing in parts:
            where = chosen.arg_true()
            for series in self._of_part(own.filter(chosen), missing, batch[KEY].gather(where)):
                name = of(self.side, series.name)
                column = found.get(name, pl.Series(name, [None] * len(batch), dtype=series.dtype))
                found[name] = column.scatter(where, series)
        return list(found.values())

    def _of_part(self, part: pl.DataFrame, missing: Outcome | None, keys: pl.Series) -> list[pl.Series]:
        try:
            counted = with_counters_of(part, self.statistic, missing=missing, labels=self.labels)
        except UncountableError as error:
            raise InputError(
                f"`{self.statistic.name}` cannot be counted on example {shown(keys[error.row])} of"
                f" `{self.origin}`: {error.problem}",
                hint=error.hint,
            ) from None
        return counted.select(pl.exclude(part.columns)).get_columns()


def _require_ranges(rows: JoinedRows, frame: Frame, statistic: Statistic, types: Types) -> None:
    """Refuse values outside the ranges that the statistic declares."""
    f = rows.functions
    for name, (low, high) in statistic.ranges.items():
        column = statistic.columns[name]
        if types[column] not in (ColumnType.INTEGER, ColumnType.DECIMAL):
            continue  # booleans are 0 and 1, and text is refused with the counts that compute with it
        for side, run in zip(SIDES, rows.runs, strict=True):
            value = f.col(of(side, column)).cast(f.Float64)
            outside = ((value < float(low)) | (value > float(high))).fill_null(False)
            first = rows.first(outside, 1, of(side, column), frame=frame)
            if len(first):
                key, found = first.row(0)
                raise InputError(
                    f"`{column}` of `{run.origin}` is {found} on example {shown(key)}; `{statistic.name}`"
                    f" needs numbers from {low} to {high}",
                    hint=f"convert other scores, such as logits or percentages, first; `--column {name}=NAME`"
                    " names another column.",
                )


def _require_known(rows: JoinedRows, frame: Frame, statistic: Statistic, decimals: Iterable[str]) -> None:
    """Refuse counts that are undefined or out of range on an example."""
    f, wrong = rows.functions, {}
    for side in SIDES:
        for name in statistic.count_names:
            values = f.col(count_of(side, name))
            known = (
                values.is_finite() if name in decimals else (values < OUT_OF_RANGE) & (values > -OUT_OF_RANGE)
            )
            wrong[side, name] = ~known.fill_null(False)
    names = {f"n_{i}": condition for i, condition in enumerate(wrong.values())}
    found = rows.engine.collected(
        frame.select(condition.cast(f.Int64).sum().alias(name) for name, condition in names.items())
    )
    for (side, name), n in zip(wrong, found.row(0), strict=True):
        if not n:
            continue
        first = rows.first(wrong[side, name], 1, count_of(side, name), frame=frame)
        key, value = first.row(0)
        if name in decimals:
            said, hint = "undefined or infinite", "decimal counts must be finite on every example."
        else:
            said = "undefined or beyond 64 bits" if value in (None, OUT_OF_RANGE) else value
            hint = "counts must be integers below 2^62 in magnitude on every example"
            hint += _larger_unit(rows, frame, statistic)
        raise InputError(
            f"the count `{name}` of `{statistic.name}` is {said} on example {shown(key)} of"
            f" `{rows.runs[SIDES.index(side)].origin}`",
            hint=hint,
        )


def _larger_unit(rows: JoinedRows, frame: Frame, statistic: Statistic) -> str:
    """Return the end of the hint: a unit in which squares and products are small, if numbers are large."""
    f, numbers = rows.functions, (ColumnType.INTEGER, ColumnType.DECIMAL)
    columns = [name for name in statistic.used_columns if rows.types.get(name) in numbers]
    if not columns:
        return "."
    sizes = (f.col(of(side, name)).cast(f.Float64).abs().max() for side in SIDES for name in columns)
    found = rows.engine.collected(frame.select(size.alias(f"size_{i}") for i, size in enumerate(sizes)))
    largest, factor = max(filter(None, found.row(0)), default=0.0), 1
    while largest / factor > _SMALL:
        factor *= 10
    if factor == 1:
        return "."
    return (
        f". Divide {listed(columns)} by {factor:,} in both runs: p-values of errors, R^2 and correlations do"
        " not depend on the unit."
    )


def differ(f: Functions, statistic: Statistic) -> nw.Expr:
    """Whether any count differs between the runs."""
    sides = [[f.col(count_of(side, name)) for side in SIDES] for name in statistic.count_names]
    return reduce(or_, (candidate != baseline for baseline, candidate in sides))


def discordant_rows(
    rows: JoinedRows, frame: Frame, statistic: Statistic, *, has_values: bool
) -> pl.DataFrame:
    """Select the rows whose counts differ, ordered by id.

    Parameters
    ----------
    frame : narwhals.LazyFrame
        Rows with ``id``, the counts, :data:`DIFFERS`, and columns of both runs.
    has_values : bool
        Whether a row is one example, so that its columns can be shown.
    """
    columns, f, schema = rows.columns, rows.functions, frame.collect_schema()
    counts = {f"{side}.{name}": (side, name) for name in statistic.count_names for side in SIDES}
    selected = {"id": f.col("id")}
    if has_values and columns.label is not None:
        selected["label"] = rows.example(columns.label)
    if STRATUM in schema:
        selected[STRATUM] = f.col(STRATUM)
    if has_values:
        own = _names_beside_counts(columns.of_runs, statistic)
        selected |= {f"{side}.{own[name]}": f.col(of(side, name)) for name in own for side in SIDES}
    units = {} if isinstance(statistic.resolution, Fraction) else statistic.resolution
    for column, (side, name) in counts.items():
        count = f.col(count_of(side, name))
        if STRATUM in schema and statistic.pair_term is not None:
            selected[column] = _real_by_stratum(f, count, name, statistic, units)
        else:
            selected[column] = _real(f, count, units[name]) if name in units else count
    differing = frame.filter(f.col(DIFFERS)).sort("id", *([STRATUM] if STRATUM in schema else []))
    names = {f"shown_{i}": name for i, name in enumerate(selected)}
    found = rows.engine.collected(
        differing.select(value.alias(name) for name, value in zip(names, selected.values(), strict=True))
    )
    return found.rename(names)


def _names_beside_counts(columns: Sequence[str], statistic: Statistic) -> dict[str, str]:
    """Name each column of the runs that is shown beside the counts, by its role if a count has its name.

    A column whose values are the count of its name is left out.
    """
    counts, names = statistic.count_names, dict[str, str]()
    for column in columns:
        if column not in counts:
            names[column] = column
        elif statistic.column_of_count(column) != column:
            roles = (role for role, name in statistic.columns.items() if name == column)
            free = (role for role in roles if role not in (*columns, *counts))
            names[column] = next(free, f"{column} (column)")
    return names


def _real_by_stratum(
    f: Functions, count: nw.Expr, name: str, statistic: Statistic, units: Mapping[str, Fraction]
) -> nw.Expr:
    """Convert integers whose units are those of their strata to decimals."""
    values = f.lit(None, f.Float64)
    for stratum in statistic.weights:
        real = _real(f, count, units[f"{name}[{stratum}]"])
        values = f.when(f.col(STRATUM) == f.lit(stratum)).then(real).otherwise(values)
    return values


def _real(f: Functions, count: nw.Expr, unit: Fraction) -> nw.Expr:
    """Convert integer multiples of a unit to decimals, rounded once if floats hold the unit's two parts."""
    values = count.cast(f.Float64)
    if max(unit.numerator, unit.denominator) < 2**53:
        return values * float(unit.numerator) / float(unit.denominator)
    return values * float(unit)


def summed(engine: Engine, frame: Frame, unit: str, statistic: Statistic, *, strata: bool) -> Frame:
    """Add up the counts of each unit within each stratum.

    It returns a row for every unit and each of its strata: the unit as ``id``, :data:`STRATUM` where there
    are strata, and the counts. Sums that may reach 2^62 are refused.
    """
    f, columns = engine.functions, count_columns(statistic.count_names)
    frame = frame.select(f.col(unit).alias("id"), *([STRATUM] if strata else []), *columns)
    keys = ["id", STRATUM] if strata else ["id"]
    reach = engine.collected(frame.select(f.col(*columns).abs().max()))
    sizes = engine.collected(frame.group_by(keys).agg(f.len().alias("n")).select(f.col("n").max()))
    require_small_sums(max(map(int, reach.row(0))), int(sizes.item()), statistic)
    sums = frame.group_by(keys).agg(f.col(column).sum().alias(column) for column in columns)
    return engine.kept(sums.with_columns(f.col(*columns).cast(f.Int64), f.lit(1, f.Int64).alias(SIZE)))


def require_small_sums(largest: int, n: int, statistic: Statistic) -> None:
    """Refuse sums of `n` counts of at most `largest` if they may reach 2^62."""
    if largest * n >= _LARGEST:
        raise InputError(
            f"the counts of `{statistic.name}` may add up to 2^62 and more",
            hint="`resolution` in the file of the statistic sets a larger unit.",
        )


def count_table(
    engine: Engine, frame: Frame, statistic: Statistic, *, strata: bool, units: bool
) -> CountTable:
    """Group units with equal counts; each stratum has its own columns of counts.

    `frame` has ``id``, the counts, their multiplicity, and :data:`STRATUM` where there are strata; `units`
    states that an id may be in several strata. Counts of all rows in all strata that would not fit in memory
    are refused.
    """
    f, columns = engine.functions, count_columns(statistic.count_names)
    p = len(statistic.count_names)
    if not strata:
        groups = with_multiplicity(engine, frame, columns)
        values = np.ascontiguousarray(groups.select(columns).to_numpy(), dtype=np.int64)
        sizes = groups[MULTIPLICITY].to_numpy()
        return CountTable.from_counts(statistic.count_names, values[:, :p], values[:, p:], sizes)
    alone, n_spanning = frame, 0
    several = pl.DataFrame(schema={"id": pl.Int64, **dict.fromkeys([STRATUM, *columns], pl.Int64)})
    if units:
        spanning = frame.group_by("id").agg(f.len().alias("n")).filter(f.col("n") > 1).select("id")
        alone = frame.join(spanning, on="id", how="anti")
        n_spanning = int(engine.collected(spanning.select(f.len())).item())
    groups = with_multiplicity(engine, alone, [STRATUM, *columns])
    n_units, n_strata = len(groups) + n_spanning, len(statistic.weights)
    if n_units * n_strata * len(columns) > MAX_CELLS:
        raise InputError(
            f"{n_units:,} rows of counts in {n_strata} strata are too many", hint="use fewer strata."
        )
    if n_spanning:
        several = engine.collected(frame.join(spanning, on="id", how="semi").sort("id", STRATUM))
    return _over_strata(groups, several, statistic)


def with_multiplicity(engine: Engine, frame: Frame, columns: Sequence[str]) -> pl.DataFrame:
    """Return the distinct values of columns with the number of units that have them, ordered."""
    f = engine.functions
    groups = frame.group_by(columns).agg(f.col(SIZE).sum().cast(f.Int64).alias(MULTIPLICITY))
    return engine.collected(groups).sort(columns)


def _over_strata(alone: pl.DataFrame, several: pl.DataFrame, statistic: Statistic) -> CountTable:
    """Combine grouped units that are in one stratum with the rows of units that are in several strata."""
    columns, p = count_columns(statistic.count_names), len(statistic.count_names)
    units = np.unique(several["id"].to_numpy(), return_inverse=True)[1]
    n_alone, n_units = len(alone), len(alone) + int(units.max(initial=-1)) + 1
    rows = np.concatenate([np.arange(n_alone), n_alone + units])
    parts = [frame.select(STRATUM, *columns) for frame in (alone, several) if len(frame)]
    values = pl.concat(parts)
    multiplicities = np.concatenate(
        [alone[MULTIPLICITY].to_numpy(), np.ones(n_units - n_alone, dtype=np.int64)]
    )
    names = list(statistic.weights)
    place = {name: i for i, name in enumerate(names)}
    at = np.array([place[name] for name in values[STRATUM].to_list()], dtype=np.int64)
    candidate, baseline = (
        spread(values.select(part).to_numpy(), rows, at, (n_units, len(names), p))
        for part in (columns[:p], columns[p:])
    )
    return CountTable.from_counts(statistic.total_names, candidate, baseline, multiplicities)


def spread(
    values: npt.NDArray[Any], rows: npt.NDArray[Any], strata: npt.NDArray[Any], shape: Sequence[int]
) -> npt.NDArray[np.int64]:
    """Arrange counts of rows by unit and stratum, with zeros elsewhere; shape (units, strata * counts)."""
    table = np.zeros(shape, dtype=np.int64)
    table[rows, strata] = values
    return table.reshape(shape[0], -1)
