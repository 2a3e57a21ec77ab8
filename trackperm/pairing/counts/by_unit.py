"""Counts of two runs by exchangeable unit, with a column for every stratum or class."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import InputError
from trackperm.pairing.counts.classes import KIND, ClassCounts
from trackperm.pairing.counts.counting import MAX_CELLS, spread, summed
from trackperm.pairing.counts.paired_counts import PairedCounts
from trackperm.pairing.counts.repeats import ADDED, combined
from trackperm.pairing.engines.base import Frame
from trackperm.pairing.joined import KEY, JoinedRows
from trackperm.statistic import Statistic

_UNIT = "unit"

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CountsByUnit:
    """Counts of both runs on every unit, in the order of the statistic's total names.

    Attributes
    ----------
    candidate, baseline : ndarray of int64, shape (K, p)
        Counts of the two runs: K distinct rows of p counts.
    rows : ndarray of int64, shape (N,)
        Index into these K rows for each of N units, which are ordered by name.
    """

    candidate: Integers
    baseline: Integers
    rows: Integers

    @classmethod
    def of(cls, counts: PairedCounts, strata: pl.Series | None, statistic: Statistic) -> CountsByUnit:
        """Build from counts without classes, which have a row for every unit and each of its strata.

        Raises
        ------
        InputError
            If the counts of all units in all strata would not fit in memory.
        """
        ids = counts.frame.get_column("id")
        sides = [
            counts.frame.select(f"{run}.{name}" for name in counts.names).to_numpy().astype(np.int64)
            for run in ("candidate", "baseline")
        ]
        if strata is None:
            return cls(sides[0], sides[1], np.arange(len(ids)))
        first = np.flatnonzero(np.append(True, (ids != ids.shift(1)).to_numpy()[1:]))
        units = np.repeat(np.arange(first.size), np.diff(np.append(first, len(ids))))
        place = {name: i for i, name in enumerate(statistic.weights)}
        at = np.array([place[name] for name in strata.to_list()], dtype=np.int64)
        shape = first.size, len(place), len(counts.names)
        if 2 * math.prod(shape) > MAX_CELLS:
            raise InputError(f"{shape[0]} units in {shape[1]} strata are too many", hint="use fewer strata.")
        candidate, baseline = (spread(side, units, at, shape) for side in sides)
        return cls(candidate, baseline, np.arange(first.size))

    @classmethod
    def of_classes(cls, candidate: Integers, baseline: Integers, kinds: Integers) -> CountsByUnit:
        """Build from the counts of every class on each kind, shape (K, C, p), and the kind of every unit."""
        sides = [side.reshape(len(side), -1) for side in (candidate, baseline)]
        return cls(sides[0], sides[1], kinds)


def by_unit(
    rows: JoinedRows,
    frame: Frame,
    statistic: Statistic,
    by_class: ClassCounts | None,
) -> tuple[Frame, Statistic, ClassCounts | None]:
    """Combine the counts of each cluster, or of the rows of an example, into one row for each of its strata.

    It returns rows with ``id``, the stratum where there are strata, and the counts; the statistic with the
    units of the counts; and the counts of every class on the same rows.
    """
    engine, columns, f = rows.engine, rows.columns, rows.functions
    has_strata = columns.strata is not None
    if columns.cluster is not None:
        frame = frame.with_columns(rows.example(columns.cluster).alias(_UNIT))
    else:
        frame = frame.with_columns(f.col(KEY).alias(_UNIT))
    if columns.repeats not in (None, *ADDED):
        units = frame.select(KEY, _UNIT).unique()
        frame, statistic = combined(rows, frame, statistic, strata=has_strata)
        frame = frame.join(units, on=KEY, how="left")
        if columns.cluster is None:
            return frame.with_columns(f.col(KEY).alias("id")), statistic, by_class
    if by_class is None:
        return summed(engine, frame, _UNIT, statistic, strata=has_strata), statistic, None
    if not engine.is_local:
        n_units = int(engine.collected(frame.select(f.col(_UNIT).n_unique())).item())
        by_class.require_few_units(n_units)
    sizes = frame.group_by(_UNIT, KIND).agg(f.len().cast(f.Int64).alias("n"))
    of_units = engine.collected(sizes).sort(_UNIT, KIND)
    numbers = np.unique(of_units[_UNIT].to_numpy(), return_inverse=True)[1]
    by_class = by_class.summed(numbers, of_units[KIND].to_numpy(), of_units["n"].to_numpy())
    pooled = by_class.pooled().drop(KIND).with_columns(of_units[_UNIT].unique().sort().alias("id"))
    return engine.local(pooled), statistic, by_class
