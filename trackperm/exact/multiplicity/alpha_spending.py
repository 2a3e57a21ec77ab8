"""Alpha spending: correction for an open-ended sequence of looks at one test set.

Look i is tested at alpha w_i with weights that add up to at most 1 over all i. By the union bound the
probability of any false rejection is then at most alpha, under any dependence and whenever the sequence stops
(Foster and Stine 2008; Tian and Ramdas 2021). The weights are w_i = 6 / (pi^2 i^2), with sum 1 over all i.

Hypotheses and their order have to be fixed without the test set. No weight corrects for a candidate that was
built or chosen because of earlier looks, or for looks that were not counted.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from trackperm.errors import InputError
from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.multiplicity.family import (
    LOG10,
    Correction,
    checked_log10_pvalues,
)
from trackperm.exact.options import checked_level

ALPHA_SPENDING = Correction(
    "alpha-spending",
    "alpha spending",
    "FWER",
    "any dependence, of hypotheses that are fixed beforehand; any number of looks",
    "Foster and Stine (2008); Tian and Ramdas (2021)",
)
"""Name of the correction, and the error rate that it controls."""


def spending_levels(n_looks: int, alpha: float = 0.05) -> FloatArray:
    """Return the level of each look in order; shape (n_looks,).

    Parameters
    ----------
    n_looks : int
        Number of looks so far; later ones do not change earlier levels.
    alpha : float
        Level that all looks, including future ones, share.

    Raises
    ------
    InputError
        If `alpha` is not between 0 and 1, or `n_looks` is negative.

    Examples
    --------
    >>> spending_levels(3).round(4).tolist()
    [0.0304, 0.0076, 0.0034]
    """
    if n_looks < 0:
        raise InputError(f"`n_looks` is {n_looks}; expected 0 or more")
    checked_level(alpha)
    return alpha / _factors(n_looks)


def adjust_spending_log10(log10_pvalues: npt.ArrayLike) -> FloatArray:
    """Return decimal logarithms of adjusted p-values, p_i / w_i, in the order of the looks; shape (m,).

    An adjusted p-value is below alpha exactly when its p-value is below the level of its look. Later looks do
    not change it. Logarithms that are NaN, infinite or above 0 are refused.
    """
    values = checked_log10_pvalues(log10_pvalues)
    return LOG10.capped(LOG10.times(values, _factors(values.size)))


def _factors(n_looks: int) -> FloatArray:
    """Return 1 / w_i = pi^2 i^2 / 6."""
    factors: FloatArray = math.pi**2 / 6.0 * np.arange(1, n_looks + 1, dtype=np.float64) ** 2
    return factors
