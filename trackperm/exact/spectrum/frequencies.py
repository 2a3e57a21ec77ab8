r"""The few frequencies that matter, found by branch and bound.

A factor's modulus depends on the distance d of b_k = theta . x_k / 2 from the nearest multiple of pi alone,
and falls with it: |cos b| = cos d. Over a box of frequencies with centre theta_0 the distance is at least
max(d_0 - h, 0), where h = sum_i |x_ki| delta_i / 2 bounds how far b_k moves inside the box. The product
of the bounds over k bounds the characteristic function over the whole box, so boxes below the threshold
are dropped and the others split, down to single frequencies. Every grid frequency is covered by some box:
secondary peaks are found like the main one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trackperm.errors import CapacityError
from trackperm.exact.counts import IntArray
from trackperm.exact.spectrum.characteristic import UNIT, FloatArray, SwapSum

BOUNDING_LOG = 140.0
"""Expected loss of log modulus, at a random frequency, by the rows that take part in bounding: ample."""

FEWEST_BOUNDING_ROWS, MOST_BOUNDING_ROWS = 48, 1024
"""Rows of the histogram that take part in bounding at the most."""

CHUNK = 2**20
"""Box-row pairs bounded at a time."""


def surviving_frequencies(
    law: SwapSum, tilt: FloatArray, periods: Sequence[int], log_threshold: float, limit: int
) -> IntArray:
    """Return the grid frequencies whose characteristic function may exceed exp(log_threshold).

    One of each conjugate pair is returned: those with l_r <= P_r // 2.

    Parameters
    ----------
    law : SwapSum
        The law of X.
    tilt : ndarray of float, shape (r,)
        lambda.
    periods : sequence of int, length r
        Grid sizes P_i; frequency l stands for theta_i = 2 pi l_i / P_i.
    log_threshold : float
        Frequencies with a smaller logarithm of the modulus may be left out.
    limit : int
        Most frequencies to return.

    Returns
    -------
    ndarray of int64, shape (n, r)
        Frequencies with 0 <= l_i < P_i, the last one up to P_r // 2 (the others are their conjugates).

    Raises
    ------
    CapacityError
        If there are more than `limit`.
    """
    a = law.coordinates @ tilt / 2.0
    sech2 = 1.0 / np.cosh(np.minimum(np.abs(a), 350.0)) ** 2
    # Weight of a row in the curvature at the main peak, a proxy for how much it prunes.
    weight = law.multiplicities * sech2 * np.abs(law.coordinates / law.ranges).max(axis=1) ** 2
    order = np.argsort(-weight, kind="stable")
    expected = -law.multiplicities[order] * _mean_log(sech2[order])
    n_enough = int(np.searchsorted(np.cumsum(expected), BOUNDING_LOG)) + 1
    heavy = order[: min(max(n_enough, FEWEST_BOUNDING_ROWS), MOST_BOUNDING_ROWS)]
    steps = law.coordinates[heavy].astype(np.float64) * (math.pi / np.array(periods, dtype=np.float64))
    counts, sech2 = law.multiplicities[heavy].astype(np.float64), sech2[heavy]
    extents = np.array([*periods[:-1], periods[-1] // 2 + 1], dtype=np.int64)
    sizes = np.array([1 << (int(extent) - 1).bit_length() for extent in extents], dtype=np.int64)
    corners = np.zeros((1, law.rank), dtype=np.int64)
    while True:
        if (sizes == 1).all() or _expected_bound(sizes, steps, counts, sech2) < log_threshold / 2.0:
            corners = corners[_bounds(corners, sizes, steps, counts, sech2) >= log_threshold]
        if (sizes == 1).all():
            return corners
        # Halving the relatively widest axes keeps boxes about as long as the peak they cover.
        reach = sizes * np.abs(steps).max(axis=0)
        halved = (sizes > 1) & (reach >= 0.5 * reach[sizes > 1].max())
        sizes = np.where(halved, sizes // 2, sizes)
        for axis in np.flatnonzero(halved):
            upper = corners.copy()
            upper[:, axis] += sizes[axis]
            corners = np.concatenate([corners, upper[upper[:, axis] < extents[axis]]])
        if corners.shape[0] > 4 * limit:
            raise CapacityError(
                f"more than {limit} frequencies matter on a grid of {' x '.join(map(str, periods))} points",
                hint="give a statistic with smaller integers.",
            )


def _expected_bound(sizes: IntArray, steps: FloatArray, counts: FloatArray, sech2: FloatArray) -> float:
    """Return about the mean of :func:`_bounds` over boxes far from any peak, where phases are random.

    A reach of h takes away about 1 - (1 - 2 h / pi)^4 of the mean of the log modulus.
    """
    reach = np.abs(steps) @ ((sizes - 1) / 2.0)
    kept = np.maximum(1.0 - 2.0 / math.pi * reach, 0.0) ** 4
    return float(counts @ (_mean_log(sech2) * kept))


def _mean_log(sech2: FloatArray) -> FloatArray:
    """Return the mean of log(1 - sech^2 a sin^2 b) / 2 over a uniform phase b: log((1 + tanh |a|) / 2)."""
    return np.asarray(np.log((1.0 + np.sqrt(np.maximum(1.0 - sech2, 0.0))) / 2.0))


def _bounds(
    corners: IntArray,
    sizes: IntArray,
    steps: FloatArray,
    counts: FloatArray,
    sech2: FloatArray,
) -> FloatArray:
    """Return upper bounds of the log modulus over boxes of the given sizes at `corners`."""
    reach = np.abs(steps) @ ((sizes - 1) / 2.0)
    single = counts == 1.0
    bounds = np.empty(corners.shape[0])
    rows = max(1, CHUNK // max(counts.size, 1))
    for first in range(0, corners.shape[0], rows):
        block = corners[first : first + rows]
        # Boxes that stick out of the grid are bounded as if they did not: more, never less, survives.
        b = (block + (sizes - 1) / 2.0) @ steps.T
        distance = np.abs(b - math.pi * np.rint(b / math.pi))
        # Phases err by a few roundings of the sizes of their terms.
        size = (block + (sizes - 1) / 2.0) @ np.abs(steps).T if sizes.size > 1 else np.abs(b)
        nearest = np.maximum(distance - reach - 8.0 * UNIT * size, 0.0)
        # Squared moduli, with room for their roundings.
        factors = np.minimum(1.0 + 4.0 * UNIT - sech2 * np.sin(nearest) ** 2, 1.0)
        # A product below the range of floats is below any threshold.
        with np.errstate(divide="ignore", under="ignore"):
            logs = np.log(factors[:, single].prod(axis=1))
            if not single.all():
                logs += np.log(factors[:, ~single]) @ counts[~single]
        bounds[first : first + rows] = (1.0 - 1e-6) * logs / 2.0
    return bounds
