r"""Bootstrap intervals: approximate ones for statistics without an exact interval.

A resample of N examples with replacement is a table of how often each distinct pair of counts is drawn,
Multinomial(N, c / N), so its cost depends on the number of distinct rows, not on N. BCa (Efron 1987) corrects
percentiles for bias and for a standard error that changes with the statistic,

    level' = Phi(z0 + (z0 + z) / (1 - a (z0 + z))),    z = Phi^-1(level),

with z0 from the share of resamples below the statistic, those equal to it counted half, and a from the
jackknife over examples, with a row of multiplicity c_k counted c_k times. Strata are resampled separately, so
none is empty (Davison and Hinkley 1997, section 3.2 and eq. 5.29).

References
----------
B. Efron (1987), "Better bootstrap confidence intervals", Journal of the American Statistical Association 82.
A. C. Davison and D. V. Hinkley (1997), "Bootstrap methods and their application".
T. J. DiCiccio and B. Efron (1996), "Bootstrap confidence intervals", Statistical Science 11.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr, ndtri

from trackperm.choices import Alternative
from trackperm.errors import InputError, UndefinedStatisticError
from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.engines.lattice.statistic import Statistic, values_at
from trackperm.exact.intervals.interval import Interval, tail_level
from trackperm.exact.types import IntArray

N_RESAMPLES = 10_000
"""Default number of resamples: a level of 2.5 % then has a simulation error of 0.16 %."""

BLOCK_CELLS = 2**20
"""Multiplicities per step: 8 MiB."""

BCA_NOTE = "approximate, from resampled examples; it may disagree with the p-value"


def bootstrap_interval(
    rows: IntArray,
    h: Statistic,
    *,
    multiplicities: IntArray,
    strata: IntArray | None = None,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Return the BCa interval of a statistic of sums of counts (Efron 1987; DiCiccio and Efron 1996).

    Parameters
    ----------
    rows : ndarray of int, shape (K, m)
        Counts of distinct examples, or of distinct clusters of examples, which are then resampled as a whole.
    h : RationalStatistic, RealStatistic or callable
        Statistic of their sums.
    multiplicities : ndarray of int64, shape (K,)
        Number of examples of each row.
    strata : ndarray of int, shape (K,), optional
        Groups that are resampled separately, which keeps their sizes.
    alpha, alternative
        Approximate probability of missing; one-sided intervals are unbounded on the other side.
    n_resamples, seed : int
        Number of resamples, and their seed.

    Raises
    ------
    InputError
        If an option is out of range, there are fewer than 2 examples, or the statistic is undefined for a
        resample or without one of the examples.
    """
    tau = tail_level(alpha, alternative)
    n_examples = int(multiplicities.sum())
    for name, value, least in (("n_resamples", n_resamples, 100), ("seed", seed, 0)):
        if value < least:
            raise InputError(f"`{name}` is {value}; expected at least {least}")
    if n_examples < 2:
        raise UndefinedStatisticError("the bootstrap needs at least 2 examples")
    counts = rows.astype(np.float64)
    groups = (
        np.zeros(len(rows), dtype=np.int64) if strata is None else np.unique(strata, return_inverse=True)[1]
    )
    totals = multiplicities.astype(np.float64) @ counts
    estimate = float(_values(h, totals[None], "the examples as they are")[0])
    resampled = np.sort(_resampled(counts, h, multiplicities, groups, n_resamples, seed))
    # The only example of a stratum cannot be omitted, and does not contribute to the variance.
    sizes = np.bincount(groups, weights=multiplicities)[groups]
    without = np.full(len(rows), estimate)
    without[sizes > 1] = _values(h, (totals - counts)[sizes > 1], "the examples without one of them")
    levels = bca_levels(resampled, estimate, without, multiplicities, tau, groups)
    # Order statistics of n draws: rank (n + 1) level, rounded outwards.
    first = min(max(math.floor((n_resamples + 1) * levels[0]), 1), n_resamples)
    last = min(max(math.ceil((n_resamples + 1) * levels[1]), 1), n_resamples)
    low = -math.inf if alternative == "less" else float(resampled[first - 1])
    high = math.inf if alternative == "greater" else float(resampled[last - 1])
    return Interval(low, high, alpha, alternative, "bootstrap BCa", "may disagree", BCA_NOTE)


def bca_levels(
    resampled: FloatArray,
    estimate: float,
    without: FloatArray,
    multiplicities: IntArray,
    tau: float,
    groups: IntArray | None = None,
) -> tuple[float, float]:
    """Return the levels of the percentiles that BCa uses in place of tau and 1 - tau.

    `resampled` and `estimate` are the statistic of the resamples and of the data, `without` that of the data
    without one example of each kind; `multiplicities` and `groups` are the number of examples and the stratum
    of each kind.
    """
    near = 1e-12 * max(1.0, abs(estimate))
    below = float((resampled < estimate - near).mean() + (np.abs(resampled - estimate) <= near).mean() / 2.0)
    rest = 0.5 / resampled.size
    bias = float(ndtri(min(max(below, rest), 1.0 - rest)))
    groups = np.zeros(without.size, dtype=np.int64) if groups is None else groups
    sizes = np.bincount(groups, weights=multiplicities)
    # The acceleration does not depend on the scale, and scaling by a power of two is exact.
    without = np.ldexp(without, -int(np.frexp(np.abs(without).max())[1]))
    means = np.bincount(groups, weights=multiplicities * without) / sizes
    # An example's influence, (n - 1) (mean - without), is divided by the size n of its stratum.
    pulls = (means[groups] - without) * (1.0 - 1.0 / sizes[groups])
    squares = float(multiplicities @ pulls**2)
    acceleration = float(multiplicities @ pulls**3) / (6.0 * squares**1.5) if squares > 0.0 else 0.0
    levels = []
    for z in (float(ndtri(tau)), -float(ndtri(tau))):
        scale = 1.0 - acceleration * (bias + z)
        # Beyond the pole of the correction the interval contains every resample.
        levels.append(float(ndtr(bias + (bias + z) / scale)) if scale > 0.0 else float(z > 0.0))
    return levels[0], levels[1]


def _resampled(
    counts: FloatArray, h: Statistic, multiplicities: IntArray, groups: IntArray, n_resamples: int, seed: int
) -> FloatArray:
    """Return the statistic of resamples, whose draws do not depend on the size of blocks."""
    members = [np.flatnonzero(groups == group) for group in range(int(groups.max()) + 1)]
    generators = [np.random.default_rng([seed, group]) for group in range(len(members))]
    found = []
    size = max(BLOCK_CELLS // counts.size, 1)
    for first in range(0, n_resamples, size):
        n_drawn = min(size, n_resamples - first)
        totals = np.zeros((n_drawn, counts.shape[1]))
        for rows, rng in zip(members, generators, strict=True):
            n = int(multiplicities[rows].sum())
            drawn = rng.multinomial(n, multiplicities[rows] / n, size=n_drawn)
            totals += drawn.astype(np.float64) @ counts[rows]
        found.append(_values(h, totals, "some resamples of the examples"))
    return np.concatenate(found)


def _values(h: Statistic, totals: FloatArray, where: str) -> FloatArray:
    values = values_at(h, totals)
    n_undefined = int((~np.isfinite(values)).sum())
    if n_undefined:
        raise UndefinedStatisticError(
            f"the statistic is undefined for {where}: {n_undefined} of {values.size}",
            hint="declare the value of 0/0 with `undefined`; a non-zero number over 0 has no value.",
        )
    return values
