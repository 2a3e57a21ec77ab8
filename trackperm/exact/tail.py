"""The probability of the values at least as extreme as the observed one, by the engine that fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from trackperm.errors import CapacityError
from trackperm.exact.characteristic import FloatArray, SwapSum
from trackperm.exact.grid import grid_tail
from trackperm.exact.lattice_statistic import LatticeStatistic
from trackperm.exact.plane import plane_tail
from trackperm.exact.region import Region
from trackperm.exact.tilt import TailMass, dominating_tilt, quantised

WANTED = 1e-10
"""Relative error of a tilted tail above which other ways are tried too."""


def region_tail(
    law: SwapSum,
    statistic: LatticeStatistic,
    threshold: float,
    region: Callable[[Sequence[int]], Region],
    *,
    upper: bool,
    memory_budget: int,
) -> TailMass:
    """Return P(X in R) for the lattice points R where the statistic is at least, or at most, `threshold`.

    Parameters
    ----------
    law : SwapSum
        The law of X.
    statistic : LatticeStatistic
        The statistic, for the search of the dominating point.
    threshold : float
        The statistic's value on the boundary of R.
    region : callable
        Gives R, made for questions near a lattice point.
    upper : bool
        Whether R is where the statistic is at least `threshold`.
    memory_budget : int
        Bytes that may be allocated.

    Raises
    ------
    CapacityError
        If the window does not fit.
    InputError
        If the statistic is undefined at points that swaps can reach.
    """
    none = np.zeros(law.rank)
    side = 1.0 if upper else -1.0

    def excess(centred: FloatArray) -> float:
        point = centred + np.array([float(e) / 2 for e in law.total])
        value = float(statistic.values([np.array([x]) for x in point])[0])
        return side * (value - threshold) if math.isfinite(value) else -math.inf

    tilt = quantised(dominating_tilt(law, excess)) if excess(none) < 0 else none

    attempts: list[Callable[[], TailMass | None]] = [lambda: grid_tail(law, none, region, memory_budget)]
    if tilt.any():
        attempts.insert(0, lambda: grid_tail(law, tilt, region, memory_budget))
    if law.rank == 2:
        attempts.insert(0, lambda: plane_tail(law, tilt, region, memory_budget))
    found: list[TailMass] = []
    refusals: list[CapacityError] = []
    for attempt in attempts:
        try:
            tail = attempt()
        except CapacityError as refusal:
            refusals.append(refusal)
            continue
        if tail is not None:
            found.append(tail)
            if tail.error <= WANTED:
                break
    if not found:
        raise refusals[-1]
    return min(found, key=lambda tail: (tail.error, tail.log))
