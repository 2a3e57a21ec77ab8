"""The null distribution of a statistic, for plots, quantiles and attainable p-values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trackperm.exact.characteristic import UNIT, FloatArray, SwapSum
from trackperm.exact.lattice_statistic import LatticeStatistic
from trackperm.exact.pmf import LOG_WINDOW, lattice_pmf, open_mesh, plan_window

NOISE = 64.0 * UNIT
"""Mass of a lattice point, relative to the largest, that cannot be told from rounding errors."""

DIGITS = 12
"""Significant digits, of the largest value, to which values of the statistic are told apart."""


@dataclass(frozen=True)
class NullDistribution:
    """The statistic's values under fair swaps, with their probabilities.

    Attributes
    ----------
    values : ndarray of float64, shape (J,)
        Distinct values, ascending; values that agree to 12 digits of the largest are merged, and those whose
        probability is below the rounding errors (about 1e-14 of the largest) are left out.
    mass : ndarray of float64, shape (J,)
        Their probabilities.
    mass_error_bound : float
        Bound on the error of the mass of any set of values.
    """

    values: FloatArray
    mass: FloatArray
    mass_error_bound: float


def null_distribution(law: SwapSum, statistic: LatticeStatistic, memory_budget: int) -> NullDistribution:
    """Compute the null distribution of a statistic on a window that holds all but 1e-22 of the mass.

    Raises
    ------
    CapacityError
        If the window does not fit `memory_budget` bytes.
    """
    if law.n_coins == 0:
        return NullDistribution(np.array([statistic.observed]), np.ones(1), 0.0)
    none = np.zeros(law.rank)
    window = plan_window(law, [(none, LOG_WINDOW)])
    pmf = lattice_pmf(law, none, window, memory_budget)
    values = statistic.values(open_mesh(window)).ravel()
    mass = pmf.mass.ravel()
    attained = np.isfinite(values) & (mass > NOISE * float(mass.max()))
    left_out = float(np.abs(mass[~attained]).sum())
    values, mass = values[attained], mass[attained]
    scale = float(np.abs(values).max(initial=0.0)) or 1.0
    rounded = np.round(values / scale, DIGITS)
    _, first, inverse = np.unique(rounded, return_index=True, return_inverse=True)
    merged: FloatArray = np.bincount(inverse, weights=mass).astype(np.float64)
    error = math.sqrt(window.size) * pmf.error_norm + 2.0 * math.exp(pmf.log_wrapped) + left_out
    return NullDistribution(values[first], merged, error)
