"""What a comparison that was made could have shown, from its own counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trackperm.choices import Alternative
from trackperm.errors import UndefinedStatisticError
from trackperm.exact.differences import Differences
from trackperm.exact.engines.lattice.statistic import Statistic
from trackperm.exact.power.detectable import MinimumDetectableEffect
from trackperm.exact.power.normal import approximate_minimum_detectable_effect, null_standard_deviation
from trackperm.exact.power.paired import MOST_EXAMPLES, minimum_detectable_effect
from trackperm.exact.types import IntArray


def detectable_effect(
    observed: IntArray,
    swapped: IntArray,
    h: Statistic,
    multiplicities: IntArray,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> MinimumDetectableEffect | None:
    """Return the smallest difference that a test of as many and such examples detects.

    That is exact for paired proportions, and wherever differences other than 0 are of one size; the share of
    discordant examples is taken to be the one found. For other statistics it is a normal approximation with
    the standard deviation of the null distribution. None where that is not known.

    Parameters
    ----------
    observed, swapped : ndarray of int64, shape (K, m)
        g of pairs as they are, and with their outputs exchanged; of clusters where these are exchanged.
    h : RationalStatistic, RealStatistic or callable
        The statistic.
    multiplicities : ndarray of int64, shape (K,)
        Number of examples of each row.
    power, alpha : float
        Wanted chance that p < alpha, and alpha.
    alternative : {'two-sided', 'less', 'greater'}
        Of the test.

    Raises
    ------
    InputError
        If `power` or `alpha` is out of range.
    """
    n = int(multiplicities.sum())
    if not np.any(observed != swapped):
        return MinimumDetectableEffect(None, power, alpha, alternative, n, exact=True)
    differences = Differences.of(h, observed, swapped, multiplicities)
    size = None if differences is None else differences.size
    if differences is not None and size is not None and n <= MOST_EXAMPLES:
        found = minimum_detectable_effect(
            n, differences.n_moved / n, power=power, alpha=alpha, alternative=alternative
        )
        scale = float(abs(differences.unit) * size * n)
        return found if found.effect is None else replace(found, effect=scale * found.effect)
    try:
        null_sd = null_standard_deviation(observed, swapped, h, multiplicities)
    except UndefinedStatisticError:
        return None
    if null_sd == 0.0:
        return None
    return approximate_minimum_detectable_effect(
        n, null_sd, n, power=power, alpha=alpha, alternative=alternative
    )
