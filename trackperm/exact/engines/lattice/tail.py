"""Probability of values at least as extreme as the observed one, by the first engine that fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from trackperm.errors import CapacityError
from trackperm.exact.distributions.characteristic import FloatArray, SwapDistribution
from trackperm.exact.distributions.tilt import EMPTY, TailMass, dominating_tilt, quantised, scale_factor
from trackperm.exact.engines.lattice.grid import grid_tail
from trackperm.exact.engines.lattice.lattice import Reach
from trackperm.exact.engines.lattice.plane import rows_tail
from trackperm.exact.engines.lattice.row_direction import ROW_RANKS
from trackperm.exact.engines.lattice.statistic import LatticeStatistic
from trackperm.exact.types import Region

WANTED = 1e-10
"""Largest relative error of a tail that ends the search for a better one: a p-value's shown digits."""

LOG_MILD = -6.0
"""Expected logarithm above which a tail needs no tilt: the weights then magnify roundings 400 times at the
most."""

LOG_UNKNOWN = -24.0
"""Expected logarithm of a tail without a dominating point, such as a quadratic form's."""

ROUNDS = 6
"""Largest number of times that a tail is computed, each with a better guess of its size."""

LOG_CLOSER = -6.0
"""Added to the tail's logarithm for the next round, so that less is omitted and tilts are closer."""


def region_tail(
    law: SwapDistribution,
    statistic: LatticeStatistic,
    threshold: float,
    region: Callable[[Sequence[int]], Region],
    *,
    upper: bool,
    memory_budget: int,
) -> TailMass:
    """Return P(X in R), with R the lattice points at least (`upper`), or at most, at a threshold.

    Parameters
    ----------
    law, statistic
        Distribution of X; the statistic, for the search of the dominating point.
    threshold : float
        Value of the statistic on the boundary of R.
    region : callable
        Function of a lattice point that returns R, prepared for points near it.
    upper, memory_budget
        Side of R; bytes that may be allocated.

    Raises
    ------
    CapacityError
        If the window does not fit.
    InputError
        If the statistic is undefined at points that swaps can reach.
    """
    middle = np.array([float(e) / 2 for e in law.total])
    side = 1.0 if upper else -1.0

    def excess(centred: FloatArray) -> float:
        value = float(statistic.values([np.array([x]) for x in centred + middle])[0])
        return side * (value - threshold) if math.isfinite(value) else -math.inf

    reach = Reach(law, statistic.histogram.origin, statistic.lattice.basis)
    first, first_log = _first_guess(law, excess)
    found: list[TailMass] = []
    refusals: list[CapacityError] = []
    for engine in [rows_tail, grid_tail] if law.rank in ROW_RANKS else [grid_tail]:
        log_tail = first_log
        for _ in range(ROUNDS):
            try:
                tail = engine(law, first, log_tail, region, reach, memory_budget)
            except CapacityError as refusal:
                refusals.append(refusal)
                break
            if tail.scaled == 0.0:
                return EMPTY
            found.append(tail)
            if tail.error <= WANTED:
                return tail
            # An upper bound alone tells little about the size, and every swap has probability 2^-n.
            closer = tail.log + LOG_CLOSER if tail.error < 1.0 else min(2.0 * log_tail, tail.log)
            closer = max(closer, -math.log(2.0) * law.n_coins + LOG_CLOSER)
            if abs(closer - log_tail) < 1.0:
                break
            log_tail = closer
    if not found:
        raise refusals[0]
    return min(found, key=lambda tail: (tail.error, tail.log))


def _first_guess(law: SwapDistribution, excess: Callable[[FloatArray], float]) -> tuple[FloatArray, float]:
    """Return a first tilt, and an estimate of the logarithm of P(excess >= 0).

    `excess` is a function of X - E/2, shape (r,). The tilt is zero if the tail is mild by a normal
    approximation with linear excess, or if no point dominates.
    """
    none = np.zeros(law.rank)
    at = excess(none)
    if at >= 0.0:
        return none, -1.0
    covariance = law.covariance(none)
    steps = np.diag(np.sqrt(np.diag(covariance)))
    gradient = np.array([(excess(step) - excess(-step)) / (2.0 * step.sum()) for step in steps])
    with np.errstate(over="ignore", invalid="ignore"):
        variance = float(gradient @ covariance @ gradient)
    if 0.0 < variance < math.inf and at * at <= -2.0 * (LOG_MILD + 1.0) * variance:
        return none, -1.0 - at * at / (2.0 * variance)
    tilt = quantised(dominating_tilt(law, excess))
    if not tilt.any():
        return none, LOG_UNKNOWN
    point = [round(x + float(e) / 2) for x, e in zip(law.centred_mean(tilt).tolist(), law.total, strict=True)]
    return tilt, scale_factor(law, tilt, point).log - 3.0
