"""Counts of two runs on the examples that they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy.typing as npt

from trackperm.errors import InputError
from trackperm.exact.scores import scale_scores
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.refusals import shown
from trackperm.pairing.run import KEY, KeyedRun
from trackperm.statistic import OUT_OF_RANGE, Statistic, load_statistic
from trackperm.tables import ColumnType, PairedCounts


@dataclass(frozen=True, eq=False)
class ScaledCounts:
    """Counts of two runs as integers.

    Attributes
    ----------
    baseline, candidate : narwhals.DataFrame
        A column of int64 for every count.
    statistic : Statistic
        With the units of the counts.
    notes : tuple of str
        What decimals were taken as.
    """

    baseline: nw.DataFrame[Any]
    candidate: nw.DataFrame[Any]
    statistic: Statistic
    notes: tuple[str, ...]


def counted(run: KeyedRun, statistic: Statistic, types: Mapping[str, ColumnType]) -> nw.DataFrame[Any]:
    """Count the outcomes of one run by example, as int64, or float64 where they are decimals.

    Raises
    ------
    InputError
        If a count is undefined on an example or out of range.
    """
    expressions = statistic.counts(types)
    frame = run.frame.select(KEY, *(expressions[name].alias(name) for name in statistic.count_names))
    for name in statistic.count_names:
        values = frame.get_column(name)
        is_decimal = values.dtype.is_float()
        known = values.is_finite() if is_decimal else (values < OUT_OF_RANGE) & (values > -OUT_OF_RANGE)
        wrong = ~known.fill_null(False)
        if wrong.any():
            value, key = (frame.filter(wrong).get_column(column).head(1).item() for column in (name, KEY))
            if is_decimal:
                found, hint = "undefined or infinite", "decimal counts are finite numbers, on every example."
            else:
                found = "undefined or beyond 64 bits" if value in (None, OUT_OF_RANGE) else value
                hint = "counts are integers below 2^62 in magnitude, on every example."
            raise InputError(
                f"the count `{name}` of `{statistic.name}` is {found} on example {shown(key)} of"
                f" `{run.origin}`",
                hint=hint,
            )
    floats = {name for name in statistic.count_names if frame.schema[name].is_float()}
    return frame.select(
        nw.col(name).cast(nw.Float64 if name in floats else nw.Int64) for name in statistic.count_names
    )


def scaled(baseline: nw.DataFrame[Any], candidate: nw.DataFrame[Any], statistic: Statistic) -> ScaledCounts:
    """Bring decimal counts, and those whose unit the statistic names, to integers of one unit in both runs.

    Raises
    ------
    InputError
        If the resolution of a count is too fine, or so coarse that no difference is left.
    """
    named = statistic.resolution
    units: dict[str, Fraction] = {}
    notes = []
    for name in statistic.count_names:
        if isinstance(named, Fraction):
            unit = named if baseline.schema[name].is_float() else None
        else:
            unit = named.get(name)
        if unit is None and not baseline.schema[name].is_float():
            continue
        values = [run.get_column(name).to_numpy() for run in (candidate, baseline)]
        try:
            scores = scale_scores(values[0], values[1], unit, wide=False)
        except InputError as error:
            message = f"the count `{name}` of `{statistic.name}`: {error.message}"
            raise InputError(message, hint=error.hint) from None
        if unit is not None or scores.unit != 1:
            units[name] = scores.unit
        notes.append(f"`{name}`: {scores.note()}")
        candidate = candidate.with_columns(_integers(name, scores.candidate))
        baseline = baseline.with_columns(_integers(name, scores.baseline))
    if units != named:
        statistic = load_statistic(statistic, resolution=units)
    return ScaledCounts(baseline, candidate, statistic, tuple(notes))


def _integers(name: str, values: npt.NDArray[Any]) -> nw.Series[Any]:
    return nw.new_series(name, values, nw.Int64, backend="polars")


def paired_counts(
    keys: nw.Series[Any], baseline: nw.DataFrame[Any], candidate: nw.DataFrame[Any]
) -> PairedCounts:
    """Put the counts of two runs on the same examples side by side."""
    columns = [
        keys.alias("id").to_frame(),
        _prefixed(candidate, "candidate"),
        _prefixed(baseline, "baseline"),
    ]
    return PairedCounts(nw.concat(columns, how="horizontal"), tuple(baseline.columns))


def discordant_examples(
    baseline: KeyedRun,
    candidate: KeyedRun,
    counts: PairedCounts,
    columns: PairedColumns,
    statistic: Statistic,
) -> nw.DataFrame[Any]:
    """Select the examples whose counts differ, with what the statistic read of both runs."""
    shared = ["id"] if columns.label is None else ["id", "label"]
    own = [name for name in columns.used if name not in (columns.id, columns.label, *counts.names)]
    frames = [
        _prefixed(baseline.frame.select(own), "baseline"),
        _prefixed(candidate.frame.select(own), "candidate"),
        counts.frame,
    ]
    if columns.label is not None:
        frames.append(baseline.frame.get_column(columns.label).alias("label").to_frame())
    frame = nw.concat([frame for frame in frames if frame.columns], how="horizontal")
    names = [f"{run}.{name}" for name in (*own, *counts.names) for run in ("baseline", "candidate")]
    real = [
        _real(f"{run}.{name}", unit)
        for name, unit in _units(statistic).items()
        for run in ("baseline", "candidate")
    ]
    return frame.filter(counts.differ()).with_columns(*real).select(*shared, *names)


def _units(statistic: Statistic) -> Mapping[str, Fraction]:
    return {} if isinstance(statistic.resolution, Fraction) else statistic.resolution


def _real(name: str, unit: Fraction) -> nw.Expr:
    """Give integers of a unit as decimals, rounded once where floats hold both parts of it."""
    values = nw.col(name).cast(nw.Float64)
    if max(unit.numerator, unit.denominator) < 2**53:
        return values * float(unit.numerator) / float(unit.denominator)
    return values * float(unit)


def _prefixed(frame: nw.DataFrame[Any], run: str) -> nw.DataFrame[Any]:
    return frame.rename({name: f"{run}.{name}" for name in frame.columns})
