"""Counts of two runs on the examples that they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy.typing as npt

from trackperm.errors import InputError
from trackperm.exact.scores.scaling import scale_scores
from trackperm.pairing.checks.differences import shown
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.grouping import STRATUM
from trackperm.pairing.keyed_run import KEY, KeyedRun
from trackperm.pairing.paired_counts import PairedCounts
from trackperm.statistic import OUT_OF_RANGE, Outcome, Statistic, UncountableError, load_statistic


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


def counted(
    run: KeyedRun, statistic: Statistic, expressions: Mapping[str, nw.Expr], *, missing: Outcome | None = None
) -> nw.DataFrame[Any]:
    """Count the outcomes of one run by example, as int64, or float64 where they are decimals.

    Parameters
    ----------
    expressions : mapping of str to Expr
        Of every count: ``statistic.counts``, or with `missing` ``statistic.missing_counts``.

    Raises
    ------
    InputError
        If a count is undefined on an example or out of range.
    """
    try:
        columns = statistic.with_counters(run.frame, missing=missing)
    except UncountableError as error:
        key = run.frame.get_column(KEY)[error.row]
        raise InputError(
            f"`{statistic.name}` cannot be counted on example {shown(key)} of `{run.origin}`:"
            f" {error.problem}",
            hint=error.hint,
        ) from None
    frame = columns.select(KEY, *(expressions[name].alias(name) for name in statistic.count_names))
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


def read_columns(baseline: KeyedRun, candidate: KeyedRun, columns: PairedColumns) -> nw.DataFrame[Any]:
    """Put side by side what the statistic read of both runs, by example."""
    frame = nw.concat(
        [
            _prefixed(baseline.frame.select(KEY, *columns.of_runs), "baseline"),
            _prefixed(candidate.frame.select(KEY, *columns.of_runs), "candidate"),
        ],
        how="horizontal",
    )
    names = [f"{run}.{name}" for name in columns.of_runs for run in ("baseline", "candidate")]
    if columns.label is None:
        return frame.select(names)
    return frame.with_columns(baseline.frame.get_column(columns.label).alias("label")).select("label", *names)


def discordant_rows(
    counts: PairedCounts,
    differ: nw.Series[Any],
    strata: nw.Series[Any] | None,
    read: nw.DataFrame[Any] | None,
    statistic: Statistic,
) -> nw.DataFrame[Any]:
    """Select the rows that differ, with what the statistic read of both runs where that is given."""
    frame = counts.frame
    if strata is not None:
        frame = frame.with_columns(strata.alias(STRATUM))
    shared = [name for name in frame.columns if name in ("id", STRATUM)]
    own = [f"{run}.{name}" for name in counts.names for run in ("baseline", "candidate")]
    if read is not None and read.columns:
        names = [name for name in read.columns if name not in own]
        frame = nw.concat([frame, read.select(names)], how="horizontal")
        shared += [name for name in names if name == "label"]
        own = [*(name for name in names if name != "label"), *own]
    order = [name for name in ("id", "label", STRATUM) if name in shared]
    real = [
        _real(f"{run}.{name}", unit)
        for name, unit in _units(statistic).items()
        for run in ("baseline", "candidate")
    ]
    return frame.filter(differ).with_columns(*real).select(*order, *own)


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
