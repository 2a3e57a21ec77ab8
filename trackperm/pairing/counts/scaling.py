"""Counts of two runs as integer multiples of a unit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import polars as pl

from trackperm.errors import InputError, LargeScoreError
from trackperm.exact.scores.scaling import scale_scores
from trackperm.pairing.checks.differences import shown
from trackperm.pairing.engines.base import Engine, Frame
from trackperm.pairing.joined import KEY, SIDES, count_of
from trackperm.statistic import Statistic, load_statistic
from trackperm.statistic.expressions.frames import Decimals

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
    decimals : mapping of str to Decimals
        Columns of both runs whose values are decimals, among those with which counts are computed.
    """

    frame: Frame
    statistic: Statistic
    notes: tuple[str, ...]
    decimals: Mapping[str, Decimals] = field(default_factory=dict)


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
        notes.append(f"`{statistic.column_of_count(name) or name}`: {note}")
    if units != named:
        statistic = load_statistic(statistic, resolution=units)
    return CountedRows(frame, statistic, tuple(notes))


def _with_integers(
    engine: Engine, frame: Frame, statistic: Statistic, name: str, unit: Fraction | None
) -> tuple[Frame, Fraction, str]:
    """Replace a count by integer multiples of one unit, found from the distinct pairs of values."""
    columns = [count_of(side, name) for side in reversed(SIDES)]
    pairs = engine.collected(frame.select(*columns).unique())
    candidate, baseline = (pairs[column].to_numpy() for column in columns)
    try:
        scores = scale_scores(candidate, baseline, unit, wide=False)
    except InputError as error:
        message = f"the count `{name}` of `{statistic.name}`: {error.message}"
        if isinstance(error, LargeScoreError):
            largest = max(float(abs(own).max()) for own in (candidate, baseline))
            message += f" (example {_example_of_largest(engine, frame, columns, largest)})"
        raise type(error)(message, hint=error.hint) from None
    values = pl.concat([pairs[column].alias("value") for column in columns])
    integers = pl.concat(
        [pl.Series("integer", each, pl.Int64) for each in (scores.candidate, scores.baseline)]
    )
    table = pl.DataFrame([values, integers]).unique("value")
    return _replaced(engine, frame, columns, table), scores.unit, scores.note()


def _example_of_largest(engine: Engine, frame: Frame, columns: Sequence[str], largest: float) -> str:
    """Return the first example with a score of the largest magnitude."""
    f = engine.functions
    size = f.max_horizontal(*(f.col(column).abs() for column in columns))
    found = engine.collected(frame.filter(size >= largest).select(KEY).sort(KEY).head(1))
    return shown(found[KEY][0])


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
