"""What looks wrong in a pairing that nothing disproves: hints for the eye, found by rules of thumb.

A join that pairs the wrong rows makes two runs look independent of each other, which predictions on the same
inputs hardly ever are. None of this refuses anything or changes a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import polars as pl

from trackperm.errors import InputTypeError
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.keyed_run import KeyedRun
from trackperm.tables.column_names import names_categories
from trackperm.tables.column_types import LISTS, ColumnType, typed_columns
from trackperm.tables.table import ExampleTable, id_columns

ENOUGH = 50  # examples, below which chance explains nearly everything
CHANCE = 0.1  # agreement up to which rows look unrelated
POWER = 30.0  # standard errors by which full agreement has to differ from none: a tenth of it is three
N_SAMPLED = 2**18
"""Examples that a look at how far columns agree needs at most."""
_SHIFTS = (1, -1, 2, -2, 3, -3)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What suspicions are drawn from: that of some examples and of those that follow adds up to that of all.

    Attributes
    ----------
    n : int
        Number of examples.
    same : bool
        Whether all that the statistic reads of each run is the same in both.
    perfect : tuple of (str, int, str)
        Column, number and name of a run that has the label in it on every example.
    shifts : mapping of str to (float, float, float)
        Of columns of decimals, the first, the least and the greatest difference between the runs.
    samples : (DataFrame, DataFrame)
        What the statistic reads of each run, on some of the examples or all.
    inputs : tuple of str
        What inputs give to suspect.
    """

    n: int
    same: bool
    perfect: tuple[tuple[str, int, str], ...]
    shifts: Mapping[str, tuple[float, float, float]]
    samples: tuple[pl.DataFrame, pl.DataFrame]
    inputs: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        paired: tuple[KeyedRun, KeyedRun],
        columns: PairedColumns,
        types: Mapping[str, ColumnType],
        *,
        every: int = 1,
        start: int = 0,
    ) -> Evidence:
        """Look at runs that are row by row the same examples.

        Parameters
        ----------
        paired : (KeyedRun, KeyedRun)
            Baseline and candidate.
        columns : PairedColumns
            Which columns the statistic reads.
        types : mapping of str to ColumnType
            Of all columns.
        every : int
            Which examples are samples: those whose number is a multiple of it.
        start : int
            Number of the first example of `paired`.
        """
        frames = [pl.DataFrame(run.frame.to_native()) for run in paired]
        names = list(columns.of_runs)
        read = [frame.select(names) for frame in frames]
        shifts = {}
        for name in names:
            if types[name] is ColumnType.DECIMAL:
                difference = (read[1][name] - read[0][name]).drop_nulls()
                if len(difference):
                    values = difference.first(), difference.min(), difference.max()
                    shifts[name] = cast("tuple[float, float, float]", values)
        return cls(
            len(frames[0]),
            read[0].equals(read[1]),
            tuple(_perfect(frames, paired, columns)),
            shifts,
            (read[0][-start % every :: every], read[1][-start % every :: every]),
            tuple(_inputs(frames[0], columns)),
        )

    def __add__(self, later: Evidence) -> Evidence:
        shifts = {**later.shifts, **self.shifts}
        for name in self.shifts.keys() & later.shifts.keys():
            (first, *own), (_, *others) = self.shifts[name], later.shifts[name]
            shifts[name] = first, min(own[0], others[0]), max(own[1], others[1])
        return Evidence(
            self.n + later.n,
            self.same and later.same,
            tuple(case for case in self.perfect if case in later.perfect),
            shifts,
            (
                pl.concat([self.samples[0], later.samples[0]]),
                pl.concat([self.samples[1], later.samples[1]]),
            ),
            (*self.inputs, *later.inputs),
        )


def sampled_every(baseline: ExampleTable, candidate: ExampleTable, columns: PairedColumns) -> int:
    """Return which examples are samples of two runs: some of very many, but all where neighbours matter."""
    if columns.id is None:
        return 1
    return max(1, max(len(baseline), len(candidate)) // N_SAMPLED)


def suspicions(found: Evidence, columns: PairedColumns, types: Mapping[str, ColumnType]) -> list[str]:
    """Say what in two runs on the same examples people should look at.

    Returns
    -------
    list of str
        Sentences that begin with ``look:``.
    """
    sentences = list(found.inputs)
    if found.n >= ENOUGH:
        names = columns.of_runs
        if found.same and names:
            sentences.append(f"{_listed(names)} are the same in both runs: is one a copy of the other?")
        else:
            for name in names:
                sentences += _column(name, found, columns, types)
            sentences += (
                f"`{name}` is `{columns.label}` on every example of `{origin}`: was it logged instead?"
                for name, _, origin in found.perfect
            )
    return [f"look: {sentence}" for sentence in sentences]


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
        if frame[name].dtype.is_numeric() or names_categories(name):  # counts, and hashes of answers
            continue
        repeated = int(frame[name].drop_nulls().is_duplicated().sum())
        if repeated and not columns.repeats and columns.cluster != name:
            yield shared_input(repeated, len(frame), name)


def shared_input(n_shared: int, n: int, column: str) -> str:
    """Say how many of n examples have the input of another, as `column` tells."""
    return f"{n_shared} of {n} examples share their `{column}` with another, and count apart"


def _perfect(
    frames: list[pl.DataFrame], paired: tuple[KeyedRun, KeyedRun], columns: PairedColumns
) -> Iterator[tuple[str, int, str]]:
    for i, (frame, run) in enumerate(zip(frames, paired, strict=True)):
        for name in columns.of_runs:
            label = columns.label
            if label is None or frame[name].dtype != frame[label].dtype:
                continue
            if frame[name].equals(frame[label]):
                yield name, i, run.origin


def _column(
    name: str, found: Evidence, columns: PairedColumns, types: Mapping[str, ColumnType]
) -> Iterator[str]:
    if name in found.shifts:
        first, least, greatest = found.shifts[name]
        if greatest - least <= 1e-9 * abs(first):
            yield f"`{name}` differs by {first:+g} on every example: is one a shifted copy?"
            return
    (baseline, candidate), type_ = (sample[name] for sample in found.samples), types[name]
    agreement = _agreement(baseline, candidate, type_)
    if agreement is None or agreement > CHANCE:
        return
    shifted = {shift: _agreement(baseline, candidate.shift(shift), type_) or 0.0 for shift in _SHIFTS}
    best = max(shifted, key=lambda shift: shifted[shift])
    if columns.id is None and shifted[best] > 3 * CHANCE:
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
    if n < ENOUGH or (type_ is ColumnType.TEXT and not is_nominal):
        return None
    if not is_nominal:
        correlation = frame.select(pl.all().rank("average")).select(pl.corr("a", "b")).item()
        usable = correlation is not None and math.isfinite(correlation) and math.sqrt(n) > POWER
        return float(correlation) if usable else None
    shares = [frame.group_by(side).len(f"n_{side}").rename({side: "value"}) for side in ("a", "b")]
    both = shares[0].join(shares[1], on="value").select(pl.col("n_a", "n_b").cast(pl.Float64) / n)
    chance = float((both["n_a"] * both["n_b"]).sum())
    largest = float(both.select(pl.min_horizontal("n_a", "n_b")).to_series().sum())
    spread = math.sqrt(chance * (1.0 - chance) / n)
    if largest - chance <= POWER * spread:
        return None
    return (float((frame["a"] == frame["b"]).sum()) / n - chance) / (largest - chance)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
