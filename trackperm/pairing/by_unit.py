"""Counts of two runs by exchangeable unit, with a column for every stratum or class."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import InputError
from trackperm.pairing.counting import MAX_CELLS, spread
from trackperm.pairing.paired_counts import PairedCounts
from trackperm.statistic import Statistic

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
