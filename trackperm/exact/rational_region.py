"""Regions of a rational statistic, decided exactly.

With the threshold n/d, the sign of d * numerator - n * denominator is taken in floating point where the value
is beyond its rounding bound, and in Python integers elsewhere. Points where a division is by zero are
evaluated one by one in fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.errors import InputError
from trackperm.exact.characteristic import UNIT, FloatArray
from trackperm.exact.counts import IntArray
from trackperm.exact.pmf import Window
from trackperm.exact.rational import Polynomial, RationalStatistic
from trackperm.exact.region import INSIDE, OUTSIDE, UNDEFINED, Membership


class RationalRegion:
    """The points where a rational function is at least, or at most, a threshold; decided exactly."""

    def __init__(
        self,
        local: RationalStatistic,
        threshold: Fraction,
        centre: tuple[int, ...],
        upper: bool,
        strict: bool,
        mirror: Sequence[int] | None,
    ) -> None:
        numerator, denominator = local.quotient
        side = 1 if upper else -1
        excess = numerator.scaled(side * threshold.denominator) - denominator.scaled(
            side * threshold.numerator
        )
        rank = local.n_variables
        shift = [Polynomial.affine(c, [int(i == j) for j in range(rank)]) for i, c in enumerate(centre)]
        self._local, self._threshold, self._centre = local, threshold, centre
        self._upper, self._strict, self._mirror = upper, strict, mirror
        self._excess = excess.compose(shift)
        self._denominator = denominator.compose(shift)
        self._divisors = [divisor.compose(shift) for divisor in local.divisors]

    def membership(self, points: Sequence[IntArray]) -> Membership:
        """Classify points, given as r broadcastable coordinate arrays: inside, outside or undefined."""
        offsets = [axis - c for axis, c in zip(points, self._centre, strict=True)]
        signs = _signs(self._excess, offsets) * _signs(self._denominator, offsets)
        inside = np.where(signs > 0 if self._strict else signs >= 0, INSIDE, OUTSIDE).astype(np.int8)
        special = np.zeros(inside.shape, dtype=bool)
        for divisor in self._divisors:
            special |= _signs(divisor, offsets) == 0
        if special.any():
            grids = [axis[special].tolist() for axis in np.broadcast_arrays(*points)]
            inside[special] = [self._decide(point) for point in zip(*grids, strict=True)]
        return inside

    def quadratic_rows(self, window: Window, x: IntArray) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return the comparison along rows of a plane lattice as a y^2 + b y + c, y from the centre.

        Parameters
        ----------
        window : Window
            A box of rank 2.
        x : ndarray of int64, shape (n,)
            First coordinates of rows of the box.

        Returns
        -------
        a, b, c : ndarray of float64, shape (n,)
            Rounded coefficients; or None where the degree is greater or a division may be by 0.
        """
        low = [start - c for start, c in zip(window.start, self._centre, strict=True)]
        high = [at + period - 1 for at, period in zip(low, window.periods, strict=True)]
        if any(straddles_zero(divisor, low, high) for divisor in self._divisors):
            return None
        by_power = self._excess.coefficients_of_last()
        if len(by_power) > 3:
            return None
        scale = self._scale
        offsets = (x - self._centre[0]).astype(np.float64)
        rows = [np.zeros(x.size), np.zeros(x.size), np.zeros(x.size)]
        for power, polynomial in enumerate(by_power):
            for (exponent,), c in polynomial.terms.items():
                rows[power] = rows[power] + (c / scale) * offsets**exponent
        return rows[2], rows[1], rows[0]

    @property
    def _scale(self) -> int:
        """A power of two that keeps coefficients well within the range of floats."""
        return 1 << max(max((abs(c).bit_length() for c in self._excess.terms.values()), default=0) - 400, 0)

    def linear_size(self, x: IntArray) -> FloatArray:
        """Return the sum of the absolute terms of the coefficient b of :meth:`quadratic_rows`."""
        by_power = self._excess.coefficients_of_last()
        offsets = np.abs(x - self._centre[0]).astype(np.float64)
        size = np.zeros(x.size)
        for (exponent,), c in by_power[1].terms.items() if len(by_power) > 1 else ():
            size = size + abs(c) / self._scale * offsets**exponent
        return size

    @property
    def centre(self) -> tuple[int, ...]:
        """The lattice point that polynomials are written around."""
        return self._centre

    def _decide(self, point: tuple[int, ...]) -> int:
        try:
            value = self._local(point)
        except ZeroDivisionError:
            return UNDEFINED
        if self._mirror is not None:
            try:
                mirrored = str(self._local([e - x for e, x in zip(self._mirror, point, strict=True)]))
            except ZeroDivisionError:
                mirrored = "undefined"
            if mirrored != str(-value):
                raise InputError(
                    f"the declared value of 0/0 makes the statistic {value} after some swaps and {mirrored} "
                    "after the opposite ones; the two-sided test needs opposite numbers",
                    hint="declare a value of 0/0 that keeps the symmetry, or use `greater` or `less`.",
                )
        beyond = value - self._threshold if self._upper else self._threshold - value
        return INSIDE if (beyond > 0 if self._strict else beyond >= 0) else OUTSIDE


def _signs(polynomial: Polynomial, offsets: Sequence[IntArray]) -> npt.NDArray[np.int8]:
    """Return the exact signs of a polynomial at integer points, given as broadcastable arrays."""
    shape = np.broadcast_shapes(*(axis.shape for axis in offsets))
    reach = [int(np.abs(axis).max(initial=0)) for axis in offsets]
    size = polynomial_size(polynomial, reach)
    # Scaling by a power of two is exact and keeps huge coefficients within the range of floats.
    scale = 1 << max(size.bit_length() - 900, 0)
    reals = [axis.astype(np.float64) for axis in offsets]
    values = np.zeros(shape)
    for exponents, c in polynomial.terms.items():
        term: Any = c / scale
        for x, e in zip(reals, exponents, strict=True):
            for _ in range(e):
                term = term * x
        values += term
    signs = np.sign(values).astype(np.int8)
    if size < 2**53:
        return signs
    # Each term has at most degree + 1 roundings, the sum one for each term.
    roundings = polynomial.degree + 2 + len(polynomial.terms)
    near = np.abs(values) <= 2.0 * roundings * UNIT * (size / scale)
    if near.any():
        grids = [axis[near].astype(object) for axis in np.broadcast_arrays(*offsets)]
        signs[near] = np.array([(v > 0) - (v < 0) for v in np.atleast_1d(polynomial(grids))], dtype=np.int8)
    return signs


def straddles_zero(polynomial: Polynomial, low: Sequence[int], high: Sequence[int]) -> bool:
    """Whether interval arithmetic leaves room for a zero in the box between two corners."""
    least, greatest = 0, 0
    for exponents, c in polynomial.terms.items():
        ends = [c]
        for a, b, e in zip(low, high, exponents, strict=True):
            if e:
                powers = [a**e, b**e] + ([0] if a < 0 < b else [])
                ends = [end * power for end in (min(ends), max(ends)) for power in powers]
        least, greatest = least + min(ends), greatest + max(ends)
    return least <= 0 <= greatest


def polynomial_size(polynomial: Polynomial, reach: Sequence[int]) -> int:
    """Return sum_e |c_e| reach^e, a bound of every partial sum where |x_i| <= reach_i."""
    total = 0
    for exponents, c in polynomial.terms.items():
        size = abs(c)
        for r, e in zip(reach, exponents, strict=True):
            size *= r**e
        total += size
    return total
