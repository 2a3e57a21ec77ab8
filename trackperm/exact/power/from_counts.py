"""Minimum detectable effect of a comparison, from its own counts."""

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
    """Return the smallest difference that a test of the same examples detects.

    It is exact for paired proportions, and whenever all nonzero differences have one size, at the observed
    share of discordant examples. For other statistics it is a normal approximation with the standard
    deviation of the null distribution; None if that is undefined or 0. Rows are those of
    :func:`~trackperm.exact.structured_test`, of clusters if these are exchanged.
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
