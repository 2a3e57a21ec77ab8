"""Counts of two runs on their joined rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import narwhals as nw
import polars as pl

from trackperm.errors import InputError, UncountableError
from trackperm.exact.scores.scaling import scale_scores
from trackperm.pairing.checks.differences import shown
from trackperm.pairing.engines.base import Engine, Frame, Types
from trackperm.pairing.internal_names import internal
from trackperm.pairing.joined import COLUMN_OF, SIDES, JoinedRows, of
from trackperm.pairing.keyed_run import KEY
from trackperm.statistic import OUT_OF_RANGE, Outcome, Statistic, load_statistic
from trackperm.statistic.definition import CLASS_COLUMN

_INTEGER = "count_as_integer"


@dataclass(frozen=True, eq=False)
class CountedRows:
    """Rows of two runs with the counts of each, all integers.

    Attributes
    ----------
    frame : narwhals.LazyFrame
        The rows, with a column of int64, named by :func:`count_of`, for every count of both runs.
    statistic : Statistic
        The statistic, with the units of the counts.
    notes : tuple of str
        The units in which decimals were counted.
    """

    frame: Frame
    statistic: Statistic
    notes: tuple[str, ...]


def count_of(side: str, name: str) -> str:
    """Name the column of a run's count."""
    return internal("count", side, name)


def count_columns(names: Iterable[str]) -> list[str]:
    """Name the columns of all counts, those of the candidate first."""
    names = list(names)
    return [count_of(side, name) for side in reversed(SIDES) for name in names]


def counted(
    rows: JoinedRows,
    frame: Frame,
    statistic: Statistic,
    types: Types,
    outcomes: tuple[Outcome, Outcome] | None,
    *,
    units: Mapping[str, Fraction] | None = None,
) -> CountedRows:
    """Count the outcomes of both runs on `frame`, the rows that are counted.

    `types` has the columns that the counts read; `outcomes` replace missing predictions of baseline and
    candidate; `units` are known if `frame` is a part of the rows by which they were found.

    Raises
    ------
    InputError
        If a count is undefined on an example or out of range, if the statistic does not define what a missing
        prediction counts, or if the resolution of a count is too fine, or so coarse that no difference is
        left.
    """
    frame, decimals = outcomes_of(rows, frame, statistic, types, outcomes)
    return scaled(rows.engine, frame, statistic, decimals, units)


def outcomes_of(
    rows: JoinedRows,
    frame: Frame,
    statistic: Statistic,
    types: Types,
    outcomes: tuple[Outcome, Outcome] | None,
) -> tuple[Frame, frozenset[str]]:
    """Count as :func:`counted` does, but do not scale decimals; also return the names of decimal counts."""
    f, taken = rows.functions, (None, None) if outcomes is None else outcomes
    # Types are checked before counters are called.
    expressions = {
        count_of(side, name): expression
        for side, outcome in zip(SIDES, taken, strict=True)
        for name, expression in _expressions(rows, statistic, types, side, outcome).items()
    }
    frame = _with_counters(rows, frame, statistic, taken)
    frame = frame.with_columns(expression.alias(name) for name, expression in expressions.items())
    frame = rows.engine.kept(frame)
    schema = frame.collect_schema()
    decimals = frozenset(
        name
        for name in statistic.count_names
        if any(schema[count_of(side, name)].is_float() for side in SIDES)
    )
    _require_known(rows, frame, statistic, decimals)
    frame = frame.with_columns(
        f.col(count_of(side, name)).cast(f.Float64 if name in decimals else f.Int64)
        for side in SIDES
        for name in statistic.count_names
    )
    return frame, decimals


def _expressions(
    rows: JoinedRows, statistic: Statistic, types: Types, side: str, outcome: Outcome | None
) -> dict[str, nw.Expr]:
    """Return the expressions of the counts of one run; padding counts 0."""
    f = rows.functions
    expressions = statistic.counts(types, COLUMN_OF[side], f)
    if outcome is not None:
        instead = statistic.missing_counts(types, outcome, COLUMN_OF[side], f)
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


def _with_counters(
    rows: JoinedRows, frame: Frame, statistic: Statistic, outcomes: Sequence[Outcome | None]
) -> Frame:
    """Add the columns of counters, which are computed in batches of rows."""
    if not statistic.has_counters:
        return frame
    counters = [
        _Counters(statistic, side, run.origin, outcome, rows.columns.names, rows.columns.of_runs)
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
    """

    statistic: Statistic
    side: str
    origin: str
    outcome: Outcome | None
    names: tuple[str, ...]
    of_runs: tuple[str, ...]

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
            counted = self.statistic.with_counters(part, missing=missing)
        except UncountableError as error:
            raise InputError(
                f"`{self.statistic.name}` cannot be counted on example {shown(keys[error.row])} of"
                f" `{self.origin}`: {error.problem}",
                hint=error.hint,
            ) from None
        return counted.select(pl.exclude(part.columns)).get_columns()


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
            hint = "counts must be integers below 2^62 in magnitude on every example."
        raise InputError(
            f"the count `{name}` of `{statistic.name}` is {said} on example {shown(key)} of"
            f" `{rows.runs[SIDES.index(side)].origin}`",
            hint=hint,
        )


def scaled(
    engine: Engine,
    frame: Frame,
    statistic: Statistic,
    decimals: Iterable[str],
    known: Mapping[str, Fraction] | None = None,
) -> CountedRows:
    """Convert decimal counts, and counts whose unit the statistic names, to integer multiples of a unit."""
    if known is not None:
        for name, known_unit in known.items():
            frame = _in_unit(engine, frame, name, known_unit)
        return CountedRows(frame, statistic, ())
    named = statistic.resolution
    units: dict[str, Fraction] = {}
    notes = []
    for name in statistic.count_names:
        unit = (named if name in decimals else None) if isinstance(named, Fraction) else named.get(name)
        if unit is None and name not in decimals:
            continue
        frame, scaled_unit, note = _with_integers(engine, frame, statistic, name, unit)
        if unit is not None or scaled_unit != 1:
            units[name] = scaled_unit
        notes.append(f"`{name}`: {note}")
    if units != named:
        statistic = load_statistic(statistic, resolution=units)
    return CountedRows(frame, statistic, tuple(notes))


def _with_integers(
    engine: Engine, frame: Frame, statistic: Statistic, name: str, unit: Fraction | None
) -> tuple[Frame, Fraction, str]:
    """Replace a count by integer multiples of one unit, found from the distinct pairs of values."""
    columns = [count_of(side, name) for side in reversed(SIDES)]
    pairs = engine.collected(frame.select(*columns).unique())
    try:
        scores = scale_scores(pairs[columns[0]].to_numpy(), pairs[columns[1]].to_numpy(), unit, wide=False)
    except InputError as error:
        message = f"the count `{name}` of `{statistic.name}`: {error.message}"
        raise InputError(message, hint=error.hint) from None
    values = pl.concat([pairs[column].alias("value") for column in columns])
    integers = pl.concat(
        [pl.Series("integer", each, pl.Int64) for each in (scores.candidate, scores.baseline)]
    )
    table = pl.DataFrame([values, integers]).unique("value")
    return _replaced(engine, frame, columns, table), scores.unit, scores.note()


def _in_unit(engine: Engine, frame: Frame, name: str, unit: Fraction) -> Frame:
    """Replace a count by integer multiples of a unit; its values are multiples up to rounding."""
    columns = [count_of(side, name) for side in reversed(SIDES)]
    pairs = engine.collected(frame.select(*columns).unique())
    values = pl.concat([pairs[column].alias("value") for column in columns]).unique()
    integers = [round(Fraction(value) / unit) for value in values.to_list()]
    table = pl.DataFrame([values, pl.Series("integer", integers, pl.Int64)])
    return _replaced(engine, frame, columns, table)


def _replaced(engine: Engine, frame: Frame, columns: Sequence[str], table: pl.DataFrame) -> Frame:
    """Replace each value of columns by its integer, as a table of ``value`` and ``integer`` has it."""
    f, replacements = engine.functions, engine.local(table)
    for column in columns:
        renamed = replacements.select(f.col("value").alias(column), f.col("integer").alias(_INTEGER))
        frame = frame.join(renamed, on=column, how="left")
        frame = frame.with_columns(f.col(_INTEGER).alias(column)).drop(_INTEGER)
    return engine.kept(frame)


def by_distinct(
    engine: Engine, frame: Frame, names: Sequence[str], function: Callable[[pl.DataFrame], pl.DataFrame]
) -> Frame:
    """Add the columns that a function computes from the distinct values of `names`, which are not null."""
    distinct = engine.collected(frame.select(*names).unique().sort(*names))
    return frame.join(engine.local(function(distinct)), on=list(names), how="left")
