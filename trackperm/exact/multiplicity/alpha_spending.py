"""Many looks at one test set, of which nobody knows how many there will be: alpha is spent on them in order.

Look i is tested at alpha w_i with weights that add up to at most 1 over all i, so that by the union bound the
probability of any false rejection is at most alpha: under any dependence, whenever one stops (Foster and
Stine 2008; Tian and Ramdas 2021). Here w_i = 6 / (pi^2 i^2), whose sum over all i is 1.

Hypotheses, and their place in the order, have to be fixed without the test set. A candidate that was built or
chosen because of earlier looks makes a hypothesis of its own data, and no weight mends that; nor does it know
of looks that were not counted.
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
    checked_level,
    checked_log10_pvalues,
)

ALPHA_SPENDING = Correction(
    "alpha-spending",
    "alpha spending",
    "FWER",
    "any dependence, of hypotheses that are fixed beforehand; any number of looks",
    "Foster and Stine (2008); Tian and Ramdas (2021)",
)
"""What the result is called and controls."""


def spending_levels(n_looks: int, alpha: float = 0.05) -> FloatArray:
    """Return the level of each look, the first first; shape (n_looks,).

    Parameters
    ----------
    n_looks : int
        Looks so far; later ones change no earlier level.
    alpha : float
        What all looks, also those to come, spend together.

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
    return checked_level(alpha) / _factors(n_looks)


def adjust_spending_log10(log10_pvalues: npt.ArrayLike) -> FloatArray:
    """Return decimal logarithms of adjusted p-values, p_i / w_i, in the order of the looks; shape (m,).

    An adjusted p-value is below alpha exactly when its p-value is below the level of its look. Later looks
    change none.

    Parameters
    ----------
    log10_pvalues : array_like of float, shape (m,)
        Decimal logarithms of the p-values, in the order of the looks, none left out.

    Raises
    ------
    InputError
        If a logarithm is NaN, infinite or above 0.
    InputTypeError
        If they are not numbers.
    """
    values = checked_log10_pvalues(log10_pvalues)
    return LOG10.capped(LOG10.times(values, _factors(values.size)))


def _factors(n_looks: int) -> FloatArray:
    """Return 1 / w_i = pi^2 i^2 / 6."""
    factors: FloatArray = math.pi**2 / 6.0 * np.arange(1, n_looks + 1, dtype=np.float64) ** 2
    return factors
