"""Probabilities of any region of a lattice, cell by cell on a grid.

The certificate of the sum s under a tilt adds up:

1. errors of the mass on the window: norm of the weights times ``LatticePMF.error_norm``;
2. wrapped mass: its bound times the greatest weight in R;
3. mass of R outside the window: at most the null mass outside, divided by the scale factor;
4. cells where the statistic is undefined, which no swap can reach: all their mass;
5. roundings of the weights, of the sum and of the scale factor's exponent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from trackperm.errors import InputError
from trackperm.exact.characteristic import UNIT, FloatArray, SwapSum
from trackperm.exact.counts import IntArray
from trackperm.exact.pmf import (
    LOG_WINDOW,
    LatticePMF,
    Window,
    lattice_pmf,
    log_outside,
    open_mesh,
    plan_window,
)
from trackperm.exact.region import INSIDE, UNDEFINED, Region
from trackperm.exact.tilt import ScaleFactor, TailMass, certified, scale_factor

LARGEST_WEIGHT = 300.0
"""Exponent of a weight beyond which a tilt is given up."""

REACHED = 1e-9
"""Mass of undefined cells from which swaps must be able to lead there: rounding errors are far smaller."""

BLOCK = 2**18
"""Cells classified at a time."""


def grid_tail(
    law: SwapSum, tilt: FloatArray, region: Callable[[Sequence[int]], Region], memory_budget: int
) -> TailMass | None:
    """Return the probability of a region under one tilt; None where its weights would overflow.

    Raises
    ------
    CapacityError
        If the window does not fit `memory_budget` bytes.
    InputError
        If the statistic is undefined at points that swaps can reach.
    """
    middle = [float(e) / 2 for e in law.total]
    centre = [round(x + m) for x, m in zip(law.centred_mean(tilt), middle, strict=True)]
    scale = scale_factor(law, tilt, centre)
    boxes = [(tilt, LOG_WINDOW)]
    if tilt.any():
        boxes.append((np.zeros(law.rank), LOG_WINDOW + min(scale.log, 0.0)))
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
    if not tilt.any() and math.fsum(sums.undefined) > REACHED:
        first_point = ", ".join(str(int(axis[0])) for axis in unreachable[0])
        raise InputError(
            "the statistic is undefined after some swaps of outputs: it divides by 0 there "
            f"(first at lattice point ({first_point}))",
            hint="declare the value of 0/0 with `undefined`; a non-zero number over 0 has no value.",
        )
    log_beyond = log_outside(law, np.zeros(law.rank), window) - scale.log
    return sums.tail(pmf, scale, log_beyond)


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

    def tail(self, pmf: LatticePMF, scale: ScaleFactor, log_beyond: float) -> TailMass:
        """Put sum and certificate together; `log_beyond` bounds the scaled mass outside the window."""
        total = math.fsum(self.mass)
        undefined = math.fsum(self.undefined)
        error = (
            math.sqrt(math.fsum(self.weight_squares)) * pmf.error_norm
            + math.exp(min(pmf.log_wrapped + max(self.largest_exponent, 0.0), 700.0))
            + math.exp(min(log_beyond, 700.0))
            + abs(undefined)
            + 4.0 * UNIT * math.fsum(self.exponent_mass)
            + (math.log2(self.cells + 1) + 16.0) * UNIT * math.fsum(self.size)
        )
        return certified(scale.log, total, error + scale.error * abs(total))
