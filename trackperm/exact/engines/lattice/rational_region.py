"""Regions of a rational statistic, decided exactly.

For the threshold n/d, the sign of d * numerator - n * denominator is computed in floating point where the
value exceeds its rounding bound, and in Python integers elsewhere. Points with a division by zero are
evaluated one by one in fractions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.errors import InputError
from trackperm.exact.distributions.characteristic import UNIT, FloatArray
from trackperm.exact.functions.rational import Polynomial, Quotient
from trackperm.exact.types import INSIDE, OUTSIDE, UNDEFINED, IntArray, Membership

Signs = npt.NDArray[np.int8]


class RationalRegion:
    """Points where a rational function is at least, or at most, a threshold; decided exactly.

    `local` is the function as a quotient of polynomials in offsets from `centre`, and `value` returns its
    exact value at a point.
    """

    def __init__(
        self,
        local: Quotient,
        centre: tuple[int, ...],
        value: Callable[[Sequence[int]], Fraction],
        threshold: Fraction,
        upper: bool,
        strict: bool,
        mirror: Sequence[int] | None,
    ) -> None:
        side = 1 if upper else -1
        self._excess = local.numerator.scaled(side * threshold.denominator) - local.denominator.scaled(
            side * threshold.numerator
        )
        self._denominator, self._divisors = local.denominator, local.divisors
        self._centre, self._value, self._threshold = centre, value, threshold
        self._upper, self._strict, self._mirror = upper, strict, mirror

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

    @property
    def is_quadratic_in_rows(self) -> bool:
        """Whether the degree of the comparison in a row is at most 2."""
        return all(exponents[-1] <= 2 for exponents in self._excess.terms)

    def quadratics(
        self, heads: Sequence[IntArray], low: IntArray, high: IntArray, *, one_sign: bool = False
    ) -> RowQuadratics:
        """Return the comparison, of degree at most 2, along pieces {heads} x [low, high] of rows.

        No divisor is to change its sign in a piece, or, with `one_sign`, anywhere.
        """
        *rows, low, high = (
            axis - c for axis, c in zip((*heads, low, high), (*self._centre, self._centre[-1]), strict=True)
        )
        terms, degree = self._excess.terms, self._excess.degree
        # Scaling by a power of two is exact and keeps huge coefficients within the range of floats.
        scale = 1 << max(max((abs(c).bit_length() for c in terms.values()), default=0) - 400, 0)
        powers = []
        for axis in rows:
            offsets = [axis.astype(np.float64)] * degree
            powers.append(list(itertools.accumulate(offsets, np.multiply, initial=np.ones(low.size))))
        monomials = list({exponents[:-1]: None for exponents in terms})
        values = np.empty((len(monomials), low.size))
        factors = np.zeros((3, len(monomials)))
        for place, exponents in enumerate(monomials):
            values[place] = reduce(np.multiply, (powers[i][e] for i, e in enumerate(exponents)))
        for exponents, c in terms.items():
            factors[exponents[-1], monomials.index(exponents[:-1])] = c / scale
        coefficients, sizes = factors @ values, np.abs(factors) @ np.abs(values)
        if one_sign:
            anywhere = self._denominator([int(axis[0]) for axis in (*rows, low)])
            denominator: Signs = np.array([1 if anywhere > 0 else -1], dtype=np.int8)
        else:
            denominator = _signs(self._denominator, (*rows, low))
        reach = np.maximum(np.abs(low), np.abs(high)).astype(np.float64)
        size = (sizes[2] * reach + sizes[1]) * reach + sizes[0]
        # Roundings are one for each sum, a few for the factors of each term, and four for Horner's rule.
        roundings = len(terms) + degree + 12
        is_exact = scale == 1 and size.max(initial=0.0) < 2**52
        errors = np.full(low.size, -1.0) if is_exact else 2.0 * roundings * UNIT * size
        return RowQuadratics(
            self._excess, self._centre, tuple(rows), coefficients, sizes, errors, denominator, self._strict
        )

    @property
    def affine_divisors(self) -> list[tuple[int, tuple[int, ...]]] | None:
        """Constant and slopes of each divisor in lattice coordinates; None if one is not affine."""
        if any(divisor.degree > 1 for divisor in self._divisors):
            return None
        found = []
        for constant, slopes in (divisor.affine_form for divisor in self._divisors):
            shift = sum(slope * at for slope, at in zip(slopes, self._centre, strict=True))
            found.append((constant - shift, slopes))
        return found

    def _decide(self, point: tuple[int, ...]) -> int:
        try:
            value = self._value(point)
        except ZeroDivisionError:
            return UNDEFINED
        if self._mirror is not None:
            try:
                mirrored = str(self._value([e - x for e, x in zip(self._mirror, point, strict=True)]))
            except ZeroDivisionError:
                mirrored = "undefined"
            if mirrored != str(-value):
                raise InputError(
                    f"the declared value of 0/0 makes the statistic {value} after some swaps and {mirrored} "
                    "after the opposite swaps; the two-sided test needs opposite numbers",
                    hint="declare a value of 0/0 that keeps the symmetry, or use `greater` or `less`.",
                )
        beyond = value - self._threshold if self._upper else self._threshold - value
        return INSIDE if (beyond > 0 if self._strict else beyond >= 0) else OUTSIDE


@dataclass(frozen=True)
class RowQuadratics:
    """A polynomial of degree at most 2 in the last coordinate, as c + b v + a v^2 along rows.

    Attributes
    ----------
    polynomial : Polynomial
        The polynomial in offsets from `centre`.
    centre : tuple of int, length r
        Origin of the offsets.
    heads : tuple of r - 1 ndarray of int64, shape (n,)
        All offsets of the rows but the last.
    coefficients : ndarray of float64, shape (3, n)
        c, b and a of each row, rounded and divided by a power of two.
    sizes : ndarray of float64, shape (3, n)
        Sums of the absolute terms of each coefficient.
    errors : ndarray of float64, shape (n,)
        Bounds of the rounding error of the polynomial along each row; negative where floats are exact.
    denominator : ndarray of int8, shape (n,) or (1,)
        Sign of the divisors along each row, or all.
    strict : bool
        Whether ties with the threshold are excluded.
    """

    polynomial: Polynomial
    centre: tuple[int, ...]
    heads: tuple[IntArray, ...]
    coefficients: FloatArray
    sizes: FloatArray
    errors: FloatArray
    denominator: Signs
    strict: bool

    def inside(self, y: IntArray) -> npt.NDArray[np.bool_]:
        """Return whether last coordinates, shape (..., n), are in the region."""
        signs = self.signs(y) * self.denominator
        return np.asarray(signs > 0 if self.strict else signs >= 0)

    def signs(self, y: IntArray) -> Signs:
        """Return the exact signs at last coordinates, shape (..., n), within the pieces."""
        offsets = y - self.centre[-1]
        v = offsets.astype(np.float64)
        c, b, a = self.coefficients
        values = (a * v + b) * v + c
        signs: Signs = np.sign(values).astype(np.int8)
        near = np.abs(values) <= self.errors
        if near.any():
            rows = [np.broadcast_to(axis, y.shape)[near] for axis in self.heads]
            point = [axis.astype(object) for axis in (*rows, offsets[near])]
            exact = np.atleast_1d(self.polynomial(point))
            signs[near] = np.array([(value > 0) - (value < 0) for value in exact], dtype=np.int8)
        return signs

    @property
    def is_concave(self) -> npt.NDArray[np.bool_]:
        """Whether the function that is positive inside the region is concave, if the vertex is known."""
        return np.asarray(self.coefficients[2] * self.denominator < 0)

    @property
    def roots(self) -> FloatArray:
        """Both real roots in offsets from `centre`, the lesser one first, by the form without cancellation.

        If there are none, one of them is the vertex. NaN is where none can be computed.
        """
        c, b, a = self.coefficients
        with np.errstate(all="ignore"):
            root = np.sqrt(np.maximum(b * b - 4.0 * a * c, 0.0))
            q = -0.5 * (b + np.copysign(root, b))
            far, near = q / a, c / q
        return np.stack([np.fmin(far, near), np.fmax(far, near)])

    @property
    def vertices(self) -> tuple[FloatArray, FloatArray]:
        """Vertices in offsets from `centre`, and bounds of their rounding errors."""
        _, b, a = self.coefficients
        _, b_error, a_error = 16.0 * UNIT * self.sizes
        with np.errstate(all="ignore"):
            vertex = -b / (2.0 * a)
            error = (b_error + 2.0 * np.abs(vertex) * a_error) / (2.0 * np.abs(a) - 2.0 * a_error)
        error = np.where(2.0 * a_error < np.abs(a), error, np.inf)
        # A linear row has at most one change of sign, which unequal signs at its ends reveal.
        is_linear = self.sizes[2] == 0.0
        return np.where(is_linear, np.inf, vertex), np.where(is_linear, 0.0, error)


def _signs(polynomial: Polynomial, offsets: Sequence[IntArray]) -> Signs:
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
    # Each term has at most degree + 1 roundings, and the sum one for each term.
    roundings = polynomial.degree + 2 + len(polynomial.terms)
    near = np.abs(values) <= 2.0 * roundings * UNIT * (size / scale)
    if near.any():
        grids = [axis[near].astype(object) for axis in np.broadcast_arrays(*offsets)]
        signs[near] = np.array([(v > 0) - (v < 0) for v in np.atleast_1d(polynomial(grids))], dtype=np.int8)
    return signs


def polynomial_size(polynomial: Polynomial, reach: Sequence[int]) -> int:
    """Return sum_e |c_e| reach^e, a bound of every partial sum where |x_i| <= reach_i."""
    total = 0
    for exponents, c in polynomial.terms.items():
        size = abs(c)
        for r, e in zip(reach, exponents, strict=True):
            size *= r**e
        total += size
    return total
