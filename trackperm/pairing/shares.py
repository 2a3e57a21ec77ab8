"""Shares of examples in a statistic, to first order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.exact import RationalStatistic
from trackperm.statistic import Statistic

MOST_CELLS = 2**25
"""Most counts of one run for which the shares of examples are computed: 256 MiB of floats."""

_STEP = 1e-6
"""Relative step of central differences: near the cube root of the precision of floats, which is best."""


def shares_of_counts(
    statistic: Statistic,
    candidate: npt.NDArray[np.int64],
    baseline: npt.NDArray[np.int64],
    multiplicities: npt.NDArray[Any],
) -> npt.NDArray[np.float64] | None:
    """Return the share of an example with each row of counts; None where the statistic has no value.

    Let a be the sums of g for the runs as they are, b those with all outputs exchanged, and c = (a + b) / 2.
    To first order h(a) - h(c) = grad h(c) . (a - c), which is the sum of grad h(c) . (a_i - b_i) / 2 over the
    examples. `candidate` and `baseline` have a row for each of K distinct pairs of counts, as
    :meth:`~trackperm.statistic.Statistic.pairs` takes them; `multiplicities` of examples have this row.
    """
    if candidate.size > MOST_CELLS:
        return None
    observed, swapped = (g.astype(np.float64) for g in statistic.pairs(candidate, baseline))
    centre = multiplicities @ (observed + swapped) / 2.0
    steps = _STEP * np.maximum(np.abs(centre), 1.0)
    points = centre + np.concatenate([np.diag(steps), -np.diag(steps)])
    h = statistic.h
    values = h.values(points) if isinstance(h, RationalStatistic) else h(points)
    up, down = np.broadcast_to(values, len(points)).reshape(2, -1)
    slopes = (up - down) / (2.0 * steps)
    if not np.isfinite(slopes).all():
        return None
    return np.asarray((observed - swapped) @ slopes / 2.0)
