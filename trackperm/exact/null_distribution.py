"""Null distribution of a statistic, for plots and attainable p-values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from trackperm.choices import Alternative
from trackperm.exact.distributions.characteristic import UNIT, FloatArray, SwapDistribution
from trackperm.exact.distributions.pmf import BYTES_PER_CELL, LOG_WINDOW, lattice_pmf, open_mesh, plan_window
from trackperm.exact.engines.linear.bracket import rounded
from trackperm.exact.engines.linear.tails import LinearStatistic
from trackperm.exact.types import IntArray

NOISE = 64.0 * UNIT
"""Mass of a lattice point, relative to the largest, that may be a rounding error: a few times log2(P)
roundings, the error of a transform of P cells."""

DIGITS = 12
"""Significant digits, of the largest value, to which values are distinguished: three more may be rounding
errors of the statistic's formula."""

POINTS = 2**16
"""Points of a rounded distribution: far more than a plot shows, and transformed in milliseconds."""


@dataclass(frozen=True)
class NullDistribution:
    """Values of the statistic under fair swaps, with their probabilities.

    Attributes
    ----------
    values : ndarray of float64, shape (J,)
        Distinct values, ascending; values that agree to 12 digits of the largest are merged, and those whose
        probability is below the rounding errors (about 1e-14 of the largest) are left out.
    mass : ndarray of float64, shape (J,)
        Their probabilities.
    mass_error_bound : float
        Bound on the error of the mass of any set of values.
    value_error_bound : float
        Largest error of a value, except with probability 1e-20; above 0 only if values were rounded.
    """

    values: FloatArray
    mass: FloatArray
    mass_error_bound: float
    value_error_bound: float = 0.0

    def attainable_pvalues(self, alternative: Alternative = "two-sided") -> FloatArray:
        """Return the p-value of each of `values`, had it been observed; shape (J,)."""
        if alternative == "less":
            return np.minimum(np.cumsum(self.mass), 1.0)
        if alternative == "greater":
            return np.minimum(np.cumsum(self.mass[::-1])[::-1], 1.0)
        sizes = np.abs(self.values)
        order = np.argsort(-sizes, kind="stable")
        cumulated = np.minimum(np.cumsum(self.mass[order]), 1.0)
        # Values v and -v are equally extreme: both get the mass of both.
        groups = _groups(-sizes[order])
        last_of_size = np.searchsorted(groups, groups, side="right") - 1
        pvalues = np.empty_like(cumulated)
        pvalues[order] = cumulated[last_of_size]
        return pvalues

    def transformed(self, function: Callable[[FloatArray], FloatArray]) -> NullDistribution:
        """Return the distribution of a strictly increasing function of the values."""
        values, error = function(self.values), self.value_error_bound
        if error:
            moved = [np.abs(function(self.values + shift) - values) for shift in (-error, error)]
            error = float(np.nanmax(moved, initial=0.0))
        return NullDistribution(values, self.mass, self.mass_error_bound, error)


def null_distribution(
    law: SwapDistribution, values: Callable[[Sequence[IntArray]], FloatArray], memory_budget: int
) -> NullDistribution:
    """Compute the null distribution of a statistic on a window that holds all but 1e-20 of the mass.

    `values` is the statistic at lattice points, given as r broadcastable coordinate arrays. It raises
    CapacityError if the window does not fit `memory_budget` bytes.
    """
    if law.n_coins == 0:
        origin = [np.zeros(1, dtype=np.int64)] * law.rank
        return NullDistribution(np.atleast_1d(values(origin)), np.ones(1), 0.0)
    none = np.zeros(law.rank)
    window = plan_window(law, none, LOG_WINDOW, fast=True)
    pmf = lattice_pmf(law, none, window, memory_budget)
    found = values(open_mesh(window)).ravel()
    mass = pmf.mass.ravel()
    attained = np.isfinite(found) & (mass > NOISE * float(mass.max()))
    left_out = float(np.abs(mass[~attained]).sum())
    found, mass = found[attained], mass[attained]
    order = np.argsort(found, kind="stable")
    found, mass = found[order], mass[order]
    groups = _groups(found)
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    merged: FloatArray = np.bincount(groups, weights=mass).astype(np.float64)
    error = math.sqrt(window.size) * pmf.error_norm + 2.0 * math.exp(pmf.log_wrapped) + left_out
    return NullDistribution(found[first], merged, error)


def linear_distribution(statistic: LinearStatistic, memory_budget: int) -> NullDistribution:
    """Compute the null distribution of a linear statistic; rounded if it has too many points."""
    law = statistic.law
    if law.n_coins == 0:
        return NullDistribution(np.array([float(statistic.observed)]), np.ones(1), 0.0)
    spacing = max(law.width // POINTS, 1) if law.width > memory_budget // (4 * BYTES_PER_CELL) else 1
    if spacing == 1:
        return null_distribution(law.lattice(), lambda points: statistic.values(points[0]), memory_budget)
    rough, remainder_squares = rounded(law, spacing)
    # Rounding moves both the centre and the values about it.
    middle = float(statistic.value(0) + statistic.unit * law.total / 2)
    step = float(statistic.unit * spacing)

    def values(points: Sequence[IntArray]) -> FloatArray:
        return np.asarray(middle + step * (points[0] - rough.total / 2), dtype=np.float64)

    found = null_distribution(rough.lattice(), values, memory_budget)
    # rho^2 = squares (log 2 - LOG_WINDOW) / 2, rounded up to an integer.
    reach = math.isqrt(remainder_squares * math.ceil(32.0 * (math.log(2.0) - LOG_WINDOW)) // 64) + 1
    return NullDistribution(found.values, found.mass, found.mass_error_bound, float(statistic.unit * reach))


def _groups(ascending: FloatArray) -> IntArray:
    """Assign numbers to ascending values; those that agree to `DIGITS` of the largest share one."""
    scale = float(np.abs(ascending).max(initial=0.0))
    return np.cumsum(np.diff(ascending, prepend=ascending[:1]) > 10.0**-DIGITS * scale)
