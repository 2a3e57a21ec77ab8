r"""Tail probabilities with a certificate, by exponential tilting.

Under the tilt lambda, with a reference point x*,

    P(X in R) = exp(K(lambda) - lambda . (x* - E/2)) sum_{x in R} exp(-lambda . (x - x*)) P_lambda(X = x).

Any lambda is right in exact arithmetic; the choice decides the rounding error. If R contains the mean of X,
lambda = 0. Otherwise the tilted mean is put on the boundary of R: at the observed value in one dimension, at
the dominating point in several. Tilts are rounded to 20 bits, so that lambda . x is exact in float64.

The certificate of the sum s, relative to s, adds up:

1. errors of the mass on the window: norm of the weights times ``LatticePMF.error_norm``;
2. wrapped mass: its bound times the greatest weight in R;
3. mass of R outside the window: where R is a half-space, at most the tilted mass outside; otherwise at most
   the null mass outside, divided by the scale factor;
4. cells where the statistic is undefined, which no swap can reach: all their mass;
5. roundings of the weights, of the sum and of the scale factor's exponent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.optimize

from trackperm.errors import CapacityError, InputError
from trackperm.exact.characteristic import (
    UNIT,
    ComplexArray,
    FloatArray,
    SwapSum,
    characteristic_function,
)
from trackperm.exact.counts import IntArray
from trackperm.exact.pmf import (
    FEW,
    LOG_PRUNED,
    LatticePMF,
    Window,
    conjugate_weights,
    frequency_blocks,
    lattice_pmf,
    log_outside,
    plan_window,
)
from trackperm.exact.region import INSIDE, UNDEFINED, LatticeStatistic, Region

LOG_WINDOW = -52.0
"""Logarithm of the mass that a window may leave out under its own tilt (2.6e-23)."""

LARGEST_WEIGHT = 400.0
"""Exponent of a weight beyond which a tilt is given up."""

WANTED = 1e-6
"""Relative error of a tilted tail above which the untilted one is tried too."""

BYTES_PER_FREQUENCY = 256
"""Work arrays for one frequency of a sum that needs no grid."""

BLOCK = 2**18


@dataclass(frozen=True)
class TailMass:
    """A probability exp(log_scale) * scaled, which errs by at most `error` relative to itself.

    `error` above 1 means that nothing but the upper bound exp(log_scale) * scaled * (1 + error) is known.
    """

    log_scale: float
    scaled: float
    error: float

    @property
    def log(self) -> float:
        """Natural logarithm of the probability."""
        return self.log_scale + math.log(self.scaled)


CERTAIN = TailMass(0.0, 1.0, 0.0)


def quantised(tilt: FloatArray) -> FloatArray:
    """Round a tilt to 20 bits of its largest entry."""
    largest = float(np.abs(tilt).max(initial=0.0))
    if largest == 0.0:
        return np.zeros_like(tilt)
    _, exponent = math.frexp(largest)
    return np.asarray(np.ldexp(np.rint(np.ldexp(tilt, 20 - exponent)), exponent - 20))


class _Sums:
    """Sums over the cells of a region of the quantities that the tail and its certificate need."""

    def __init__(self) -> None:
        self.mass: list[float] = []
        self.size: list[float] = []
        self.weight_squares: list[float] = []
        self.exponent_mass: list[float] = []
        self.undefined: list[float] = []
        self.cells = 0
        self.largest_exponent = -math.inf

    def add(self, exponents: FloatArray, mass: FloatArray) -> None:
        """Add cells inside the region: exponents of their weights, and their tilted mass."""
        if exponents.size == 0:
            return
        self.largest_exponent = max(self.largest_exponent, float(exponents.max()))
        weights = np.exp(np.minimum(exponents, LARGEST_WEIGHT))
        products = weights * mass
        sizes = np.abs(products)
        self.mass.append(float(products.sum()))
        self.size.append(float(sizes.sum()))
        self.weight_squares.append(float(weights @ weights))
        self.exponent_mass.append(float(np.abs(exponents) @ sizes))
        self.cells += exponents.size

    def tail(
        self, law: SwapSum, pmf: LatticePMF, tilt: FloatArray, log_scale: float, log_beyond: float
    ) -> TailMass:
        """Put sum and certificate together; `log_beyond` bounds the scaled mass outside the window."""
        total = math.fsum(self.mass)
        undefined = math.fsum(self.undefined)
        error = (
            math.sqrt(math.fsum(self.weight_squares)) * pmf.error_norm
            + math.exp(min(pmf.log_wrapped + max(self.largest_exponent, 0.0), 700.0))
            + math.exp(min(log_beyond, 700.0))
            + abs(undefined)
            + 4.0 * UNIT * math.fsum(self.exponent_mass)
            + (math.log2(self.cells + 1) + 8.0) * UNIT * math.fsum(self.size)
        )
        return _certified(law, tilt, log_scale, total, error)


def half_line(law: SwapSum, point: int, memory_budget: int) -> TailMass:
    """Return P(X >= point) for X on the integers (rank 1), relative to its own size.

    Raises
    ------
    CapacityError
        If the window does not fit `memory_budget` bytes.
    """
    ((least, greatest),) = law.support
    if point <= least:
        return CERTAIN
    middle = law.total[0] / 2
    tilt = np.zeros(1)
    if point > middle:
        # At the very edge the tilt would be infinite; a quarter of a step inside does as well.
        target = min(float(point), greatest - 0.25) - middle
        tilt = quantised(np.array([_solve_tilt(law, np.ones(1), lambda mean: float(mean[0]) - target)]))
    window = plan_window(law, [(tilt, LOG_WINDOW)])
    needed = BYTES_PER_FREQUENCY * min(window.size, FEW)
    if needed > memory_budget:
        raise CapacityError(
            f"the exact test needs {needed / 2**20:.0f} MiB; the memory budget is {memory_budget / 2**20:.0f}"
        )
    (period,), (start,) = window.periods, window.start
    n_cells = max(start + period - point, 0)
    rate = float(tilt[0])
    total, error, kept = 0.0, 0.0, 0
    for frequencies in frequency_blocks(law, tilt, window.periods):
        values, errors = characteristic_function(law, tilt, (point,), window.periods, frequencies)
        weights = conjugate_weights(frequencies, window.periods) / period
        sums = _geometric_sums(frequencies[:, 0], period, n_cells, rate)
        terms = (values * sums).real
        total += float(weights @ terms)
        sizes = np.abs(sums)
        moduli = np.abs(values)
        # Two complex expm1, a quotient and a product: 32 roundings of each term; pairwise summation.
        roundings = UNIT * (32.0 + math.log2(frequencies.shape[0] + 1))
        error += float(weights @ (sizes * (errors + roundings * moduli)))
        kept += frequencies.shape[0]
    pruned = (period // 2 + 1 - kept) * 2.0 / period * math.exp(LOG_PRUNED) * max(n_cells, 1)
    log_scale = law.cumulant(tilt) - rate * (point - middle)
    log_wrapped = log_outside(law, tilt, window)
    # Wrapped mass enters cells with weights of at most 1, and the mass beyond the window is missing.
    error += pruned + 2.0 * math.exp(log_wrapped)
    return _certified(law, tilt, log_scale, total, error)


def _geometric_sums(frequencies: IntArray, period: int, n_cells: int, rate: float) -> ComplexArray:
    """Return sum_{j < n_cells} q^j with q = exp(-rate + 2 pi i l / P), through expm1, for every l."""
    angle = frequencies * (2.0 * math.pi / period)
    last = (frequencies * n_cells % period) * (2.0 * math.pi / period)
    step = np.expm1(-rate + 1j * np.where(angle > math.pi, angle - 2.0 * math.pi, angle))
    span = np.expm1(-rate * n_cells + 1j * np.where(last > math.pi, last - 2.0 * math.pi, last))
    still = step == 0.0
    return np.where(still, float(n_cells), span / np.where(still, 1.0, step))


def _certified(law: SwapSum, tilt: FloatArray, log_scale: float, total: float, error: float) -> TailMass:
    """Add the roundings of the scale factor's exponent, and turn an absolute error into a relative one."""
    exponent_size = law.cumulant(tilt) + float(np.abs(law.centred_mean(tilt)) @ np.abs(tilt))
    error += (32.0 * exponent_size + 4.0 * abs(log_scale) + 4.0) * UNIT * abs(total)
    if total <= error:
        # Nothing but an upper bound is known; report that bound itself, which errs by at most 1.
        return TailMass(log_scale, total + error if total + error > 0 else error, 1.0)
    return TailMass(log_scale, total, error / (total - error))


def region_tail(
    law: SwapSum,
    statistic: LatticeStatistic,
    threshold: float,
    region: Callable[[Sequence[int]], Region],
    *,
    upper: bool,
    memory_budget: int,
) -> TailMass:
    """Return P(X in R) for the lattice points R where the statistic is at least, or at most, `threshold`.

    Parameters
    ----------
    law : SwapSum
        The law of X.
    statistic : LatticeStatistic
        The statistic, for the search of the dominating point.
    threshold : float
        The statistic's value on the boundary of R.
    region : callable
        Gives R, made for questions near a lattice point.
    upper : bool
        Whether R is where the statistic is at least `threshold`.
    memory_budget : int
        Bytes that may be allocated.

    Raises
    ------
    CapacityError
        If the window does not fit.
    InputError
        If the statistic is undefined at points that swaps can reach.
    """
    none = np.zeros(law.rank)
    side = 1.0 if upper else -1.0

    def excess(centred: FloatArray) -> float:
        point = centred + np.array([float(e) / 2 for e in law.total])
        value = float(statistic.values([np.array([x]) for x in point])[0])
        return side * (value - threshold) if math.isfinite(value) else -math.inf

    tails = []
    if excess(none) < 0:
        tilt = quantised(_dominating_tilt(law, excess))
        if tilt.any():
            try:
                tails.append(_tilted_region(law, tilt, region, memory_budget))
            except CapacityError:
                tails.append(None)
    if not tails or tails[0] is None or tails[0].error > WANTED:
        tails.append(_tilted_region(law, none, region, memory_budget))
    return min((tail for tail in tails if tail is not None), key=lambda tail: (tail.error, tail.log))


def _tilted_region(
    law: SwapSum, tilt: FloatArray, region: Callable[[Sequence[int]], Region], memory_budget: int
) -> TailMass | None:
    """Sum the region under one tilt; None where its weights would overflow."""
    middle = [float(e) / 2 for e in law.total]
    centre = [round(x + m) for x, m in zip(law.centred_mean(tilt), middle, strict=True)]
    log_scale = law.cumulant(tilt) - sum(
        float(t) * (c - m) for t, c, m in zip(tilt, centre, middle, strict=True)
    )
    boxes = [(tilt, LOG_WINDOW)]
    if tilt.any():
        boxes.append((np.zeros(law.rank), LOG_WINDOW + min(log_scale, 0.0)))
    window = plan_window(law, boxes)
    pmf = lattice_pmf(law, tilt, window, memory_budget)
    asked = region(centre)
    sums = _Sums()
    unreachable: list[tuple[IntArray, ...]] = []
    rows = max(1, BLOCK * window.periods[0] // window.size)
    for first in range(0, window.periods[0], rows):
        count = min(rows, window.periods[0] - first)
        block = Window((window.start[0] + first, *window.start[1:]), (count, *window.periods[1:]))
        points = open_mesh(block)
        membership = asked.membership(points)
        mass = pmf.mass[first : first + count]
        exponents: FloatArray = np.zeros(mass.shape)
        for axis, t, c in zip(points, tilt, centre, strict=True):
            exponents -= float(t) * (axis - c)
        inside = membership == INSIDE
        sums.add(exponents[inside], mass[inside])
        undefined = membership == UNDEFINED
        if undefined.any():
            weights = np.exp(np.minimum(exponents[undefined], LARGEST_WEIGHT))
            sums.undefined.append(float(weights @ np.abs(mass[undefined])))
            unreachable.append(tuple(axis[undefined] for axis in np.broadcast_arrays(*points)))
    if sums.largest_exponent > LARGEST_WEIGHT:
        return None
    if math.fsum(sums.undefined) > 1e-9:
        first_point = ", ".join(str(int(axis[0])) for axis in unreachable[0])
        raise InputError(
            "the statistic is undefined after some swaps of outputs: it divides by 0 there "
            f"(first at lattice point ({first_point}))",
            hint="declare the value of 0/0 with `undefined`; a non-zero number over 0 has no value.",
        )
    log_beyond = log_outside(law, np.zeros(law.rank), window) - log_scale
    return sums.tail(law, pmf, tilt, log_scale, log_beyond)


def open_mesh(window: Window) -> list[IntArray]:
    """Return the coordinates of a window's cells, one broadcastable array per axis."""
    rank = len(window.periods)
    return [
        np.arange(start, start + period, dtype=np.int64).reshape([-1 if i == j else 1 for j in range(rank)])
        for i, (start, period) in enumerate(zip(window.start, window.periods, strict=True))
    ]


def _solve_tilt(law: SwapSum, direction: FloatArray, excess: Callable[[FloatArray], float]) -> float:
    """Return s > 0 at which the tilted mean for s * direction has excess 0, or is as far out as it gets."""

    def at(s: float) -> float:
        return max(excess(law.centred_mean(s * direction)), -1e300)

    reach = float(np.abs(law.coordinates @ direction).max())
    spread = math.sqrt(float(direction @ law.covariance(np.zeros(law.rank)) @ direction))
    low, high = 0.0, min(0.5 / max(spread, 1e-300), 1.0 / reach)
    while at(high) < 0:
        if high * reach > 80.0:
            return high
        ahead = law.centred_mean(2 * high * direction) - law.centred_mean(high * direction)
        if high * reach > 4.0 and float(np.abs(ahead).max()) < 0.1:
            return high
        low, high = high, 2 * high
    return float(scipy.optimize.brentq(at, low, high, rtol=1e-7, xtol=1e-300))


def _dominating_tilt(law: SwapSum, excess: Callable[[FloatArray], float]) -> FloatArray:
    """Return a tilt whose mean lies on the boundary of the region with the tilt along its normal.

    Such a point minimises the rate function over the boundary (Bahadur and Rao's dominating point). The
    fixed point of direction = gradient at the tilted mean is found by iteration; zeros where it is not.
    """
    scale = np.sqrt(np.maximum(np.diag(law.covariance(np.zeros(law.rank))), 1e-300))

    def gradient(at: FloatArray) -> FloatArray:
        steps = np.diag(np.minimum(1e-3 * scale, 0.25))
        return np.array([(excess(at + h) - excess(at - h)) / (2 * h.sum()) for h in steps])

    tilt = np.zeros(law.rank)
    for _ in range(40):
        normal = gradient(law.centred_mean(tilt))
        length = float(np.linalg.norm(normal * scale))
        if not math.isfinite(length) or length == 0.0:
            return tilt
        normal = normal / length
        moved = _solve_tilt(law, normal, excess) * normal
        change = float(np.abs((moved - tilt) * scale).max())
        tilt = moved
        if change <= 1e-4 * float(np.abs(tilt * scale).max()):
            break
    return tilt
