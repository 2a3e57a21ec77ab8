"""What looks wrong in a pairing that nothing disproves: hints for the eye, found by rules of thumb.

A join that pairs the wrong rows makes two runs look independent of each other, which predictions on the same
inputs hardly ever are. None of this refuses anything or changes a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from trackperm.errors import InputTypeError
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.run import KeyedRun
from trackperm.tables import LISTS, ColumnType, ExampleTable, id_columns, typed_columns

_ENOUGH = 50  # examples, below which chance explains nearly everything
_CHANCE = 0.1  # agreement up to which rows look unrelated
_POWER = 30.0  # standard errors by which full agreement has to differ from none: a tenth of it is three
_SHIFTS = (1, -1, 2, -2, 3, -3)


def suspicions(
    paired: tuple[KeyedRun, KeyedRun], columns: PairedColumns, types: Mapping[str, ColumnType]
) -> list[str]:
    """Say what in two runs on the same examples people should look at.

    Parameters
    ----------
    paired : (KeyedRun, KeyedRun)
        Baseline and candidate, row by row the same examples.
    columns : PairedColumns
        Which columns the statistic reads.
    types : mapping of str to ColumnType
        Of all columns.

    Returns
    -------
    list of str
        Sentences that begin with ``look:``.
    """
    frames = [pl.DataFrame(run.frame.to_native()) for run in paired]
    found = list(_inputs(frames[0], columns))
    if len(frames[0]) >= _ENOUGH:
        found += list(_copies(frames, columns)) or [
            *(sentence for name in columns.of_runs for sentence in _column(name, frames, columns, types)),
            *_perfect(frames, paired, columns),
        ]
    return [f"look: {sentence}" for sentence in found]


def other_ids(baseline: ExampleTable, candidate: ExampleTable, id_: str) -> list[str]:
    """Say where runs that were paired by position have ids, and others in the same rows."""
    ids = id_columns(id_, (baseline, candidate))
    if any(name not in table.columns for table in (baseline, candidate) for name in ids):
        return []
    try:
        first, second, _ = typed_columns(baseline, candidate, ids, text=ids)
    except InputTypeError:
        return []
    differ = np.zeros(len(baseline), dtype=np.bool_)
    for name in ids:
        differ |= (first.frame[name] != second.frame[name]).fill_null(False).to_numpy()
    if not differ.any():
        return []
    row = int(differ.argmax())
    values = [", ".join(repr(table.frame[name][row]) for name in ids) for table in (first, second)]
    return [
        f"look: `{id_}` differs between the runs in {differ.sum()} of {len(differ)} rows, first in row {row}:"
        f" {values[0]} and {values[1]}: do the rows belong together?"
    ]


def _inputs(frame: pl.DataFrame, columns: PairedColumns) -> Iterator[str]:
    for name in columns.identity:
        if frame[name].dtype.is_numeric():  # counts, which are of many inputs alike
            continue
        repeated = int(frame[name].drop_nulls().is_duplicated().sum())
        if repeated and not columns.repeats:
            yield f"{repeated} of {len(frame)} examples share their `{name}` with another, and count apart"


def _copies(frames: list[pl.DataFrame], columns: PairedColumns) -> Iterator[str]:
    names = list(columns.of_runs)
    if names and frames[0].select(names).equals(frames[1].select(names)):
        yield f"{_listed(names)} are the same in both runs: is one a copy of the other?"


def _perfect(
    frames: list[pl.DataFrame], paired: tuple[KeyedRun, KeyedRun], columns: PairedColumns
) -> Iterator[str]:
    for frame, run in zip(frames, paired, strict=True):
        for name in columns.of_runs:
            label = columns.label
            if label is None or frame[name].dtype != frame[label].dtype:
                continue
            if frame[name].equals(frame[label]):
                yield f"`{name}` is `{label}` on every example of `{run.origin}`: was it logged instead?"


def _column(
    name: str, frames: list[pl.DataFrame], columns: PairedColumns, types: Mapping[str, ColumnType]
) -> Iterator[str]:
    (baseline, candidate), type_ = (frame[name] for frame in frames), types[name]
    if type_ is ColumnType.DECIMAL:
        difference = (candidate - baseline).drop_nulls().to_numpy()
        if len(difference) and np.ptp(difference) <= 1e-9 * abs(difference[0]):
            yield f"`{name}` differs by {difference[0]:+g} on every example: is one a shifted copy?"
            return
    agreement = _agreement(baseline, candidate, type_)
    if agreement is None or agreement > _CHANCE:
        return
    shifted = {shift: _agreement(baseline, candidate.shift(shift), type_) or 0.0 for shift in _SHIFTS}
    best = max(shifted, key=lambda shift: shifted[shift])
    if columns.id is None and shifted[best] > 3 * _CHANCE:
        yield f"`{name}` of the runs agrees if the candidate's rows move by {best:+d}: are they shifted?"
    else:
        yield f"`{name}` of the runs agrees no better than by chance: do the rows belong together?"


def _agreement(a: pl.Series, b: pl.Series, type_: ColumnType) -> float | None:
    """How far two columns agree: 0 as by chance, 1 as far as they can; None where that cannot be told.

    For numbers it is the rank correlation, else the share of equal values above that expected by chance, as a
    part of the largest there could be with these numbers of each value.
    """
    if type_ in LISTS:
        return None
    frame = pl.DataFrame([a.alias("a"), b.alias("b")]).drop_nulls()
    n = len(frame)
    is_nominal = type_ is not ColumnType.DECIMAL and 2 * max(frame["a"].n_unique(), frame["b"].n_unique()) < n
    if n < _ENOUGH or (type_ is ColumnType.TEXT and not is_nominal):
        return None
    if not is_nominal:
        correlation = frame.select(pl.all().rank("average")).select(pl.corr("a", "b")).item()
        usable = correlation is not None and math.isfinite(correlation) and math.sqrt(n) > _POWER
        return float(correlation) if usable else None
    shares = [frame.group_by(side).len(f"n_{side}").rename({side: "value"}) for side in ("a", "b")]
    both = shares[0].join(shares[1], on="value").select(pl.col("n_a", "n_b").cast(pl.Float64) / n)
    chance = float((both["n_a"] * both["n_b"]).sum())
    largest = float(both.select(pl.min_horizontal("n_a", "n_b")).to_series().sum())
    spread = math.sqrt(chance * (1.0 - chance) / n)
    if largest - chance <= _POWER * spread:
        return None
    return (float((frame["a"] == frame["b"]).sum()) / n - chance) / (largest - chance)


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
