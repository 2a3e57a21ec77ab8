"""The statistic on the lattice, and which lattice points are at least as extreme as the observed one.

A rational h is compared exactly: with the threshold n/d, the sign of d * numerator - n * denominator is taken
in floating point where the value is beyond its rounding bound, and in Python integers elsewhere. Points where
a division is by zero are evaluated one by one in fractions. A NumPy callable has no such algebra: values
within a stated band of the threshold count as tied, which is conservative, and results say so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trackperm.errors import InputError
from trackperm.exact.characteristic import UNIT, FloatArray
from trackperm.exact.counts import DifferenceHistogram, IntArray
from trackperm.exact.lattice import Lattice
from trackperm.exact.pmf import Window
from trackperm.exact.rational import Polynomial, RationalStatistic

Alternative = Literal["two-sided", "less", "greater"]
Statistic = RationalStatistic | Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
"""h: an exact rational function, or a NumPy callable from float64 arrays (..., m) to arrays (...)."""

Membership = npt.NDArray[np.int8]

INSIDE, OUTSIDE, UNDEFINED = 1, 0, -1

TIE_BAND = 2.0**-40
"""Half-width of the band in which values of a callable count as tied, relative to the largest value seen."""


@dataclass(frozen=True)
class LatticeStatistic:
    """h as a function of the lattice coordinates: t(x) = h(origin + basis @ x).

    Attributes
    ----------
    h : RationalStatistic or callable
        The statistic of m integers.
    histogram : DifferenceHistogram
        Gives the origin and the observed point.
    lattice : Lattice
        Gives the basis.
    """

    h: Statistic
    histogram: DifferenceHistogram
    lattice: Lattice

    @property
    def is_exact(self) -> bool:
        """Whether ties are decided exactly."""
        return isinstance(self.h, RationalStatistic)

    @cached_property
    def local(self) -> RationalStatistic | None:
        """The rational function t of the r lattice coordinates; None for a callable."""
        if not isinstance(self.h, RationalStatistic):
            return None
        rank = max(self.lattice.rank, 1)
        coordinates = [RationalStatistic.variable(j, rank) for j in range(self.lattice.rank)]
        arguments = [
            sum(
                (x * step for x, step in zip(coordinates, row, strict=True) if step),
                RationalStatistic.constant(start, rank),
            )
            for start, row in zip(self.histogram.origin, self.lattice.basis, strict=True)
        ]
        return self.h.substitute(arguments).simplified()

    @cached_property
    def observed_point(self) -> tuple[int, ...]:
        """Lattice coordinates of the observed value of S."""
        moves = self.histogram.n_up.astype(object) @ self.lattice.coordinates.astype(object)
        return tuple(int(x) for x in np.atleast_1d(moves)) if self.lattice.rank else ()

    @cached_property
    def observed_exact(self) -> Fraction | None:
        """The observed value of h as a fraction; None for a callable."""
        if not isinstance(self.h, RationalStatistic):
            return None
        try:
            return self.h(self.histogram.stay)
        except ZeroDivisionError as error:
            raise InputError(
                f"the observed value of the statistic is undefined: {error}",
                hint="declare the value of 0/0 with `undefined`.",
            ) from error

    @cached_property
    def observed(self) -> float:
        """The observed value of h.

        Raises
        ------
        InputError
            If it is undefined.
        """
        if self.observed_exact is not None:
            try:
                return float(self.observed_exact)
            except OverflowError as error:
                raise InputError(
                    "the observed value of the statistic is beyond the range of floats"
                ) from error
        value = float(self.values_at_totals(np.array([self.histogram.stay], dtype=np.float64))[0])
        if not np.isfinite(value):
            raise InputError(f"the observed value of the statistic is {value}; expected a finite number")
        return value

    def values_at_totals(self, totals: FloatArray) -> FloatArray:
        """Return h at values of S, shape (..., m), in floating point; NaN where undefined."""
        if isinstance(self.h, RationalStatistic):
            return self.h.values(totals)
        with np.errstate(all="ignore"):
            values = np.asarray(self.h(totals), dtype=np.float64)
        if values.shape != totals.shape[:-1]:
            raise InputError(
                f"the statistic returned shape {values.shape} for input of shape {totals.shape}; "
                f"expected {totals.shape[:-1]}",
                hint="index the counts on the last axis, as in `x[..., 0] - x[..., 1]`.",
            )
        return values

    def values(self, points: Sequence[npt.NDArray[Any]]) -> FloatArray:
        """Return t at lattice points, given as r broadcastable coordinate arrays, in floating point."""
        shape = np.broadcast_shapes(*(axis.shape for axis in points))
        totals = np.empty((*shape, len(self.histogram.origin)))
        for i, (start, row) in enumerate(zip(self.histogram.origin, self.lattice.basis, strict=True)):
            totals[..., i] = start
            for x, step in zip(points, row, strict=True):
                if step:
                    totals[..., i] += x * float(step)
        return self.values_at_totals(totals)

    def affine(self) -> tuple[Fraction, tuple[Fraction, ...]] | None:
        """Return constant and coefficients of t where t is affine on the lattice, else None."""
        local = self.local
        if local is None:
            return None
        numerator, denominator = local.quotient
        if numerator.degree > 1 or denominator.degree > 0 or local.divisors:
            return None
        divisor = denominator.coefficient(*[0] * denominator.n_variables)
        rank = self.lattice.rank
        units = [tuple(int(i == j) for j in range(numerator.n_variables)) for i in range(rank)]
        constant = numerator.coefficient(*[0] * numerator.n_variables)
        return Fraction(constant, divisor), tuple(Fraction(numerator.coefficient(*u), divisor) for u in units)

    def check_antisymmetric(self, total: Sequence[int], rng: np.random.Generator) -> None:
        """Check that exchanging all pairs negates the statistic: t(E - x) = -t(x).

        Exact for a rational h; on 64 random points for a callable.

        Raises
        ------
        InputError
            If it does not.
        """
        local = self.local
        if local is not None:
            n, d = local.quotient
            mirror = [
                Polynomial.affine(e, [-int(i == j) for j in range(n.n_variables)])
                for i, e in enumerate(total)
            ]
            mirrored = not total or not (n * d.compose(mirror) + n.compose(mirror) * d).terms
        else:
            coins = rng.binomial(self.histogram.multiplicities, 0.5, size=(64, len(self.histogram.n_up)))
            points = coins @ self.lattice.coordinates
            there = self.values(list(points.T))
            back = self.values(list(np.array(total)[:, None] - points.T))
            both = np.isfinite(there) & np.isfinite(back)
            scale = max(1e-300, *np.abs(there[both]), abs(self.observed))
            mirrored = bool(np.all(np.abs(there + back)[both] <= 1e-9 * scale))
        if not mirrored:
            raise InputError(
                "the two-sided test needs a statistic that changes sign when the two runs are exchanged, "
                "and this one does not",
                hint="test a difference of scores or the log of their ratio, or use `greater` or `less`.",
            )

    def region(
        self,
        threshold: Fraction | float,
        centre: Sequence[int],
        *,
        upper: bool,
        mirror: Sequence[int] | None = None,
    ) -> Region:
        """Return the points with t(x) >= threshold (`upper`) or t(x) <= threshold.

        Parameters
        ----------
        threshold : Fraction or float
            A fraction where the statistic is exact.
        centre : sequence of int, length r
            A lattice point near which most questions will be asked; it only affects speed.
        upper : bool
            Which side.
        mirror : sequence of int, length r, optional
            E, where t(E - x) = -t(x) is relied upon: declared values of 0/0 are then checked for it.
        """
        if self.local is not None:
            return RationalRegion(self.local, Fraction(threshold), tuple(centre), upper, mirror)
        return CallableRegion(self, float(threshold), upper)


class RationalRegion:
    """The points where a rational function is at least, or at most, a threshold; decided exactly."""

    def __init__(
        self,
        local: RationalStatistic,
        threshold: Fraction,
        centre: tuple[int, ...],
        upper: bool,
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
        self._upper, self._mirror = upper, mirror
        self._excess = excess.compose(shift)
        self._denominator = denominator.compose(shift)
        self._divisors = [divisor.compose(shift) for divisor in local.divisors]

    def membership(self, points: Sequence[IntArray]) -> Membership:
        """Classify points, given as r broadcastable coordinate arrays: inside, outside or undefined."""
        offsets = [axis - c for axis, c in zip(points, self._centre, strict=True)]
        signs = _signs(self._excess, offsets) * _signs(self._denominator, offsets)
        inside = np.where(signs >= 0, INSIDE, OUTSIDE).astype(np.int8)
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
        return INSIDE if (value >= self._threshold if self._upper else value <= self._threshold) else OUTSIDE


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


class CallableRegion:
    """The points where a callable is at least, or at most, a threshold, ties within a band included."""

    def __init__(self, statistic: LatticeStatistic, threshold: float, upper: bool) -> None:
        self._statistic, self._threshold, self._upper = statistic, threshold, upper

    def membership(self, points: Sequence[IntArray]) -> Membership:
        """Classify points, given as r broadcastable coordinate arrays: inside, outside or undefined."""
        values = self._statistic.values(points)
        finite = np.isfinite(values)
        band = TIE_BAND * max(abs(self._threshold), float(np.abs(values[finite]).max(initial=0.0)))
        beyond = (values - self._threshold) if self._upper else (self._threshold - values)
        with np.errstate(invalid="ignore"):
            inside = np.where(beyond >= -band, INSIDE, OUTSIDE).astype(np.int8)
        inside[np.isnan(values)] = UNDEFINED
        return inside


Region = RationalRegion | CallableRegion
