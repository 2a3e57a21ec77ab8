"""Probability of values at least as extreme as the observed one, by the first engine that fits."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence

import numpy as np

from trackperm.errors import CapacityError
from trackperm.exact.distributions.characteristic import FloatArray, SwapDistribution
from trackperm.exact.distributions.tilt import (
    EMPTY,
    Excess,
    TailMass,
    dominating_tilt,
    quantised,
    scale_factor,
)
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

LOG_MILD_IN_SPACE = -3.0
"""The same for more than two counts: the many rows of rank three have more roundings in all."""

LOG_UNKNOWN = -24.0
"""Expected logarithm of a tail without a dominating point, such as a quadratic form's."""

LOG_PLAIN = -12.0
"""Logarithm above which a tail is tried again without a tilt, if no sum under tilts was accurate.

Regions of several distant corners mislead the search for tilts. Without one, errors are about 1e-14 of 1:
1e-8 of such a tail at the most.
"""

ROUNDS = 6
"""Largest number of times that a tail is computed, each with a better guess of its size."""

LOG_CLOSER = -6.0
"""Added to the tail's logarithm for the next round, so that less is omitted and tilts are closer."""


def region_tail(
    law: SwapDistribution,
    statistic: LatticeStatistic,
    threshold: float,
    region: Region,
    *,
    upper: bool,
    memory_budget: int,
    log_floor: float = -math.inf,
) -> TailMass:
    """Return P(X in R), with R the lattice points at least (`upper`), or at most, at a threshold.

    Parameters
    ----------
    law, statistic
        Distribution of X; the statistic, for the search of the dominating point.
    threshold : float
        Value of the statistic on the boundary of R.
    region : Region
        R.
    upper, memory_budget
        Side of R; bytes that may be allocated.
    log_floor : float
        Logarithm of the smallest tail for which windows fit; of smaller ones, the result is an upper bound.

    Raises
    ------
    CapacityError
        If the window does not fit.
    InputError
        If the statistic is undefined at points that swaps can reach.
    """
    reach = Reach(law, statistic.histogram.origin, statistic.lattice.basis)
    refusals: list[CapacityError] = []
    middle = np.array([float(e) / 2 for e in law.total])
    side = 1.0 if upper else -1.0

    def excess(centred: FloatArray) -> FloatArray:
        values = statistic.values(list(np.moveaxis(centred + middle, -1, 0)))
        return np.where(np.isfinite(values), side * (values - threshold), -math.inf)

    point = np.array([x - float(e) / 2 for x, e in zip(statistic.observed_point, law.total, strict=True)])
    first, first_log = _first_guess(law, excess, point)
    first_log = max(first_log, log_floor)
    found: list[TailMass] = []
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
            if math.isinf(tail.log):
                break
            # An upper bound alone tells little about the size.
            closer = tail.log + LOG_CLOSER if tail.error < 1.0 else min(2.0 * log_tail, tail.log)
            closer = max(closer, least_log(law), log_floor)
            if abs(closer - log_tail) < 1.0:
                break
            log_tail = closer
    if not found:
        raise refusals[0]
    best = _most_accurate(found)
    if first.any() and best.log > LOG_PLAIN and best.error < 1.0:
        with contextlib.suppress(CapacityError):
            found.append(grid_tail(law, np.zeros(law.rank), best.log, region, reach, memory_budget))
    return _most_accurate(found)


def _most_accurate(tails: Sequence[TailMass]) -> TailMass:
    return min(tails, key=lambda tail: (tail.error, tail.log))


def least_log(law: SwapDistribution) -> float:
    """Return the logarithm of the smallest tail that is looked for: every swap has probability 2^-n."""
    return LOG_CLOSER - math.log(2.0) * law.n_coins


def _first_guess(law: SwapDistribution, excess: Excess, observed: FloatArray) -> tuple[FloatArray, float]:
    """Return a first tilt, and an estimate of the logarithm of P(excess >= 0).

    The tilt is zero if no point dominates, or if the tail is mild by a normal approximation: `observed`, a
    point on the boundary, is near the mean, or the boundary is.
    """
    none = np.zeros(law.rank)
    mild = LOG_MILD if law.rank <= 2 else LOG_MILD_IN_SPACE
    square = float(observed @ law.least_precision @ observed)
    if square <= -2.0 * (mild + 1.0):
        return none, -1.0 - square / 2.0
    covariance = law.fair_covariance
    steps = np.diag(np.sqrt(np.diag(covariance)))
    at, *around = excess(np.vstack([none, steps, -steps])).tolist()
    if at >= 0.0:
        return none, -1.0
    above, below = np.reshape(around, (2, -1))
    with np.errstate(over="ignore", invalid="ignore"):
        gradient = (above - below) / (2.0 * np.diag(steps))
        variance = float(gradient @ covariance @ gradient)
    if 0.0 < variance < math.inf and at * at <= -2.0 * (mild + 1.0) * variance:
        return none, -1.0 - at * at / (2.0 * variance)
    tilt = quantised(dominating_tilt(law, excess))
    if not tilt.any():
        return none, LOG_UNKNOWN
    point = [round(x + float(e) / 2) for x, e in zip(law.centred_mean(tilt).tolist(), law.total, strict=True)]
    return tilt, scale_factor(law, tilt, point).log - 3.0
